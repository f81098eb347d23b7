#!/usr/bin/env python3
"""Draw the pictures of this folder: layers.svg and write.svg. usage: draw.py (writes them beside itself)
They have a background of their own, so they are legible on light and dark pages."""
import os, sys
from html import escape

HERE = os.path.dirname(os.path.abspath(__file__))
GO, PROVED, DEVICE, OUTSIDE, INK, LINE = "#dbe9fb", "#d6f0da", "#f7e6c4", "#eeeeee", "#1b1f24", "#57606a"


class Picture:
    def __init__(self, width, height, title, description):
        self.parts = [
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" '
            'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="14" fill="%s">'
            % (width, height, width, height, INK),
            "<title>%s</title>" % escape(title), "<desc>%s</desc>" % escape(description),
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            '<path d="M0 0 L8 4 L0 8 z" fill="%s"/></marker></defs>' % LINE,
            '<rect width="%d" height="%d" rx="10" fill="#ffffff"/>' % (width, height)]

    def box(self, x, y, w, h, fill, lines, bold=True):
        """a box with lines of text in its middle, the first one bold"""
        self.parts.append('<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="%s" stroke="%s"/>' % (x, y, w, h, fill, LINE))
        top = y + h / 2 - 9 * (len(lines) - 1) + 5
        for i, line in enumerate(lines):
            self.text(x + w / 2, top + 18 * i, line, "middle", bold and i == 0)

    def text(self, x, y, line, anchor="start", bold=False, size=14, color=INK):
        self.parts.append('<text x="%g" y="%g" text-anchor="%s" font-size="%d" fill="%s"%s>%s</text>'
                          % (x, y, anchor, size, color, ' font-weight="600"' if bold else "", escape(line)))

    def arrow(self, *points, dashed=False):
        path = "M" + " L".join("%g %g" % p for p in points)
        self.parts.append('<path d="%s" fill="none" stroke="%s" stroke-width="1.5" marker-end="url(#tip)"%s/>'
                          % (path, LINE, ' stroke-dasharray="5 4"' if dashed else ""))

    def line(self, x1, y1, x2, y2):
        self.parts.append('<path d="M%g %g L%g %g" stroke="#d0d7de"/>' % (x1, y1, x2, y2))

    def key(self, x, y, entries):
        for fill, what in entries:
            self.parts.append('<rect x="%d" y="%d" width="16" height="16" rx="3" fill="%s" stroke="%s"/>' % (x, y - 12, fill, LINE))
            self.text(x + 23, y + 1, what, size=13)
            x += 45 + 7.2 * len(what)

    def save(self, name):
        with open(os.path.join(HERE, name), "w") as f:
            f.write("\n".join(self.parts + ["</svg>"]) + "\n")


def layers():
    p = Picture(860, 580, "The layers of Tansy",
                "From clients down to the device: server and local mount, file system, transactions, journal, device. "
                "File system, transactions, and journal are proved.")
    p.text(30, 34, "Layers", bold=True, size=18)
    p.text(450, 34, "what each promises to the one above", size=14, color=LINE)
    p.box(30, 55, 190, 46, OUTSIDE, ["NFS clients", "TCP"])
    p.box(230, 55, 190, 46, OUTSIDE, ["programs here", "the kernel, through FUSE"])
    rows = [
        (125, 66, GO, None, ["RFC 1813; who may do what (exports)", "each host gets its share of memory and turns"]),
        (215, 66, PROVED, ["file system", "procedures, directories, files, blocks"],
         ["each operation does what the specification says,", "at one instant, or not at all"]),
        (305, 66, PROVED, ["transactions", "locks, write buffer, one commit"],
         ["strict serializability; no circle of waiting", "what was seen is not taken back"]),
        (395, 66, PROVED, ["journal", "log, recovery, codes of blocks"],
         ["a crash leaves a beginning of all commits", "a read is right, or fails"]),
        (485, 40, DEVICE, ["device: file, disk, NBD, Ceph"], ["whole blocks of 4096 bytes, and a barrier"]),
    ]
    for y, h, fill, what, promise in rows:
        if what:
            p.box(30, y, 390, h, fill, what)
        else:
            p.box(30, y, 190, h, fill, ["NFS server", "records, calls, exports"])
            p.box(230, y, 190, h, fill, ["local mount", "the kernel's requests"])
        for i, line in enumerate(promise):
            p.text(450, y + h / 2 - 9 * (len(promise) - 1) + 5 + 18 * i, line)
    for x in (125, 325):
        p.arrow((x, 101), (x, 124))
        p.arrow((x, 191), (x, 214))
    for y in (281, 371, 461):
        p.arrow((225, y), (225, y + 23))
    p.key(30, 558, [(GO, "Go by hand"), (PROVED, "Dafny, proved, translated to Go"), (DEVICE, "Go by hand, with a contract"), (OUTSIDE, "not Tansy")])
    p.save("layers.svg")


def write():
    p = Picture(1010, 640, "The life of a WRITE",
                "A stable WRITE: call, transaction, log group, one barrier, reply; installation comes later.")
    p.text(30, 34, "The life of a WRITE", bold=True, size=18)
    p.text(230, 34, "with FILE_SYNC; time goes down", color=LINE)
    lanes = [("client", 95), ("the call", 285), ("running group", 500), ("logger, installer", 705), ("device", 905)]
    for name, x in lanes:
        p.text(x, 66, name, "middle", True)
        p.line(x, 76, x, 590)
    client, call, group, logger, device = (x for _, x in lanes)

    def at(x, y, w, fill, *lines):
        p.box(x - w / 2, y, w, 22 + 18 * (len(lines) - 1) + 8, fill, lines)

    # the numbers are those of the table in ARCHITECTURE.md
    at(client, 90, 130, OUTSIDE, "WRITE")
    p.arrow((client + 66, 105), (call - 112, 128))
    at(call, 113, 220, GO, "1 to 3  record, turn, decode", "may this host write?")
    p.arrow((call, 161), (call, 178))
    at(call, 180, 200, PROVED, "4 to 9  transaction", "locks; find or take blocks;", "copy the data once")
    p.arrow((call + 101, 214), (group - 92, 252))
    at(group, 236, 180, PROVED, "10  one step commits", "others see it from here")
    p.arrow((group, 284), (logger - 92, 316))
    at(call, 300, 200, PROVED, "11  locks are given back", "the call waits")
    at(logger, 300, 180, PROVED, "12  group is frozen", "and sealed")
    p.arrow((logger + 91, 324), (device - 87, 360))
    at(device, 346, 170, DEVICE, "12  log is written")
    p.arrow((device, 377), (device, 396))
    at(device, 398, 170, DEVICE, "13  one barrier", "durable from here")
    p.arrow((device - 86, 424), (call + 102, 452))
    at(call, 440, 200, PROVED, "14  the call may answer")
    p.arrow((call - 101, 456), (client + 67, 482))
    at(client, 468, 130, OUTSIDE, "15  reply: OK")
    at(logger, 522, 200, PROVED, "later: installation", "blocks go home with codes")
    p.arrow((logger + 101, 546), (device - 87, 546), dashed=True)
    at(device, 522, 170, DEVICE, "home; barrier;", "the log's start moves")
    p.line(30, 505, 980, 505)
    p.text(30, 528, "A crash before 13: as if the WRITE", size=13)
    p.text(30, 546, "had never come, or had been done.", size=13)
    p.text(30, 564, "After 13: it is there, whatever comes.", size=13)
    p.key(30, 620, [(GO, "Go by hand"), (PROVED, "Dafny, proved, translated to Go"), (DEVICE, "Go by hand, with a contract"), (OUTSIDE, "not Tansy")])
    p.save("write.svg")


if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__)
elif sys.argv[1:]:
    print("draw.py: unknown words: %s\n\n%s" % (" ".join(sys.argv[1:]), __doc__), file=sys.stderr)
    sys.exit(2)
else:
    layers()
    write()
