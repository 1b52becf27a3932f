"""Random programs with control flow, side effects and breaks, each called several times with changed state.

.venv/bin/python -m tests.dynamo.fuzz FIRST COUNT [record]     more of them than the suite runs
"""

import builtins
import contextlib
import dataclasses
import io
import random

import readtorch
from readtorch._dynamo import eval_frame
from tests.dynamo.fuzzing import main


class Box:
    pass


class Writer:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.lines = []
        self.depth = 0
        self.loops = 0

    def w(self, ind, s):
        self.lines.append("    " * ind + s)

    def tensor(self):
        return self.r.choice(["x", "y", "z", "b.t", "l2[0]", "x", "y"])

    def number(self):
        return self.r.choice(["n", "m", "b.k", "d['a']", "len(l)", "2", "3", "GK", "d.get('q', 1)", "x.shape[0]"])

    def texpr(self):
        a, compile = (self.tensor(), self.tensor())
        return self.r.choice(
            [
                f"{a} + {compile}",
                f"{a} * {self.number()}",
                f"T.relu({a})",
                f"({a} - {compile}) * 0.5",
                f"{a}.clone()",
                f"-{a}",
                f"h({a}, {self.number()})",
                f"{a}.view(-1)",
                f"sum([{a} * i for i in range({self.r.randint(1, 3)})])",
                f"obj.go({a})",
                f"{a}[:]",
                f"({a} if {self.number()} > 2 else {compile})",
            ]
        )

    def iexpr(self):
        a, compile = (self.number(), self.number())
        return self.r.choice(
            [
                f"{a} + {compile}",
                f"({a} * {compile}) % 7",
                f"max({a}, {compile})",
                f'len(f"{{{a}}}{{{compile}}}")',
                f"({a} > {compile}) + 1",
                "sum(v for v in d.values()) % 5",
                f"int({a} == {compile})",
            ]
        )

    def stmt(self, ind, d):
        r = self.r
        k = r.randrange(44)
        if k < 4:
            self.w(ind, f"{r.choice(['x', 'y', 'z'])} = {self.texpr()}")
        elif k < 6:
            self.w(ind, f"{r.choice(['n', 'm'])} = {self.iexpr()}")
        elif k == 6:
            self.w(ind, f"l.append({r.choice([self.number(), self.iexpr()])})")
        elif k == 7:
            self.w(ind, f"d[{r.choice(['a', 'b', 'c'])!r}] = {self.iexpr()}")
        elif k == 8:
            self.w(ind, f"b.k = {self.iexpr()}" if r.random() < 0.6 else f"b.t = {self.texpr()}")
        elif k == 9 and d:
            self.w(ind, f"if {self.number()} {r.choice(['>', '<', '=='])} {self.number()}:")
            self.block(ind + 1, d - 1)
            if r.random() < 0.5:
                self.w(ind, "else:")
                self.block(ind + 1, d - 1)
        elif k == 10 and d:
            self.w(ind, f"if {self.tensor()}.sum() > {r.randint(-3, 3)}:")
            self.block(ind + 1, d - 1)
            if r.random() < 0.5:
                self.w(ind, "else:")
                self.block(ind + 1, d - 1)
        elif k == 11 and d:
            v = f"i{ind}"
            self.w(ind, f"for {v} in {r.choice(['range(2)', 'l[:3]', 'list(d)[:2]', 'enumerate(l[:2])'])}:")
            self.w(ind + 1, f"x = x + {r.randint(1, 2)}")
            self.block(ind + 1, d - 1)
            if r.random() < 0.3:
                self.w(ind + 1, f"if {self.number()} > 4: {r.choice(['break', 'continue'])}")
        elif k == 12:
            self.w(ind, f"print({self.number()}, {self.tensor()}.shape[0])")
        elif k == 13 and d:
            self.w(ind, "try:")
            self.block(ind + 1, d - 1)
            self.w(ind + 1, f"n = d[{r.choice('abcdq')!r}] + l[{r.randint(0, 6)}]")
            self.w(
                ind,
                f"except {r.choice(['KeyError', 'IndexError', '(KeyError, IndexError)', 'LookupError'])}{r.choice(['', ' as e'])}:",
            )
            self.block(ind + 1, d - 1)
            if r.random() < 0.4:
                self.w(ind, "finally:")
                self.w(ind + 1, "m = m + 1")
        elif k == 14 and d:
            self.w(ind, "with T.no_grad():")
            self.block(ind + 1, d - 1)
        elif k == 15:
            self.w(ind, f"{r.choice(['x', 'y', 'z', 'b.t'])}.add_({r.randint(1, 3)})")
        elif k == 16:
            self.w(ind, f"n = inc({r.randint(1, 3)})")
        elif k == 17:
            self.w(ind, f"l2[0] = {self.texpr()}")
        elif k == 18:
            self.w(ind, "if l: n = l.pop() if len(l) > 3 else l[-1]")
        elif k == 19:
            self.w(ind, f"GS.v = {self.iexpr()}")
        elif k == 20:
            self.w(ind, f"if 'b' in d and {self.number()} > 3: del d['b']")
        elif k == 21:
            self.w(ind, f"n, *rest = {self.number()}, {self.number()}, {self.number()}; m = m + rest[0]")
        elif k == 22 and d:
            self.w(ind, "with obj as q:")
            self.block(ind + 1, d - 1)
        elif k == 23:
            self.w(ind, f"n = {self.r.choice(['x', 'y'])}.sum().item() > 0")
        elif k == 24:
            self.w(ind, f"b2.k = b.k + {r.randint(1, 3)}")
        elif k == 25:
            self.w(
                ind,
                f"al = {r.choice(['l', '[*l]', 'l[:]', 'b2.items'])}; al.append({self.number()}); n = len(l) + len(b2.items)",
            )
        elif k == 26:
            self.w(ind, f"n = sum(gen({r.choice(['l', 'list(d.values())', 'range(3)'])}, {self.number()}))")
        elif k == 27:
            self.w(
                ind, f"x = kw(x, {r.choice(['*l[:2]', 'n', '*[1, 2]'])}, {r.choice(['s=m', '**{chr(115): n}', ''])})"
            )
        elif k == 28:
            self.w(ind, "y = obj.prop * y" if r.random() < 0.5 else f"obj.prop = {self.iexpr()}")
        elif k == 29:
            self.w(ind, f"setg({self.iexpr()})")
        elif k == 30:
            self.w(ind, f"n = GW + {self.number()}")
        elif k == 31:
            self.w(ind, f"P = Pt({self.texpr()}, {self.iexpr()}); x = P.t * P.k; b.p = P")
        elif k == 32:
            self.w(ind, "if hasattr(b, 'p'): m = b.p.k" if r.random() < 0.5 else "if hasattr(b, 'p'): del b.p")
        elif k == 33:
            self.w(ind, "for q, v in d.items(): m = m + v * len(q)")
        elif k == 34:
            self.w(ind, f"s = 'k%d-{{}}'.format({self.number()}) % {self.number()}; n = len(s.split('-')[0])")
        elif k == 35 and d:
            self.w(ind, f"w{ind} = 0")
            self.w(ind, f"while w{ind} < {self.number()}:")
            self.w(ind + 1, f"w{ind} += 1")
            self.block(ind + 1, d - 1)
            self.w(ind + 1, f"if w{ind} > 2: break")
        elif k == 36:
            self.w(
                ind, f"fn = lambda t, c=n: t * c + m; x = fn({self.tensor()}); m = m + 1; y = fn(y, {r.randint(1, 2)})"
            )
        elif k == 37:
            self.w(ind, f"if m > {r.randint(2, 30)}: raise {r.choice(['KeyError', 'ValueError'])}('r%d' % m)")
        elif k == 38:
            self.w(
                ind,
                f"obj.cache.setdefault({self.iexpr()}, []).append({r.choice([self.number(), self.tensor()])}); n = len(obj.cache)",
            )
        elif k == 39:
            self.w(ind, "x = x if b is b2 else x + 1")
        elif k == 40:
            self.w(ind, f"m = noisy(m) if {self.number()} > 2 else len(sorted(d, reverse=True))")
        elif k == 41:
            self.w(ind, f"T.set_grad_enabled({self.number()} > 2)")
        elif k == 42:
            self.w(ind, "x = W * x; n = int(x.requires_grad) + n")
        elif k == 43:
            self.w(ind, f"l[:] = [v for v in l if v != {r.randint(1, 3)}] + [{self.number()}]")
        else:
            self.w(ind, f"z = {self.texpr()}")

    def block(self, ind, d):
        for _ in range(self.r.randint(1, 3)):
            self.stmt(ind, d)

    def program(self):
        self.w(0, "def f(x, y, n, b, l, d, l2, b2):")
        self.w(1, "global GW") if False else None
        self.w(1, "z = x; m = 1; count = 0")
        self.w(1, "def inc(k):")
        self.w(2, "nonlocal count, m")
        self.w(2, "count += k")
        self.w(2, f"m = {self.r.choice(['m', 'm + 1', 'count'])}")
        self.w(2, "return count")
        for _ in range(self.r.randint(4, 9)):
            self.stmt(1, 2)
        self.w(1, self.r.choice(["return x, y, n, m, count", "return {'x': x, 'n': [n, m]}, l, b.t", "return x + y"]))
        return "\n".join(self.lines)


PRELUDE = "\ndef h(t, k=1): return t * k - 1\ndef gen(vs, k):\n    for v in vs:\n        if v > 2: yield v * k\n        else: yield from (v + i for i in range(2))\ndef kw(t, *a, s=1, **k): return t * len(a) + s + sum(a)\ndef setg(v):\n    global GW\n    GW = v\ndef noisy(v):\n    r = v + 1\n    print('noisy', v)\n    return r * 2\n"


@dataclasses.dataclass
class Pt:
    t: object
    k: int = 1


class Obj:
    def __init__(self):
        self.scale = 2
        self.log = []
        self.cache = {}
        self._p = 1

    @property
    def prop(self):
        return self._p + self.scale

    @prop.setter
    def prop(self, v):
        self._p = v

    def go(self, t):
        return t * self.scale

    def __enter__(self):
        self.log.append(1)
        return self

    def __exit__(self, *a):
        self.log.append(a[0].__name__ if a[0] else 0)
        return False


def plain(v, lib):
    if isinstance(v, lib.Tensor):
        return [
            str(v.dtype),
            tuple(v.shape),
            bool(v.requires_grad),
            [round(float(a), 3) for a in v.detach().reshape(-1).tolist()],
        ]
    if isinstance(v, dict):
        return {k: plain(x, lib) for k, x in v.items()}
    if isinstance(v, (list, tuple)):
        return [type(v).__name__, *(plain(x, lib) for x in v)]
    return v


def play(src, seed, lib, compile):
    r = random.Random(seed + 1)
    GS = Box()
    GS.v = 0
    obj = Obj()
    ns = {"T": lib, "GK": 3, "GS": GS, "obj": obj, "GW": 1, "Pt": Pt, "W": lib.ones(1).requires_grad_()}
    exec(PRELUDE + src, ns)
    f = compile(ns["f"])
    b = Box()
    b.k = 2
    b.t = lib.ones(3)
    b.items = []
    l, d, l2 = ([1, 2], {"a": 1, "b": 2}, [lib.ones(3) * 2])
    log, text = ([], io.StringIO())
    with contextlib.redirect_stdout(text):
        for call in range(6):
            x = (lib.arange(3, dtype=lib.float32) - r.randint(0, 2)).requires_grad_(False)
            y = x if r.random() < 0.2 else lib.ones(3) * r.randint(-1, 1)
            if call == 3:
                x = x[:2]
                y = y[:2]
                b.t = lib.ones(2)
                l2[0] = lib.ones(2)
            elif len(b.t) != 3 or len(l2[0]) != 3:
                b.t = lib.ones(3)
                l2[0] = lib.ones(3)
            k = r.randrange(7)
            if k == 0:
                b.k = r.randint(0, 4)
            if k == 1:
                d["q"] = 2
            if k == 2:
                ns["GK"] = r.randint(1, 5)
            if k == 3:
                obj.scale = 3
            if k == 4:
                l.clear()
            if k == 5:
                ns["h"].__defaults__ = (r.randint(1, 4),)
            if k == 6:
                lib.set_grad_enabled(not lib.is_grad_enabled())
            b2 = b
            if r.random() < 0.6:
                b2 = Box()
                b2.k = 1
                b2.items = l if r.random() < 0.4 else []
            try:
                out = f(x, y, r.randint(0, 3), b, l, d, l2, b2)
            except Exception as e:
                out = (
                    type(e).__name__,
                    str(e) if type(e) in (KeyError, IndexError, UnboundLocalError, TypeError) else "",
                )
            log.append(
                plain(
                    [
                        out,
                        x,
                        y,
                        b.k,
                        b.t,
                        l,
                        d,
                        l2,
                        GS.v,
                        obj.log,
                        lib.is_grad_enabled(),
                        ns["GW"],
                        b2.k,
                        b2.items,
                        obj.cache,
                        getattr(getattr(b, "p", None), "t", 0),
                        list(vars(b)),
                        obj._p,
                    ],
                    lib,
                )
            )
    lib.set_grad_enabled(True)
    return (log, text.getvalue())


def differs(seed):
    """None if a program's results are the same compiled and as it is written; else its text and the first difference."""
    text = Writer(seed).program()
    try:
        builtins.compile(text, "random program", "exec")
    except SyntaxError:
        return None
    expected = play(text, seed, readtorch, lambda f: f)
    reached = play(text, seed, readtorch, lambda f: eval_frame.optimize(f, backend="eager"))
    if repr(expected) == repr(reached):
        return None
    pairs = zip([*expected[0], expected[1]], [*reached[0], reached[1]])
    return text, next(((a, b) for a, b in pairs if repr(a) != repr(b)), (expected, reached))


def described(seed):
    wrong = differs(seed)
    return wrong and f"{wrong[0]}\nexpected {wrong[1][0]}\nreached {wrong[1][1]}"


if __name__ == "__main__":
    main(described)
