"""What PyTorch calls our classes and functions: `torch.nn.modules.linear.Linear` is ours of the same room.

The rooms of readtorch carry PyTorch's names, so the first word tells them apart, and the files below, in which
here stands what PyTorch keeps elsewhere. `save` writes PyTorch's names, `load` takes them for ours: a file is
one and the same to both. Under `readtorch run` the objects themselves carry them (`readtorch/_as_torch.py`).
PyTorch has no such file: its names are its own. What neither owns, a class of yours or `collections.OrderedDict`, keeps its name.
"""

import operator
import sys

from readtorch.c10.module_names import room_of

_OURS, _THEIRS = "readtorch", "torch"

# Packages here, one module in PyTorch.
_ONE_MODULE = ("nn.functional", "optim.lr_scheduler", "serialization")

# The module that PyTorch has -> those here whose objects are found there, too.
_PARTS = {
    "": (
        "c10.size",
        "c10.device",
        "c10.scalar_type",
        "c10.layout",
        "c10.memory_format",
        "c10.qscheme",
        "c10.type_info",
        "_tensor",
        "_settings",
        "aten.cpu.flush_denormal",
        "aten.parallel",
        "csrc.tensor.python_tensor",
    ),
    "_C": ("csrc.generator", "csrc.autograd.python_variable"),
    "autograd.graph": ("csrc.autograd.node",),
    "utils.hooks": ("csrc.autograd.hooks", "_utils"),
    "func": ("_functorch.functional_call", "_functorch.apis", "_functorch.eager_transforms"),
    "nn.attention": ("aten.sdp_backend",),
    "distributed.distributed_c10d": ("csrc.distributed.types",),
    "jit": ("csrc.jit.runtime.jit_exception", "csrc.jit.python.script_init"),
    "onnx": ("onnx.errors", "onnx.utils"),
}
_HOME = {part: home for home, parts in _PARTS.items() for part in parts}

# The same for single objects.
_HOME_OF = {
    ("autograd.grad_mode", "is_grad_enabled"): "",
    ("autograd.grad_mode", "is_inference_mode_enabled"): "",
    ("jit._recursive", "interface"): "jit._script",
    **{
        ("distributed", name): "distributed.distributed_c10d"
        for name in ("PrefixStore", "ProcessGroup", "Store", "Work")
    },
}


def torch_name(module, name):
    """What PyTorch calls it: ("readtorch.nn.modules.linear", "Linear") -> ("torch.nn.modules.linear",
    "Linear").
    """
    room = room_of(module)
    if room is None:
        return module, name
    home = _home(room, name)
    return _joined(_THEIRS, home if home is not None and _has(home, name) else room), name


def readtorch_name(module, name):
    """The other way round."""
    if (module, name) == ("torch.tensor", "Tensor"):  # as files of 2018 call it
        module = _THEIRS
    first, _, room = module.partition(".")
    return (_joined(_OURS, room) if first == _THEIRS else module), name


def _home(room, name):
    """The room where PyTorch keeps what stands in this one, or None if it is the same."""
    if (room, name) in _HOME_OF:
        return _HOME_OF[room, name]
    for package in _ONE_MODULE:
        if room.startswith(package + "."):
            return package
    return _HOME.get(room)


def _has(room, name):
    """Whether `name` is found in that module, which must have been loaded."""
    try:
        operator.attrgetter(name)(sys.modules[_joined(_OURS, room)])
    except (KeyError, AttributeError):
        return False
    return True


def _joined(first, room):
    return f"{first}.{room}" if room else first
