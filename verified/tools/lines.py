#!/usr/bin/env python3
"""Count the lines of specification, proof, and code of each layer.
usage: lines.py [-w] [-v] [--selftest] [FILE.dfy...]
  -w  write the table into docs/design/kin.md; without files and -w the table there is compared
  -v  show each line of the files with what it counts as: S, P, or C
  --selftest  count a file of which it is known what each line is
  with files: count these

Blank lines and comments do not count. A line counts once, by these rules:
  specification  all of trusted/ and of *.s.dfy
  proof          lemmas; functions and predicates that are not compiled; ghost methods, fields, and variables; requires, ensures,
                 invariant, modifies, reads, and decreases; assert, calc, forall, reveal; calls of lemmas and of ghost methods;
                 assignments to what is ghost; an if or a while around nothing but these; whole files without a compiled body
  code           the rest: what is translated to Go, the declarations around it, and imports
A line that holds both is code. What is code according to Dafny's own printer without ghosts has been compared (docs/design/kin.md)."""
import glob, os, re, sys
from command import options
from dafnytext import blank, block_from, closing, declarations, end_of_if, statements
from sources import ROOT, text

PAGE = os.path.join(os.path.dirname(ROOT), "docs", "design", "kin.md")
BEGIN, END = "<!-- verified/tools/lines.py -w -->\n", "<!-- end -->\n"
LAYERS = [
    ("NFSv3 and local mounts: the specification", "fs/spec/*.s.dfy"),
    ("contracts of hand-written Go", "trusted/*.dfy"),
    ("what follows from the specification; scenarios", "fs/spec/*[!s].dfy fs/spec/*[!.]s.dfy"),
    ("journal", "journal/*.dfy"),
    ("transactions", "txn/*.dfy"),
    ("format, blocks, mkfs", "fs/format/*.dfy fs/blocks/*.dfy fs/mkfs/*.dfy"),
    ("files, extended attributes", "fs/files/*.dfy"),
    ("directories, tree of names", "fs/directories/*.dfy fs/tree/*.dfy"),
    ("what a volume means", "fs/refinement/*.dfy"),
    ("procedures, records of calls, runner", "fs/procedures/*.dfy fs/replies/*.dfy fs/exec/*.dfy"),
    ("volumes on devices elsewhere", "remote/*.dfy"),
    ("locks between clients", "advisory/*.dfy"),
    ("machine integers, bytes", "lib/*.dfy"),
]
CLAUSE = re.compile(r"\b(requires|ensures|invariant|modifies|reads|decreases)\b")
PROOF = re.compile(r"(assert|calc|forall|reveal|ghost)\b")
GHOST = re.compile(r"\bghost\s+(?:var|const)\s+([^;{}\n]*)")


def everything():
    return [f for f in glob.glob(os.path.join(ROOT, "**", "*.dfy"), recursive=True) + glob.glob(os.path.join(ROOT, "..", "example", "**", "*.dfy"), recursive=True)]


def names():
    """lemmas and ghost methods; ghost fields: by name alone, less those of compiled things with the same name"""
    ghosts, compiled, fields, stored = set(), set(), set(), set()
    for f in everything():
        raw = text(f)
        for d in declarations(raw):
            (ghosts if is_proof(d) else compiled).add(d.name)
        members = outside(raw)
        fields |= ghost_names(members)
        stored |= set(re.findall(r"(?<!ghost )\bvar\s+([\w']+)", members))
    return ghosts - compiled, fields - stored


def outside(raw):
    """a text without its declarations' clauses and bodies: the fields of classes are left"""
    t = blank(raw)
    for d in reversed(declarations(raw)):
        t = t[:d.at] + (t[d.end + 1:] if d.end is not None else t[d.at + len(d.clauses):])
    return t


def is_proof(d):
    return d.ghost and not d.kind.endswith(" method")


def ghost_names(t):
    """the variables that a text declares ghost"""
    out = set()
    for m in GHOST.finditer(t):
        out |= set(re.findall(r"(?:^|,)\s*([\w']+)\s*(?=[:,]|$)", re.split(r":=|:\|", m.group(1))[0]))
    return out


class Marks:
    """which characters of a text are proof"""

    def __init__(self, t, ghosts, fields):
        self.t, self.ghosts, self.fields = t, ghosts, fields
        self.proof = bytearray(len(t))

    def mark(self, a, b):
        self.proof[a:b] = b"\1" * (b - a)

    def clauses(self, a, b):
        """marks the clauses in t[a:b]; what is before the first is a signature or a condition"""
        m = CLAUSE.search(self.t, a, b)
        if m:
            self.mark(m.start(), b)

    def body(self, a, b, local):
        for s in statements(self.t, a, b):
            self.statement(s, b, local)

    def statement(self, s, stop, local):
        """marks what is proof of a statement; says if all of it is"""
        if s.kind == "plain":
            end = after(self.t, s.at, s.text)
            ghost = self.is_proof(s.text, local)
            if ghost:
                self.mark(s.at, end)
            return ghost
        inner = [self.statement(x, stop, local) for part in s.parts for x in part]
        if s.kind == "block":
            return bool(inner) and all(inner)
        first = block_from(self.t, s.at + len(s.kind), stop)
        if all(inner) and (inner or s.kind == "if"):
            self.mark(s.at, 1 + (end_of_if(self.t, s.at + 2, stop) if s.kind == "if" else closing(self.t, first)))
            return True
        self.clauses(s.at, first)
        return False

    def is_proof(self, s, local):
        if PROOF.match(s):
            return True
        call = re.match(r"(?:[\w']+\.)*([\w']+)(?:<[^()]*>)?\s*\(", s)
        if call and ":=" not in s.split("(")[0] and call.group(1) in self.ghosts:
            return True
        m = re.match(r"((?:[\w.']+\s*,\s*)*[\w.']+)\s*:[=|]", s)
        return bool(m) and all(self.ghost(x.strip(), local) for x in m.group(1).split(","))

    def ghost(self, target, local):
        head, _, last = target.rpartition(".")
        return last in self.fields if head else last in local


def after(t, i, said):
    """where a statement ends that starts at i, and whose text without white space is that of said"""
    left = len(re.sub(r"\s", "", said))
    while left and i < len(t):
        left -= not t[i].isspace()
        i += 1
    return i


def classify(f, known, raw=None):
    """for each line of a file that counts: its number, and S, P, or C (its text may be given)"""
    raw = text(f) if raw is None else raw
    t = blank(raw)
    lines, at = t.split("\n"), 0
    declared = declarations(raw)
    if f.endswith(".s.dfy") or os.path.basename(os.path.dirname(os.path.abspath(f))) == "trusted":
        return [(n, "S") for n, l in enumerate(lines, 1) if l.strip()]
    if not any(not is_proof(d) and d.body for d in declared):
        return [(n, "P") for n, l in enumerate(lines, 1) if l.strip()]
    own = ghost_names(outside(raw)) & known[1]     # ghost fields of this file's classes
    marks = Marks(t, *known)
    for m in GHOST.finditer(t):
        marks.mark(m.start(), m.end())
    for d in declared:
        end = d.at + re.match(r"[^\n]*", t[d.at:]).end() if d.end is None else d.end + 1
        if is_proof(d):
            marks.mark(d.at, end)
        else:
            # A signature ends where the first clause begins.
            start = end if d.start is None else d.start - 1
            marks.clauses(d.at, start)
            if d.body is not None and d.kind in ("method", "constructor"):
                compiled = set(re.findall(r"(?<!ghost )\b([\w']+)\s*:(?!=)", d.clauses)) | set(re.findall(r"(?<!ghost )\bvar\s+([\w']+)", d.body))
                local = ghost_names(d.body) | set(re.findall(r"\bghost\s+([\w']+)", d.clauses)) | (own - compiled)
                marks.body(d.start, d.end, local)
    out = []
    for n, l in enumerate(lines, 1):
        solid = [i for i, c in enumerate(l) if not c.isspace()]
        if solid:
            words = [i for i in solid if l[i] not in "{};"] or solid
            out.append((n, "P" if all(marks.proof[at + i] for i in words) else "C"))
        at += len(l) + 1
    return out


def count(files, known):
    kinds = [k for f in files for _, k in classify(f, known)]
    return [kinds.count(k) for k in "SPC"]


def table(known):
    out = "| layer | folders of `verified/` | specification | proof | code | proof for a line of code |\n|---|---|---|---|---|---|\n"
    every, seen = [0, 0, 0], set()
    for what, patterns in LAYERS:
        files = sorted({f for p in patterns.split() for f in glob.glob(os.path.join(ROOT, p))} - seen)
        if what.startswith("what follows"):
            files = [f for f in files if not f.endswith(".s.dfy")]
        seen |= set(files)
        n = count(files, known)
        every = [a + b for a, b in zip(every, n)]
        folders = ", ".join("`%s`" % x for x in dict.fromkeys(p.split("/*")[0] + ("/*.s.dfy" if ".s.dfy" in p else "") for p in patterns.split()))
        out += row(what, folders, n)
    left = {f for f in glob.glob(os.path.join(ROOT, "**", "*.dfy"), recursive=True)} - seen - {os.path.join(ROOT, "compile.dfy")}
    if left:
        sys.exit("lines.py: no layer has " + ", ".join(os.path.relpath(f, ROOT) for f in sorted(left)))
    return out + row("**all**", "", every)


def row(what, folders, n):
    return "| %s | %s | %s | %s |\n" % (what, folders, " | ".join("{:,}".format(x) if x else "" for x in n), "%.1f" % (n[1] / n[2]) if n[2] else "")


SAMPLE = """
C|module Sample {
C|  class Box {
C|    var data: int
P|    ghost var shadow: int
P|    ghost const first: int
 |    // what the box means
P|    predicate Valid() reads this { data == shadow }
C|    predicate method Empty() reads this { data == 0 }
C|    method Put(n: int, ghost why: int) returns (ok: bool, ghost seen: int)
P|      modifies this
P|      requires Valid()
P|      ensures ok ==>
P|        data == n
C|    {
P|      seen := why;
P|      assert Valid() by {
P|        Fact(n);
P|      }
P|      ghost var m := n;
C|      data := n;
P|      shadow := n;
P|      this.shadow := m;
P|      if m == 0 {
P|        Fact(n);
P|      }
C|      if n > 3 {
P|        Fact(n);
C|        data := n; shadow := n;
C|      }
C|      while data > 3
P|        invariant Valid()
P|        decreases data
C|      { data, shadow := data - 1, shadow - 1; }
P|      forall i | i > 0 ensures i > -1 {}
C|      ok := Other(n);
C|    }
C|  }
P|  lemma Fact(n: int)
P|    ensures n == n
P|  {
P|    var unused := n;
P|  }
P|  function Twice(n: int): int { 2 * n }
C|  method Other(n: int) returns (ok: bool) { ok := n > 0; }
C|}
"""


def selftest():
    """what the sample's lines are taken for, beside what they are"""
    told = [l.split("|", 1) for l in SAMPLE.strip("\n").split("\n")]
    found = dict(classify("sample.dfy", ({"Fact"}, {"shadow", "first"}), "\n".join(l for _, l in told)))
    wrong = [(found.get(n, " "), kind, l) for n, (kind, l) in enumerate(told, 1) if found.get(n, " ") != kind]
    for w in wrong:
        print("taken for %s, and is %s: %s" % w)
    return not wrong


if __name__ == "__main__":
    opts, files = options("wv", ["selftest"], __doc__, files=True)
    args = {o for o, _ in opts}
    if "--selftest" in args:
        sys.exit(not selftest())
    known = names()
    for f in files:
        if "-v" in args:
            kinds = dict(classify(f, known))
            for n, l in enumerate(text(f).split("\n"), 1):
                print("%s %s" % (kinds.get(n, " "), l))
        print("%s: specification %d, proof %d, code %d" % ((os.path.relpath(f),) + tuple(count([f], known))))
    if not files:
        page, new = text(PAGE), table(known)
        before, rest = page.split(BEGIN)
        old, rest = rest.split(END, 1)
        if "-w" in args:
            with open(PAGE, "w") as h:
                h.write(before + BEGIN + new + END + rest)
        elif old != new:
            sys.exit("docs/design/kin.md does not say how many lines there are: verified/tools/lines.py -w")
