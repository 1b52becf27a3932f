"""Marks what is made under `inference_mode()`, so that it can be refused where a graph would need it.

In PyTorch: `c10/core/InferenceMode.h`. Explained in the chapter "Autograd".
"""
from ...aten import dispatcher
from ...c10.dispatch_key import INFERENCE_MODE, INFERENCE_TENSOR
from ...c10.tensor_impl import TensorImpl


def mark_inference_results(operator, keys):
    """The dispatcher's fallback for InferenceMode: run the kernel below, then mark its new tensors."""
    kernel = operator.table[keys & ~INFERENCE_MODE]
    if operator.schema.is_inplace or operator.schema.is_view:
        return kernel  # a view of a normal tensor stays a normal tensor

    def inference_kernel(*arguments):
        result = kernel(*arguments)
        for t in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(t, TensorImpl) and not any(t is a for a in arguments):
                t._keys |= INFERENCE_TENSOR
        return result
    return inference_kernel


dispatcher.fallbacks[INFERENCE_MODE] = mark_inference_results
