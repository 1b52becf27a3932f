"""A model's layers become layers of integers. In PyTorch: `torch/ao/quantization/quantize.py`.

Left out: quantization whose activations stay integers from layer to layer (`prepare`, `convert`, `prepare_qat`), and the
dtypes of dynamic quantization other than `qint8`.
"""

import copy
import warnings

import readtorch
from readtorch import nn
from readtorch.ao.nn.intrinsic.modules.fused import _FusedModule
from readtorch.nn.utils.parametrize import type_before_parametrizations

from .qconfig import default_dynamic_qconfig
from .quantization_mappings import get_default_dynamic_quant_module_mappings

__all__ = ["propagate_qconfig_", "quantize", "quantize_dynamic"]

_BY_DEFAULT = (nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell)
_NOT_HERE = (readtorch.float16, readtorch.quint8, readtorch.quint4x2)


def quantize(model, run_fn, run_args, mapping=None, inplace=False):
    """Raises NotImplementedError: in PyTorch, activations are quantized tensors from layer to layer."""
    raise NotImplementedError("readtorch has no quantized tensors between layers, which `quantize` needs")


def quantize_dynamic(model, qconfig_spec=None, dtype=readtorch.qint8, mapping=None, inplace=False):
    """The model, in eval mode, with weights of small integers; activations become integers within each layer.

    qconfig_spec: the names or classes of the layers, as a set, or as a dict with a QConfig for each; a layer's own layers are
    meant, too. mapping: {class: class whose `from_float(layer)` gives the new layer}.

    Raises ValueError or RuntimeError for other dtypes, and NotImplementedError for those that PyTorch has beside `qint8`, and
    for layers that only PyTorch quantizes (`LSTM`, `Embedding` …).
    """
    warnings.warn("torch.ao.quantization is deprecated and will be removed in 2.10. ", DeprecationWarning, stacklevel=2)
    if not isinstance(qconfig_spec, dict):
        qconfig_spec = _default_spec(qconfig_spec, dtype)
    if mapping is None:
        mapping = get_default_dynamic_quant_module_mappings()
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    _convert(model, mapping)
    _remove_qconfig(model)
    return model


def _default_spec(names, dtype):
    if dtype in _NOT_HERE:
        raise NotImplementedError(f"readtorch quantizes weights to torch.qint8, not to {dtype}")
    if dtype != readtorch.qint8:
        if names is not None:
            raise RuntimeError("Unknown dtype specified for quantize_dynamic: ", str(dtype))
        raise ValueError(f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please")
    return dict.fromkeys(_BY_DEFAULT if names is None else names, default_dynamic_qconfig)


def propagate_qconfig_(module, qconfig_dict=None):
    """Each layer's `qconfig` becomes what `qconfig_dict` says of its name, or of its class, or of the layer that it is in; one
    that it has already stays.
    """
    _propagate(module, qconfig_dict or {}, None, "")


def _propagate(module, qconfigs, around, name):
    found = qconfigs.get(name, qconfigs.get(type_before_parametrizations(module), around))
    module.qconfig = getattr(module, "qconfig", found)
    for child_name, child in module.named_children():
        _propagate(child, qconfigs, module.qconfig, f"{name}.{child_name}" if name else child_name)


def _convert(module, mapping):
    """The layers in `module` become those that `mapping` says. Fused layers are one."""
    converted = {}
    for name, child in module.named_children():
        if not isinstance(child, _FusedModule):
            _convert(child, mapping)
        converted[name] = _swap_module(child, mapping)
    module._modules.update(converted)


def _swap_module(mod, mapping):
    """The layer in `mod`'s place, with its hooks; `mod` itself if it has no qconfig."""
    kind = type_before_parametrizations(mod)
    if getattr(mod, "qconfig", None) is None or kind not in mapping:
        return mod
    new = mapping[kind].from_float(mod)
    for hook in mod._forward_pre_hooks.values():
        new.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        new.register_forward_hook(hook)
    return new


def _remove_qconfig(module):
    for part in module.modules():
        if hasattr(part, "qconfig"):
            del part.qconfig
