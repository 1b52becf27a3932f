"""Flattens an argument by the structure that a trace has seen. In PyTorch: `torch/fx/_pytree.py`.

Generated code of a function with nested arguments begins with `fx_pytree.tree_flatten_spec`: dictionaries are read in the
order of the trace, and containers may hold more than the trace has seen.
"""

from collections import namedtuple

from readtorch.return_types import all_return_types
from readtorch.utils._pytree import tree_flatten

SUPPORTED_NODES = {}  # class -> function of (container, spec) that returns its children
SUPPORTED_NODES_EXACT_MATCH = {}  # class -> function of the same that says whether there are as many as in the trace


def register_pytree_flatten_spec(cls, flatten_fn_spec, flatten_fn_exact_match_spec=None):
    """Say how a container of class `cls` is taken apart by a TreeSpec: a function of both that returns a list."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def _deregister_pytree_flatten_spec(cls):
    del SUPPORTED_NODES[cls]
    del SUPPORTED_NODES_EXACT_MATCH[cls]


def tree_flatten_spec(pytree, spec):
    """The leaves of `pytree` where `spec` has leaves. Raises RuntimeError if an unregistered container differs from `spec`."""
    if spec.is_leaf():
        return [pytree]
    if spec.type in SUPPORTED_NODES:
        children = SUPPORTED_NODES[spec.type](pytree, spec)
        return [leaf for child, s in zip(children, spec.children()) for leaf in tree_flatten_spec(child, s)]
    leaves, real_spec = tree_flatten(pytree)
    if spec != real_spec:
        raise RuntimeError(
            f"Real spec {real_spec} of object {pytree} is different from expected spec {spec}. "
            f"Please file an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml"
        )
    return leaves


def _items_by_key(d, spec):
    return [d[key] for key in spec.context]


def _items_by_index(d, spec):
    return [d[i] for i in range(spec.num_children)]


def _has_as_many(d, spec):
    return len(d) == spec.num_children


register_pytree_flatten_spec(dict, _items_by_key, _has_as_many)
for _cls in (list, tuple, *all_return_types, namedtuple):
    register_pytree_flatten_spec(_cls, _items_by_index, _has_as_many)
