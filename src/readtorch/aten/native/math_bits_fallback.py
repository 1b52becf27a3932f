"""The fallback that Conjugate and Negative share: it computes what a bit stands for before the kernel runs.

A tensor with the key Conjugate looks at memory that holds the conjugates of its elements, one with the key Negative at
their negatives. So `conj()` moves no element, and an operator that knows nothing of these keys is served by one function
that knows nothing of the operator.

In PyTorch: `aten/src/ATen/native/MathBitsFallback.h`. Explained in the chapter "One operator call".
"""

import functools

from readtorch.aten.dispatcher import registry, writers
from readtorch.aten.native_function import below_autograd
from readtorch.aten.register_dispatch_key import resize_output
from readtorch.c10.dispatch_key import (
    ADINPLACEORVIEW,
    CONJUGATE,
    INFERENCE_TENSOR,
    KEYS,
    MATH_BITS,
    NEGATIVE,
    keys_below,
)
from readtorch.c10.local_dispatch_key_set import threads_with_modes
from readtorch.c10.tensor_impl import TensorImpl, set_math_bit


class MathOpFallback:
    """The boxed fallback of one bit: three kinds of operators, told apart by their schema.

    A new result      every operand with the bit is cloned, which computes its elements
    in place, `out=`  the operand that is written to is cloned as well, and the clone copied back into it
    a view            nothing to do: the view has the bit, too
    """

    def __init__(self, key, op_name):
        self.key = key
        self.op_name = op_name

    def __call__(self, operator, keys, args, kwargs):
        writes = self.writes(operator)
        arguments = [*args, *kwargs.values()]
        if writes is False:  # in PyTorch, too: taken for granted of all views
            return operator.redispatch(keys & below(self.key), *arguments)
        written = []
        for i, declared in enumerate(operator.schema.arguments):
            arguments[i] = self.resolved(arguments[i], declared.type, written, operator)
        result = operator.redispatch(keys & below(self.key), *arguments)
        return result if not written else copied_back(result, *written)

    def writes(self, operator):
        """Whether the arguments that results alias are written to (in place, `out=`) or not (a view). None: there are none."""
        kinds = writing(operator)
        if len(kinds) > 1:
            raise RuntimeError(
                f"Unsupported operator for {self.op_name} fallback: aten::{operator.schema.name}{self.op_name} fallback doesn't work "
                "for operators with a mix mutable and non-mutable inputs that alias with outputs, this must be implemented "
                "manually.  If you got this error on a core op, please report a bug to PyTorch."
            )
        return next(iter(kinds), None)

    def resolved(self, argument, kind, written, operator):
        """`argument`, or what is handed to the kernel in its place; a tensor to be written to joins `written` with its clone."""
        if isinstance(argument, TensorImpl):
            if not argument._keys & self.key:
                return argument
            plain = clone(argument)
            if kind.writes:
                if written:
                    raise RuntimeError(
                        f"{self.op_name} fallback does not support operators with more than one mutable tensors with "
                        f"{self.op_name}bit set to true."
                    )
                written += (argument, plain)
            return plain
        is_list = kind.is_list and not kind.inner_optional  # in PyTorch, too: what `Tensor?[]` holds is left as it is
        if not is_list or argument is None or not any([self.is_set_on(t) for t in argument]):
            return argument
        if kind.writes:
            raise RuntimeError(
                f" fallback doesn't currently support mutable TensorLists with {self.op_name} inputs. Please materialize "
                f"all the {self.op_name} input tensor(s) in the mutable TensorList inputs before calling "
                f"aten::{operator.schema.name}"
            )
        return [clone(t) if self.is_set_on(t) else t for t in argument]

    def is_set_on(self, value):
        return isinstance(value, TensorImpl) and bool(value._keys & self.key)


def below(key):
    """What of a key set a fallback at `key` hands on: the keys below it, and the facts but the one that stands for ADInplaceOrView."""
    return keys_below(key) | ~KEYS & ~INFERENCE_TENSOR


BELOW_AUTOGRAD = keys_below(ADINPLACEORVIEW)


@functools.cache
def writing(operator):
    """For the arguments that results alias: whether they are written to."""
    return frozenset([a.type.writes for a in operator.schema.arguments if a.type.alias])


def clone(t):
    """A copy of `t` without its bits: what they stand for is computed."""
    operator = registry["aten::clone"]
    if not threads_with_modes:  # nobody else is to see the call: the look-up alone
        return operator.table[t._keys & BELOW_AUTOGRAD](t, None)
    with below_autograd():
        return operator.call(t, None)


def copied_back(result, original, plain):
    """`result`, the kernel's, with `original` for the clone that the kernel has written to."""
    if original._array.shape != plain._array.shape:
        resize_output(original, plain._array.shape)
    operator = registry["aten::copy_"]
    if not threads_with_modes:
        operator.table[(original._keys | plain._keys) & BELOW_AUTOGRAD](original, plain, False)
    else:
        with below_autograd():
            operator.call(original, plain, False)
    if isinstance(result, (tuple, list)):
        parts = [original if t is plain else t for t in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return original if result is plain else result


def _set_conj(x, conj):
    """`torch._C._set_conj`: from now on the memory of `x` holds the conjugates of its elements, or its elements."""
    set_math_bit(x, CONJUGATE, conj)


def _set_neg(x, neg):
    """`torch._C._set_neg`: the same with negatives."""
    set_math_bit(x, NEGATIVE, neg)


# ------------------------------------------------------------------------------ kernels that are given the bits

# Note [ Kernels that are given the bits ]
# Some operators fall through at Conjugate and Negative (math_bit_fall_through_lists.py). A view needs no more than that;
# `clone` and `copy_` do the work that the fallback leaves to them; and a product of matrices hands the bit to BLAS, which
# has a switch for it. NumPy's products have none. So for a set of keys with a bit, `resolve` takes instead of the
# backend's kernel what `with_math_bits` makes of it: for these products a kernel that resolves its operands first.
# A set without a bit reaches the backend's kernel itself.


def with_math_bits(operator, kernel):
    """What stands in the table for `kernel`, of a backend, where tensors have math bits."""
    if kernel is operator.composite:
        return kernel
    if operator.math_bits_kernel is not None:
        return operator.math_bits_kernel(kernel)
    return kernel if operator.schema.is_view else resolving_kernel(operator, kernel)


writers[MATH_BITS] = with_math_bits


def resolving_kernel(operator, kernel):
    """`kernel` for operands with math bits, which are resolved first."""
    any_bit = MathOpFallback(MATH_BITS, "conjugate")

    def resolve_then_compute(*arguments):
        written, plain = [], []
        for declared, argument in zip(operator.schema.arguments, arguments):
            plain.append(any_bit.resolved(argument, declared.type, written, operator))
        result = kernel(*plain)
        return result if not written else copied_back(result, *written)

    return resolve_then_compute
