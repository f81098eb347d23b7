"""Names in what Dafny translates to Go, so that a change of one method shows as a change of that method.

Dafny numbers local variables, temporaries, labels, and modules through the whole program, makes functions of a module
methods of an object, and puts "Dtor_" before fields. What is here numbers within each function, makes functions
functions, and takes that off. It changes names alone: each new name is one that nothing else in its function has.

usage: gonames.py --selftest   (gen.py is what uses it)"""
import re

from command import options, wrong

# What Go declares everywhere, or keeps for itself.
GO = set("""break default func interface select case defer go map struct chan else goto package switch const fallthrough if range
type continue for import return var any append bool byte cap clear close comparable complex complex64 complex128 copy delete
error false float32 float64 imag int int8 int16 int32 int64 iota len make max min new nil panic print println real recover
rune string true uint uint8 uint16 uint32 uint64 uintptr""".split())

LOCAL = re.compile(r"(?<![\w.])_\d+_(\w+)|(?<![\w.])_([a-z]+)\d+\b")
WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
LABEL = re.compile(r"(?m)(?<=\bgoto )L\d+$|^( *)L\d+(?=:$)")
COMPANION = re.compile(r"\bCompanion_Default___\.")


def functions(t):
    """a package in parts: what stands before the first function, then each function and what comes behind it"""
    return re.split(r"(?m)^(?=func )", t)


def local_names(f):
    """Variables of a function under their own names, and temporaries numbered from 1."""
    taken = GO | {w for w in WORD.findall(f) if not LOCAL.fullmatch(w)}
    new, count = {}, {}

    def name(m):
        old = m.group()
        if old not in new:
            base, temporary = m.group(1) or m.group(2), not m.group(1)
            n = base + "1" if temporary else base
            while n in taken:
                count[base] = count.get(base, 1) + 1
                n = "%s%d" % (base, count[base]) if temporary else "%s_%d" % (base, count[base])
            new[old] = n
            taken.add(n)
        return new[old]
    return LOCAL.sub(name, f)


def labels(f):
    """Labels of a function numbered from 1, those of functions within it as well."""
    new = {}
    return LABEL.sub(lambda m: (m.group(1) or "") + new.setdefault(m.group().strip(), "L%d" % (len(new) + 1)), f)


def parameters_apart(f, packages):
    """No parameter is called like a package that the body uses: an object stands in parentheses before a dot."""
    head, _, body = f.partition("\n")
    for p in re.findall(r"(\w+) [*\w.\[\]]+(?=,|\))", head):
        if p in packages and re.search(r"(?<![\w.])%s\." % p, body):
            taken, n = set(WORD.findall(f)), 2
            while "%s_%d" % (p, n) in taken:
                n += 1
            f = re.sub(r"(?<![\w.])%s\b(?!\.)" % p, "%s_%d" % (p, n), f)
    return f


def plain_functions(t):
    """The functions of a module as functions of the package, without the object that Dafny makes them methods of."""
    begin = t.find("// Definition of class Default__")
    if begin < 0:
        return t
    method = re.compile(r"(?m)^func \(_this \*CompanionStruct_Default___\) ")
    first, end = method.search(t, begin), t.find("// End of class Default__", begin)
    end = end if end >= 0 else len(t)
    body = t[first.start():end] if first else ""
    assert "_this" not in method.sub("", body), "a function of a module has an object"
    names = re.findall(r"(?m)^func \(_this \*CompanionStruct_Default___\) (\w+)", body)
    others = set(re.findall(r"(?m)^(?:type|var|const|func) (\w+)", t[:begin] + t[end:]))
    assert not others & set(names), "two declarations are called %s" % (others & set(names))
    for f in functions(body):
        parameters = set(re.findall(r"(\w+) [*\w.\[\]]+(?:,|\))", f.split("\n", 1)[0].split(") ", 1)[-1]))
        assert not parameters & set(names), "a parameter is called like a function: %s" % (parameters & set(names))
    body = method.sub("func ", body)
    return t[:begin] + "// Definition of functions\n" + body + "// End of functions" + t[end:].replace("// End of class Default__", "", 1)


def constructors(t):
    """Create_Y_ of a datatype X as a function CreateY."""
    names = re.findall(r"(?m)^func \(CompanionStruct_\w+_\) Create_(\w+)_\(", t)
    assert len(names) == len(set(names)), "two constructors have one name"
    t = re.sub(r"(?m)^func \(CompanionStruct_\w+_\) Create_(\w+)_\(", r"func Create\1(", t)
    for x in re.findall(r"(?m)^var Companion_(\w+)_ = ", t):    # of which nothing is left
        if len(re.findall(r"\b(?:CompanionStruct|Companion)_%s_\b" % x, t)) == 3:
            t = re.sub(r"(?m)^type CompanionStruct_%s_ struct ?\{\s*\}\n" % x, "", t)
            t = re.sub(r"(?m)^var Companion_%s_ = \w+ ?\{\s*\}\n" % x, "", t)
    return t


def field(m):
    name = m.group(1)[0].upper() + m.group(1)[1:]
    assert name not in ("Get", "Equals", "EqualsGeneric", "String"), "a field is called " + name
    return name + "("


def users(t):
    """what uses these names, in the translation and by hand"""
    t = COMPANION.sub("", t)
    t = re.sub(r"\bCompanion_\w+_\.Create_(\w+)_\(", r"Create\1(", t)
    return re.sub(r"\bDtor_(\w+)\(", field, t)


def plain(t):
    """a package with all of this"""
    t = re.sub(r"(?m)^// (?:Package|Dafny module) _\d+_.*\n", "", t)
    t = re.sub(r"(?m)^type Dummy__ struct\{\}\n", "", t)
    t = users(constructors(plain_functions(t)))
    packages = set(re.findall(r'(?m)^  (\w+) "', t))
    named = lambda f: labels(local_names(parameters_apart(f, packages)))
    return "".join(named(f) if f.startswith("func ") else f for f in functions(t))


def selftest():
    def same(what, got, want):
        if got != want:
            raise SystemExit("gonames.py: %s:\n%s\nand not\n%s" % (what, got, want))
    same("numbers begin anew in each function",
         "".join(map(local_names, functions("func A() {\n_104_k = _out7\n}\nfunc B() {\n_105_k = _out8\n}\n"))),
         "func A() {\nk = out1\n}\nfunc B() {\nk = out1\n}\n")
    same("a name that a parameter, a package, Go, or another local has is not given",
         local_names("func A(k int) {\n_1_k, _2_x, _3_x, _4_bits, _5_len = k, bits.N(), out1, _out9, s.x\n}\n"),
         "func A(k int) {\nk_2, x, x_2, bits_2, len_2 = k, bits.N(), out1, out2, s.x\n}\n")
    same("a parameter is not called like a package that is used",
         parameters_apart("func A(p *p.X, q *q.X) {\nvar r *p.Y\nr = (p).M(q, r_2)\n(q).M(_this.p)\n}\n", {"p", "q", "r"}),
         "func A(p_2 *p.X, q *q.X) {\nvar r *p.Y\nr = (p_2).M(q, r_2)\n(q).M(_this.p)\n}\n")
    same("a selector and a part of a name are no locals", local_names("func A() { a._1_k, b_2_k = _3_k }\n"),
         "func A() { a._1_k, b_2_k = k }\n")
    labelled = ("func A() {\n  for {\n    goto L7\n    func() {\n      goto L9\n      L9:\n    }()\n  }\n  L7:\n}\n"
                "func B() {\n  for {\n    goto %s\n  }\n  %s:\n}\n")
    same("labels begin anew in each function, and two in one function are two",
         plain("package p\n" + labelled % ("L8", "L8")),
         "package p\n" + (labelled % ("L1", "L1")).replace("L7", "L1").replace("L9", "L2"))
    same("a method with a label before another changes nothing there",
         plain("package p\n" + labelled % ("L12", "L12")), plain("package p\n" + labelled % ("L8", "L8")))
    same("a word that looks like a label, and a label with a name, stay",
         labels("func A() {\n  x.L7, L8 = L9, L7\n  goto TAIL_CALL_START\n  case L3:\n}\n"),
         "func A() {\n  x.L7, L8 = L9, L7\n  goto TAIL_CALL_START\n  case L3:\n}\n")
    package = ("package p\n\n// Definition of class Default__\ntype Default__ struct {\n}\n\nvar Companion_Default___ = X{}\n"
               "func (_this *CompanionStruct_Default___) F(a int) int {\n  return Companion_Default___.G(q.Companion_Default___.H(a))\n}\n"
               "func (_this *CompanionStruct_Default___) G(a int) int {\n  return a.Dtor_size()\n}\n// End of class Default__\n")
    same("functions are functions", plain(package),
         "package p\n\n// Definition of functions\nfunc F(a int) int {\n  return G(q.H(a))\n}\n"
         "func G(a int) int {\n  return a.Size()\n}\n// End of functions\n")
    for what, text in (("a function called like a type", "type F struct {}\n" + package),
                       ("a parameter called like a function", package.replace("F(a int)", "F(G int)"))):
        try:
            plain(text)
        except AssertionError:
            continue
        raise SystemExit("gonames.py takes " + what)


if __name__ == "__main__":
    opts, _ = options("", ["selftest"], __doc__, words=0)
    if not opts:
        wrong("--selftest is missing", __doc__)
    selftest()
