#!/usr/bin/env python3
"""What the verifier cannot see of the thread programs, for the effect of the other threads
comes only from the Yields that stand in them. Every method of journal/ and txn/ is a step,
marked [L] (under the mutex) or [F] (without it) in the comment above it, a Yield, or, if it
uses any of these or the mutex, a program. That a Yield stands before each step is proved, as steps demand
it (`settled` of the mutex), which only Yields set (sources.py). Checked is that steps do demand it, and besides,
on every path:

- Right after Lock and Wait stands a Yield, and so it does, in the transactions, after a
  program of the journal that takes the mutex.
- What is done without the mutex (an [F] step, a look into a frozen map) follows a Yield.
- Nothing under the mutex comes before the Yield.
- A step takes, releases, and awaits no mutex, and calls no program. Programs change
  fields, use the device, and take and release locks of the transactions, by steps alone.
- The contract of a step that a program takes names what the Yields of others rely on.
- A program has the Yield of one role. What changes a role's state (it does not keep it, by its
  contract) is done by that role's programs. Others come to the logger's only when they have
  become the logger.
- A step does one operation at most of what threads share without the mutex (OPERATIONS), but for those in SEVERAL; and
  after one without the mutex that does, a Yield has to come. So what a thread does between two Yields happens at once
  for the others (metatheory/Interleaving.v).
- A step without the mutex touches nothing else that others change, nor cache and notes: of the journal its constants,
  and, if its demand names a role, the role's object and fields that this role's steps alone change. Nobody else's step
  touches that object.
- The commit point is reached only by the programs in CALLERS, and a second time only
  because the log was full. Go calls programs, not steps, and starts one installer.

usage: threads.py [--selftest]
  --selftest  delete every Yield in turn, and make other mistakes; each must be noticed"""
import ast, functools, glob, os, re, sys
from command import options
from dafnytext import blank, declarations, statements
from sources import complaints as of_file

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ("journal", "txn")
RELY = "txn/rely.dfy"                                           # no programs, but what holds of the Yields
ROLES = {"L": ("KeepsLogger", "StartCommit"), "I": ("KeepsInstaller", None)}   # what the others keep; the step that makes one the role
# who may come closer to the commit point
CALLERS = {"AppendTx": {("journal", "Append")}, "Append": {("journal", "Commit"), ("txn", "Point")}, "Point": {("txn", "TryAppend")},
           "TryAppend": {("txn", "AppendAll")}, "AppendAll": {("txn", "Finish")}, "Finish": {("txn", "Conclude")}, "Commit": set()}
OWN = {"this`cut"}                       # what no other thread sees: a field of a transaction, which is one thread's,
PRIVATE = r"(\w+): (?:Buf|Bytes)\b"      # and its write buffer, and bytes that are no block yet
LOOKS = {"Len", "AddrAt", "BlkAt"}      # at what its role has frozen
# (Get and Put of pages are of a version, which does not change.)
OPERATIONS = {"disk": {"Read", "ReadRun", "ReadAny", "Write", "WriteRun", "WriteSector", "Barrier", "Stop"},
              "pages": {"Root", "Look", "Next", "HoldAll", "Begin"}, "locks": {"Lock", "Await", "Release"}}
SHARED = re.compile(r"(?::=|[(,]) *(?:\w+\.)+(?:%s)\b *(?![.\w(])" % "|".join(OPERATIONS))
SEVERAL = {"HeaderIsOurs", "LogLook", "InstLook",  # looks: what they read only tells whether the device is to stop
           "NextPage", "ChangedCodes",  # the installer looks at what only the installer changes
           "CheckHome", "CheckPage"}    # readers: argued, in TRUST.md
# operate under the mutex: a role's work ends with them, so no other operation follows before a Yield
UNDER = {"FinishCommit", "FinishInstall"}
SEEN = {"TreeRoot", "CheckPage"}        # operate, change nothing, and so no Yield has to come after them
OPEN = {"notes.Damaged"}                # all other notes, and the cache, belong to who holds the mutex
OBJECTS = {"L": "logger", "I": "installer"}
PROOF = re.compile(r"(assert|forall|calc|ghost|reveal)\b")
CALL = re.compile(r"((?:\w+\.)*)(\w+)\s*\(")


# The selftest checks all files again for each mistake in one of them: what the others say is kept.
declared = functools.lru_cache(maxsize=None)(declarations)
parsed = functools.lru_cache(maxsize=None)(statements)


class Method:
    def __init__(self, path, d):
        self.path, self.folder, self.decl, self.name = path, path.split("/")[0], d, d.name
        d.clauses = re.sub(r"\s*\n\s*(?!\s|(?:requires|ensures|modifies|decreases|returns)\b)", " ", d.clauses).rstrip()  # each on one line
        mark = re.search(r"\[([LF])\]", d.comment)
        self.mark = mark.group(1) if mark else None
        self.yields = d.name[0] if re.match(r"[A-Z]Yield$", d.name) else None
        self.modifies = bool(set(re.findall(r"modifies\s+([^\n]*)", d.clauses)) - OWN - set(re.findall(PRIVATE, d.clauses)))
        held = re.search(r"(!?)(?:\w+\.)*\bmutex\.(?:held\b|Inside\(\))", " ".join(re.findall(r"requires(.*)", d.clauses)))
        self.held = None if not held else held.group(1) == ""
        self.program, self.takes, self.role, self.exits = False, False, None, {"entry"}


class Check:
    """files: path relative to verified/ -> text"""

    def __init__(self, files):
        self.bad, self.methods, self.texts, self.assigned, self.counted, trusted = [], {}, {}, {}, {}, set()
        for path, raw in sorted(files.items()):
            if path.startswith("trusted/"):
                trusted |= {d.name for d in declared(raw) if d.kind == "method"}
            elif path.split("/")[0] in FOLDERS:
                self.texts[path] = blank(raw)
                for d in declared(raw):
                    if d.kind == "method" and not d.ghost and d.body is not None:
                        self.methods.setdefault(d.name, []).append(Method(path, d))
        self.trusted = trusted
        self.all = [m for ms in self.methods.values() for m in ms]
        self.bodies = {m: parsed(self.texts[m.path], m.decl.start, m.decl.end) for m in self.all}
        self.find_programs()
        for m in self.all:
            if m.mark or m.yields:
                self.check_step(m)
        programs = [m for m in self.all if m.program]
        for _ in range(len(programs)):            # what is known of a program depends on those it calls
            before = [(m.takes, m.role, m.exits) for m in programs]
            for m in programs:
                self.walk(m)
            if before == [(m.takes, m.role, m.exits) for m in programs]:
                break
        self.bad = sorted(set(self.bad))
        for m in sorted({o for p in programs for _, kind, o in self.calls(p) if kind in ("L", "F")}, key=lambda o: o.decl.start):
            self.check_guarantee(m)
            self.check_demand(m)
            self.check_touches(m)
            if m.mark == "L" and m.name not in UNDER and self.operations(m):
                self.say(m, m.decl.start, "a step under the mutex that operates")
        for m in self.all:
            if m.mark:
                self.check_operations(m)
        if "journal/state.dfy" in self.texts and not self.fields():
            self.bad.append("no field of the journal is known: class Journal is written otherwise")
        for m in programs:
            self.check_roles(m)
        for r, (keep, _) in ROLES.items():
            if not any(self.owner(m) == r for m in self.all if m.mark):
                self.bad.append("no step is known to be the %s's: the name %s is out of date" % (r, keep))

    def say(self, m, at, what):
        line = self.texts[m.path].count("\n", 0, at) + 1
        self.bad.append("%s:%d: %s: %s" % (m.path, line, m.name, what))

    def resolve(self, m, receiver, name):
        """the method of ours that a call means, or None"""
        last = receiver.rstrip(".").split(".")[-1]
        ours = self.methods.get(name, [])
        if not ours or name in self.trusted and last not in ("", "j", "journal", "t", "this") and not last[0].isupper():
            return None
        near = [o for o in ours if o.path == m.path and o is not m] or [o for o in ours if o is not m]
        if last and last[0].isupper():
            near = [o for o in near if o.path != m.path] or near
        return near[0] if near else m

    def actions(self, m, text):
        """what a statement does, in order: (kind, method or receiver)"""
        for c in CALL.finditer(text):
            receiver, name = c.groups()
            if text[:c.start()].endswith("new "):       # a class may have the name of a program
                continue
            path = receiver.rstrip(".").split(".")
            if path[-1] == "mutex" and name in ("Lock", "Unlock", "Wait"):
                yield name, None
            elif path[-1] == "locks":
                yield "table", None
            elif receiver and name in ("Lock", "Unlock", "Wait", "Release") and not self.resolve(m, receiver, name):
                yield "alias", None
            else:
                o = self.resolve(m, receiver, name)
                if o:
                    yield "yield" if o.yields else o.mark or ("program" if o.program else "helper"), o
                elif {"j", "journal"} & set(path[:-1]) and path[-1] not in ("j", "journal", "mutex"):
                    yield "look" if name in LOOKS else "reach", None        # into an object of the journal

    def calls(self, m):
        """all statements of a method and what they do"""
        def inner(block):
            for s in block:
                yield s
                for p in s.parts:
                    yield from inner(p)
        for s in inner(self.bodies[m]):
            if not re.match(r"(assert|forall|calc|ghost|reveal)\b", s.text):
                for a in self.actions(m, s.text):
                    yield (s,) + a

    def find_programs(self):
        changed = True
        while changed:
            changed = False
            for m in self.all:
                if not (m.mark or m.yields or m.program) and any(
                        k in ("Lock", "Unlock", "Wait", "yield", "table", "alias", "L", "F", "program") for _, k, _ in self.calls(m)):
                    m.program = changed = True

    def check_step(self, m):
        for s, kind, o in self.calls(m):
            if kind in ("Lock", "Unlock", "Wait", "yield", "program", "alias"):
                self.say(m, s.at, "a step lets no others run (%s)" % (o.name if o else kind))
            self.check_caller(m, s, o)

    def check_guarantee(self, m):
        """the contract of a step that a program takes names what the Yields of others rely on"""
        plain = re.sub(r"==>\s*[\w.]+\(\)(?:\s*&&\s*[\w.]+\(\))*", "", m.decl.clauses)      # without what holds under a condition
        changes = self.changes(m)
        # who was woken is the mutex's own, and says nothing of what is shared
        mine = [x for x in changes if re.match(r"(?:\w+\.)*(?:j|journal)\b", x) and not x.endswith(".mutex`woken")]
        wanted = ["Inv()", "Mono()"] + [keep + "()" for r, (keep, step) in ROLES.items() if r != self.owner(m) and m.name != step] if mine else []
        for w in wanted:
            if w not in plain:
                self.say(m, m.decl.start, "a step whose contract does not name %s" % w)
        if any(re.search(r"(^|\.)(j|journal)(`repr)?$", x) for x in mine) and not re.search(r"fresh\(j\.repr - old\(j\.repr\)\)|\brepr == old\(", plain):
            self.say(m, m.decl.start, "a step whose contract does not say that new maps are fresh")
        if any(re.search(r"(^|\.)locks$|`(lastStable|logs)$", x) for x in changes) and not re.search(r"ensures forall o: Owner[^\n]*==> [\w.]+\.Kept\(o\)", plain):
            self.say(m, m.decl.start, "a step whose contract does not name Kept of all others")

    def changes(self, m):
        return [x for x in re.findall(r"[\w.`]+", " ".join(re.findall(r"modifies(.*)", m.decl.clauses))) if not x.endswith("mutex`settled")]

    def check_demand(self, m):
        """a step that a program takes demands a Yield, and one without the mutex that changes something, one for itself"""
        demands, changes = " ".join(re.findall(r"requires(.*)", m.decl.clauses)), self.changes(m)
        whose = {"L": r"== j\.logger\b", "I": r"== j\.installer\b"}.get(self.owner(m), r"(?:!= null|== [\w.]+)")
        if any(re.search(r"(^|\.)locks$", x) for x in changes):
            whose = r"== (?:\w+\.)*owner\b"
        if not re.search(r"\bmutex\.Inside\(\)" if m.mark == "L" else r"\bmutex\.settled " + whose, demands):
            self.say(m, m.decl.start, "a step that does not demand a Yield")
        if m.mark == "F" and any(re.match(r"this\b|(?:\w+\.)*(?:j|journal|locks)\b", x) for x in changes) and "mutex`settled" not in m.decl.clauses:
            self.say(m, m.decl.start, "a step after which no Yield has to come")
        if re.search(r"ensures[^\n]*\bsettled\b", m.decl.clauses):
            self.say(m, m.decl.start, "a step that tells of a Yield")

    # ---------------- what a step does at once ----------------
    def operations(self, m, above=()):
        """how many operations a method does, at most, on any path; those of a loop count twice"""
        def of(block):
            now, most = 0, 0                         # on this path, on any that has ended
            for s in block:
                n = self.operations_at(m, s, above)
                parts = [of(p) for p in s.parts]
                ends = [any(x.text.startswith("return") for x in p) for p in s.parts]
                most = max([most] + [now + n + p for p in parts])
                goes = [p for p, end in zip(parts, ends) if not end] + ([0] if s.kind == "if" and len(parts) == 1 else [])
                now += n + (2 if s.kind == "while" else 1) * max(goes, default=0)
                most = max(most, now)
            return most
        return of(self.bodies[m])

    def operations_at(self, m, s, above):
        n = 0
        if not PROOF.match(s.text):
            n += 2 * len(SHARED.findall(re.split(r"\b(?:invariant|decreases)\b", s.text)[0]))    # under another name it may do anything
            for c in CALL.finditer(s.text):
                last = c.group(1).rstrip(".").split(".")[-1]
                o = None if last in OPERATIONS or s.text[:c.start()].endswith("new ") else self.resolve(m, *c.groups())
                if last in OPERATIONS:
                    n += c.group(2) in OPERATIONS[last]
                elif o and o is not m and o not in above:
                    if o not in self.counted:
                        self.counted[o] = self.operations(o, above + (m,))
                    n += self.counted[o]
        return n

    def check_operations(self, m):
        n = self.operations(m)
        if n > 1 and m.name not in SEVERAL:
            self.say(m, m.decl.start, "a step of several operations")
        if n < 2 and m.name in SEVERAL:
            self.say(m, m.decl.start, "does one operation at most: SEVERAL is out of date")
        if n and m.mark == "F" and "mutex`settled" not in m.decl.clauses and m.name not in SEEN:
            self.say(m, m.decl.start, "a step that operates, and after which no Yield has to come")

    def touches(self, m, above=()):
        """the fields of the journal, and of the objects of its roles, that the compiled code of a method names"""
        out = set()
        def inner(block):
            for s in block:
                yield re.split(r"\b(?:invariant|decreases)\b", s.text)[0]
                for p in s.parts:
                    yield from inner(p)
        for text in inner(self.bodies[m]):
            if PROOF.match(text):
                continue
            out |= {re.sub(r"^lg\.", "logger.", x) for x in
                    re.findall(r"(?:\b(?:j|journal|this)\.|\b(?=lg\.))((?:logger\.|installer\.|lg\.)?\w+)\b(?!\()", text)}
            out |= set(re.findall(r"\bnotes\.\w+", text))
            for c in CALL.finditer(text):
                o = None if text[:c.start()].endswith("new ") else self.resolve(m, *c.groups())
                if o and o is not m and o not in above:
                    out |= self.touches(o, above + (m,))
        return out

    def check_touches(self, m):
        touched = self.touches(m)
        demands = " ".join(re.findall(r"requires(.*)", m.decl.clauses))
        plays = [r for r, x in OBJECTS.items() if re.search(r"\bmutex\.settled == j\.%s\b" % x, demands)]
        for r, x in OBJECTS.items():
            if any(f.split(".")[0] == x for f in touched) and r not in plays and self.owner(m) != r and m.name != ROLES[r][1]:
                self.say(m, m.decl.start, "touches the %s's object" % x)
        if m.mark == "F":
            held = {"cache"} | {f for f in touched if f.startswith("notes.")} - OPEN
            for f in sorted(touched & (self.fields() | held)):
                if f in held or not any(all(self.owner(w) == r for w in self.writers(f)) for r in plays):
                    self.say(m, m.decl.start, "touches %s without the mutex" % f)

    def fields(self):
        """the fields of the journal that are no ghosts and no constants"""
        body = re.search(r"class Journal \{(.*?)\n    function ", self.texts.get("journal/state.dfy", ""), re.S)
        return set(re.findall(r"\n    var (\w+):", body.group(1))) if body else set()

    def writers(self, field):
        """the steps that a program takes which assign a field of the journal"""
        if not self.assigned:
            for p in self.all:
                for _, kind, o in self.calls(p) if p.program else []:
                    if kind in ("L", "F"):
                        for f in self.assigns(o):
                            self.assigned.setdefault(f, set()).add(o)
        return self.assigned.get(field, set())

    def assigns(self, m, above=()):
        out = set()
        for s, _, o in self.calls(m):
            if o and o is not m and o not in above:
                out |= self.assigns(o, above + (m,))
        return out | set(re.findall(r"\bj\.(\w+) :=", self.texts[m.path][m.decl.start:m.decl.end]))

    def check_caller(self, m, s, o):
        if o and o.name in CALLERS and (m.folder, m.name) not in CALLERS[o.name] and (o.folder, o.name) != (m.folder, m.name):
            self.say(m, s.at, "%s is not for this method to call" % o.name)

    # A state: how far what is known is settled ("entry": as the caller left it; "settled"; "moved": others may
    # have run; "owes": a Yield must come at once), whether the mutex is held, and whether something was
    # appended.
    def walk(self, m):
        m.out = set()
        end = self.block(m, self.bodies[m], {("entry", m.held, False)}, [])
        m.out |= end
        m.exits = {how for how, _, _ in m.out} or {"entry"}
        if "owes" in m.exits:
            self.say(m, m.decl.end, "ends before the Yield")

    def block(self, m, block, states, loops):
        before = None
        for s in block:
            if not states:
                break
            states = self.statement(m, s, before, states, loops)
            before = s
        return states

    def statement(self, m, s, before, states, loops):
        if s.kind == "block":
            return self.block(m, s.parts[0], states, loops)
        if s.kind == "if":
            states = self.do(m, s, states)
            out = self.block(m, s.parts[0], states, loops)
            return out | (self.block(m, s.parts[1], states, loops) if len(s.parts) > 1 else states)
        if s.kind == "while":
            full = re.match(r"st == AFull\b(?! *[&|])", s.text)
            seen, left = set(states), set()
            while True:
                start = {(h, l, a and not full) for h, l, a in seen}
                after = self.block(m, s.parts[0], start, loops + [left])
                if after <= seen:
                    return seen | left
                seen |= after
        word = re.match(r"\w*", s.text).group(0)
        if word in ("assert", "forall", "calc", "reveal", "ghost"):
            for how, _, _ in states:
                if how == "owes":
                    self.say(m, s.at, "no Yield right before this")
            return states
        if re.match(r"[\w., ]*\w\.\w+(?: *,[\w., ]*)? *:=", s.text):
            self.say(m, s.at, "a program changes fields only by steps")
        states = self.do(m, s, states)
        if word == "return":
            m.out |= states
            return set()
        if word == "break":
            loops[-1].update(states)
            return set()
        return states

    def do(self, m, s, states):
        todo = list(self.actions(m, s.text))
        if not todo and any(x[0] == "owes" for x in states):
            self.say(m, s.at, "no Yield right before this")
        for kind, o in todo:
            self.check_caller(m, s, o)
            states = {y for x in states for y in self.act(m, s, kind, o, x)}
        return states

    def act(self, m, s, kind, o, state):
        how, held, appended = state
        if how == "owes" and kind != "yield":
            self.say(m, s.at, "no Yield right before this")
        name = o.name if o else kind
        if name in CALLERS:
            if appended:
                self.say(m, s.at, "a second commit")
            if not re.match(r"(?:var )?st\b", s.text):
                self.say(m, s.at, "the status of a commit is called st")
            appended = True
        if kind == "yield":
            how = "settled"
        elif kind == "Lock":
            m.takes, how, held = True, "owes", True
        elif kind == "Wait":
            how = "owes"
        elif kind == "Unlock":
            how, held = "moved", False
        elif kind == "table":
            self.say(m, s.at, "the lock table is for steps alone")
        elif kind == "look" or kind == "F":
            if not held:
                if how != "settled":
                    self.say(m, s.at, "no Yield before this, and the mutex is not held")
                if kind == "F" and o.modifies:
                    how = "moved"
        elif kind == "L":
            if how == "moved":
                self.say(m, s.at, "no Yield before this step")
        elif kind == "reach":
            self.say(m, s.at, "the device and the journal's maps are for steps alone")
        elif kind == "alias":
            self.say(m, s.at, "the mutex or the lock table under another name")
        elif kind == "helper":
            if o.modifies:
                self.say(m, s.at, "%s changes something, and is neither a step nor a program" % o.name)
        elif kind == "program":
            if o.held and how == "moved":
                self.say(m, s.at, "no Yield before this program")
            m.takes = m.takes or o.takes
            after = {how if x == "entry" else x for x in o.exits}
            if m.folder != o.folder and o.takes:
                after = {"owes"}
            return {(x, held, appended) for x in after}
        return {(how, held, appended)}

    # ---------------- roles ----------------
    def owner(self, step):
        """whose state a step changes: the contract does not promise to keep it"""
        if not step.mark or not re.search(r"\bmodifies\b[^;]*\b(this|j|journal)\b", step.decl.clauses):
            return None
        changed = [r for r, (keep, _) in ROLES.items() if keep + "()" not in re.sub(r"==>\s*\w+\(\)", "", step.decl.clauses)]
        return changed[0] if len(changed) == 1 else None

    def check_roles(self, m):
        def scan(block, role):
            before = None
            for s in block:
                taken = None
                for kind, o in ([] if re.match(r"(assert|forall|calc|ghost|reveal)\b", s.text) else self.actions(m, s.text)):
                    if kind == "yield" and o.yields != mine:
                        self.say(m, s.at, "%s in a program that has another" % o.name)
                    r = self.owner(o) if kind in "LF" else self.role(o) if kind == "program" else None
                    if r in ROLES and r != role and o.name not in [x[1] for x in ROLES.values()]:
                        self.say(m, s.at, "%s is for the role %s" % (o.name, r))
                if s.kind == "if" and before is not None:
                    for r, (_, step) in ROLES.items():
                        if step and re.match(r"(?:var )?%s(?:, \w+)* := [\w.]*%s\([^()]*\);$" % (re.escape(s.text), step), before.text):
                            taken = r
                for i, p in enumerate(s.parts):
                    scan(p, taken if taken and i == 0 else role)
                before = s
        mine = self.role(m)
        scan(self.bodies[m], mine)

    def role(self, m, above=()):
        """that of its first Yield; without one, that of the programs it calls"""
        found = [o.yields for _, kind, o in self.calls(m) if kind == "yield"]
        if not found and m not in above:
            found = sorted({self.role(o, above + (m,)) for _, kind, o in self.calls(m) if kind == "program"} - {None})
        return found[0] if found else None


def sources():
    out = {}
    for folder in FOLDERS + ("trusted",):
        for f in glob.glob(os.path.join(ROOT, folder, "**", "*.dfy"), recursive=True):
            if os.path.relpath(f, ROOT) != RELY:
                with open(f) as h:
                    out[os.path.relpath(f, ROOT)] = h.read()
    return out


def in_go(check):
    """steps, and what only programs may call, called by Go; threads that must be one, started twice"""
    bad, started = [], []
    inner = {m.name for m in check.all if m.mark} | {name for name in CALLERS if CALLERS[name]}
    for f in glob.glob(os.path.join(os.path.dirname(ROOT), "**", "*.go"), recursive=True):
        path = os.path.relpath(f, os.path.dirname(ROOT))
        if path.endswith("_test.go") or path.startswith(os.path.join("internal", "gen")):
            continue
        with open(f) as h:
            text = h.read()
        translated = re.findall(r'"tansy/internal/gen/(?:journal|txn)/(?:\w+/)*(\w+)"', text)
        callee = "|".join([r"[cC]ore(?:\(\))?"] + translated)
        bad += ["%s: %s is no program" % (path, m.group(0)) for m in
                re.finditer(r"\b(?:%s)\.(\w+)\(" % callee, text) if m.group(1) in inner]
        started += re.findall(r"\bjournalthreads\.Installer\(", text)
    return bad + (["the installer is started %d times" % len(started)] if len(started) != 1 else [])


def complaints(files=None):
    check = Check(sources() if files is None else files)
    return check.bad + (in_go(check) if files is None else [])


def changed(files, where, a, b):
    """the path of the first file there that has the text a, and its text with b instead; or nothing"""
    for path, raw in sorted(files.items()):
        if a in raw and (path.startswith(where + "/") or path == where + ".dfy"):
            return path, raw.replace(a, b, 1)
    return None, None


def notices(files, where, a, b):
    """whether the checks of the text complain of a change; None: there is no such text"""
    path, raw = changed(files, where, a, b)
    if path is None:
        return None
    return bool(complaints({**files, path: raw}) or of_file(os.path.join(ROOT, path), raw))


def selftest():
    """deletes every Yield, and makes the mistakes of mutants/threads.py; returns how many, and those not noticed"""
    files, missed, tried = sources(), [], 0
    for path, raw in files.items():
        if path.startswith("trusted/"):
            continue
        for m in re.finditer(r"\b[A-Z]Yield\([^()]*\);", blank(raw)):
            tried += 1
            if not complaints({**files, path: raw[:m.start()] + raw[m.end():]}):
                missed.append("%s:%d: %s deleted" % (path, raw.count("\n", 0, m.start()) + 1, m.group(0)))
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "mutants", "threads.py")) as h:
        for where, name, a, b in ast.literal_eval(h.read()):
            tried += 1
            if not notices(files, where, a, b):
                missed.append(name + (" (no such text)" if changed(files, where, a, b)[0] is None else ""))
    return tried, missed


if __name__ == "__main__":
    opts, _ = options("", ["selftest"], __doc__, words=0)
    found = complaints()
    print("\n".join(found) or "threads: nothing to complain about")
    if opts:
        tried, missed = selftest()
        print("\n".join("not noticed: " + x for x in missed))
        print("selftest: %d mistakes, %d not noticed" % (tried, len(missed)))
        found += missed
    sys.exit(bool(found))
