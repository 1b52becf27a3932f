"""The same operation for all tensors of a list.

    torch._foreach_mul_(gradients, 0.5)         every gradient is halved

Each is a list of what the operator for one tensor gives, so it works on every device and has its derivative. In place,
the caller's list comes back; otherwise a new tuple.

In PyTorch: `aten/src/ATen/native/ForeachOpsKernels.cpp`. On the CPU they are loops; on a GPU they save launching a kernel for each
tensor. Here those that optimizers use save calling an operator for each tensor: one compiled loop takes long lists as one row,
cut into chunks that threads share. There, results that require grad share one node; here each tensor has its own.
Explained in the chapter "torch.optim".
"""

import functools

import numpy as np

from readtorch.aten.dispatcher import registry
from readtorch.aten.functions import at
from readtorch.aten.native import math as f
from readtorch.aten.native_function import native_function, packets, python_binding
from readtorch.aten.python_arg_parser import make_parser
from readtorch.c10.tensor_impl import dtype_of, wrap_result

from .multi_tensor_apply import count_writes, multi_tensor_apply, run, survey
from .tensor_iterator import F4, F8, not_implemented

# ---------------------------------------------------------------------------------------------- declarations


def foreach(text, compute, inplace=False):
    """Declare the operator `_foreach_…` of a schema's text.

    compute: function of the operator's arguments, which gives a list of results. inplace: also declare the form that
    writes to the first list, `compute` getting one tensor's in-place method where the other gets its function.
    """
    operator = native_function(text)
    operator.compose(lambda *arguments: tuple(compute(False, *arguments)))
    if inplace:
        name, _, rest = text.partition("(")
        name, dot, overload = name.partition(".")
        in_place = native_function(
            f"{name}_{dot}{overload}({rest.replace('Tensor[] self', 'Tensor(a!)[] self', 1)}".replace(
                "-> Tensor[]", "-> ()"
            )
        )
        in_place.compose(lambda *arguments: compute(True, *arguments) and None)
        return_first_argument(f"{name}_")
    return operator


def return_first_argument(name):
    """The Python binding of an in-place form: it returns the list that it was given."""

    @python_binding(name, "function")
    def binding(*args, **kwargs):
        parser(name)(args, kwargs)
        return args[0] if args else kwargs["self"]


@functools.cache
def parser(name):
    return make_parser(packets["torch", name], False)


def function_for_one(name, in_place):
    """The function that does for one tensor what `_foreach_{name}` does for many."""
    if in_place and ("torch", name + "_") not in packets:
        return lambda t, *rest, **named: t.copy_(getattr(at, name)(t, *rest, **named))
    return getattr(at, name + "_" * in_place)


# --------------------------------------------------------------------------------------------- what does not fit


def check_list(tensors):
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")


def check_lists(tensors, *others):
    check_list(tensors)
    for other in others:
        if len(other) != len(tensors):
            raise RuntimeError(
                f"Tensor lists must have the same number of tensors, got {len(tensors)} and {len(other)}"
            )


def check_scalars(tensors, scalars):
    check_list(tensors)
    if len(scalars) != len(tensors):
        raise RuntimeError("Tensor list must have same number of elements as scalar list.")


def check_single(scalar):
    if scalar.dim():
        raise RuntimeError(
            f"scalar tensor expected to be 0 dim but it has {scalar.dim()} dimensions and {scalar.numel()} elements."
        )


def numbers_of(scalars, tensors):
    """The numbers in a tensor of one dimension, one for each tensor."""
    if scalars.dim() != 1:
        raise RuntimeError(f"Expected packed scalar Tensor to be of dimension 1. Got {scalars.dim()} instead.")
    if scalars.numel() != len(tensors):
        raise RuntimeError(
            f"Expected length of scalars to match input of length {len(tensors)} but got {scalars.numel()} instead."
        )
    return scalars.tolist()


# -------------------------------------------------------------------------------------------------- one tensor

UNARY = (
    "abs",
    "acos",
    "asin",
    "atan",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "expm1",
    "floor",
    "frac",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "neg",
    "reciprocal",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
)


def of_one(name):
    def compute(in_place, tensors):
        check_list(tensors)
        function = function_for_one(name, in_place)
        return [function(t) for t in tensors]

    return compute


for _name in UNARY:
    foreach(f"_foreach_{_name}(Tensor[] self) -> Tensor[]", of_one(_name), inplace=True)


# ------------------------------------------------------------------------------------ two tensors, or one and a number


def with_number(name):
    def compute(in_place, tensors, scalar):
        check_list(tensors)
        function = function_for_one(name, in_place)
        return [function(t, scalar) for t in tensors]

    return compute


def with_numbers(name):
    def compute(in_place, tensors, scalars):
        check_scalars(tensors, scalars)
        function = function_for_one(name, in_place)
        return [function(t, scalar) for t, scalar in zip(tensors, scalars)]

    return compute


def with_others(name):
    def compute(in_place, tensors, others, *alpha):
        check_lists(tensors, others)
        function = function_for_one(name, in_place)
        named = {"alpha": alpha[0]} if alpha else {}
        return [function(t, other, **named) for t, other in zip(tensors, others)]

    return compute


def with_tensor(name):
    """One tensor without dimensions serves all."""

    def compute(in_place, tensors, other, *alpha):
        check_list(tensors)
        check_single(other)
        function = function_for_one(name, in_place)
        named = {"alpha": alpha[0]} if alpha else {}
        return [function(t, other, **named) for t in tensors]

    return compute


ALPHA = ", *, Scalar alpha=1"

for _name, _of_number in (
    ("add", "add"),
    ("sub", "sub"),
    ("mul", "mul"),
    ("div", "div"),
    ("clamp_max", "clamp_max"),
    ("clamp_min", "clamp_min"),
    ("maximum", "clamp_min"),
    ("minimum", "clamp_max"),
    ("pow", "pow"),
):
    _alpha = ALPHA if _name in ("add", "sub") else ""
    _scalar, _scalars, _others = ("exponent",) * 3 if _name == "pow" else ("scalar", "scalars", "other")
    foreach(
        f"_foreach_{_name}.Scalar(Tensor[] self, Scalar {_scalar}) -> Tensor[]", with_number(_of_number), inplace=True
    )
    foreach(
        f"_foreach_{_name}.ScalarList(Tensor[] self, Scalar[] {_scalars}) -> Tensor[]",
        with_numbers(_of_number),
        inplace=True,
    )
    if _name in ("add", "mul", "div"):
        _alpha_of_one = ALPHA if _name == "add" else ""
        foreach(
            f"_foreach_{_name}.Tensor(Tensor[] self, Tensor other{_alpha_of_one}) -> Tensor[]",
            with_tensor(_name),
            inplace=True,
        )
    foreach(
        f"_foreach_{_name}.List(Tensor[] self, Tensor[] {_others}{_alpha}) -> Tensor[]",
        with_others(_name),
        inplace=True,
    )


def power_of_number(in_place, scalar, exponents):
    check_list(exponents)
    return [at.pow(scalar, exponent) for exponent in exponents]


foreach("_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]", power_of_number)


# ------------------------------------------------------------------------------------------------- three tensors


def of_three(name):
    def with_value(in_place, tensors, firsts, seconds, value):
        check_lists(tensors, firsts, seconds)
        function = function_for_one(name, in_place)
        return [function(t, a, b, value=value) for t, a, b in zip(tensors, firsts, seconds)]

    def with_values(in_place, tensors, firsts, seconds, scalars):
        check_lists(tensors, firsts, seconds)
        check_scalars(tensors, scalars)
        function = function_for_one(name, in_place)
        return [function(t, a, b, value=value) for t, a, b, value in zip(tensors, firsts, seconds, scalars)]

    def with_packed(in_place, tensors, firsts, seconds, scalars):
        return with_values(in_place, tensors, firsts, seconds, numbers_of(scalars, tensors))

    return with_value, with_values, with_packed


for _name in ("addcdiv", "addcmul"):
    _lists = "Tensor[] self, Tensor[] tensor1, Tensor[] tensor2"
    _with_value, _with_values, _with_packed = of_three(_name)
    foreach(f"_foreach_{_name}.ScalarList({_lists}, Scalar[] scalars) -> Tensor[]", _with_values, inplace=True)
    foreach(f"_foreach_{_name}.Tensor({_lists}, Tensor scalars) -> Tensor[]", _with_packed, inplace=True)
    foreach(f"_foreach_{_name}.Scalar({_lists}, Scalar value=1) -> Tensor[]", _with_value, inplace=True)


def interpolate(in_place, tensors, ends, weights):
    check_lists(tensors, ends, weights)
    return [function_for_one("lerp", in_place)(*each) for each in zip(tensors, ends, weights)]


def interpolate_evenly(in_place, tensors, ends, weight):
    check_lists(tensors, ends)
    return [function_for_one("lerp", in_place)(t, end, weight) for t, end in zip(tensors, ends)]


def interpolate_by_numbers(in_place, tensors, ends, weights):
    check_lists(tensors, ends)
    check_scalars(tensors, weights)
    return [function_for_one("lerp", in_place)(*each) for each in zip(tensors, ends, weights)]


foreach(
    "_foreach_lerp.Scalar(Tensor[] self, Tensor[] tensors1, Scalar weight) -> Tensor[]",
    interpolate_evenly,
    inplace=True,
)
foreach(
    "_foreach_lerp.ScalarList(Tensor[] self, Tensor[] tensors1, Scalar[] weight) -> Tensor[]",
    interpolate_by_numbers,
    inplace=True,
)
foreach("_foreach_lerp.List(Tensor[] self, Tensor[] tensors1, Tensor[] weights) -> Tensor[]", interpolate, inplace=True)


# ------------------------------------------------------------------------------------ reductions, copies, products


def norms(in_place, tensors, ord, dtype):
    check_list(tensors)
    return [at.linalg_vector_norm(t, ord, dtype=dtype) for t in tensors]


def sums_of_powers(in_place, tensors, ord, dtype):
    """Σ |x|ᵒʳᵈ of each tensor: its norm without the root."""
    check_list(tensors)
    for t in tensors:
        if not (dtype_of(t).is_floating_point or dtype_of(t).is_complex):
            raise not_implemented("powsum_cpu")(dtype_of(t))
    return [(t if dtype is None else t.to(dtype)).abs().pow(ord).sum() for t in tensors]


def maxima(in_place, tensors):
    check_list(tensors)
    if not all(t.numel() for t in tensors):
        raise RuntimeError(
            "_foreach_max cannot compute the maximum of an empty tensor; max over zero elements is undefined."
        )
    return [t.max() for t in tensors]


def products(in_place, tensors, others):
    check_lists(tensors, others)
    return [at.mm(t, other) for t, other in zip(tensors, others)]


def clones(in_place, tensors, memory_format):
    check_list(tensors)
    return [t.clone(memory_format=memory_format) for t in tensors]


foreach("_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]", norms)
foreach("_foreach_powsum.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]", sums_of_powers)
foreach("_foreach_max(Tensor[] self) -> Tensor[]", maxima)
foreach("_foreach_mm(Tensor[] self, Tensor[] mat2) -> Tensor[]", products)
foreach("_foreach_clone(Tensor[] self, *, MemoryFormat? memory_format=None) -> Tensor[]", clones)

_foreach_zero_ = native_function("_foreach_zero_(Tensor(a!)[] self) -> ()")
_foreach_copy_ = native_function("_foreach_copy_(Tensor(a!)[] self, Tensor[] src, bool non_blocking=False) -> ()")


@_foreach_zero_.compose
def zero_all_(tensors):
    check_list(tensors)
    for t in tensors:
        t.zero_()


@_foreach_copy_.compose
def copy_all_(tensors, sources, non_blocking):
    check_lists(tensors, sources)
    for t, source in zip(tensors, sources):
        t.copy_(source, non_blocking)


return_first_argument("_foreach_zero_")
return_first_argument("_foreach_copy_")


# ------------------------------------------------------------------------------------- one loop for a whole list

# Of the formulas of optimizers (`optim/adam.py` …): worth it for long lists and many elements. For anything else, and
# for tensors that do not lie as a loop wants them, the composition runs, which also says what does not fit.


def pays(tensors):
    """Whether one loop is quicker; the first also loads the compiler."""
    return len(tensors) > 30 or sum([t._array.size for t in tensors]) > 20_000


def in_one_loop(overload, function, lists):
    """Give `_foreach_{overload}`, and its form that writes in place, a kernel for the CPU.

    function: of aten/native/math.py, from elements of so many lists and a number.
    """
    name, _, kind = overload.partition(".")
    for suffix, inplace in (("", False), ("_", True)):
        operator = registry[f"aten::_foreach_{name}{suffix}{kind and '.' + kind}"]
        operator.kernel(one_loop(operator.composite, function, lists, inplace))


def one_loop(composite, function, lists, inplace):
    def kernel(*arguments):
        tensors, (numbers,) = arguments[:lists], arguments[lists:] or (0.0,)
        if not pays(tensors[0]):
            return composite(*arguments)
        numbers = numbers if isinstance(numbers, (list, tuple)) else [numbers] * len(tensors[0])
        arrays = [[t._array for t in each] for each in tensors]
        surveyed = survey(arrays) if are_plain(numbers) and len(numbers) == len(arrays[0]) else None
        if surveyed is None:
            return composite(*arguments)
        from .cpu.foreach_ops_kernels import loop_over_lists

        loop = loop_over_lists(function, lists, inplace)
        if inplace:
            run(loop, surveyed, (), [numbers], ())
            count_writes(tensors[0])
            return None
        results = [np.empty_like(a) for a in arrays[0]]
        run(loop, survey([results, *arrays]), (), [numbers], ())
        return tuple([wrap_result(a) for a in results])

    return kernel


def are_plain(numbers):
    """Whether a loop in float32 can have them; of others the composition says what is wrong."""
    return all([type(number) in (int, float) and abs(number) < 1e38 for number in numbers])


# Overload, scalar function, how many lists it reads. A number, if it takes one, is its scalar.
ONE_LOOP = (
    ("sqrt", f.sqrt, 1),
    ("neg", f.neg, 1),
    ("abs", f.absolute, 1),
    ("reciprocal", f.reciprocal, 1),
    ("add.Scalar", f.add_number, 1),
    ("mul.Scalar", f.mul_number, 1),
    ("mul.ScalarList", f.mul_number, 1),
    ("div.ScalarList", f.div_by_number, 1),
    ("add.List", f.add, 2),
    ("sub.List", f.sub, 2),
    ("mul.List", f.mul, 2),
    ("div.List", f.div, 2),
    ("maximum.List", f.maximum, 2),
    ("lerp.Scalar", f.lerp_by_number, 2),
    ("addcmul.Scalar", f.addcmul, 3),
    ("addcdiv.Scalar", f.addcdiv, 3),
    ("addcdiv.ScalarList", f.addcdiv, 3),
)

for _overload, _function, _lists in ONE_LOOP:
    in_one_loop(_overload, _function, _lists)

_foreach_add_ = registry["aten::_foreach_add_.Scalar"]
add_number_to_each = _foreach_add_.composite


def add_number_cpu_(tensors, scalar):
    """The step counters of fused optimizers: many tensors of one number each."""
    if not (tensors and all([t._array.dtype is F4 or t._array.dtype is F8 for t in tensors]) and are_plain([scalar])):
        return add_number_to_each(tensors, scalar)
    from .cpu.foreach_ops_kernels import add

    multi_tensor_apply(add, [tensors], [scalar])


_foreach_add_.kernel(add_number_cpu_)
