"""Names in checkpoints: files say `torch.nn.modules.linear.Linear`, here that is readtorch's.

The rooms of readtorch carry PyTorch's names, so the first word tells them apart, with the few exceptions
below. `save` writes PyTorch's names, `load` takes them for ours: a file is one and the same to both. What
neither owns, a class of yours or `collections.OrderedDict`, keeps its name.
"""
from ..c10 import layout, scalar_type
from ..c10.device import device
from ..c10.size import Size

_OURS, _THEIRS = "readtorch", "torch"
_FUNCTIONAL = "readtorch.nn.functional."  # a package here, one module in PyTorch

_CONTAINERS = "readtorch.nn.modules._parameter_container"

# Objects that PyTorch keeps elsewhere: (module, name) here -> there.
_ELSEWHERE = {
    (Size.__module__, "Size"): ("torch", "Size"),
    (device.__module__, "device"): ("torch", "device"),
    ("readtorch._tensor", "Tensor"): ("torch", "Tensor"),
    ("readtorch.serialization._layouts", "_get_layout"): ("torch.serialization", "_get_layout"),
    ("readtorch.nn.modules.multihead_attention", "MultiheadAttention"): (
        "torch.nn.modules.activation", "MultiheadAttention"),
    (_CONTAINERS, "ParameterDict"): ("torch.nn.modules.container", "ParameterDict"),
    (_CONTAINERS, "ParameterList"): ("torch.nn.modules.container", "ParameterList"),
    ("readtorch.nn.modules._rnn_base", "RNNBase"): ("torch.nn.modules.rnn", "RNNBase"),
    **{(scalar_type.__name__, t.name): ("torch", t.name) for t in scalar_type.ALL_TYPES},
    **{(layout.__name__, f.name): ("torch", f.name) for f in vars(layout).values()
       if isinstance(f, layout.memory_format)},
}
_HERE = {theirs: ours for ours, theirs in _ELSEWHERE.items()}
_HERE["torch.tensor", "Tensor"] = "readtorch._tensor", "Tensor"  # as files of 2018 call it


def torch_name(module, name):
    """What PyTorch calls it: ("readtorch.nn.modules.linear", "Linear") -> ("torch.nn.modules.linear",
    "Linear").
    """
    if module.startswith(_FUNCTIONAL):
        module = _FUNCTIONAL[:-1]
    return _ELSEWHERE.get((module, name)) or (_first_word(module, _OURS, _THEIRS), name)


def readtorch_name(module, name):
    """The other way round."""
    return _HERE.get((module, name)) or (_first_word(module, _THEIRS, _OURS), name)


def _first_word(module, old, new):
    return new + module[len(old):] if module == old or module.startswith(old + ".") else module
