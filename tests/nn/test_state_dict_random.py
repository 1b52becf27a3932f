"""Random trees of modules load random dictionaries, next to the reference: results, complaints, hooks, what is left behind."""

from collections import OrderedDict

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.programs import same

NAMES = "abc"
SHAPES = [(), (1,), (2,), (2, 1)]
DTYPES = ["float32", "float64", "int64", "bfloat16"]  # a complex one warns only once in a process

tensors = st.tuples(st.sampled_from(SHAPES), st.sampled_from(DTYPES))
members = st.one_of(
    st.tuples(st.just("parameter"), tensors, st.booleans()),  # requires_grad
    st.tuples(st.just("buffer"), tensors, st.booleans()),  # persistent
    st.tuples(st.sampled_from(["no parameter", "no buffer", "no module"])),
    st.tuples(st.just("tied"), st.sampled_from(NAMES)),
)
hooks = st.lists(
    st.tuples(
        st.sampled_from(["state_dict_pre", "state_dict_post", "load_pre", "load_post", "_state_dict", "_load_pre"]),
        st.sampled_from(["look", "look", "raise", "edit", "return"]),
    ),
    max_size=2,
)


def trees(children):
    entries = members if children is None else st.one_of(members, children)
    return st.fixed_dictionaries(
        {
            "members": st.dictionaries(st.sampled_from(NAMES), entries, max_size=3),
            "extra": st.sampled_from([None, None, None, 3, "raise"]),
            "hooks": hooks,
        }
    )


tree = trees(trees(trees(None)))

changes = st.lists(
    st.one_of(
        st.tuples(st.just("drop"), st.integers(0, 9)),
        st.tuples(
            st.just("rename"),
            st.integers(0, 9),
            st.sampled_from(["a", "x", "a.x", "b.a", "_extra_state", "b._extra_state"]),
        ),
        st.tuples(st.just("replace"), st.integers(0, 9), st.one_of(tensors, st.sampled_from(["text", None]))),
        st.tuples(st.just("wrap"), st.integers(0, 9), st.booleans()),  # a Parameter, with requires_grad or not
    ),
    max_size=4,
)


def module_of(T, spec, show, fill, with_hooks=True):
    class Node(T.nn.Module):
        def __init__(self):
            super().__init__()
            for name, member in spec["members"].items():
                add_member(T, self, name, member, show, fill, with_hooks)

    class ExtraNode(Node):
        def get_extra_state(self):
            return spec["extra"]

        def set_extra_state(self, state):
            show("extra", state)
            if spec["extra"] == "raise":
                raise KeyError("extra")

    node = Node() if spec["extra"] is None else ExtraNode()
    for i, (kind, action) in enumerate(spec["hooks"] if with_hooks else []):
        register(node, i, kind, action, show)
    return node


def add_member(T, node, name, member, show, fill, with_hooks):
    if isinstance(member, dict):
        node.add_module(name, module_of(T, member, show, fill, with_hooks))
    elif member[0] == "parameter":
        t = tensor_of(T, member[1], fill)
        setattr(node, name, T.nn.Parameter(t, member[2] and (t.is_floating_point())))
    elif member[0] == "buffer":
        node.register_buffer(name, tensor_of(T, member[1], fill), persistent=member[2])
    elif member[0] == "tied":
        setattr(node, name, getattr(node, member[1], None))
    else:
        {"no parameter": node.register_parameter, "no buffer": node.register_buffer, "no module": node.add_module}[
            member[0]
        ](name, None)


def tensor_of(T, kind, fill):
    shape, dtype = kind
    return T.full(shape, fill, dtype=getattr(T, dtype))


def register(node, number, kind, action, show):
    """A hook that says what it sees, and then does `action`."""

    def hook(*args):
        show(number, kind, [plain(a) for a in args])
        if action == "raise":
            raise RuntimeError(f"hook {number}")
        if action == "edit":
            for arg in args:
                if isinstance(arg, list) or hasattr(arg, "missing_keys"):
                    (arg if isinstance(arg, list) else arg.missing_keys).append("edited")
                    break
                if isinstance(arg, dict):
                    arg["edited"] = arg.pop(next(iter(arg), None), None)
                    break
        return {"other": number} if action == "return" else None

    name = {
        "load_pre": "register_load_state_dict_pre_hook",
        "load_post": "register_load_state_dict_post_hook",
        "_load_pre": "_register_load_state_dict_pre_hook",
        "_state_dict": "_register_state_dict_hook",
    }.get(kind, f"register_{kind}_hook")
    getattr(node, name)(hook)


def plain(value):
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if hasattr(value, "_modules"):
        return type(value).__name__
    if hasattr(value, "tolist"):
        return f"{value.dtype} {value.tolist()} {value.requires_grad}"
    return value


def changed(T, state, steps, with_metadata):
    metadata = state._metadata
    state = OrderedDict(state)
    if with_metadata:
        state._metadata = metadata
    for step, index, *how in steps:
        if not state:
            break
        key = list(state)[index % len(state)]
        value = state[key]
        if step == "drop":
            del state[key]
        elif step == "rename":
            state[how[0]] = state.pop(key)
        elif step == "replace":
            state[key] = tensor_of(T, how[0], 7) if isinstance(how[0], tuple) else how[0]
        elif hasattr(value, "is_floating_point") and value.is_floating_point():
            state[key] = T.nn.Parameter(value, how[0])
    return state


def describe(show, module, state):
    for name, t in [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]:
        is_given = [k for k, v in state.items() if v is t]
        shared = [k for k, v in state.items() if hasattr(v, "data_ptr") and v.data_ptr() == t.data_ptr()]
        show(name, type(t).__name__, t.dtype, t.tolist(), t.requires_grad, is_given, shared)
    show(getattr(state, "_metadata", None))


@settings(max_examples=200)
@given(
    tree,
    st.booleans(),
    changes,
    st.fixed_dictionaries({"strict": st.booleans(), "assign": st.booleans()}),
    st.booleans(),
    st.booleans(),
)
def test_any_state(spec, other, steps, options, with_metadata, swap):
    def program(T, show):
        target = module_of(T, spec, show, 1)
        source = module_of(T, spec, show, 2, with_hooks=False)
        if other:
            source.d = T.nn.Linear(1, 1)
        state = changed(T, source.state_dict(), steps, with_metadata)
        show(plain(state))
        show.error(lambda: show(plain(target.state_dict(prefix="p.", keep_vars=other))))
        T.__future__.set_swap_module_params_on_conversion(swap)
        try:
            show.warnings(lambda: show.error(lambda: show(target.load_state_dict(state, **options))))
        finally:
            T.__future__.set_swap_module_params_on_conversion(False)
        describe(show, target, state)

    same(program)
