"""What may not stand in a Dafny file outside trusted/: what Dafny takes for proved without a proof.
usage: sources.py FILE.dfy...   (verify.py asks of each file)"""
import glob, os, re, sys
from command import options, wrong
from dafnytext import blank, declarations

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ATTRIBUTES = ("opaque", "trigger", "nativeType")     # known not to weaken anything
IN_TRUSTED = ATTRIBUTES + ("extern", "axiom")
FLAGS = ("/nlarith",)                            # of the first line
YIELDS = {"journal/threads.dfy": ("LYield", "IYield", "CYield"), "txn/system.dfy": ("TYield",)}     # which alone call Yielded of the mutex


def text(f):
    with open(f) as h:
        return h.read()


def is_trusted(f):
    return os.path.basename(os.path.dirname(os.path.abspath(f))) == "trusted"


def flags(raw):
    """the options that a first line "// flags: ..." adds; /nlarith turns nonlinear arithmetic on"""
    m = re.match(r"\s*//\s*flags\s*:(.*)", raw)
    return m.group(1).split() if m else []


def complaints(f, raw=None):
    """what is wrong with the file f (its text may be given)"""
    raw = text(f) if raw is None else raw
    t = blank(raw)
    bad = ["flag " + x for x in flags(raw) if x not in FLAGS]
    known = IN_TRUSTED if is_trusted(f) else ATTRIBUTES
    bad += ["{:%s}" % x for x in re.findall(r"\{\s*:\s*([^\s}]*)", t) if x not in known]
    if not is_trusted(f):
        bad += re.findall(r"\bassume\b", t) + ["%s %s has no body" % (d.kind, d.name) for d in declarations(raw) if d.body is None]
        bad += meddling(t)
        allowed = YIELDS.get(os.path.relpath(os.path.abspath(f), ROOT), ())
        spans = [(d.start, d.end) for d in declarations(raw) if d.name in allowed]
        bad += ["Yielded outside of a Yield" for m in re.finditer(r"\bYielded\b", t) if not any(a <= m.start() < b for a, b in spans)]
    return bad


def meddling(t):
    """what changes or makes trusted objects other than by their methods: an assignment to a
    ghost field of theirs, or new. A field may be called like one of an ordinary class; then
    the file has to tell the type of the object (x: C, or x := new C)."""
    trusted = "".join(blank(text(x)) for x in glob.glob(os.path.join(ROOT, "trusted", "*.dfy")))
    classes = set(re.findall(r"\bclass\s+\{:extern[^}]*\}\s+(\w+)", trusted))
    fields = set(re.findall(r"\bghost\s+(?:var|const)\s+(\w+)", trusted))
    bad = [m.group(0) for m in re.finditer(r"\bnew\s+(?:\w+\.)*(\w+)", t) if m.group(1) in classes]
    for m in re.finditer(r"(?:^|[;:{}]|=>|\belse\b)\s*((?:[\w.]+\s*,\s*)*[\w.]+)\s*:[=|]", t, re.M):
        for target in re.split(r"\s*,\s*", m.group(1)):
            path = target.split(".")
            if len(path) > 1 and path[-1] in fields and path[-2] != "this":
                types = set(sum(re.findall(r"\b%s\s*(?::\s*(\w+)|:=\s*new\s+(\w+))" % path[-2], t), ())) - {""}
                untyped = re.search(r"\bvar\s[^;:]*\b%s\b[^;:]*:=(?!\s*new\b)" % path[-2], t)
                if untyped or not types or types & classes:
                    bad.append(target + " :=")
    return bad


if __name__ == "__main__":
    _, files = options("", [], __doc__, files=True)
    if not files:
        wrong("there is no file to look at", __doc__)
    found = ["%s: %s" % (f, c) for f in files for c in complaints(f)]
    print("\n".join(found) or "sources: nothing to complain about")
    sys.exit(bool(found))
