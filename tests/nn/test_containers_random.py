"""Random edits of containers, next to the reference: what is in them afterwards, under which names, and every error."""

from collections import OrderedDict

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.programs import same

indices = st.integers(-4, 4)
slices = st.builds(slice, st.none() | indices, st.none() | indices, st.none() | st.sampled_from([-2, -1, 1, 2, 3]))
names = st.sampled_from(["0", "1", "2", "7", "a", "b", "training", "", "a.b"])
values = st.sampled_from(["relu", "tanh", "none", "number", "lines"])
several = st.lists(values, max_size=3)

sequence_steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["get", "delete", "pop"]), indices | slices | names),
        st.tuples(st.just("set"), indices | slices | names, values),
        st.tuples(st.just("insert"), indices, values),
        st.tuples(st.just("append"), values),
        st.tuples(st.sampled_from(["extend", "+", "+=", "same +="]), several),
        st.tuples(st.sampled_from(["*", "*="]), st.integers(-1, 3)),
        st.tuples(st.sampled_from(["add_module", "setattr"]), names, values),
        st.tuples(st.sampled_from(["delattr"]), names),
    ),
    max_size=8,
)


def value(T, kind):
    class Lines(T.nn.Module):
        def extra_repr(self):
            return "one\n\ntwo"

    return {"relu": T.nn.ReLU, "tanh": T.nn.Tanh, "none": lambda: None, "number": lambda: 3, "lines": Lines}[kind]()


def edit(T, c, step, *args):
    """One step on the container `c`; returns what becomes of `c`, and what the step gave."""

    def new(kinds):
        return type(c)(*[value(T, k) for k in kinds]) if type(c) is T.nn.Sequential else [value(T, k) for k in kinds]

    if step == "get":
        return c, c[args[0]]
    if step == "delete":
        del c[args[0]]
    elif step == "pop":
        return c, c.pop(args[0])
    elif step == "set":
        c[args[0]] = value(T, args[1])
    elif step == "insert":
        return c, c.insert(args[0], value(T, args[1])) is c
    elif step == "append":
        return c, c.append(value(T, args[0])) is c
    elif step == "extend":
        return c, c.extend(new(args[0])) is c
    elif step == "+":
        return c, c + new(args[0])
    elif step == "+=":
        c += new(args[0])
    elif step == "same +=":
        c += c
    elif step == "*":
        return c, (c * args[0], args[0] * c)
    elif step == "*=":
        c *= args[0]
    elif step == "add_module":
        c.add_module(args[0], value(T, args[1]))
    elif step == "setattr":
        setattr(c, args[0], value(T, args[1]))
    elif step == "delattr":
        delattr(c, args[0])
    return c, None


def follow(T, show, container, steps):
    for step in steps:

        def act():
            nonlocal container
            container, result = edit(T, container, *step)
            show(result)

        show(step)
        show.error(act)
        show([(name, type(m).__name__) for name, m in container._modules.items()], len(container))
        show.error(lambda: show(container))
    show.error(lambda: show([name for name in dir(container) if name.isdigit()]))


@settings(max_examples=120)
@given(st.sampled_from(["Sequential", "ModuleList", "named"]), several, sequence_steps)
def test_sequences(kind, start, steps):
    def program(T, show):
        first = [value(T, k) for k in start if k not in ("none", "number")]
        if kind == "named":
            container = T.nn.Sequential(OrderedDict(zip("abc", first)))
        else:
            container = T.nn.Sequential(*first) if kind == "Sequential" else T.nn.ModuleList(first)
        follow(T, show, container, steps)

    same(program)


dict_keys = st.sampled_from(["a", "b", "c", "", "x.y", "keys", "training", 3])
pairs = st.lists(st.tuples(dict_keys, values), max_size=3)
forms = st.sampled_from(["dict", "OrderedDict", "pairs", "own", "three", "flat", "number"])
dict_steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["get", "delete", "pop", "in", "get default", "setdefault"]), dict_keys),
        st.tuples(st.just("set"), dict_keys, values),
        st.tuples(st.sampled_from(["update", "|", "|=", "new"]), pairs, forms),
        st.tuples(st.sampled_from(["clear", "copy", "popitem", "reversed", "iterate"])),
    ),
    max_size=8,
)


def parameter(T, kind):
    """A value for ParameterDict."""
    return {"relu": T.ones(2), "tanh": T.nn.Parameter(T.zeros(1)), "none": None, "number": 3, "lines": "text"}[kind]


def mapping(T, own, make, pairs, form):
    pairs = [(key, make(T, kind)) for key, kind in pairs]
    return {
        "dict": lambda: dict(pairs),
        "OrderedDict": lambda: OrderedDict(pairs),
        "pairs": lambda: pairs,
        "own": lambda: own(pairs),
        "three": lambda: [(1, 2, 3)],
        "flat": lambda: [3],
        "number": lambda: 3,
    }[form]()


def edit_dict(T, d, make, step, *args):
    own = type(d)
    if step == "get":
        return d, d[args[0]]
    if step == "delete":
        del d[args[0]]
    elif step == "pop":
        return d, d.pop(args[0])
    elif step == "in":
        return d, args[0] in d
    elif step == "get default":
        return d, d.get(args[0], "default")
    elif step == "setdefault":
        return d, d.setdefault(args[0], make(T, "tanh"))
    elif step == "set":
        d[args[0]] = make(T, args[1])
    elif step == "update":
        d.update(mapping(T, own, make, *args))
    elif step == "|":
        return d, (d | mapping(T, own, make, *args))
    elif step == "|=":
        d |= mapping(T, own, make, *args)
    elif step == "new":
        return d, own(mapping(T, own, make, *args))
    elif step == "iterate":
        return d, (list(d), list(d.keys()), list(d.values()), list(d.items()))
    elif step == "reversed":
        return d, list(reversed(d))
    else:
        return d, getattr(d, step)()
    return d, None


@settings(max_examples=120)
@given(st.sampled_from(["ModuleDict", "ParameterDict"]), dict_steps)
def test_dictionaries(kind, steps):
    def program(T, show):
        d = getattr(T.nn, kind)()
        for step in steps:

            def act():
                nonlocal d
                d, result = edit_dict(T, d, value if kind == "ModuleDict" else parameter, *step)
                show(result)

            show(step)
            show.error(act)
            show.error(lambda: show(d, len(d), list(d), list(d.state_dict())))
        show("end")

    same(program)


list_steps = st.lists(
    st.one_of(
        st.tuples(st.just("get"), indices | slices | names),
        st.tuples(st.just("set"), indices | slices, values),
        st.tuples(st.just("append"), values),
        st.tuples(st.sampled_from(["extend", "+="]), several),
        st.tuples(st.just("setattr"), names, values),
    ),
    max_size=8,
)


@settings(max_examples=60)
@given(several, list_steps)
def test_parameter_lists(start, steps):
    def program(T, show):
        p = T.nn.ParameterList([parameter(T, k) for k in start])

        def act(step, *args):
            if step == "get":
                show(p[args[0]])
            elif step == "set":
                p[args[0]] = parameter(T, args[1])
            elif step == "append":
                show(p.append(parameter(T, args[0])) is p)
            elif step == "setattr":
                setattr(p, args[0], parameter(T, args[1]))
            else:
                show((p.extend if step == "extend" else p.__iadd__)([parameter(T, k) for k in args[0]]) is p)

        for step in steps:
            show.error(lambda: act(*step))
            show(p, len(p), [type(v).__name__ for v in p], list(p.state_dict()))
        show("end")

    same(program)
