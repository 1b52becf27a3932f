"""Containers next to the reference: order, names, slices, repr, errors."""

from collections import OrderedDict

from tests.programs import same


def linears(T, n):
    return [T.nn.Linear(1, i + 1) for i in range(n)]


def test_sequential():
    def program(T, show):
        s = T.nn.Sequential(*linears(T, 4))
        show(s, len(s), s[0], s[-1], s[1:3], s[::2], s[-1:])
        named = T.nn.Sequential(OrderedDict(a=T.nn.ReLU(), b=T.nn.Tanh(), c=T.nn.Sigmoid()))
        show(named, named[1], named[1:], named.a, [type(m).__name__ for m in named])
        for bad in (9, -9, "0", 1.5):
            show.error(lambda: s[bad])
            show.error(lambda: s.__setitem__(bad, T.nn.ReLU()))
            show.error(lambda: s.__delitem__(bad))
        s[1] = T.nn.ReLU()
        del s[0]
        show(s)
        del s[1:]
        show(s, s.pop(0), s)
        named[1] = T.nn.ReLU6()
        del named[0]
        show(named, list(named.state_dict()))
        show(named.append(T.nn.GELU()).extend([T.nn.ELU(), T.nn.ELU()]) is named, named)
        show(named.insert(1, T.nn.Identity()), named.insert(-1, T.nn.Tanh()))
        show.error(lambda: named.insert(99, T.nn.ReLU()))
        show.error(lambda: named.insert(0, 3))
        a, b = T.nn.Sequential(T.nn.ReLU()), T.nn.Sequential(T.nn.Tanh(), T.nn.GELU())
        show(a + b, a * 3, 2 * b, (a + b)[0] is a[0])
        a += b
        b *= 2
        show(a, b, b[0] is b[2])
        for bad in (3, [T.nn.ReLU()], 0, -1, 1.5, "2"):
            show.error(lambda: a + bad)
            show.error(lambda: a * bad)
            show.error(lambda: a.__iadd__(bad))
            show.error(lambda: a.__imul__(bad))
        show.error(lambda: T.nn.Sequential(3))
        show([name for name in dir(T.nn.Sequential(T.nn.ReLU())) if name.isdigit()])
        show(T.nn.Sequential()(3), T.nn.Sequential(T.nn.ReLU(), T.nn.Tanh())(T.ones(2)))

    same(program)


def test_module_list():
    def program(T, show):
        m = T.nn.ModuleList(linears(T, 4))
        show(m, len(m), m[0], m[-1], m[1:3], type(m[1:3]).__name__, [type(x).__name__ for x in m])
        for bad in (9, -9, "0", 1.5):
            show.error(lambda: m[bad])
            show.error(lambda: m.__setitem__(bad, T.nn.ReLU()))
            show.error(lambda: m.__delitem__(bad))
        m[1] = T.nn.ReLU()
        del m[0]
        show(m, list(m.state_dict()))
        del m[0:2]
        m.insert(0, T.nn.Tanh())
        m.append(T.nn.ReLU()).extend([T.nn.ReLU()] * 3).append(T.nn.GELU())
        m += [T.nn.Identity()]
        show(m, m.pop(-1), m.pop(slice(0, 2)), m)
        show(m + [T.nn.Tanh()], T.nn.ModuleList(m))
        show.error(lambda: m.extend(3))
        show.error(lambda: m.append(3))
        show.error(lambda: T.nn.ModuleList([3]))
        show.error(lambda: m(1))
        show([name for name in dir(m) if name.isdigit()])

    same(program)


def test_module_dict():
    def program(T, show):
        d = T.nn.ModuleDict({"b": T.nn.ReLU(), "a": T.nn.Tanh()})
        show(d, len(d), list(d), list(d.keys()), [type(v).__name__ for v in d.values()], "a" in d, "z" in d)
        d["c"] = T.nn.GELU()
        d["a"] = T.nn.ELU()
        show(d, d.pop("b"), [k for k, _ in d.items()])
        del d["c"]
        d.update([("x", T.nn.ReLU()), ["y", T.nn.ReLU()]])
        d.update(OrderedDict(z=T.nn.ReLU()))
        d.update(T.nn.ModuleDict({"w": T.nn.ReLU()}))
        show(d)
        for bad in (
            3,
            [3],
            [(1, 2, 3)],
            [("k", 3)],
            {"k": 3},
            {"a.b": T.nn.ReLU()},
            {"": T.nn.ReLU()},
            {"items": T.nn.ReLU()},
            {1: T.nn.ReLU()},
        ):
            show.error(lambda: d.update(bad))
        show.error(lambda: d["nothing"])
        show.error(lambda: d.pop("nothing"))
        d.clear()
        show(d, len(d))

    same(program)


def test_parameter_list():
    def program(T, show):
        p = T.nn.ParameterList([T.ones(2), T.nn.Parameter(T.zeros(2, 3)), "text", 3, T.zeros(())])
        show(p, len(p), [type(v).__name__ for v in p], [n for n, _ in p.named_parameters()], list(p.state_dict()))
        show(p[0], p[-1], p[1:3], p[::2])
        p[0] = T.zeros(4)
        p.append(T.ones(1)).extend([1, T.ones(1)])
        p += [T.ones(1)]
        show(p)
        for bad in (99, -99, "0"):
            show.error(lambda: p[bad])
            show.error(lambda: p.__setitem__(bad, 1))
        show.error(lambda: p.extend(3))
        show.error(lambda: p.extend(T.ones(3)))
        show.error(lambda: p(1))
        show.error(lambda: T.nn.ParameterList(T.ones(3)))
        show([name for name in dir(p) if name.isdigit()])
        show(T.nn.ParameterList([T.ones(1, dtype=T.float64), T.ones(2).half()]))

    same(program)


def test_parameter_dict():
    def program(T, show):
        d = T.nn.ParameterDict({"b": T.ones(2), "a": T.nn.Parameter(T.zeros(2, 3)), "c": "text"})
        show(d, len(d), list(d), list(reversed(d)), [n for n, _ in d.named_parameters()])
        show(d["a"], d.get("z"), d.get("z", 3), "a" in d, d.setdefault("a") is d["a"], d.setdefault("n", T.ones(1)))
        d["f"] = T.ones(1, dtype=T.float64)
        show(d, d.popitem(), d.pop("c"), list(d.keys()), [k for k, _ in d.items()], len(list(d.values())))
        ordered = T.nn.ParameterDict(OrderedDict(z=T.ones(1), y=T.ones(1)))
        show(list(ordered), list(T.nn.ParameterDict([("z", T.ones(1)), ["y", 3]])), list(ordered.copy()))
        show(list(d | ordered), list(ordered | d))
        d |= ordered
        show(list(d), list(d.fromkeys(["k", "l"], 3).items()))
        for bad in (3, [3], [(1, 2, 3)]):
            show.error(lambda: d.update(bad))
        show.error(lambda: d["nothing"])
        show.error(lambda: d(1))
        del d["a"]
        d.clear()
        show(d, len(d))

    same(program)


def test_deprecated_container():
    def program(T, show):
        show.warnings(lambda: show(T.nn.Container(a=T.nn.ReLU(), b=None)))

    same(program)
