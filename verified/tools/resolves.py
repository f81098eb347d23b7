"""Which mutants Dafny cannot even resolve: they are rejected for their grammar or types, and show nothing.

To have Dafny read each takes half an hour. So they are put in all at once, as far as their places differ, and only
those near an error are tried alone. resolves.py is no program itself: mutants.py -r imports it."""
import glob, os, re, shutil, subprocess, tempfile

FOLDERS = ("lib", "trusted", "journal", "txn", "fs", "remote", "advisory", "../example")
# of a module that imports one with an error, Dafny says only that
ERROR = re.compile(r"^(\S+?)\((\d+),\d+\): (?:Error|error|syntax error)(?!: +not resolving module)", re.M)


class Mutant:
    """In the file at path, new stands in place of old, and what is in the file at by is to reject it."""

    def __init__(self, what, path, old, new, by):
        self.what, self.path, self.old, self.new, self.by = what, path, old, new, by


def tree(root):
    """a copy of the sources, in a new folder"""
    copy = os.path.join(tempfile.mkdtemp(), "verified")
    for d in FOLDERS:
        shutil.copytree(os.path.join(root, d), os.path.join(copy, d))
    return copy


def errors(copy, files):
    """files and lines of what Dafny complains of"""
    p = subprocess.run([os.environ.get("DAFNY", "dafny"), "/nologo", "/compile:0", "/dafnyVerify:0"] + files, cwd=copy,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    found = [(os.path.normpath(os.path.join(copy, f)), int(line)) for f, line in ERROR.findall(p.stdout)]
    if not found and p.returncode != 0:
        raise SystemExit("mutants.py: " + p.stdout)
    return found


def put(copy, root, mutants):
    """Writes the files with these mutants, and returns the line on which each begins, for each file in order"""
    begins = {}
    for path in {m.path for m in mutants}:
        with open(os.path.join(root, path)) as h:
            text = h.read()
        out, at, lines = "", 0, []
        for begin, m in sorted(((text.index(m.old), m) for m in mutants if m.path == path), key=lambda x: x[0]):
            first = out.count("\n") + text.count("\n", at, begin) + 1
            out += text[at:begin] + m.new
            at = begin + len(m.old)
            lines.append((first, m))
        with open(os.path.join(copy, path), "w") as h:
            h.write(out + text[at:])
        begins[os.path.normpath(os.path.join(copy, path))] = lines
    return begins


def apart(root, mutants):
    """those whose places do not overlap, and the rest"""
    taken, picked, rest = {}, [], []
    for m in mutants:
        with open(os.path.join(root, m.path)) as h:
            begin = h.read().index(m.old)
        end, places = begin + len(m.old), taken.setdefault(m.path, [])
        if any(begin < e and b < end for b, e in places):
            rest.append(m)
        else:
            places.append((begin, end))
            picked.append(m)
    return picked, rest


def alone(root, m):
    """whether Dafny resolves the file with this one, and that of the methods that are to reject it"""
    copy = tree(root)
    try:
        put(copy, root, [m])
        return not errors(copy, sorted({m.path, m.by}))
    finally:
        shutil.rmtree(os.path.dirname(copy))


def unresolved(root, mutants):
    """those that Dafny does not resolve"""
    bad, rest = [], mutants
    while rest:
        picked, rest = apart(root, rest)
        while picked:
            copy = tree(root)
            try:
                places = put(copy, root, picked)
                files = [f for d in FOLDERS for f in glob.glob(os.path.join(copy, d, "**", "*.dfy"), recursive=True)]
                found = errors(copy, sorted(f for f in files if os.path.basename(f) != "compile.dfy"))
            finally:
                shutil.rmtree(os.path.dirname(copy))
            if not found:
                break
            near = {max((x for x in places.get(f, []) if x[0] <= line), key=lambda x: x[0], default=(0, None))[1]
                    for f, line in found} - {None}
            if not near:
                raise SystemExit("mutants.py: of several mutants, Dafny complains elsewhere: %s(%d)" % found[0])
            bad += [m for m in near if not alone(root, m)]
            picked = [m for m in picked if m not in near]
    return bad


if __name__ == "__main__":
    from command import options
    options("", [], __doc__, words=0)
