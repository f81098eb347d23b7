#!/usr/bin/env python3
"""Break the verified code and its specification on purpose, one change at a time, and
see that it no longer verifies: a dropped barrier, a missing check, a clause left out. A
proof that survives its mutants proves too little; a specification that survives them says too little.
usage: mutants.py [-j N] [-n [-w] | -r] [--markdown FILE] [WORD...]
  WORD        only the mutants of area WORD, or whose name contains it
  -n          prove nothing: only say which mutants no longer find their text or their prover's file; without words, also
              whether docs/evidence/mutants.md has their number
  -w          with -n: write that number there
  -r          prove nothing: only say which mutants Dafny does not resolve, so that they show nothing (a minute)
  --markdown  write the table of all verdicts (the last one is mutants/verdicts.md)
env: Z3 (path), DAFNY (command)

mutants/AREA.py lists tuples: the file below the area's folder, a name, the text, its replacement, and
who must reject it: a pattern of methods, after "FILE:" if they stand in another file. Only these are
verified. A sixth part is the reason why the mutant means the same and is to survive.
Area yields is made here: each Yield left out.
mutants/threads.py has what the checks of the text must find (threads.py --selftest tries these alone)."""
import ast, concurrent.futures as cf, fnmatch, glob, os, re, shutil, signal, subprocess, sys, tempfile, time
import resolves, threads
from dafnytext import blank
from command import options

opts, words = options("j:nrw", ["markdown="], __doc__)
opts = dict(opts)
here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(here)
PAGE = os.path.join(os.path.dirname(root), "docs", "evidence", "mutants.md")
BEGIN, END = "<!-- verified/tools/mutants.py -n -w -->\n", "<!-- end -->\n"
# area, what it is, folder of its files
AREAS = [("journal", "the journal", "journal"), ("txn", "the transactions", "txn"), ("yields", "the Yields", ""), ("threads", "what the checks of the text find", ""),
         ("spec", "the specification", "fs"), ("fs", "the file system", "fs"), ("remote", "what is done for devices elsewhere", "remote"),
         ("advisory", "locks between clients", "advisory"), ("simplenfs", "the example", "../example/simplenfs")]


def yields():
    """each Yield of a program left out: to be rejected by that program's proof"""
    out, files = [], threads.sources()
    for f in glob.glob(os.path.join(root, "fs", "exec", "*.dfy")):
        with open(f) as h:
            files[os.path.relpath(f, root)] = h.read()
    for path, raw in sorted(files.items()):
        for m in re.finditer(r"\b[A-Z]Yield\([^()]*\);", blank(raw)):
            program = enclosing(raw, m.start())
            n = sum(x[4] == "*." + program and x[0] == path[:-4] for x in out) + 1
            out.append((path[:-4], "no Yield %d in %s" % (n, program), raw[:m.end()], raw[:m.start()], "*." + program))
    return out


def listed(area):
    if area == "yields":
        return yields()
    with open(os.path.join(here, "mutants", area + ".py")) as h:
        return ast.literal_eval(h.read())


def prove(path, proc):
    """what Dafny makes of the methods that match proc"""
    p = subprocess.Popen([os.environ.get("DAFNY", "dafny"), "/nologo", "/compile:0", "/z3exe:" + os.path.join(here, "solver.py"),
                          "/noNLarith", "/timeLimit:60", "/errorLimit:1", "/vcsCores:1", "/definiteAssignment:3", "/proc:" + proc, path],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, start_new_session=True)
    try:
        out = p.communicate(timeout=200)[0]
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        p.communicate()
        return "rejected (no proof in 200 s)"
    r = re.search(r"finished with (\d+) verified, (\d+) errors?(.*)", out)
    if not r:
        return "NOT APPLICABLE: " + out.strip().splitlines()[-1]
    if r.group(2) != "0":
        return "rejected"
    if "time out" in r.group(3):
        return "rejected (no proof in 60 s)"
    return "SURVIVED" if r.group(1) != "0" else "NOT APPLICABLE: no method " + proc


def stale(m):
    """why the mutant cannot be made any more, if so"""
    if m[0] == "threads":  # threads.py --selftest says so
        return ""
    folder, (f, _, a, _, by) = m[1], m[2][:5]
    for name in (f, by.split(":")[0] if ":" in by else f):
        if not os.path.isfile(os.path.join(root, folder, name + ".dfy")):
            return "no file " + name
    with open(os.path.join(root, folder, f + ".dfy")) as h:
        text = h.read()
    if a not in text:
        return "no such text"
    body = enclosing(text, text.index(a))
    if body and ":" not in by and not fnmatch.fnmatch(body, re.split(r"[*.]", by)[-1]):
        return "its text stands in the body of " + body
    return ""


def enclosing(text, i):
    """the method in whose body the i-th character stands, if it is in one"""
    heads = list(re.finditer(r"^ *(?:(?:ghost|static|twostate) )*(method|lemma|function|predicate|constructor|datatype|class)\b(?: method)? *(?:\{[^}]*\} *)*(\w*)", text[:i], re.M))
    if not heads or heads[-1].group(1) not in ("method", "lemma"):
        return None
    inside = re.search(r"^ *\{(?: |$)", text[heads[-1].start():i + 1], re.M)
    return heads[-1].group(2) if inside else None


def run(m):
    if m[0] == "threads":
        where, _, a, b = m[2]
        return {None: "NOT APPLICABLE: no such text", True: "rejected", False: "SURVIVED"}[threads.notices(sources, where, a, b)], 0
    folder, (f, name, a, b, by) = m[1], m[2][:5]
    begin = time.time()
    tmp = tempfile.mkdtemp()
    try:
        copy = os.path.join(tmp, "verified")
        for d in resolves.FOLDERS:
            shutil.copytree(os.path.join(root, d), os.path.join(copy, d))
        path = os.path.join(copy, folder, f + ".dfy")
        with open(path) as h:
            text = h.read()
        if a not in text:
            return "NOT APPLICABLE: no such text", 0
        with open(path, "w") as h:
            h.write(text.replace(a, b, 1))
        prover, proc = by.split(":") if ":" in by else (f, by)
        return prove(os.path.join(copy, folder, prover + ".dfy"), proc), time.time() - begin
    finally:
        shutil.rmtree(tmp)


def read(area, folder, m):
    """a mutant for resolves.py"""
    f, name, a, b, by = m[:5]
    prover = by.split(":")[0] if ":" in by else f
    path, prover = (os.path.normpath(os.path.join(folder, x + ".dfy")) for x in (f, prover))
    return resolves.Mutant("%s: %s" % (area, name), path, a, b, prover)


def good(m, verdict):
    return verdict == "SURVIVED" if len(m[2]) > 5 else verdict.startswith("rejected")


def markdown(rows, seconds):
    commit = subprocess.run(["git", "-C", root, "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, universal_newlines=True).stdout.strip()
    out = ["# Mutants of the verified code and its specification", "",
           "Each line is one change to a Dafny file, and what no longer verifies with it: methods, lemmas, or a check of the text.",
           "`make mutants` makes them all; the changes themselves are in `verified/tools/mutants/`. This table is",
           "what it found at commit %s, in %.0f minutes." % (commit, seconds / 60), "",
           "| area | mutants | rejected | mean the same | survive |", "|---|---|---|---|---|"]
    areas = [x for x in AREAS if any(m[0] == x[0] for m, _ in rows)]
    for area, what, _ in areas + [("", "all", "")]:
        r = [(m, v) for m, v in rows if area in ("", m[0])]
        same = sum(len(m[2]) > 5 and good(m, v) for m, v in r)
        killed = sum(v.startswith("rejected") and good(m, v) for m, v in r)
        out.append("| %s | %d | %d | %d | %d |" % (what, len(r), killed, same, len(r) - killed - same))
    for area, what, folder in areas:
        out += ["", "## %s" % what.capitalize(), "", "| file | mutant | rejected by | verdict |", "|---|---|---|---|"]
        for m, v in rows:
            if m[0] == area:
                f, name, by = m[2][0], m[2][1], (m[2] + ("threads.py",))[4]
                f = os.path.normpath(os.path.join("verified", folder, f)).replace("verified/", "", 1)
                by = by.replace(":*", ".dfy `") if ":" in by else "`" + by.lstrip("*.")
                if len(m[2]) > 5 and good(m, v):
                    by, v = "", "means the same: " + m[2][5]
                else:
                    by += "`"
                out.append("| %s | %s | %s | %s |" % (f, name, by, v))
    return "\n".join(out) + "\n"


def numbers(todo):
    """a table of how many mutants each area has"""
    out = "| what is changed | mutants | mean the same |\n|---|---|---|\n"
    for area, what, _ in AREAS + [("", "all", "")]:
        of = [m for x, _, m in todo if area in ("", x)]
        out += "| %s | %d | %d |\n" % (what, len(of), sum(len(m) > 5 for m in of))
    return out


def counted(new, write):
    """whether the page has this table; writes it there if it is to"""
    with open(PAGE) as h:
        before, rest = h.read().split(BEGIN)
    old, after = rest.split(END)
    if write:
        with open(PAGE, "w") as h:
            h.write(before + BEGIN + new + END + after)
    elif old != new:
        print("docs/evidence/mutants.md does not say how many mutants there are: verified/tools/mutants.py -n -w")
    return write or old == new


todo = [(area, folder, m) for area, _, folder in AREAS for m in listed(area)
        if not words or any(w == area or w in m[1] for w in words)]
if words and not todo:
    sys.exit("mutants.py: there is no area and no mutant of that name: " + " ".join(words))
if "-n" in opts:
    lost = [(m, stale(m)) for m in todo if stale(m)]
    for m, why in lost:
        print("%s: %s: %s" % (m[0], m[2][1], why))
    fine = words != [] or counted(numbers(todo), "-w" in opts)
    print("%d mutants, %d cannot be made" % (len(todo), len(lost)))
    sys.exit(lost != [] or not fine)
if "-r" in opts:
    made = [read(*m) for m in todo if m[0] not in ("threads", "yields")]
    bad = resolves.unresolved(root, made)
    for m in bad:
        print("%s: Dafny does not resolve it" % m.what)
    print("%d mutants are not resolved" % len(bad))
    sys.exit(bad != [])
begin, rows, sources = time.time(), [], threads.sources()
with cf.ThreadPoolExecutor(int(opts.get("-j", "2"))) as ex:
    for m, (verdict, seconds) in zip(todo, ex.map(run, todo)):
        rows.append((m, verdict))
        print("%-60s %4.0f s  %s%s" % (m[0] + ": " + m[2][1], seconds, verdict, "" if good(m, verdict) else "  <<<"), flush=True)
bad = sum(not good(m, v) for m, v in rows)
print("%d mutants, %d not as they should, %.0f s" % (len(rows), bad, time.time() - begin))
if "--markdown" in opts:
    with open(opts["--markdown"], "w") as h:
        h.write(markdown(rows, time.time() - begin))
sys.exit(bad != 0)
