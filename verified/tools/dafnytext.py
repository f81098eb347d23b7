"""Just enough of Dafny's grammar for checks on its text: declarations with their clauses
and bodies, and statements with the blocks they are made of. dafnytext.py is no program itself: the tools import it."""
import re

DECLARED = re.compile(r"(?<![\w.$])(?:(?:ghost|static|twostate|protected|inductive|copredicate|colemma)\s+)*"
                      r"(function\s+method|predicate\s+method|lemma|colemma|copredicate|function|predicate|method|constructor)\b"
                      r"\s*((?:\{\s*:[^}]*\}\s*)*)([\w']*)")
# after one of these a brace opens a set, not a block
BEFORE_A_SET = re.compile(r"(?:[=+\-&!<,(\[:*]|\|\||\b(?:in|set|iset|map|imap|multiset|modifies|reads|requires|ensures|then|else))$")


def blank(text):
    """the text with its comments blanked out, every position as it was"""
    white = lambda m: re.sub(r"[^\n]", " ", m.group(0))
    return re.sub(r"//[^\n]*|/\*.*?\*/", white, text, flags=re.S)


def closing(t, i):
    """the brace that closes the one at i"""
    depth = 0
    while i < len(t):
        depth += {"{": 1, "}": -1}.get(t[i], 0)
        if depth == 0:
            return i
        i += 1
    return len(t)


def opens_block(t, i):
    before = t[max(0, i - 200):i].rstrip()
    if re.match(r"\{\s*:", t[i:]):
        return False
    return bool(re.search(r"\b(?:decreases[^;{}]*|reads\s*)\*$", before)) or not BEFORE_A_SET.search(before)


def block_from(t, i, stop):
    """the first brace from i on that opens a block, before the enclosing block ends; else None"""
    depth = 0
    while i < stop:
        if t[i] == "{":
            if depth == 0 and opens_block(t, i):
                return i
            i = closing(t, i)
        elif t[i] == "}":
            return None
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(t[i], 0)
        i += 1
    return None


class Decl:
    """one declaration: kind, name, comment above, clauses (with the signature), body (None: it has none), and where it is"""

    def __init__(self, raw, t, m, stop):
        self.kind, self.attributes, self.name, self.at = re.sub(r"\s+", " ", m.group(1)), m.group(2), m.group(3) or "constructor", m.start()
        self.ghost = "ghost" in m.group(0).split() or self.kind in ("lemma", "colemma", "function", "predicate", "copredicate")
        above = raw[:raw.rfind("\n", 0, m.start()) + 1].rstrip("\n").split("\n")
        lines = []
        while above and above[-1].strip().startswith("//"):
            lines.insert(0, above.pop().strip())
        self.comment = "\n".join(lines)
        i = block_from(t, m.end(), stop)
        end = stop if i is None else i
        self.clauses = t[m.end():end]
        self.start, self.end = (None, None) if i is None else (i + 1, closing(t, i))
        self.body = None if i is None else t[self.start:self.end]


def declarations(raw):
    t = blank(raw)
    found = list(DECLARED.finditer(t))
    stops = [m.start() for m in found[1:]] + [len(t)]
    return [Decl(raw, t, m, stop) for m, stop in zip(found, stops)]


class Stmt:
    """kind: "plain", "if", "while", "block"; text: the statement, or the condition"""

    def __init__(self, kind, at, text="", parts=()):
        self.kind, self.at, self.text, self.parts = kind, at, text, parts


def statements(t, i, stop):
    """the statements of t[i:stop]; positions are those in t. Proofs (forall, calc, assert .. by) are one statement each."""
    out = []
    while True:
        while i < stop and (t[i].isspace() or t[i] == ";"):
            i += 1
        if i >= stop:
            return out
        word = re.match(r"\w*", t[i:]).group(0)
        if t[i] == "{":
            end = closing(t, i)
            out.append(Stmt("block", i, parts=(statements(t, i + 1, end),)))
            i = end + 1
        elif word in ("if", "while"):
            b = block_from(t, i, stop)
            end = closing(t, b)
            parts, at, text, i = [statements(t, b + 1, end)], i, t[i + len(word):b], end + 1
            other = re.match(r"\s*else\b\s*", t[i:stop])
            if word == "if" and other:
                j = i + other.end()
                if t[j] == "{":
                    end = closing(t, j)
                    parts.append(statements(t, j + 1, end))
                else:
                    b = block_from(t, j, stop)
                    end = end_of_if(t, j, stop)
                    parts.append(statements(t, j, end))
                i = end + 1
            out.append(Stmt(word, at, " ".join(text.split()), parts))
        else:
            at, depth, end = i, 0, None
            while i < stop and end is None:
                if t[i] == "{":
                    proof = word in ("forall", "calc", "assert") and depth == 0 and (opens_block(t, i) or t[:i].rstrip().endswith(" by"))
                    i = closing(t, i)
                    if proof or word == "match":
                        end = i
                elif t[i] == ";" and depth == 0:
                    end = i
                depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(t[i], 0)
                i += 1
            out.append(Stmt("plain", at, " ".join(t[at:i].split())))
    return out


def end_of_if(t, i, stop):
    """the last brace of the chain of ifs that starts at i"""
    while True:
        end = closing(t, block_from(t, i, stop))
        other = re.match(r"\s*else\b\s*", t[end + 1:stop])
        if not other:
            return end
        i = end + 1 + other.end()
        if t[i] == "{":
            return closing(t, i)


if __name__ == "__main__":
    from command import options
    options("", [], __doc__, words=0)
