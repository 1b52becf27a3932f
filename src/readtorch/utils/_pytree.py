"""Nested lists, tuples and dicts as a flat list of leaves and back. In PyTorch: `torch/utils/_pytree.py`."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TreeSpec:
    """The shape of a nest: kind of container, its keys or its class, and the specs of its children; kind
    None: a leaf.
    """

    kind: Any
    context: Any
    children: tuple


LEAF = TreeSpec(None, None, ())


def tree_flatten(tree):
    """(the leaves in order, the TreeSpec). Whatever is no list, tuple, named tuple or dict is a leaf."""
    if isinstance(tree, dict):
        context, parts = list(tree), tree.values()
    elif isinstance(tree, list | tuple):
        context, parts = None, tree
    else:
        return [tree], LEAF
    flat, specs = [], []
    for part in parts:
        leaves, spec = tree_flatten(part)
        flat += leaves
        specs.append(spec)
    return flat, TreeSpec(type(tree), context, tuple(specs))


def tree_unflatten(leaves, treespec):
    """The nest that `tree_flatten` took apart, with other leaves."""
    return _build(iter(leaves), treespec)


def _build(leaves, spec):
    if spec is LEAF:
        return next(leaves)
    parts = [_build(leaves, child) for child in spec.children]
    if spec.context is not None:
        return spec.kind(zip(spec.context, parts))
    return spec.kind(*parts) if hasattr(spec.kind, "_fields") else spec.kind(parts)


def tree_map(func, tree):
    """The nest with `func(leaf)` in the place of each leaf."""
    leaves, spec = tree_flatten(tree)
    return tree_unflatten([func(leaf) for leaf in leaves], spec)
