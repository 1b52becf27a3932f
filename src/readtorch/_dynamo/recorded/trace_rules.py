"""What a captured function may do: instructions, builtins, functions of the library, attributes of tensors.

A graph holds operators and nothing else, so all that a function does besides must come out the same each time. Whatever is
not listed here as doing so is taken for something that does not: the function runs as it is written then.

In PyTorch: `torch/_dynamo/trace_rules.py` says which calls go into a graph, which are followed, and which break it.
"""

import builtins
import dis
import functools
import math
import types

import readtorch
from readtorch.c10.module_names import room_of
from readtorch.nn.parameter import Buffer, Parameter

# Beginnings of the names of instructions that read and write a function's own variables, compute, compare, build, call and
# jump. What is not among them is refused, also in versions of Python that have more instructions than this one.
ALLOWED = (
    "LOAD_FAST", "LOAD_CONST", "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT", "LOAD_CLOSURE", "LOAD_DEREF", "LOAD_GLOBAL",
    "LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "LOAD_ASSERTION_ERROR", "STORE_FAST", "STORE_DEREF", "STORE_SUBSCR",
    "STORE_SLICE", "DELETE_FAST", "DELETE_SUBSCR", "BINARY_", "UNARY_", "COMPARE_OP", "CONTAINS_OP", "IS_OP", "TO_BOOL",
    "BUILD_", "LIST_", "SET_ADD", "SET_UPDATE", "SET_FUNCTION_ATTRIBUTE", "MAP_ADD", "DICT_", "UNPACK_", "FORMAT_",
    "CONVERT_VALUE", "CALL", "PRECALL", "KW_NAMES", "PUSH_NULL", "MAKE_FUNCTION", "MAKE_CELL", "COPY", "SWAP", "POP_TOP",
    "POP_ITER", "POP_JUMP", "JUMP", "NOT_TAKEN", "GET_ITER", "GET_LEN", "FOR_ITER", "END_FOR", "RETURN_VALUE", "RETURN_CONST",
    "RAISE_VARARGS", "RERAISE", "RESUME", "NOP", "CACHE", "EXTENDED_ARG", "MATCH_", "INSTRUMENTED_",
)  # fmt: skip
# A generator inside the function, such as `sum(x for x in xs)`: it is not visible outside.
ALLOWED_INSIDE = ("RETURN_GENERATOR", "YIELD_VALUE", "GET_YIELD_FROM_ITER", "SEND", "END_SEND")
REFUSED = {
    "STORE_ATTR": "it assigns an attribute",
    "DELETE_ATTR": "it deletes an attribute",
    "STORE_GLOBAL": "it assigns a global",
    "DELETE_GLOBAL": "it deletes a global",
    "YIELD_VALUE": "it is a generator",
    "RETURN_GENERATOR": "it is a generator",
    "IMPORT_NAME": "it imports",
    "BEFORE_WITH": "it has a `with`",
    "LOAD_SPECIAL": "it has a `with`",
    "PUSH_EXC_INFO": "it catches exceptions",
    "LOAD_BUILD_CLASS": "it makes a class",
}


def refused(code, inner=False):
    """Why a function with this code cannot be captured, as far as single instructions say it; None if it can.

    inner: it is defined in the function that is captured, and cannot be seen from outside.
    """
    for instruction in dis.get_instructions(code):
        name, what = instruction.opname, instruction.argval
        if inner and name.startswith(ALLOWED_INSIDE):
            continue
        if name == "STORE_DEREF" and what in code.co_freevars and not inner:
            return f"it assigns a variable of the function around it ({what})"
        if name in REFUSED or not name.startswith(ALLOWED):
            why = REFUSED.get(name, f"nothing is known of the instruction {name}")
            return f"{why} ({what})" if isinstance(what, str) else why
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType) and (why := refused_inside(constant, code)):
            return why
    return None


def refused_inside(inner, outer):
    """The same for a function inside: it may assign variables of the one around it, but none from further out."""
    for instruction in dis.get_instructions(inner):
        if instruction.opname == "STORE_DEREF" and instruction.argval in outer.co_freevars:
            return f"it assigns a variable of the function around it ({instruction.argval})"
    return refused(inner, inner=True)


def names_in(code):
    """(the global names, the names of attributes) in a function's code, those of the functions inside it included."""
    names, attributes = set(), set()
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.add(instruction.argval)
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
            attributes.add(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            more_names, more_attributes = names_in(constant)
            names |= more_names
            attributes |= more_attributes
    return names, attributes


# `a is b`, and what may make a dictionary or set whose keys are tensors, which are found by identity.
ASKS_IDENTITY = ("IS_OP", "BUILD_MAP", "MAP_ADD", "STORE_SUBSCR", "BUILD_SET", "SET_ADD")
MAKES_KEYS = {"dict", "set", "frozenset"}


def compares_identity(code):
    """Whether it may ask if two tensors are one, which depends on the caller."""
    return (
        any(i.opname in ASKS_IDENTITY for i in dis.get_instructions(code))
        or not MAKES_KEYS.isdisjoint(code.co_names)
        or any(isinstance(c, types.CodeType) and compares_identity(c) for c in code.co_consts)
    )


# ------------------------------------------------------------------------------------------------ what is pure

PURE_BUILTINS = (
    "abs all any bool bytes callable complex dict divmod enumerate filter float frozenset int isinstance issubclass iter len "
    "list map max min next pow range reversed round set slice sorted sum super tuple type zip Ellipsis NotImplemented"
).split()


@functools.cache
def pure_callables():
    """ids of functions and classes whose calls give the same for the same arguments, or are operators of the graph."""
    of_builtins = [getattr(builtins, name) for name in PURE_BUILTINS]
    of_builtins += [e for e in vars(builtins).values() if isinstance(e, type) and issubclass(e, BaseException)]
    of_math = [f for f in vars(math).values() if callable(f)]
    rooms = [vars(readtorch._C._VariableFunctions), vars(readtorch.functional), vars(readtorch.nn.functional)]
    rooms += [vars(readtorch.fft), vars(readtorch.linalg), vars(readtorch.special)]
    ours = [f for room in rooms for name, f in room.items() if callable(f) and name not in VALUE_READERS]
    compiler = readtorch.compiler
    ours += [readtorch.Tensor, readtorch.Size, readtorch.device, readtorch.dtype, readtorch.finfo, readtorch.iinfo]
    ours += [readtorch.is_tensor, readtorch.is_grad_enabled, readtorch.promote_types]
    ours += [compiler.is_compiling, compiler.is_dynamo_compiling]
    return {id(f) for f in [*of_builtins, *of_math, *ours]}


def is_pure(value):
    """Whether `value` is a function or class that may be called by a captured function."""
    return id(value) in pure_callables()


def is_library(module):
    """Whether a Python module is this package's or Python's own: it may make its attributes when they are asked for."""
    return module in (math, builtins) or room_of(module.__name__) is not None


def is_ours(function_or_class):
    """Whether it belongs to this package."""
    return (
        room_of(function_or_class.__module__ or getattr(function_or_class, "__globals__", {}).get("__name__"))
        is not None
    )


# ------------------------------------------------------------------------------------- attributes of tensors

# Their results depend on elements of tensors, which no guard covers and no operator of a graph computes.
VALUE_READERS = set(
    "equal allclose is_inference is_nonzero is_same_size is_set_to item tolist numpy from_numpy frombuffer as_tensor".split()
)
# Facts that guards cover, views, conversions: what is not an operator by name.
TENSOR_FACTS = set(
    "H T mH mT bfloat16 bool byte cdouble cfloat char contiguous copy_ cpu cuda device dim double dtype element_size expand "
    "expand_as expit float gammainc gammaincc gammaln half indices int is_cpu is_cuda is_meta is_nested is_quantized is_sparse "
    "itemsize layout long multigammaln name nbytes ndim ndimension nelement new_empty new_full new_ones new_zeros psi repeat "
    "requires_grad reshape_as shape short size sum_to_size to type_as unfold values view view_as".split()
)
UNSEEN_WRITES = set("apply_ map_ map2_ requires_grad_ resize_ resize_as_ set_ share_memory_".split())


@functools.cache
def tensor_attributes():
    """Names of Tensor's attributes that a captured function may read."""
    operators = {name for name in vars(readtorch._C._VariableFunctions) if not name.startswith("_")}
    in_place = {name for name in dir(readtorch.Tensor) if name.endswith("_") and not name.startswith("_")}
    return (operators | in_place | TENSOR_FACTS) - VALUE_READERS - UNSEEN_WRITES


TENSOR_TYPES = (readtorch.Tensor, Parameter, Buffer)

# ------------------------------------------------------------------------------------------------- the graph

# The shape of what they return is decided by numbers: a size that is read of it would be one for all calls.
DYNAMIC_SHAPES = {
    f"aten::{name}"
    for name in (
        "nonzero argwhere masked_select unique _unique _unique2 unique_dim unique_consecutive bincount combinations "
        "nonzero_numpy repeat_interleave"
    ).split()
}


def dynamic_shape(graph):
    """The first operator of a graph whose result has as many elements as numbers decide; None if there is none."""
    for node in graph.all_nodes():
        kind = node.kind()
        if kind in DYNAMIC_SHAPES or _is_nonzero(node) or (kind.startswith("aten::index") and _has_mask(node)):
            return kind
    return None


def _is_nonzero(node):
    """`where(condition)` alone."""
    return node.kind() == "aten::where" and len(node.inputs()) == 1


def _has_mask(node):
    """Whether one of the indices may be a tensor of bools. (With `index_put_` the result has the size of the first operand.)"""
    if node.kind() != "aten::index":
        return False
    return any(
        _dtype_of(index) in ("Bool", "Byte") for indices in node.inputs()[1:] for index in indices.node().inputs()
    )


def _dtype_of(value):
    """ "Float", "Long" …; None if the value is not a tensor, or its dtype is not known."""
    return value.type().scalarType() if hasattr(value.type(), "scalarType") else None


FLOATING = ("Double", "Float", "Half", "BFloat16", "ComplexDouble", "ComplexFloat")


def asks_for_defaults(graph):
    """Whether an operator may ask for the default dtype or device: no operand is a tensor, or one is not floating.

    Numbers beside tensors, which are constants, ask for nothing beside a floating one.
    """
    for node in graph.all_nodes():
        if node.kind().startswith("aten::"):
            operands = [
                v for v in node.inputs() if hasattr(v.type(), "scalarType") and v.node().kind() != "prim::Constant"
            ]
            if not operands or any(_dtype_of(value) not in FLOATING for value in operands):
                return True
    return False
