"""How values of several ranks become one: `ReduceOp`. In PyTorch: `torch/csrc/distributed/c10d/Types.hpp`."""

from enum import IntEnum

import numpy as np

from readtorch.c10.tensor_impl import dtype_of, type_name


class RedOpType(IntEnum):
    """What a reduction does with two elements of the same index."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __str__(self):
        return f"RedOpType.{self.name}"


class ReduceOp:
    """The names under which callers find the reductions: `ReduceOp.SUM`."""

    RedOpType = RedOpType
    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = RedOpType


# The NumPy function that reduces two arrays into one. An average is a sum until `finish`.
COMBINE = {
    RedOpType.SUM: np.add,
    RedOpType.AVG: np.add,
    RedOpType.PRODUCT: np.multiply,
    RedOpType.MIN: np.minimum,
    RedOpType.MAX: np.maximum,
    RedOpType.BAND: np.bitwise_and,
    RedOpType.BOR: np.bitwise_or,
    RedOpType.BXOR: np.bitwise_xor,
}
_BITWISE = (RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR)


def check_reduce_op(op, tensor):
    """RuntimeError, worded as by Gloo, unless `op` can reduce elements of the tensor's type."""
    dtype = dtype_of(tensor)
    if op not in COMBINE:
        raise RuntimeError(f"Cannot use ReduceOp.{RedOpType(op).name} with Gloo")
    if op in _BITWISE and (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"Cannot use ReduceOp.{RedOpType(op).name} with non-integral dtype")
    if op == RedOpType.AVG and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"result type Float can't be cast to the desired output type {type_name(tensor)}")


def combine(op, total, other):
    """total ← total `op` other, in place."""
    COMBINE[op](total, other, out=total)


def finish(op, total, ranks):
    """What is left to do when all `ranks` have been combined: an average is divided, in place."""
    if op == RedOpType.AVG:
        np.divide(total, total.dtype.type(ranks), out=total)
