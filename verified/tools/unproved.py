#!/usr/bin/env python3
"""Count the Go by hand below the protocol that durability rests on: what has to be right, and no proof sees.
usage: unproved.py [-w]
  -w  write the table into verified/README.md; else it is compared
Lines are those with code: neither blank nor comments. A new file in these folders counts unless it is among OTHER."""
import glob, os, re, sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FOLDERS = ["fs", "txn/dtxn", "journal", "internal/extern/*", "internal/freelist", "disk"]
OTHER = {   # on what does not change what is durable, or said to be
    # names and numbers; who a caller is; looking for damage; when blocks are freed, trimmed, and written anew, by procedures that are
    # proved for whatever they are told, and of which no client sees anything; what is read before it is asked for
    "fs": "errno limits api stat" " squash callid" " owners scrub overlay" " freer trimmer renew"
          " ahead readers",
    "txn/dtxn": "mem" " alloc streams stretches",                                        # for tests; hints, of which txn.s.dfy promises nothing
    "journal": "inspect survey cut rebuild" " scrub",                          # tansy check and repair; looking for damage
    "internal/extern/dbytes": "race norace",                                   # for the race detector
    "internal/extern/ddir": "ddir",                                            # pages of a listing
    "disk": "check crash sim fault mem stats file_darwin",                     # for tests, counters, a system for trying out alone
}
BEGIN, END = "<!-- verified/tools/unproved.py -w -->\n", "<!-- end -->\n"


def lines(path):
    with open(path) as f:
        t = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    return sum(1 for l in t.splitlines() if l.strip() and not l.strip().startswith("//"))


def table():
    rows, total = [], 0
    for pattern in FOLDERS:
        for folder in sorted(glob.glob(os.path.join(ROOT, pattern))):
            name = os.path.relpath(folder, ROOT)
            left = OTHER.get(name, "").split()
            files = [f for f in sorted(glob.glob(os.path.join(folder, "*.go"))) if not f.endswith("_test.go")]
            counted = [(os.path.basename(f)[:-3], lines(f)) for f in files if os.path.basename(f)[:-3] not in left]
            missing = [x for x in left if x not in [os.path.basename(f)[:-3] for f in files]]
            if missing:
                sys.exit("unproved.py: no %s in %s" % (", ".join(missing), name))
            if counted:
                n = sum(c for _, c in counted)
                total += n
                rows.append("| `%s` | %d | %s |\n" % (name, n, ", ".join("%s %d" % c for c in counted)))
    return "| folder | lines | files |\n|---|---|---|\n" + "".join(rows) + "| **all** | **%d** | |\n" % total


readme = os.path.join(ROOT, "verified", "README.md")
with open(readme) as f:
    text = f.read()
before, rest = text.split(BEGIN)
old, after = rest.split(END)
new = table()
if "-w" in sys.argv[1:]:
    with open(readme, "w") as f:
        f.write(before + BEGIN + new + END + after)
elif old != new:
    sys.exit("verified/README.md does not say how much Go is unproved: verified/tools/unproved.py -w")
