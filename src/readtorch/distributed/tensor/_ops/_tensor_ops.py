"""Operators that move, pick and make elements. In PyTorch: `torch/distributed/tensor/_ops/_tensor_ops.py`."""

import readtorch
from readtorch.distributed.tensor._op_schema import OpSpec

from .utils import register_op_strategy

aten = readtorch.ops.aten


def as_its_input(schema, metas):
    """The result is placed as the input is, however that is."""
    spec = schema.args_spec[0]
    return [OpSpec(spec, [spec, *schema.kwargs_spec], [0.0])]


register_op_strategy(
    [
        aten.clone.default,
        aten.contiguous.default,
        aten.detach.default,
        aten.alias.default,
        aten.fill_.Scalar,
        aten.view.dtype,
        aten.zero_.default,
        aten.empty_like.default,
    ]
)(as_its_input)
