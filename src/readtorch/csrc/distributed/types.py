"""How values of several ranks become one, `ReduceOp`, and the options of collectives.

In PyTorch: `torch/csrc/distributed/c10d/Types.hpp`, `torch/csrc/distributed/c10d/debug.cpp`.
"""

import os
from datetime import timedelta
from enum import Enum, IntEnum

import numpy as np

from readtorch.c10.tensor_impl import dtype_of, type_name

# ------------------------------------------------------------------------- reductions


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

    def __eq__(self, other):
        return (
            False if type(other) is ReduceOp else int.__eq__(self, other)
        )  # as in PyTorch; the other way round they are

    __hash__ = IntEnum.__hash__


class _ReduceOpMeta(type):
    def __instancecheck__(cls, instance):
        return type(instance) in (RedOpType, ReduceOp)


class ReduceOp(metaclass=_ReduceOpMeta):
    """The names under which callers find the reductions, `ReduceOp.SUM`; as an object a reduction with what belongs to it: the
    factor of PREMUL_SUM.
    """

    RedOpType = RedOpType
    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = RedOpType

    def __init__(self, op, factor=None):
        self._op = op_type(op)
        self._factor = factor

    @property
    def op(self):
        """The RedOpType."""
        return self._op

    @property
    def factor(self):
        """What PREMUL_SUM multiplies with. Raises RuntimeError for other reductions."""
        if self._op is not RedOpType.PREMUL_SUM:
            raise RuntimeError("Only PREMUL_SUM supports accessing factor")
        return self._factor

    def __eq__(self, other):
        return isinstance(other, ReduceOp) and self.op == op_type(other)  # as in PyTorch, whatever the factor

    def __hash__(self):
        return hash(self.op)

    def __copy__(self):
        return ReduceOp(self._op, self._factor)

    def __deepcopy__(self, memo):
        return self.__copy__()

    def __getstate__(self):
        return self._op, self._factor

    def __setstate__(self, state):
        self._op, self._factor = state


def op_type(op):
    """The RedOpType behind either of the two; TypeError for anything else."""
    if type(op) is RedOpType:
        return op
    if type(op) is ReduceOp:
        return op.op
    raise TypeError(f"expected a ReduceOp, but got {type(op).__name__}")


def make_nccl_premul_sum(factor):
    """A sum whose terms are multiplied by a factor first. Only NCCL has it, so that here no backend takes it."""
    return ReduceOp(RedOpType.PREMUL_SUM, factor)


# ------------------------------------------------------------------------- options

NO_TIMEOUT = timedelta(milliseconds=-1)  # that of the group


class CollectiveOptions:
    """What the methods of a process group take beside tensors."""

    first = None  # which of them may stand by itself in place of the object

    def __init__(self):
        self.timeout = NO_TIMEOUT
        self.asyncOp = True

    @classmethod
    def of(cls, given, timeout=None, **fields):
        """The object, or one made of what PyTorch's overloads take instead: the reduction or the root, and a timeout."""
        if isinstance(given, CollectiveOptions):
            return given
        options = cls()
        if given is not None:
            fields[cls.first] = given
        for name, value in (fields | {"timeout": timeout}).items():
            if value is not None:
                setattr(options, name, value)
        return options

    def seconds(self, default):
        return default if self.timeout == NO_TIMEOUT else self.timeout.total_seconds()


class AllreduceOptions(CollectiveOptions):
    first = "reduceOp"

    def __init__(self):
        super().__init__()
        self.reduceOp = RedOpType.SUM


class AllreduceCoalescedOptions(AllreduceOptions):
    pass


class ReduceScatterOptions(AllreduceOptions):
    pass


class BroadcastOptions(CollectiveOptions):
    first = "rootRank"

    def __init__(self):
        super().__init__()
        self.rootRank = self.rootTensor = 0


class ReduceOptions(BroadcastOptions):
    def __init__(self):
        super().__init__()
        self.reduceOp = RedOpType.SUM


class GatherOptions(CollectiveOptions):
    first = "rootRank"

    def __init__(self):
        super().__init__()
        self.rootRank = 0


class ScatterOptions(GatherOptions):
    pass


class AllgatherOptions(CollectiveOptions):
    first = "timeout"


class AllToAllOptions(AllgatherOptions):
    pass


class BarrierOptions(AllgatherOptions):
    def __init__(self):
        super().__init__()
        self.device_ids, self.device = [], None


for _kind in CollectiveOptions.__subclasses__():
    for _class in (_kind, *_kind.__subclasses__()):
        _class.__module__ = "readtorch.distributed"


class BuiltinCommHookType(Enum):
    """Hooks of DistributedDataParallel that PyTorch has in C++."""

    ALLREDUCE = 1
    FP16_COMPRESS = 2


# ------------------------------------------------------------------------- how much is told


class DebugLevel(Enum):
    """TORCH_DISTRIBUTED_DEBUG. in PyTorch: with DETAIL alone collectives are compared before they run; here always."""

    OFF = 0
    INFO = 1
    DETAIL = 2


_debug_level = DebugLevel.OFF


def get_debug_level():
    """How much is told."""
    return _debug_level


def set_debug_level(level):
    """How much is told from now on."""
    global _debug_level
    _debug_level = level


def set_debug_level_from_env():
    """As TORCH_DISTRIBUTED_DEBUG says; ValueError for a word that is none of the three."""
    word = os.environ.get("TORCH_DISTRIBUTED_DEBUG") or "OFF"
    if word.upper() not in DebugLevel.__members__:
        raise ValueError("The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.")
    set_debug_level(DebugLevel[word.upper()])


# ------------------------------------------------------------------------- carrying reductions out

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
