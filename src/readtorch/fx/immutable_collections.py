"""Lists and dictionaries that nobody may change: the arguments of a Node. In PyTorch: `torch/fx/immutable_collections.py`.

A Node keeps a record of who uses whom. A list among its arguments that changed behind its back would make it wrong.
"""

from readtorch.utils._pytree import (
    _dict_flatten,
    _dict_keys,
    _dict_unflatten,
    _indices,
    _list_flatten,
    _list_unflatten,
    _with_keys,
    register_pytree_node,
)

__all__ = ["immutable_list", "immutable_dict"]

_help_mutation = """
If you are attempting to modify the kwargs or args of a torch.fx.Node object,
instead create a new copy of it and assign the copy to the node:

    new_args = ...  # copy and mutate args
    node.args = new_args
""".strip()


def _no_mutation(self, *args, **kwargs):
    raise TypeError(f"{type(self).__name__!r} object does not support mutation. {_help_mutation}")


class immutable_list(list):
    """A list whose changing methods raise TypeError."""

    __delitem__ = __iadd__ = __imul__ = __setitem__ = _no_mutation
    append = clear = extend = insert = pop = remove = reverse = sort = _no_mutation

    def __hash__(self):
        return hash(tuple(self))

    def __reduce__(self):
        return type(self), (tuple(self),)


class immutable_dict(dict):
    """A dict whose changing methods raise TypeError."""

    __delitem__ = __ior__ = __setitem__ = _no_mutation
    clear = pop = popitem = setdefault = update = _no_mutation

    def __hash__(self):
        return hash(frozenset(self.items()))

    def __reduce__(self):
        return type(self), (tuple(self.items()),)


register_pytree_node(
    immutable_list,
    _list_flatten,
    lambda values, context: immutable_list(_list_unflatten(values, context)),
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
    flatten_with_keys_fn=_with_keys(_list_flatten, _indices),
)
register_pytree_node(
    immutable_dict,
    _dict_flatten,
    lambda values, context: immutable_dict(_dict_unflatten(values, context)),
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
    flatten_with_keys_fn=_with_keys(_dict_flatten, _dict_keys),
)
