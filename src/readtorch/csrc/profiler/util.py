"""What is noted of a call's arguments: shapes, strides, dtypes, numbers; and how many operations a call must take.

In PyTorch: `torch/csrc/profiler/util.cpp`, and the encoder of inputs in `torch/csrc/profiler/collection.cpp`. Explained in the
chapter "One operator call".
"""

import math

from readtorch.c10 import scalar_type
from readtorch.c10.exception import warn_once
from readtorch.c10.layout import layout
from readtorch.c10.memory_format import memory_format
from readtorch.c10.tensor_impl import TensorImpl

# C++'s names of the elements' types. In PyTorch: `caffe2::TypeMeta::name`.
TYPE_NAMES = {
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short int",
    "int32": "int",
    "int64": "long int",
    "float16": "c10::Half",
    "float32": "float",
    "float64": "double",
    "bfloat16": "c10::BFloat16",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
    "bool": "bool",
}


def raw_inputs(values):
    """What `Inputs` needs of a call's arguments, taken quickly and without keeping a tensor: (sizes, strides in bytes, dtype) of a tensor, a
    list for a list; numbers and the like as they are."""
    raw = []
    for value in values:
        if isinstance(value, TensorImpl):
            array = value._array
            raw.append((array.shape, array.strides, array.dtype))
        elif value is None or isinstance(value, PLAIN):
            raw.append(value)
        else:
            raw.append(raw_inputs(value) if isinstance(value, (list, tuple)) else None)
    return raw


PLAIN = (bool, int, float, scalar_type.dtype, layout, memory_format)


class Inputs:
    """What is told of a call's arguments, an entry each.

    shapes: sizes of a tensor, a list of them for a list of tensors, [] for anything else; strides likewise. dtypes: C++'s name of a
    tensor's elements, "TensorList", "Scalar", "ScalarList" or "". concrete: numbers and lists of numbers, else None.
    """

    __slots__ = ("shapes", "strides", "dtypes", "concrete", "flops")

    def __init__(self, raw, flops=0):
        told = [input_of(value) for value in raw]
        self.shapes, self.strides, self.dtypes, self.concrete = map(list, zip(*told)) if told else ([], [], [], [])
        self.flops = flops


NO_INPUTS = Inputs(())


def input_of(raw):
    """(shape, strides, dtype, concrete value) of one argument as `raw_inputs` has noted it."""
    if isinstance(raw, tuple):
        shape, _, dtype = raw
        return list(shape), elementwise_strides(raw), type_name(dtype), None
    if isinstance(raw, (bool, int, float)):
        return [], [], "Scalar", raw
    if isinstance(raw, PLAIN):
        return [], [], "Scalar", number_of(raw)
    if isinstance(raw, list):
        if raw and all([isinstance(entry, tuple) for entry in raw]):
            return [list(shape) for shape, _, _ in raw], [*map(elementwise_strides, raw)], "TensorList", None
        if all([isinstance(entry, (bool, int, float)) for entry in raw]):
            return [], [], "ScalarList", raw
    return [], [], "", None


def elementwise_strides(raw):
    """Strides in elements. NumPy gives a new array without elements strides of 0, C++ those of a row-major one."""
    shape, strides, dtype = raw
    if 0 in shape and not any(strides):
        return [math.prod([max(size, 1) for size in shape[i + 1 :]]) for i in range(len(shape))]
    return [stride // dtype.itemsize for stride in strides]


def type_name(numpy_dtype):
    name = str(scalar_type.by_numpy[numpy_dtype]).partition(".")[2]
    return TYPE_NAMES.get(name, name)


def number_of(value):
    """The number by which C++ knows a dtype, layout or memory format; None if readtorch does not."""
    if isinstance(value, scalar_type.dtype):
        order, name = SCALAR_TYPES, str(value).partition(".")[2]
    else:
        order, name = LAYOUTS if isinstance(value, layout) else MEMORY_FORMATS, value.name
    return order.index(name) if name in order else None


# In the order of `c10/core/ScalarType.h`, `Layout.h` and `MemoryFormat.h`.
SCALAR_TYPES = (
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool qint8 quint8 qint32"
)
SCALAR_TYPES = [*SCALAR_TYPES.split(), "bfloat16"]
LAYOUTS = ["strided", "sparse_coo"]
MEMORY_FORMATS = ["contiguous_format", "preserve_format", "channels_last", "channels_last_3d"]


def flattened_shapes(shapes):
    """As the table shows them: a list of tensors counts as no tensor."""
    return [[] if shape and isinstance(shape[0], list) else shape for shape in shapes]


# ------------------------------------------------------------------------------------------------------------- FLOPs


def compute_flops(name, values):
    """How many operations on floating-point numbers a call takes; 0 for operators of which it is not known.

    A product of matrices counts a multiplication and an addition for each term.
    """
    rule = FLOPS.get(name)
    return rule(*values) if rule is not None and values else 0


def conv2d_flops(input, weight, bias, stride, padding, dilation, groups):
    if weight._array.ndim != 4:
        warn_once("Failed to compute flops for op aten::conv2d because it requires a 4D kernel tensor.", UserWarning)
        return 0
    if input._array.ndim != 4:
        warn_once(
            "Failed to compute flops for op aten::conv2d because both input and weight must be size 4.", UserWarning
        )
        return 0
    minibatch, in_channels, *plane = input._array.shape
    out_channels, _, *kernel = weight._array.shape
    outputs = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(plane, kernel, stride, padding, dilation)
    ]
    return 2 * minibatch * math.prod(outputs) * math.prod(kernel) * in_channels * out_channels // groups


def mm_flops(mat1, mat2):
    rows, inner = mat1._array.shape
    return 2 * rows * math.prod(mat2._array.shape) if inner else 0


def bmm_flops(batch1, batch2):
    batch, rows, inner = batch1._array.shape
    return 2 * rows * math.prod(batch2._array.shape) if batch and inner else 0


def elementwise_flops(self, *others):
    return math.prod(self._array.shape)


FLOPS = {
    "aten::conv2d": conv2d_flops,
    "aten::mm": mm_flops,
    "aten::addmm": lambda self, mat1, mat2, *scales: mm_flops(mat1, mat2),
    "aten::bmm": bmm_flops,
    "aten::baddbmm": lambda self, batch1, batch2, *scales: bmm_flops(batch1, batch2),
    "aten::mul": elementwise_flops,
    "aten::add": elementwise_flops,
}
