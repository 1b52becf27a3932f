"""TorchScript has no dtype, layout or memory format: it has the numbers of their enums.

In PyTorch: the enums of `c10/core/ScalarType.h`, `c10/core/Layout.h`, `c10/core/MemoryFormat.h`.
"""

from readtorch.c10 import layout as layouts
from readtorch.c10 import scalar_type
from readtorch.c10.memory_format import channels_last, channels_last_3d, contiguous_format, preserve_format

_DTYPE_NAMES = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "float16",
    6: "float32",
    7: "float64",
    9: "complex64",
    10: "complex128",
    11: "bool",
    15: "bfloat16",
    23: "float8_e5m2",
    24: "float8_e4m3fn",
    25: "float8_e5m2fnuz",
    26: "float8_e4m3fnuz",
    27: "uint16",
    28: "uint32",
    29: "uint64",
}

dtype_of = {number: getattr(scalar_type, name) for number, name in _DTYPE_NAMES.items()}
number_of_dtype = {dtype: number for number, dtype in dtype_of.items()}

layout_of = {0: layouts.strided, 1: layouts.sparse_coo}
number_of_layout = {layout: number for number, layout in layout_of.items()}

memory_format_of = {0: contiguous_format, 1: preserve_format, 2: channels_last, 3: channels_last_3d}
number_of_memory_format = {form: number for number, form in memory_format_of.items()}

# A type's name in a schema -> number -> object.
OBJECTS = {"ScalarType": dtype_of, "Layout": layout_of, "MemoryFormat": memory_format_of}


def as_number(value):
    """The number of a dtype, layout or memory format; any other value as it is."""
    for table in (number_of_dtype, number_of_layout, number_of_memory_format):
        try:
            if value in table:
                return table[value]
        except TypeError:  # not hashable, so none of these
            return value
    return value
