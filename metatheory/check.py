#!/usr/bin/env python3
"""Check the metatheory: that it is proved, with nothing assumed, and that what it quotes is what stands in verified/.

  - no Admitted, Axiom, Parameter, or the like in any file; Coq 8.16 with stdpp accepts all of them
  - Print Assumptions of each theorem in THEOREMS says that it is closed under the global context
  - each line in quotes stands in the declaration of the file that are named before it, once, or as often as is said:
        journal/policy.dfy NoteStart: "j.mutex.WakeAll(CSpace);"      txn/serial.dfy Crash x2: "..."
    It is a whole line there, without its comment. (head) is the comment above the first declaration. So is each line of
    a block of Dafny in docs/design/metatheory.md, whose first line names the file and the declarations. (A line of a
    block of Coq stands in its file.)
  - each line of the journal and the transactions that wakes threads or waits is quoted
  - with a quoted line taken away or changed where it counts, as mutants.txt says, this is noticed

usage: check.py [--quotes | --mutants]
  --quotes   only what is said of quotes, which needs no Coq
  --mutants  also break the definitions one by one (mutants.txt), each of which one proof must notice
environment: STAMPS, a folder. Where the same Coq has accepted the same files before, with their mutants, a file there
             says so, and Coq is not run again. Without it, all is done.
"""
import glob, hashlib, os, re, shutil, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
# in the order in which they are compiled
FILES = ["Tactics", "History", "Bridge", "Programs", "Spec", "Execution", "Clients", "Example", "Counterexamples",
         "SimpleNfs", "Waiting", "Interleaving", "Interleaved"]
THEOREMS = {
    "Programs": ["log_is_run", "run_is_log", "at_its_place"],
    "Clients": ["clients_see_the_specification", "nothing_shown_is_lost"],
    "Example": ["it_happens", "clients_of_the_example"],
    "Counterexamples": ["without_real_time", "without_waiting"],
    "SimpleNfs": ["simplenfs_alone", "clients_of_simplenfs", "states_are_possible", "written_is_read",
                  "it_serves"],
    "Waiting": ["nobody_is_forgotten", "no_wish_is_forgotten", "nothing_stands_still"],
    "Interleaving": ["as_if_by_turns", "no_data_race", "a_crash_finds_whole_blocks"],
    "Interleaved": ["it_is_met", "it_is_as_said", "without_the_mutex", "without_a_yield", "without_one_operation",
                    "without_mutex_and_role"],
}
FORBIDDEN = r"\b(Admitted|admit|give_up|Axioms?|Parameters?|Conjectures?|Primitive|bypass_check|Unset\s+\w+\s+Checking|type_in_type)\b"


def text(path):
    with open(path) as h:
        return h.read()


def without_comments(t):
    """the text with comments blanked; they nest, and hold no strings with comment signs"""
    out, depth, i = [], 0, 0
    while i < len(t):
        if t.startswith("(*", i):
            depth, i = depth + 1, i + 2
        elif depth and t.startswith("*)", i):
            depth, i = depth - 1, i + 2
        else:
            out.append(t[i] if not depth or t[i] == "\n" else " ")
            i += 1
    return "".join(out)


# "example/..." is a folder of the repository, any other name is below verified/
QUOTED = re.compile(r'([\w/.]+\.(?:dfy|go)) (\(head\)|\w+)(?: x(\d+))?:\s+"(.+)"(?= \*\)$|$)', re.M)
SEEMS_QUOTED = re.compile(r'[\w/.]+\.(?:dfy|go)[^":\n]*:\s+"')
DECLARED = re.compile(r"\s*(?:(?:ghost|static|twostate|protected|inductive)\s+)*"
                      r"(?:(?:method|function|predicate|lemma|datatype|type|newtype|class|trait|module|const)\b"
                      r"(?:\s+method\b)?(?:\s*\{:[^}]*\})*|func(?: \(.*?\))?)\s+(\w+)")
WAKES = re.compile(r"\bmutex\.(?:Wake\w*|Wait)\(")


class Sources:
    """the files that are quoted; one of them may be other than it is (edits: path -> text)"""

    def __init__(self, edits=None):
        self.edits, self.known = edits or {}, {}

    def place(self, name):
        return os.path.join(ROOT, *([] if name.startswith("example/") else ["verified"]), name)

    def declarations(self, name):
        """the lines of each declaration of a file, by its name, without comments; None if there is no such file"""
        if name not in self.known:
            path = self.place(name)
            if not os.path.isfile(path):
                return None
            lines, at = {"(head)": []}, "(head)"
            for line in (self.edits.get(name) or text(path)).splitlines():
                m = DECLARED.match(line)
                at = m.group(1) if m else at
                line = line.strip()
                line = line.lstrip("/ ") if at == "(head)" else re.sub(r"\s*//.*", "", line)
                lines.setdefault(at, []).append(line)
            self.known[name] = lines
        return self.known[name]


def quotes_of_coq():
    """where, file, declaration, how often, line: of each quote in Coq; and what is none though it looks like one"""
    found, bad = [], []
    for f in FILES:
        t = text(os.path.join(HERE, f + ".v"))
        at = {}
        for m in QUOTED.finditer(t):
            at[m.start(1)] = "%s.v:%d" % (f, t.count("\n", 0, m.start()) + 1)
            found.append((at[m.start(1)], m.group(1), m.group(2), int(m.group(3) or 1), m.group(4)))
        bad += ["%s.v:%d: not a quote: %s" % (f, t.count("\n", 0, m.start()) + 1, m.group(0))
                for m in SEEMS_QUOTED.finditer(t) if m.start() not in at]
    return found, bad


def quotes_of_page():
    """the same of docs/design/metatheory.md; and where, file, and line of what is quoted of Coq"""
    found, coq, bad, fence = [], [], [], None
    where = "docs/design/metatheory.md:%d"
    block = []
    for n, line in enumerate(text(os.path.join(ROOT, "docs", "design", "metatheory.md")).splitlines(), 1):
        if line.startswith("```"):
            fence = None if fence else line[3:].split()
            if fence and not (fence[0] == "dafny" and len(fence) > 2 or fence[0] == "coq" and len(fence) == 2):
                bad.append(where % n + ": a block without its file, or of Dafny without its declarations")
            for q in set(block):
                found.append((q[0], q[1], q[2], sum(b[1:] == q[1:] for b in block), q[3]))
            block = []
        elif fence and fence[0] == "coq" and line.strip():
            coq.append((where % n, fence[1], line.strip()))
        elif fence and re.search(r"\w", line):
            block.append((where % n, fence[1], tuple(fence[2:]), line.strip()))
    return found, coq, bad


def wrong_quotes(sources, found):
    """what is wrong with the quotes: where, file, declarations (one, or a tuple), how often, line"""
    bad = []
    for where, name, names, times, line in found:
        names = names if isinstance(names, tuple) else (names,)
        lines = sources.declarations(name)
        missing = [] if lines is None else [d for d in names if d not in lines]
        if lines is None or missing:
            bad.append("%s: no %s %s" % (where, name, " ".join(missing)))
            continue
        number = sum(lines[d].count(line) for d in names)
        if number != times:
            bad.append("%s: %d times, not %d, in %s of %s: %s" % (where, number, times, " ".join(names), name, line))
    return bad


def unquoted_wakes(sources, found):
    """lines that wake or wait and are not quoted"""
    quoted = {(name, d, line) for _, name, d, _, line in found if not isinstance(d, tuple)}
    bad = []
    for path in sorted(glob.glob(os.path.join(ROOT, "verified", "journal", "*.dfy")) +
                       glob.glob(os.path.join(ROOT, "verified", "txn", "*.dfy"))):
        name = os.path.relpath(path, os.path.join(ROOT, "verified")).replace(os.sep, "/")
        for d, lines in sources.declarations(name).items():
            bad += ["%s %s: wakes or waits, and no file of Coq quotes it: %s" % (name, d, line)
                    for line in lines if d != "(head)" and WAKES.search(line) and (name, d, line) not in quoted]
    return bad


def quotes():
    """what is wrong with the quotes; and how many there are"""
    found, bad = quotes_of_coq()
    of_page, coq, wrong = quotes_of_page()
    sources = Sources()
    bad += wrong + wrong_quotes(sources, found + of_page) + unquoted_wakes(sources, found)
    for where, name, line in coq:
        path = os.path.join(HERE, name)
        if not os.path.isfile(path) or not any(line in x for x in text(path).splitlines()):
            bad.append("%s: not in %s: %s" % (where, name, line))
    return bad, len(found) + len(of_page) + len(coq)


def unnoticed():
    """which changes of quoted lines (mutants.txt: FILE DECLARATION | line | instead | quotes) are not noticed; and how
    many changes there are"""
    found, bad, number = quotes_of_coq()[0], [], 0
    for what, old, new, by in mutant_lines():
        if by != "quotes":
            continue
        number += 1
        name, d = what.split()
        lines, at, hits = text(Sources().place(name)).splitlines(), None, []
        for n, line in enumerate(lines):
            m = DECLARED.match(line)
            at = m.group(1) if m else at
            if at == d and line.strip() == old:
                hits.append(n)
        if not hits:
            bad.append("%s: has not: %s" % (what, old))
            continue
        lines[hits[0]] = new
        sources = Sources({name: "\n".join(lines)})
        if not wrong_quotes(sources, found) and not unquoted_wakes(sources, found):
            bad.append("%s: not noticed: %s -> %s" % (what, old, new))
    return bad, number


def mutant_lines():
    """the four columns of each line of mutants.txt; \\n is a new line"""
    for line in text(os.path.join(HERE, "mutants.txt")).splitlines():
        if line.strip() and not line.startswith("#"):
            yield [x.strip().replace("\\n", "\n") for x in re.split(r"(?<= )\|(?= )", line)]


def coqc(folder, f):
    pages = dict({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}, **os.environ)  # large ones, with which it is faster by half
    p = subprocess.run(["coqc", "-q", "-Q", ".", "Tansy", f + ".v"], cwd=folder, env=pages, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, universal_newlines=True)
    return p.returncode == 0, p.stdout.strip()


def proofs(folder):
    """compiles all in folder; what is wrong"""
    bad = ["%s.v: %s" % (f, w) for f in FILES for w in re.findall(FORBIDDEN, without_comments(text(os.path.join(HERE, f + ".v"))))]
    bad += ["%s is not compiled" % os.path.basename(f) for f in glob.glob(os.path.join(HERE, "*.v")) if os.path.basename(f)[:-2] not in FILES]
    for f in FILES:
        shutil.copy(os.path.join(HERE, f + ".v"), folder)
        fine, out = coqc(folder, f)
        if not fine:
            return bad + [out]
    for f, names in THEOREMS.items():
        for name in names:
            with open(os.path.join(folder, "Assumptions.v"), "w") as h:
                h.write("From Tansy Require Import %s.\nPrint Assumptions %s.\n" % (f, name))
            fine, out = coqc(folder, "Assumptions")
            if not fine or out != "Closed under the global context":
                bad.append("%s rests on something: %s" % (name, out))
    return bad


def mutants(folder):
    """mutants.txt: FILE | text | replacement | FILE that must fail: PROOF. Everything up to there must still compile, so that a mutant
    fails for what it says, not for its syntax; and it must fail within that proof."""
    bad = []
    for f, old, new, by in mutant_lines():
        if by == "quotes":
            continue
        by, proof = by.split(": ")
        whole = text(os.path.join(HERE, f + ".v"))
        if whole.count(old) != 1:
            bad.append("%s.v: has not once: %s" % (f, old))
            continue
        with tempfile.TemporaryDirectory() as tmp:
            verdict = "SURVIVED"
            for g in FILES[:FILES.index(f)]:     # no change there
                shutil.copy(os.path.join(folder, g + ".vo"), tmp)
            for g in FILES[FILES.index(f):]:
                shutil.copy(os.path.join(HERE, g + ".v"), tmp)
                if g == f:
                    with open(os.path.join(tmp, g + ".v"), "w") as h:
                        h.write(whole.replace(old, new))
                fine, out = coqc(tmp, g)
                if not fine:
                    at = int(re.search(r"line (\d+)", out).group(1))
                    before = "\n".join(text(os.path.join(tmp, g + ".v")).splitlines()[:at])
                    name = re.findall(r"^\s*(?:Lemma|Theorem|Corollary|Example)\s+(\w+)", before, re.M)
                    verdict = "rejected" if g == by and name and name[-1] == proof else "WRONG REASON: %s.v, %s: %s" % (g, name[-1:], out)
                    break
        print("%-9s %s.v: %s -> %s (%s)" % (verdict.split(":")[0], f, old, new, proof), flush=True)
        if verdict != "rejected":
            bad.append("%s.v: %s -> %s: %s" % (f, old, new, verdict))
    return bad


def digest():
    """of everything that the verdict of Coq depends on"""
    version = subprocess.run(["coqc", "--version"], stdout=subprocess.PIPE, check=True).stdout
    files = sorted(glob.glob(os.path.join(HERE, "*.v")))
    files += [os.path.join(HERE, "mutants.txt"), os.path.abspath(__file__)]
    all_of_them = "".join("%s %s" % (os.path.basename(f), text(f)) for f in files)
    return hashlib.sha256(version + all_of_them.encode()).hexdigest()


def coq(with_mutants):
    """the proofs, and the mutants of them; what is wrong"""
    what = "%d files, %d theorems" % (len(FILES), sum(map(len, THEOREMS.values())))
    stamps = os.environ.get("STAMPS")
    stamp = stamps and os.path.join(stamps, "metatheory-%s.ok" % digest())
    if stamp and os.path.exists(stamp):
        print("%s: proved before, with their mutants rejected" % what)
        return []
    with tempfile.TemporaryDirectory() as folder:
        bad = proofs(folder)
        print("%s: %s" % (what, "NOT PROVED" if bad else "proved, closed under the global context"))
        if with_mutants and not bad:
            bad = mutants(folder)
            if stamp and not bad:
                os.makedirs(stamps, exist_ok=True)
                open(stamp, "w").close()
    return bad


def main():
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        sys.exit(0)
    if sys.argv[1:] not in ([], ["--quotes"], ["--mutants"]):
        print("check.py: unknown words: %s\n\n%s" % (" ".join(sys.argv[1:]), __doc__), file=sys.stderr)
        sys.exit(2)
    bad, number = quotes()
    unseen, changes = unnoticed()
    print("%d lines quoted, %d of them wrong; %d changes of such lines, %d of them not noticed" %
          (number, len(bad), changes, len(unseen)))
    bad += unseen
    if sys.argv[1:] != ["--quotes"]:
        bad += coq(sys.argv[1:] == ["--mutants"])
    for b in bad:
        print("check.py:", b, file=sys.stderr)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
