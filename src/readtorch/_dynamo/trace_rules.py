"""What becomes of a call: a node of the graph, code that is interpreted, or a break.

In PyTorch: `torch/_dynamo/trace_rules.py`.
"""

import enum
import functools
import logging
import sys
import types
import warnings

import readtorch
from readtorch._dynamo.bytecode_transformation import VERSIONS
from readtorch.c10.layout import layout
from readtorch.c10.memory_format import memory_format
from readtorch.c10.module_names import room_of
from readtorch.c10.scalar_type import dtype
from readtorch.nn.modules.module import Module

PLAIN = (int, float, complex, str, bytes, bool, type(None), type(...), type(NotImplemented), slice, range)
# Objects of which there is one each.
ONE_OF_A_KIND = (dtype, layout, memory_format, enum.Enum)

# Functions of the library that are no operators: they read or write something besides tensors, or read elements.
NOT_OPERATORS = set(
    "allclose as_tensor compile equal from_numpy frombuffer import_ir_module is_nonzero load manual_seed save seed "
    "initial_seed typename vmap is_grad_enabled is_inference_mode_enabled is_tensor is_storage asarray unique "
    "unique_consecutive nonzero argwhere masked_select bincount histc item one_hot combinations block_diag cond while_loop".split()
)
NOT_OPERATOR_PREFIXES = ("_", "set_", "get_", "use_", "is_", "are_")
IS_OPERATORS = {"is_complex", "is_floating_point", "is_signed", "is_same_size"}
# Methods of tensors that read elements, or that a graph cannot do for a later call.
READS_ELEMENTS = set(
    "item tolist numpy is_nonzero equal allclose __bool__ __int__ __float__ __index__ __len__ __contains__".split()
)
UNSEEN = set(
    "__array__ __iter__ __repr__ __str__ __format__ __hash__ __reduce_ex__ __deepcopy__ __setattr__ __getattr__ __delattr__ "
    "__dir__ apply_ map_ map2_ backward register_hook retain_grad register_post_accumulate_grad_hook storage "
    "untyped_storage share_memory_ requires_grad_ detach_ set_ resize_ resize_as_ squeeze_ unsqueeze_ t_ transpose_ swapaxes_ "
    "swapdims_ as_strided_ rename_ names pin_memory cuda record_stream is_shared".split()
)
DYNAMIC_SHAPES = set("nonzero argwhere masked_select unique unique_consecutive bincount repeat_interleave".split())

SKIPPED_ROOMS = set(
    "abc ast asyncio copy dis importlib inspect io json logging math numpy os pickle random re string sys threading time torch "
    "traceback types typing unittest warnings weakref pytest _pytest subprocess pathlib".split()
)
# Functions that only report something: an export leaves their calls out.
REORDERABLE_LOGGING_FUNCTIONS = {
    *(logging.critical, logging.debug, logging.error, logging.exception, logging.info, logging.log, logging.warning),
    *(print, warnings.warn),
}
# Rooms of this package whose Python is interpreted.
INLINED_ROOMS = (
    "amp.autocast_mode",
    "nn.modules",
    "autograd.grad_mode",
    "nn.utils.parametrize",
    "nn.utils.parametrizations",
    "nn.init",
    "nn.functional",
    "backends.mha",
    "optim.optimizer",
    "optim.sgd",
    "optim.rmsprop",
    "optim.adadelta",
    "optim.adagrad",
    "optim.adam",
    "optim.adamw",
    "optim.adamax",
    "optim.asgd",
    "optim.nadam",
    "optim.radam",
    "optim.rprop",
    "utils._foreach_utils",
)


def is_ours(thing):
    """Whether a function or class belongs to this package, also one whose name a decorator of ours has changed."""
    return room_of(getattr(thing, "__module__", None) or "") is not None


@functools.cache
def operators():
    """id -> function: what becomes a node when it is called."""
    found = {}
    spaces = (readtorch, readtorch.nn.functional, readtorch.linalg, readtorch.special, readtorch.fft)
    for space in spaces:
        for name, value in vars(space).items():
            is_native = getattr(readtorch._C._VariableFunctions, name, None) is value and name.startswith("_")
            if (
                (is_operator_name(name) or is_native)
                and callable(value)
                and not isinstance(value, (type, types.ModuleType))
            ):
                if is_ours(value) or isinstance(value, types.BuiltinFunctionType):
                    found[id(value)] = value
    return found


def is_operator_name(name):
    return name in IS_OPERATORS or not (name.startswith(NOT_OPERATOR_PREFIXES) or name in NOT_OPERATORS)


allowed_in_graph = {}  # id -> function: those that `allow_in_graph` was called with
disallowed_in_graph = {}  # the same for `disallow_in_graph`


def is_operator(value):
    if id(value) in disallowed_in_graph:
        return False
    return id(value) in operators() or id(value) in allowed_in_graph or is_custom_operator(value)


def is_custom_operator(value):
    from readtorch._ops import OpOverload, OpOverloadPacket

    return isinstance(value, (OpOverload, OpOverloadPacket)) or type(value).__name__ == "CustomOpDef"


def inlines(function):
    """Whether the code of a Python function is interpreted where it is called."""
    if id(function) in disallowed_in_graph:
        return False
    home = function.__globals__.get("__name__") or ""  # of what a decorator of ours has made this is ours
    module = function.__module__ or home
    if room_of(module) is not None or room_of(home) is not None:
        return is_inlined_room(module) or is_inlined_room(home)
    top = module.partition(".")[0]
    return top not in SKIPPED_ROOMS and not function.__code__.co_filename.startswith("<frozen")


def is_inlined_room(module):
    name = module.removeprefix("readtorch.")
    return name.startswith(tuple(f"{room}." for room in INLINED_ROOMS)) or name in INLINED_ROOMS


def inlines_class(cls):
    """Whether a class's objects are made while code is interpreted."""
    if is_ours(cls):
        return is_inlined_room(cls.__module__)
    top = (cls.__module__ or "").partition(".")[0]
    return top not in SKIPPED_ROOMS - {"typing"}


def is_module_class(cls):
    return issubclass(cls, Module)


def refused_method(name):
    """Why a method of a tensor is no node: (kind, explanation); None if it may be one."""
    if name == "item" or name in READS_ELEMENTS:
        return (
            f"Unsupported Tensor.{name}() call with capture_scalar_outputs=False"
            if name == "item"
            else f"Unsupported Tensor.{name}() call",
            f"Dynamo does not support tracing `Tensor.{name}()`: its result depends on elements",
        )
    if name == "backward":
        return "Unsupported Tensor.backward() call", "Dynamo currently does not support tracing `Tensor.backward()`."
    return (f"Unsupported method Tensor.{name}", "no node of a graph can do it") if name in UNSEEN else None


def refused_call(name, args, kwargs, tensor_class):
    """Why a call with these (fake) arguments is no node; None if it may be one."""
    if name in DYNAMIC_SHAPES or name == "where" and len(args) == 1 and not kwargs:
        return "Dynamic shape operator"
    if name in ("getitem", "setitem", "__getitem__", "__setitem__") and name.strip("_") == "getitem":
        index = args[1] if isinstance(args[1], tuple) else (args[1],)
        if any(isinstance(i, tensor_class) and i.dtype in (readtorch.bool, readtorch.uint8) for i in index):
            return "Dynamic shape operator"
    if name in TAKES_SIZES and any(isinstance(a, tensor_class) for a in args[TAKES_SIZES[name] :]):
        return "Data-dependent size"
    return None


# Operators that read the elements of a tensor among these arguments.
TAKES_SIZES = dict(
    split=1, tensor_split=1, chunk=1, full=0, reshape=1, view=1, expand=1, narrow=1, arange=0, linspace=0
)
TAKES_SIZES |= dict(zeros=0, ones=0, empty=0, rand=0, randn=0, tensor=0, tile=1, repeat=1)


def frame_can_be_captured():
    """Whether bytecode of this version of Python is known."""
    return sys.version_info[:2] in VERSIONS
