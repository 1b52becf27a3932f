"""Short names of element types: f32 for float32, i64 for int64. In PyTorch: `torch/utils/_dtype_abbrs.py`."""

from readtorch.autograd.graph import _abbreviated
from readtorch.c10.scalar_type import ALL_TYPES

dtype_abbrs = {dtype: _abbreviated(dtype) for dtype in ALL_TYPES}
