"""Predicates of a tensor that its dtype, its sizes or its key set answer; result_type, promote_types, can_cast.

In PyTorch: `aten/src/ATen/native/TypeProperties.cpp`. Most are bound by hand past the dispatcher
(`manual_cpp_binding`). Explained in the chapter "Tensor and Storage".
"""

from readtorch.aten.native_function import python_binding
from readtorch.c10 import scalar_type
from readtorch.c10.dispatch_key import CONJUGATE, INFERENCE_TENSOR, NEGATIVE, ZEROTENSOR
from readtorch.c10.tensor_impl import TensorImpl, dtype_of

from .tensor_iterator import number_of, result_type, scalar_tensor


def predicate(answer):
    """Decorator: `answer(tensor)` as function and method; the function raises TypeError for what is no tensor."""
    name = answer.__name__

    def binding(input):
        if not isinstance(input, TensorImpl):
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
        return answer(input)

    binding.__name__ = binding.__qualname__ = name
    binding.__doc__ = answer.__doc__
    return python_binding(name)(binding)


@predicate
def is_floating_point(t):
    """Whether the elements are real floating-point numbers."""
    return dtype_of(t).is_floating_point


@predicate
def is_complex(t):
    """Whether the elements are complex numbers."""
    return dtype_of(t).is_complex


@predicate
def is_signed(t):
    """Whether the dtype has negative numbers."""
    return dtype_of(t).is_signed


@predicate
def is_inference(t):
    """Whether the tensor was made under `inference_mode()`."""
    return bool(t._keys & INFERENCE_TENSOR)


@predicate
def is_conj(t):
    """Whether the memory holds the conjugates of the elements: `x.conj()` of a complex tensor is such a view."""
    return bool(t._keys & CONJUGATE)


@predicate
def is_neg(t):
    """Whether the memory holds the negatives of the elements, as that of `x.conj().imag` does."""
    return bool(t._keys & NEGATIVE)


@predicate
def _is_zerotensor(t):
    """Whether all elements are 0 and no memory holds them: see `_efficientzerotensor`."""
    return bool(t._keys & ZEROTENSOR)


@predicate
def is_distributed(t):
    """Left over from before `torch.distributed`: always False."""
    return False


@python_binding("is_same_size")
def is_same_size(input, other):
    """Whether two tensors have the same sizes. Raises TypeError for what is no tensor."""
    for position, (name, t) in enumerate([("input", input), ("other", other)], start=1):
        if not isinstance(t, TensorImpl):
            raise TypeError(
                f"is_same_size(): argument '{name}' (position {position}) must be Tensor, not {type(t).__name__}"
            )
    return input._array.shape == other._array.shape


# -------------------------------------------------------------------------------------------------- promotion

# ------------------------------------------------------------------------------------- questions about dtypes


@python_binding("result_type", "function")
def result_type_binding(tensor, other):
    """The dtype of an operation on two tensors or numbers."""
    return result_type(*[t if isinstance(t, TensorImpl) else scalar_tensor(number_of(t)) for t in (tensor, other)])


@python_binding("promote_types", "function")
def promote_types(type1, type2):
    """The smallest dtype to which both may be cast."""
    return scalar_type.promote_types(type1, type2)


@python_binding("can_cast", "function")
def can_cast(from_, to):
    """Whether a result of the first dtype may be written to a tensor of the second."""
    return scalar_type.can_cast(from_, to)
