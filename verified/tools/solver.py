#!/usr/bin/env python3
"""Stand between Dafny and Z3, and send Z3 only what is new.

Dafny has a file's methods checked one after the other by one Z3. Before each it resets that and sends anew
what is the same for all: all functions and axioms of the file and those it includes, some megabytes. To read
them takes longer than most of the proofs. Here a reset is not passed on. Z3 keeps what the last two methods had
in common from their beginning, the base, and what follows it is asserted in a scope, which is left at the next reset. If a method
does not begin with the base, or after one that left a scope open or set an option, Z3 is reset as Dafny has asked.

A limit of time becomes one of work, which Z3 counts itself: so a proof that is found is found again, however busy the machine
is. (And to watch the time, Z3 4.8.5 as it comes from PyPI has a thread that asks for it without a pause, beside each proof.)

usage: solver.py ARGUMENT...   as z3; Z3 names the real one
       solver.py --selftest    what is in scope at each check is what Dafny has sent since the reset"""
import ctypes, fcntl, os, random, re, signal, subprocess, sys, time

RESET = re.compile(rb"^\(reset\)\n", re.M)
PUSH = re.compile(rb"^\(push 1\)\n", re.M)
LIMIT = re.compile(rb"^\(set-option :TIMEOUT (\d+)\)", re.M)
AXIOM = b"\n)))\n"  # the end of an axiom with a quantifier; what a method has of its own follows the last of the file
WORK = 4000  # what Z3 4.8.5 counts in a millisecond, more or less
# what the rest may hold that is not undone when the scope is left
SCOPES = re.compile(rb"^\((push|pop|set-option)\b([^)\n]*)", re.M)


class Filter:
    """from what Dafny sends to what Z3 gets"""

    def __init__(self):
        self.buf = b""       # not passed on yet
        self.before = b""    # what the last method began with, up to its first (push 1)
        self.base = None     # what Z3 keeps, below a scope
        self.same = 0        # bytes of the base that this method began with so far, and that are in buf no more
        self.head = True     # up to the first (push 1)
        self.dirty = False   # Z3 is not as the base alone, or that in a scope, would have it
        self.depth = 0       # scopes that Dafny has opened

    @staticmethod
    def limited(text):
        return LIMIT.sub(lambda m: b"(set-option :rlimit %d)" % min(int(m.group(1)) * WORK, 2 ** 32 - 1), text)

    def passed(self, text):
        for m in SCOPES.finditer(text):
            if m.group(1) == b"set-option":
                self.dirty = True
            else:
                self.depth += (1 if m.group(1) == b"push" else -1) * int(m.group(2))
        return self.limited(text)

    def kept(self):
        """Z3 is as the base alone would have it, but for the scope"""
        return self.base is not None and not self.dirty and self.depth == 0

    def begin(self):
        """what a method begins with, if it is known by now"""
        if self.kept():
            n = min(len(self.base) - self.same, len(self.buf))
            if self.buf[:n] == self.base[self.same:self.same + n]:
                self.same, self.buf = self.same + n, self.buf[n:]
                if self.same < len(self.base):
                    return None
                self.same, self.head = 0, False
                return b"(pop 1)\n(push 1)\n"
            self.buf, self.same, self.base = self.base[:self.same] + self.buf, 0, None
        m = PUSH.search(self.buf)
        if not m:
            return None
        text, rest = RESET.sub(b"", self.buf[:m.start()]), self.buf[m.start():]  # before the first method there is one
        if self.before:
            common = os.path.commonprefix([self.before, text])
            cut = common.rfind(b"\n(declare-") + 1  # commands begin there; names have no line ends
        else:
            cut = text.rfind(AXIOM) + len(AXIOM) if AXIOM in text else 0  # a guess
        self.base = text[:cut] if cut else None
        self.before, self.dirty, self.depth = text, False, 0
        self.buf, self.head = rest, False
        return b"(reset)\n" + self.limited(text[:cut] + b"(push 1)\n" + text[cut:] if cut else text)

    def feed(self, data):
        """what Z3 gets now"""
        self.buf += data.replace(b"\r", b"")  # Dafny ends some lines with it, and the same ones without it at first
        out = b""
        while True:
            if self.head:
                begin = self.begin()
                if begin is None:
                    return out
                out += begin
                continue
            m = RESET.search(self.buf)
            if not m:
                whole = self.buf.rfind(b"\n") + 1
                out += self.passed(self.buf[:whole])
                self.buf = self.buf[whole:]
                return out
            out += self.passed(self.buf[:m.start()])
            self.buf, self.head = self.buf[m.end():], True


def with_parent():
    """Dafny kills who does not answer in time, and means Z3"""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except (AttributeError, OSError):
        pass


def main():
    # Its memory in large pages halves the time: it follows pointers through some hundred megabytes. Other C libraries
    # than glibc know nothing of this.
    pages = dict({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}, **os.environ)
    z3 = subprocess.Popen([os.environ.get("Z3", "z3")] + sys.argv[1:], stdin=subprocess.PIPE, preexec_fn=with_parent,
                          env=pages)
    try:
        fcntl.fcntl(0, 1031, 1 << 20)  # F_SETPIPE_SZ: Dafny writes a kilobyte at a time
    except OSError:
        pass
    f = Filter()
    while True:
        if f.head and f.base is not None:
            time.sleep(0.002)  # for more of it to come: only speed depends on it
        data = os.read(0, 1 << 20)
        if not data:
            break
        z3.stdin.write(f.feed(data))
        z3.stdin.flush()
    z3.stdin.write(f.buf)
    z3.stdin.close()
    sys.exit(z3.wait())


# ---- a check of the above ----

def in_scope(text):
    """at each check, all that was said and not taken back"""
    stack, seen, options = [[]], [], []
    for line in text.decode().splitlines():
        if line == "(reset)":
            stack = [[]]
        elif line.startswith("(push"):
            stack.append([])
        elif line.startswith("(pop"):
            for _ in range(int(line[5:-1])):
                stack.pop()
        elif line.startswith("(set-option"):
            options.append(line)
            stack[0].append(line)
        elif line == "(check-sat)":
            said = [x for s in stack for x in s]
            # an option counts as it was last set
            seen.append(([x for x in said if not x.startswith("(set")], (options or [""])[-1]))
        else:
            stack[-1].append(line)
    return seen


def session(r):
    """what Dafny sends for one method"""
    common = ["(set-option :n 0)"] + ["(declare-fun f%d () Int)\n(assert (= f%d %d))" % (i, i, i) for i in range(r.choice([3, 3, 3, 3, 2, 5]))]
    if r.random() < 0.1:
        common.insert(1, "(declare-fun g () Int)")
    if r.random() < 0.8:
        common.append("(assert (forall ((x Int)) (! (= x x)\n :pattern (x)\n)))")
    own = ["(declare-fun x%d () Int)" % r.randrange(3) for _ in range(r.randrange(4))]
    goals = ["(push 1)", "(assert (not x%d))" % r.randrange(9), "(check-sat)", "(pop 1)"] * r.choice([1, 1, 2])
    odd = r.random()
    if odd < 0.1:
        goals = goals[:-1]
    elif odd < 0.2:
        goals.insert(1, "(set-option :n %d)" % r.randrange(1, 9))
    elif odd < 0.3:
        goals += ["(assert (not y))", "(check-sat)"]
    end = r.choice(["\n", "\n", "\r\n"])
    return end.join(common) + end + "\n".join(own + goals) + "\n"


def selftest():
    seed = int(os.environ.get("SEED", time.time_ns() % 10 ** 9))
    r = random.Random(seed)
    kept = guessed = 0
    for n in range(3000):
        sent = "(reset)\n".join(r.choice([[], [""]]) + [session(r) for _ in range(r.randrange(1, 9))]).encode()
        f, got, at = Filter(), b"", 0
        while at < len(sent):
            size = r.choice([1, 7, 100, 10000])
            got += f.feed(sent[at:at + size])
            at += size
        got += f.buf
        kept += got.count(b"(pop 1)\n(push 1)\n(declare") > 0
        guessed += got.count(b"(reset)") == 1 < sent.count(b"(check-sat)")
        if in_scope(got) != in_scope(sent.replace(b"\r", b"")):
            sys.exit("solver.py: seed %d, run %d: Dafny sent\n%s\nand Z3 got\n%s" % (seed, n, sent.decode(), got.decode()))
    if min(kept, guessed) < 100:
        sys.exit("solver.py: seed %d: of 3000 runs only %d kept anything, and %d all" % (seed, kept, guessed))


if __name__ == "__main__":
    if sys.argv[1:] == ["--selftest"]:
        selftest()
    elif sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
    else:
        main()
