"""Whether an operator's gradient is registered at an Autograd key.

In PyTorch: `torch/testing/_internal/optests/autograd_registration.py`. Explained in the chapter "One operator call".
"""

import contextlib

from readtorch import _C
from readtorch._ops import OpOverload
from readtorch._tensor import Tensor
from readtorch.utils import _pytree as pytree


@contextlib.contextmanager
def set_autograd_fallback_mode(mode):
    previous = _C._get_autograd_fallback_mode()
    _C._set_autograd_fallback_mode(mode)
    try:
        yield
    finally:
        _C._set_autograd_fallback_mode(previous)


def autograd_registration_check(op, args, kwargs):
    """Raises AssertionError if results require grad though no Autograd kernel is registered: then the gradient was made in the
    kernel of a backend, where modes and other layers do not see it. Inputs must require grad.
    """
    if not isinstance(op, OpOverload):
        raise AssertionError(f"Expected op to be OpOverload, got {type(op)}")
    inputs = pytree.arg_tree_leaves(*args, **kwargs)
    tensors = [v for v in inputs if isinstance(v, Tensor)]
    if not any(t.requires_grad for t in tensors):
        raise RuntimeError(
            "autograd_registration_check: no inputs have requires_grad=True so we are unable to actually perform this test. "
            "Please pass inputs that do require grad."
        )
    kinds = {t.device.type for t in tensors}
    if not kinds <= {"cpu", "cuda"}:
        raise NotImplementedError(f"autograd_registration_check: NYI devices other than CPU/CUDA/XPU, got {kinds}")
    keys = ("AutogradCUDA" if "cuda" in kinds else "AutogradCPU", "Autograd", "CompositeImplicitAutograd")
    if any(_C._dispatch_has_kernel_for_dispatch_key(op.name(), key) for key in keys):
        return
    with set_autograd_fallback_mode("nothing"):
        outputs = op(*args, **kwargs)
    given = {*map(id, inputs)}
    if not any(isinstance(t, Tensor) and t.requires_grad and id(t) not in given for t in pytree.tree_leaves(outputs)):
        return
    raise AssertionError(
        f"{op.name()}: at least one output of this operator has requires_grad=True but the operator does not have an autograd "
        "kernel defined at an autograd key (e.g. DispatchKey::Autograd). This could mean that you have incorrectly registered "
        "an autograd kernel to a non-Autograd DispatchKey, which may lead to silently incorrect results. If your operator "
        "consists of regular PyTorch operations, consider not using an operator at all or registering your operator as "
        "CompositeImplicitAutograd. If you have an autograd.Function registered to a backend (CPU/CUDA/XPU) key, the correct "
        "location for it is the Autograd key."
    )
