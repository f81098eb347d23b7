#!/usr/bin/env python3
"""Count the Go by hand that durability rests on: what has to be right, and no proof sees.
usage: unproved.py [-w]
  -w  write the table into verified/TRUST.md; else it is compared
Lines are those with code: neither blank, nor comments, nor imports. A new file in these folders must have a role, or be among OTHER."""
import glob, os, re, sys
from command import options

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LIMIT = 1272    # of what decides
# What the Go is for; of a folder all files but those in OTHER, or those that are named.
ROLES = [
    ("decides", "which steps of verified code are taken, when, and what their answers mean",
     {"fs": "fs once open served super unopened volume replies", "internal/runtime/dtxn": "dtxn parts", "journal": "journal"}),
    ("passes on", "arguments and results, between the protocol and procedures",
     {"fs": "allocate attr data dir file flags grow kept list listentries lists local mkfs note xattr", "internal/runtime/dtxn": "objects"}),
    ("has a contract", "in `trusted/`, which says what it does, and which test looks whether it does",
     {"internal/runtime/*": "", "internal/freelist": ""}),
    ("is the device", "as `trusted/disk.s.dfy` has it: what is written may fail, and nothing acknowledged is lost by that",
     {"disk": ""}),
    ("speaks to clients", "calls, handles, verifiers, and replies, as RFC 1813 or the kernel has them",
     {"nfs/nfs3": "", "nfs/oncrpc": "message packet receipt record xdr", "mount": ""}),
    ("is a device elsewhere", "as the device, by NBD or on Ceph: what it does not answer is not done, and a lost connection is the end",
     {"disk/nbd": "", "disk/rbd": ""}),
    ("hands over", "when a server on Ceph may answer for a volume that another had",
     {"ops/standby": ""}),
    ("mends", "a damaged volume that nobody serves (`tansy repair`), and a log without its header",
     {"offline/repair": "", "journal": "cut rebuild"}),
    ("sends", "a backup to another machine, and what of it is there already, which is read, and compared with its codes, before that is said",
     {"offline/backup": "have receive stream"}),
    ("restores", "a volume from a backup, which check --data then reads before anybody is told that it is there; and what a backup holds",
     {"offline/backup": ""}),
]
OTHER = {   # on which it does not rest what is durable, or said to be
    # (nor on fs/internal/background, which decides when a volume works unasked)
    # names and numbers, and what is told to people; who a caller is; looking for damage; when blocks are freed, trimmed, and written anew,
    # by procedures that are proved for whatever they are told, and of which no client sees anything; what is read before it is asked for;
    # that there is room on the host: without it writes fail, as those of any device may; how much memory is for what; which calls come too
    # late, as the volume is being closed: what these would commit verified code refuses; the volume as it was, which recovery makes, and codes tell
    "fs": "errno limits api stat refusal meter tell least label" " squash callid" " scrub overlay rest" " duties search trim renew"
          " room ends" " close" " moment",
    "internal/runtime/dtxn": "mem" " alloc ends streams stretches hints" " errors stats" " room spare" " calls",        # for tests; hints, of which txn.s.dfy promises nothing
    "journal": "inspect survey tree" " scrub" " errors stats" " spare codes" " memory" " calls",        # tansy check and repair; looking for damage
    "internal/runtime/dbytes": "race norace",                                   # for the race detector
    "nfs/oncrpc": "around call chunk conn hosts lone pace program server socket_darwin socket_linux stats tls write",   # who is served when
    "mount": "doc list connect_linux device_linux holders_linux remount_linux system_darwin system_linux",    # what is mounted where
    "internal/runtime/dirlist": "dirlist",                                            # pages of a listing
    "disk": "check crash sim fault mem stats file_darwin"       # for tests, counters, a system for trying out alone
            " holder_linux holder_other"                        # for messages
            " moment spill blockset serving_linux serving_other",   # what a device held, which codes tell from anything else
}
BEGIN, END = "<!-- verified/tools/unproved.py -w -->\n", "<!-- end -->\n"


def lines(path):
    with open(path) as f:
        t = re.sub(r"/\*.*?\*/|^import (\(.*?^\)|\S+)", "", f.read(), flags=re.S | re.M)
    return sum(1 for l in t.splitlines() if l.strip() and not l.strip().startswith("//"))


def table():
    rows, sums, left = [], [], {}    # left: the files of a folder that have no role yet
    for role, what, folders in ROLES:
        total = 0
        for pattern, named in folders.items():
            for folder in sorted(glob.glob(os.path.join(ROOT, pattern))):
                name = os.path.relpath(folder, ROOT)
                if name not in left:
                    left[name] = {os.path.basename(f)[:-3] for f in glob.glob(os.path.join(folder, "*.go")) if not f.endswith("_test.go")}
                    take(left[name], OTHER.get(name, "").split(), name)
                files = take(left[name], named.split() if named else sorted(left[name]), name)
                sizes = [(f, lines(os.path.join(folder, f + ".go"))) for f in sorted(files)]
                n = sum(c for _, c in sizes)
                total += n
                rows_of_it = (len(sizes) + 14) // 15    # none too long to read
                for i in range(rows_of_it):
                    some = sizes[len(sizes) * i // rows_of_it:len(sizes) * (i + 1) // rows_of_it]
                    rows.append("| %s | `%s` | %d | %s |\n" % (role, name, sum(c for _, c in some), ", ".join("%s %d" % s for s in some)))
        sums.append((role, what, total))
        if role == "decides" and total > LIMIT:
            sys.exit("unproved.py: %d lines of Go decide; at most %d are to" % (total, LIMIT))
    for name, files in left.items():
        if files:
            sys.exit("unproved.py: what is %s in %s for?" % (", ".join(sorted(files)), name))
    print("; ".join("%s: %d lines" % (role, total) for role, what, total in sums))
    return ("| it | what | lines |\n|---|---|---|\n" + "".join("| %s | %s | %d |\n" % s for s in sums) +
            "\n| it | folder | lines | files |\n|---|---|---|---|\n" + "".join(rows))


def take(files, names, folder):
    missing = [x for x in names if x not in files]
    if missing:
        sys.exit("unproved.py: no %s in %s" % (", ".join(missing), folder))
    files -= set(names)
    return names


opts, _ = options("w", [], __doc__, words=0)
page = os.path.join(ROOT, "verified", "TRUST.md")
with open(page) as f:
    text = f.read()
before, rest = text.split(BEGIN)
old, after = rest.split(END)
new = table()
if ("-w", "") in opts:
    with open(page, "w") as f:
        f.write(before + BEGIN + new + END + after)
elif old != new:
    sys.exit("verified/TRUST.md does not say how much Go is unproved: verified/tools/unproved.py -w")
