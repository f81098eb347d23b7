#!/usr/bin/env python3
"""Check the metatheory: that it is proved, with nothing assumed, and that what it quotes is what stands in verified/.

  - no Admitted, Axiom, Parameter, or the like in any file; Coq 8.16 with stdpp accepts all of them
  - Print Assumptions of each theorem in THEOREMS says that it is closed under the global context
  - each line in quotes after the name of a Dafny file stands in that file, and so does each line of a block of Dafny or Coq in docs/design/metatheory.md

usage: check.py [--quotes | --mutants]
  --quotes   only the last of these, which needs no Coq
  --mutants  also break the definitions one by one (mutants.txt), each of which one proof must notice
"""
import glob, os, re, shutil, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
# in the order in which they are compiled
FILES = ["Tactics", "History", "Bridge", "Programs", "Spec", "Execution", "Clients", "Example", "Counterexamples", "Waiting"]
THEOREMS = {
    "Programs": ["log_is_run", "run_is_log", "at_its_place"],
    "Clients": ["clients_see_the_specification", "nothing_shown_is_lost"],
    "Example": ["it_happens", "clients_of_the_example"],
    "Counterexamples": ["without_real_time", "without_waiting"],
    "Waiting": ["nobody_is_forgotten", "no_wish_is_forgotten", "nothing_stands_still"],
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


def lines_of(path):
    return [line.strip() for line in text(path).splitlines()]


def quotes():
    """what is wrong with the quotes; and how many there are"""
    bad, number = [], 0

    def look(where, path, quoted):
        if not os.path.isfile(path):
            bad.append("%s: no file %s" % (where, os.path.relpath(path, ROOT)))
        elif not any(quoted in line for line in lines_of(path)):
            bad.append("%s: not in %s: %s" % (where, os.path.relpath(path, ROOT), quoted))

    for f in FILES:
        for n, line in enumerate(text(os.path.join(HERE, f + ".v")).splitlines(), 1):
            for name in re.findall(r'([\w/.]+\.dfy):', line):
                m = re.search(r'([\w/.]+\.dfy): "(.+)"( \*\))?$', line)
                if not m:
                    bad.append("%s.v:%d: not a quote: %s" % (f, n, line.strip()))
                else:
                    number += 1
                    look("%s.v:%d" % (f, n), os.path.join(ROOT, "verified", m.group(1)), m.group(2))
    page = os.path.join(ROOT, "docs", "design", "metatheory.md")
    fence = None
    for n, line in enumerate(text(page).splitlines(), 1):
        if line.startswith("```"):
            fence = None if fence else line[3:].split()
            if fence and (len(fence) != 2 or fence[0] not in ("dafny", "coq")):
                bad.append("docs/design/metatheory.md:%d: a block without its file" % n)
        elif fence and line.strip():
            number += 1
            look("docs/design/metatheory.md:%d" % n, os.path.join(*(ROOT, "verified", fence[1]) if fence[0] == "dafny" else (HERE, fence[1])), line.strip())
    return bad, number


def coqc(folder, f):
    p = subprocess.run(["coqc", "-q", "-Q", ".", "Tansy", f + ".v"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
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
    for line in text(os.path.join(HERE, "mutants.txt")).splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        f, old, new, (by, proof) = [x.strip().replace("\\n", "\n") if i != 3 else [y.strip() for y in x.split(":")] for i, x in enumerate(line.split(" | "))]
        whole = text(os.path.join(HERE, f + ".v"))
        if whole.count(old) != 1:
            bad.append("%s.v: has not once: %s" % (f, old))
            continue
        with tempfile.TemporaryDirectory() as tmp:
            verdict = "SURVIVED"
            for g in FILES:
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


def main():
    if sys.argv[1:] not in ([], ["--quotes"], ["--mutants"]):
        sys.exit(__doc__)
    bad, number = quotes()
    print("%d lines quoted, %d of them wrong" % (number, len(bad)))
    if sys.argv[1:] != ["--quotes"]:
        with tempfile.TemporaryDirectory() as folder:
            wrong = proofs(folder)
            print("%d files, %d theorems: %s" % (len(FILES), sum(map(len, THEOREMS.values())), "NOT PROVED" if wrong else "proved, closed under the global context"))
            bad += wrong
            if sys.argv[1:] == ["--mutants"] and not wrong:
                bad += mutants(folder)
    for b in bad:
        print("check.py:", b, file=sys.stderr)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
