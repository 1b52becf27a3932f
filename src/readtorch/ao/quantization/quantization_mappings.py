"""Which layers of integers stand for which layers. In PyTorch: `torch/ao/quantization/quantization_mappings.py`.

Left out: all tables but that of dynamic quantization, and there all layers but `Linear`, which are refused.
"""

from readtorch import nn
from readtorch.ao.nn import intrinsic
from readtorch.ao.nn.quantized import dynamic
from readtorch.nn.modules.linear import NonDynamicallyQuantizableLinear

__all__ = ["get_default_dynamic_quant_module_mappings"]


class _NotHere:
    """In the place of a layer that PyTorch has: a model is not half quantized in silence."""

    @classmethod
    def from_float(cls, mod):
        raise NotImplementedError(f"readtorch has no dynamically quantized {type(mod).__name__}, only Linear")


_NOT_HERE = (nn.GRUCell, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.EmbeddingBag, nn.Embedding, intrinsic.LinearReLU)


def get_default_dynamic_quant_module_mappings():
    """A new dict {class: class that computes the same from integers}."""
    linear = dict.fromkeys((nn.Linear, NonDynamicallyQuantizableLinear), dynamic.Linear)
    return linear | dict.fromkeys(_NOT_HERE, _NotHere)
