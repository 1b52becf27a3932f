"""Pooling.

In PyTorch: `torch/onnx/_internal/torchscript_exporter/symbolic_opset9.py`,
and what later versions changed in `symbolic_opset10.py`.
"""

from readtorch.onnx.registration import onnx_symbolic
from readtorch.onnx.symbolic_helper import parse_args, rank, sizes, squeeze, unsqueeze, unsupported


def _per_dim(values, count):
    return values * count if len(values) == 1 else values


def _batched(g, self, dims, pool):
    """ONNX pools batches only: a single image becomes a batch of one."""
    if rank(self) == dims + 2:
        return pool(self)
    results = pool(unsqueeze(g, self, [0]))
    return tuple(squeeze(g, r, [0]) for r in results) if isinstance(results, tuple) else squeeze(g, results, [0])


def _max_pool(dims, with_indices):
    @parse_args("v", "is", "is", "is", "is", "b")
    def symbolic(g, self, kernel_size, stride, padding, dilation, ceil_mode):
        settings = {
            "kernel_shape_i": _per_dim(kernel_size, dims),
            "strides_i": _per_dim(stride or kernel_size, dims),
            "pads_i": 2 * _per_dim(padding, dims),
            "dilations_i": _per_dim(dilation, dims),
            "ceil_mode_i": int(ceil_mode),
        }
        if not with_indices:
            return _batched(g, self, dims, lambda x: g.op("MaxPool", x, **settings))
        return _batched(g, self, dims, lambda x: _with_indices(g, x, settings))

    return symbolic


def _with_indices(g, x, settings):
    """ONNX counts through the whole tensor, PyTorch anew in each channel: the first index of the channel goes
    off.
    """
    result, indices = g.op("MaxPool", x, **settings, outputs=2)
    n, channels, *plane = sizes(x, "max pooling with indices")
    count = 1
    for size in plane:
        count *= size
    return result, g.op("Mod", indices, count)


for _dims in (1, 2, 3):
    onnx_symbolic(f"aten::max_pool{_dims}d")(_max_pool(_dims, False))
    onnx_symbolic(f"aten::max_pool{_dims}d_with_indices")(_max_pool(_dims, True))


def _avg_pool(dims):
    @parse_args("v", "is", "is", "is", "b", "b", "none")
    def symbolic(g, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override=None):
        if divisor_override is not None and not divisor_override.mustBeNone():
            raise unsupported("average pooling with divisor_override", self)
        return _batched(
            g,
            self,
            dims,
            lambda x: g.op(
                "AveragePool",
                x,
                kernel_shape_i=_per_dim(kernel_size, dims),
                strides_i=_per_dim(stride or kernel_size, dims),
                pads_i=2 * _per_dim(padding, dims),
                ceil_mode_i=int(ceil_mode),
                count_include_pad_i=int(count_include_pad),
            ),
        )

    return symbolic


def _adaptive_pool(dims, kind):
    """Where the sizes divide, it is pooling with a kernel; otherwise ONNX has no word for it."""

    @parse_args("v", "is")
    def symbolic(g, self, output_size):
        if all(n == 1 for n in output_size) and kind == "Average":
            return _batched(g, self, dims, lambda x: g.op("GlobalAveragePool", x))
        if all(n == 1 for n in output_size):
            return _batched(g, self, dims, lambda x: g.op("GlobalMaxPool", x))
        given = sizes(self, f"adaptive pooling to the size {output_size}")[-dims:]
        if any(n % wanted for n, wanted in zip(given, output_size)):
            raise unsupported(
                f"adaptive pooling, since the output size {output_size} is not a factor of the input size", self
            )
        kernel = [n // wanted for n, wanted in zip(given, output_size)]
        name = "MaxPool" if kind == "Max" else "AveragePool"
        return _batched(g, self, dims, lambda x: g.op(name, x, kernel_shape_i=kernel, strides_i=kernel))

    return symbolic


def _adaptive_max_pool(dims):
    def symbolic(g, self, output_size):
        """With the indices, which are not exported: who uses them gets an error."""
        return _adaptive_pool(dims, "Max")(g, self, output_size), None

    return symbolic


for _dims in (1, 2, 3):
    onnx_symbolic(f"aten::avg_pool{_dims}d")(_avg_pool(_dims))
    onnx_symbolic(f"aten::adaptive_avg_pool{_dims}d")(_adaptive_pool(_dims, "Average"))
    onnx_symbolic(f"aten::adaptive_max_pool{_dims}d")(_adaptive_max_pool(_dims))
