"""Transforms of functions. In PyTorch: `torch/func/__init__.py`. Explained in the chapter "Forward mode, vmap and torch.func"."""

from readtorch._functorch.apis import grad, grad_and_value, vmap
from readtorch._functorch.batch_norm_replacement import replace_all_batch_norm_modules_
from readtorch._functorch.eager_transforms import debug_unwrap, functionalize, hessian, jacfwd, jacrev, jvp, vjp
from readtorch._functorch.einops import rearrange
from readtorch._functorch.functional_call import functional_call, stack_module_state
from readtorch._functorch.linearize import linearize

__all__ = [
    "grad",
    "grad_and_value",
    "vjp",
    "jvp",
    "jacrev",
    "jacfwd",
    "hessian",
    "functionalize",
    "vmap",
    "functional_call",
    "stack_module_state",
    "debug_unwrap",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
]
