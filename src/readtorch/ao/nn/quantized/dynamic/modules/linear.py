"""The linear layer whose weight is integers. In PyTorch: `torch/ao/nn/quantized/dynamic/modules/linear.py`.

Left out: `from_reference`, and weights of float16.
"""

import readtorch
from readtorch import nn
from readtorch.ao.nn.quantized.modules.linear import LinearPackedParams
from readtorch.ao.nn.quantized.modules.packed_params import PackedLinearWeight
from readtorch.ao.nn.quantized.modules.utils import _quantize_weight

__all__ = ["Linear"]


class Linear(nn.Module):
    """Float [..., in] -> float [..., out], in at least two dimensions: inputs become 7-bit integers with one scale for all of
    them, the weight is 8-bit ones.

    There are no parameters. `weight()`, `state_dict()` and pickle raise NotImplementedError, since PyTorch gives a quantized
    tensor there; `copy.deepcopy` is possible. Raises RuntimeError for dtypes other than `qint8`.
    """

    _version = 4

    def __init__(self, in_features, out_features, bias_=True, dtype=readtorch.qint8):
        super().__init__()
        if dtype == readtorch.float16:
            raise NotImplementedError("readtorch quantizes weights to torch.qint8, not to torch.float16")
        if dtype != readtorch.qint8:
            raise RuntimeError("Unsupported dtype specified for quantized Linear!")
        self.in_features = in_features
        self.out_features = out_features
        weight = readtorch.zeros(out_features, in_features, dtype=readtorch.int8)
        bias = readtorch.zeros(out_features) if bias_ else None
        one, zero = readtorch.ones(1, 1), readtorch.zeros(1, 1, dtype=readtorch.int32)
        packed = PackedLinearWeight(weight, one, zero, readtorch.per_tensor_affine, bias)
        self._packed_params = LinearPackedParams(packed)
        self.scale = 1.0
        self.zero_point = 0
        self.version = 4

    def forward(self, x):
        return self._packed_params._packed_params.apply_dynamic(x, reduce_range=True)

    def weight(self):
        return self._packed_params._weight_bias()[0]

    def bias(self):
        return self._packed_params._packed_params.bias

    def set_weight_bias(self, w, b):
        self._packed_params.set_weight_bias(w, b)

    def _get_name(self):
        return "DynamicQuantizedLinear"

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"dtype={self._packed_params.dtype}, qscheme={self._packed_params._packed_params.qscheme}"
        )

    def __repr__(self):
        return f"{self._get_name()}({self.extra_repr()})"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer that computes what `mod` does, with the weight that an observer of `mod.qconfig` quantizes.

        Raises AssertionError for other classes than `nn.Linear`, without a qconfig, and for observers of other dtypes.
        """
        float_modules = [nn.Linear, nn.modules.linear.NonDynamicallyQuantizableLinear]
        if type(mod) not in float_modules:
            names = [kind.__name__ for kind in float_modules]
            raise AssertionError(
                f"nn.quantized.dynamic.Linear.from_float only works for one of{names}, got {type(mod)}"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        observer = _weight_observer(mod.qconfig)
        observer(mod.weight)
        layer = cls(mod.in_features, mod.out_features)
        layer._packed_params._packed_params = _quantize_weight(mod.weight.float(), observer, mod.bias)
        return layer


def _weight_observer(qconfig):
    if qconfig is None or qconfig.weight is None:
        from readtorch.ao.quantization.qconfig import default_dynamic_qconfig as qconfig
    observer = qconfig.weight()
    if observer.dtype not in (readtorch.qint8, readtorch.float16):
        raise AssertionError(
            f"The only supported dtypes for dynamic quantized linear are qint8 and float16, got: {observer.dtype}"
        )
    if observer.dtype == readtorch.float16:
        raise NotImplementedError("readtorch quantizes weights to torch.qint8, not to torch.float16")
    return observer
