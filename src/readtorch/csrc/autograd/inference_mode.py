"""Marks tensors that are made under `inference_mode()`, so that autograd can refuse them.

In PyTorch: `c10/core/InferenceMode.h`. Explained in the chapter "Autograd".
"""

from readtorch.aten import dispatcher
from readtorch.aten.codegen import compile_function
from readtorch.c10.dispatch_key import FOLLOWED, INFERENCE_MODE, INFERENCE_TENSOR
from readtorch.c10.local_dispatch_key_set import tls
from readtorch.c10.tensor_impl import TensorImpl

# In PyTorch: views whose TensorImpl is made without the mark that it is one (`ImplType::VIEW`).
MADE_ANEW = {"aten::view.dtype"}


def mark_inference_results(operator, kernel):
    """What runs in place of the `kernel` of a backend, or of a composition, under inference_mode(): its new tensors are marked."""
    if operator.schema.is_inplace or operator.schema.is_view and operator.name not in MADE_ANEW:
        return kernel  # a view of a normal tensor stays a normal tensor
    if [r.type.is_tensor and not r.type.is_list for r in operator.schema.returns] == [
        True
    ] and kernel is not operator.composite:
        names = {
            "kernel": kernel,
            "NOT_FOLLOWED": ~FOLLOWED,
            "INFERENCE_TENSOR": INFERENCE_TENSOR,
            "NO_VERSION": _NO_VERSION,
        }
        return compile_function(f"{operator.schema.name}_inference", marking_source(operator), names)

    def inference_kernel(*arguments):
        result = kernel(*arguments)
        for t in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(t, TensorImpl) and not any(t is a for a in arguments):
                mark(t)
        return result

    return inference_kernel


def mark(t):
    """A new tensor as one of the inference mode."""
    t._keys = t._keys & ~FOLLOWED | INFERENCE_TENSOR
    t._counter = _NO_VERSION
    return t


def marking_source(operator):
    """The text for an operator that returns one tensor, which may be one that it was given. For `mul.Tensor` it returns:

    def mul_inference(self, other):
        result = kernel(self, other)
        if result is not self and result is not other:
            result._keys = result._keys & NOT_FOLLOWED | INFERENCE_TENSOR
            result._counter = NO_VERSION
        return result
    """
    arguments = operator.schema.arguments
    given = " and ".join(f"result is not {a.name}" for a in arguments if a.type.is_tensor and not a.type.is_list)
    parameters = ", ".join(a.name for a in arguments)
    return (
        f"def {operator.schema.name}_inference({parameters}):\n    result = kernel({parameters})\n    if {given or True}:\n"
        "        result._keys = result._keys & NOT_FOLLOWED | INFERENCE_TENSOR\n        result._counter = NO_VERSION\n"
        "    return result\n"
    )


class _NoVersion:
    """The version counter of inference tensors: they have none, and outside the mode they may not be written to."""

    def __getitem__(self, index):
        return 0

    def __setitem__(self, index, count):
        if not tls.inference_mode:
            raise RuntimeError(
                "Inplace update to inference tensor outside InferenceMode is not allowed.You "
                "can make a clone to get a normal tensor before doing inplace update.See "
                "https://github.com/pytorch/rfcs/pull/17 for more details."
            )


_NO_VERSION = _NoVersion()

dispatcher.writers[INFERENCE_MODE] = mark_inference_results
