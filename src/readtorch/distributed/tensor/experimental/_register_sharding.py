"""Rules of a program's own. In PyTorch: `torch/distributed/tensor/experimental/_register_sharding.py`."""

from readtorch.distributed.tensor._ops.utils import expand_to_full_mesh_op_strategy, propagator

__all__ = ["register_sharding"]


def register_sharding(op):
    """A decorator: register a function as the rule of an operator, or of a list of them, in place of one that it may have.

    The function takes the operator's arguments, with something that has `shape` and `ndim` in place of each tensor, and returns a list
    of pairs: placements of the outputs along one dimension of a mesh, and those of the arguments, None for what is no tensor. All that it
    returns must give the same numbers; which one is taken depends on how the tensors are placed.
    """

    def register(custom_sharding_fn):
        def custom_strategy(schema, metas):
            ways = custom_sharding_fn(*schema.args_schema, **schema.kwargs_schema)
            ways = [[*outputs, *(p for p in inputs if p is not None)] for outputs, inputs in ways]
            return expand_to_full_mesh_op_strategy(schema, ways, metas, num_outputs=len(schema.op._schema.returns))

        for overload in op if isinstance(op, list) else [op]:
            propagator.register_op_strategy(overload, custom_strategy)
        propagator.propagate_op_sharding.cache_clear()  # in PyTorch: calls that were made before go on as they did
        return custom_sharding_fn

    return register
