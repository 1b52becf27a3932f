"""What operators that take functions have in common. In PyTorch: `torch/_higher_order_ops/utils.py`."""

import contextlib
import functools

import readtorch
from readtorch._C import _TorchDispatchModeKey
from readtorch._tensor import Tensor
from readtorch.autograd import enable_grad, grad, no_grad
from readtorch.c10.torch_dispatch_mode_tls import get_mode
from readtorch.csrc.autograd import autocast_init
from readtorch.utils._pytree import tree_leaves


def validate_subgraph_args_types(lifted_args):
    """AssertionError unless all of them are tensors and ints."""
    allowed_types = (Tensor, int)
    if not all(isinstance(arg, allowed_types) for arg in lifted_args):
        found = tuple(type(arg) for arg in lifted_args)
        raise AssertionError(f"{lifted_args} can only be of {allowed_types} but got {found}")


def _hop_compile_and_call(fn, args):
    """What `fn` returns when it is captured whole. fn: a function that calls the operator with all that it is given."""
    return _compiled(fn)(*args)


@functools.cache
def _compiled(fn):
    return readtorch.compile(fn, backend="eager", fullgraph=True, recompile_limit=float("inf"))


def is_fake(value):
    """Whether it is a FakeTensor."""
    return isinstance(value, Tensor) and getattr(value, "fake_mode", None) is not None


def proxy_mode():
    """The mode of `make_fx` that is active, or None."""
    return get_mode(_TorchDispatchModeKey.PROXY)


def wants_gradient(values):
    """Whether autograd must know of an operator with these operands."""
    return readtorch.is_grad_enabled() and any(map(has_gradient, values))


# ------------------------------------------------------------------------------------------------------- gradients


class autocast_of_forward:
    """Remembers how autocast is set; `with state.again():` sets it so."""

    def __init__(self):
        self.states = {kind: self.now(kind) for kind in ("cpu", "cuda")}

    def now(self, kind):
        return autocast_init.is_autocast_enabled(kind), autocast_init.get_autocast_dtype(kind)

    @contextlib.contextmanager
    def again(self):
        with contextlib.ExitStack() as regions:
            for kind, (enabled, dtype) in self.states.items():
                if self.now(kind) != (enabled, dtype):
                    regions.enter_context(readtorch.autocast(kind, dtype=dtype, enabled=enabled))
            yield


def gradients_of(fn, operands, grads):
    """The gradients of the operands of `fn`, from those of its results; `fn` is computed again for that.

    None for what has no gradient, zeros for what `fn` does not read. They have no history: as in PyTorch, gradients of gradients end here.
    """
    inputs = [x.detach().requires_grad_() if has_gradient(x) else x for x in operands]
    with enable_grad():
        results = tree_leaves(fn(*inputs))
    pairs = [(r, g) for r, g in zip(results, grads) if g is not None and has_gradient(r)]
    wanted = [x for x in inputs if has_gradient(x)]
    found = [None] * len(wanted)
    if pairs and wanted:
        results, grads = zip(*pairs)
        with no_grad():
            found = grad(results, wanted, grads, allow_unused=True)
    found = iter(readtorch.zeros_like(x) if g is None else g for x, g in zip(wanted, found))
    return [next(found) if has_gradient(x) else None for x in inputs]


def has_gradient(x):
    return isinstance(x, Tensor) and x.requires_grad


# -------------------------------------------------------------------------------------------- what results look like


def check_tensor_meta_match(t1, t2, attr_names, msg_prefix):
    """RuntimeError unless two tensors have these attributes alike."""
    for name in attr_names:
        left, right = (value() if callable(value) else value for value in (getattr(t1, name), getattr(t2, name)))
        if left != right:
            raise RuntimeError(f"{msg_prefix} expected same {name} but got {left} and {right}.")


META = ("shape", "dtype", "stride")


def check_meta_consistency(lhs_list, rhs_list, lhs_name, rhs_name):
    """Raises UncapturedHigherOrderOpError unless the values of both lists are alike but for their elements."""
    from readtorch._dynamo.exc import UncapturedHigherOrderOpError

    if len(lhs_list) != len(rhs_list):
        raise UncapturedHigherOrderOpError(
            f"Expected {lhs_name} and {rhs_name} to have same number of outputs but got lhs:{lhs_list} and rhs:{rhs_list}"
        )
    differences = [
        f"pair[{i}] differ in {what}, where lhs is {lhs} and rhs is {rhs}"
        for i, (lhs, rhs) in enumerate(zip(lhs_list, rhs_list))
        for what in differences_of(lhs, rhs)
    ]
    if differences:
        text = "\n".join(differences)
        raise UncapturedHigherOrderOpError(
            f"Expected {lhs_name} and {rhs_name} to have same metadata but found:\n{text}"
        )


def differences_of(lhs, rhs):
    """In which facts they differ, in PyTorch's words: at most two texts, the second of the device."""
    if isinstance(lhs, int) and isinstance(rhs, int):
        return []
    if not (isinstance(lhs, Tensor) and isinstance(rhs, Tensor)):
        return [f"type: {lhs} vs {rhs}"]
    pairs = [
        (f"'{name}", *(v() if callable(v) else v for v in (getattr(lhs, name), getattr(rhs, name)))) for name in META
    ]
    found = [", ".join(f"{name}: {a} vs {b}'" for name, a, b in pairs if a != b)]
    return [text for text in (*found, "device" if lhs.device != rhs.device else "") if text]
