"""`torch.utils._pytree`: trees with tensors and subclasses as leaves, node types of one's own, specs that print and compare."""

import collections
import dataclasses

import torch
from torch.utils import _pytree as pytree


class Sub(torch.Tensor):
    pass


class Batch:
    """A container of one's own, registered as a node."""

    def __init__(self, inputs, labels, name):
        self.inputs, self.labels, self.name = inputs, labels, name


pytree.register_pytree_node(
    Batch,
    lambda b: ((b.inputs, b.labels), b.name),
    lambda children, name: Batch(*children, name),
    serialized_type_name="lockstep.Batch",
    flatten_with_keys_fn=lambda b: (
        ((pytree.GetAttrKey("inputs"), b.inputs), (pytree.GetAttrKey("labels"), b.labels)),
        b.name,
    ),
)


@dataclasses.dataclass
class Output:
    loss: torch.Tensor
    parts: list
    note: str = "none"


pytree.register_dataclass(Output)
Point = collections.namedtuple("Point", "x y")

sub = torch.ones(2).as_subclass(Sub)
tree = {
    "batch": Batch(torch.zeros(1), [sub, torch.ones(1)], "first"),
    "out": Output(torch.tensor(0.5), [1, None]),
    "point": Point(1, torch.tensor(2)),
    "ordered": collections.OrderedDict(b=2, a=1),
    "max": torch.tensor([1.0, 3.0]).max(0),
    "nothing": (),
}


def text(leaf):
    return f"{type(leaf).__name__}{tuple(leaf.shape)}" if isinstance(leaf, torch.Tensor) else repr(leaf)


leaves, spec = pytree.tree_flatten(tree)
print(len(leaves), [text(leaf) for leaf in leaves])
print(spec.num_leaves, spec.num_nodes, spec.num_children, spec.type.__name__, spec.is_leaf())
again = pytree.tree_unflatten(leaves, spec)
print(
    type(again["batch"]).__name__, again["batch"].name, again["out"].note, again["point"], type(again["max"]).__name__
)
print(
    "same spec", pytree.tree_structure(again) == spec, pytree.tree_structure([1, 2]) == pytree.tree_structure([3, sub])
)
print(
    "other spec",
    pytree.tree_structure([1]) == pytree.tree_structure((1,)),
    pytree.tree_structure({"a": 1}) == pytree.tree_structure({"b": 1}),
)
print(
    "doubled", [text(v) for v in pytree.tree_leaves(pytree.tree_map(lambda v: v * 2 if v is not None else v, tree))][:6]
)
print("only subclasses", [text(v) for v in pytree.tree_leaves(pytree.tree_map_only(Sub, lambda v: "sub", tree))][:4])
print("two kinds", pytree.tree_map_only((int, str), lambda v: v * 2, [1, "a", 1.5, (2,)]))
print("all, any", pytree.tree_all(lambda v: v is not None, tree), pytree.tree_any(lambda v: isinstance(v, Sub), tree))
print(
    "only some",
    pytree.tree_all_only(int, lambda v: v > 0, tree),
    pytree.tree_any_only(torch.Tensor, lambda v: v.ndim > 1, tree),
)
print("two trees", pytree.tree_map(lambda a, b: a + b, [1, (2, 3)], [10, (20, 30)]))
print("is_leaf", pytree.tree_leaves([1, [2, 3], Point(4, 5)], is_leaf=lambda n: isinstance(n, Point)))
for path, leaf in pytree.tree_flatten_with_path(tree)[0]:
    print("   ", pytree.keystr(path), text(leaf))
print(
    "with paths",
    pytree.tree_map_with_path(lambda path, v: f"{pytree.keystr(path)}={v}", {"a": [1, 2], "b": Point(3, 4)}),
)
print("by path", text(pytree.key_get(tree, pytree.tree_flatten_with_path(tree)[0][1][0])))
print("broadcast", pytree._broadcast_to_and_flatten((0, 1), pytree.tree_structure(([5, 5], {"a": 5}))))
small = pytree.tree_structure({"a": [1, (2, None)], "b": Point(3, collections.deque([4]))})
print(small)
print(small.unflatten(list("uvwxyz"[: small.num_leaves])))
print(pytree.treespec_loads(pytree.treespec_dumps(pytree.tree_structure([1, {"a": (2,)}]))))
for wrong in (
    lambda: pytree.tree_unflatten([1], pytree.tree_structure([1, 2])),
    lambda: pytree.tree_map(lambda a, b: a, [1, 2], [1]),
    lambda: pytree.tree_map(lambda a, b: a, {"a": 1}, {"b": 1}),
    lambda: pytree.register_pytree_node(Batch, None, None),
    lambda: pytree.tree_structure([1]).unflatten(3),
):
    try:
        print("no error", wrong())
    except (ValueError, TypeError) as error:
        print(f"{type(error).__name__}:", str(error).split(" at 0x")[0][:100])
