"""What is noted of a call's arguments: shapes, strides, dtypes, numbers; and how many operations a call must take.

In PyTorch: `torch/csrc/profiler/util.cpp`, and the encoder of inputs in `torch/csrc/profiler/collection.cpp`. Explained in the
chapter "The profiler".
"""

import math

import numpy as np

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


def raw_inputs(values, same):
    """What `Inputs` needs of a call's arguments, taken quickly and without keeping a tensor: a tuple with (sizes, strides in bytes, dtype)
    for a tensor, (type, number) for a number that is no int, since 1 == 1.0 == True, a tuple for a list; else what `raw_input` gives.

    same: `setdefault` of a dict for a run. What a log keeps lets Python's collector of garbage run more often, which costs more than
    to describe an argument; a training step has the same shapes each time, so equal descriptions are one object.
    """
    raw = []
    for value in values:
        if isinstance(value, TensorImpl):
            array = value._array
            raw.append((array.shape, array.strides, array.dtype))
        elif value is None or (kind := type(value)) is int:
            raw.append(value)
        elif kind is float:
            raw.append((float, value or repr(value)))  # a zero as a text, for 0.0 == -0.0
        elif (
            (kind is list or kind is tuple) and value and type(value[0]) is int
        ):  # sizes: what a list holds is of one type
            raw.append(tuple(value))
        else:
            raw.append(raw_input(value))
    raw = tuple(raw)
    return same(raw, raw)


def raw_input(value):
    """The same of what is rarer: bools, lists of other things; dtypes and the like as they are, None for what is not told."""
    if isinstance(value, (bool, float)):
        return type(value), value
    if isinstance(value, (list, tuple)):
        return raw_inputs(value, lambda raw, _: raw)
    return value if isinstance(value, PLAIN) else None


def is_raw_tensor(raw):
    return type(raw) is tuple and len(raw) == 3 and isinstance(raw[2], np.dtype)


def is_raw_number(raw):
    return isinstance(raw, int) or type(raw) is tuple and len(raw) == 2 and isinstance(raw[0], type)


def raw_number(raw):
    return raw[0](raw[1]) if type(raw) is tuple else raw


PLAIN = (int, scalar_type.dtype, layout, memory_format)


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
    if is_raw_tensor(raw):
        shape, _, dtype = raw
        return list(shape), elementwise_strides(raw), type_name(dtype), None
    if is_raw_number(raw):
        return [], [], "Scalar", raw_number(raw)
    if isinstance(raw, PLAIN):
        return [], [], "Scalar", number_of(raw)
    if type(raw) is tuple:
        if raw and all(map(is_raw_tensor, raw)):
            return [list(shape) for shape, _, _ in raw], [*map(elementwise_strides, raw)], "TensorList", None
        if all(map(is_raw_number, raw)):
            return [], [], "ScalarList", [*map(raw_number, raw)]
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
