"""Reading a table at an index that is a tensor. In PyTorch: `torch/_dynamo/_trace_wrapped_higher_order_op.py`."""

import readtorch
from readtorch._tensor import Tensor
from readtorch.overrides import TorchFunctionMode
from readtorch.utils._pytree import tree_leaves


class TransformGetItemToIndex(TorchFunctionMode):
    """`table[head]` reads the table at the number that the tensor `head` holds, as `table[head, 0]` does.

    Without the mode a tensor of no dimensions is made an `int` first, which under `vmap`, where it stands for
    many numbers, is an error.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is Tensor.__getitem__:
            table, index = args
            places = tree_leaves(index)
            if all(isinstance(place, (Tensor, int)) for place in places):
                return readtorch.ops.aten.index(table, [as_tensor(place, table.device) for place in places])
        return func(*args, **(kwargs or {}))


def as_tensor(place, device):
    return place if isinstance(place, Tensor) else readtorch.tensor(place, dtype=readtorch.int64, device=device)
