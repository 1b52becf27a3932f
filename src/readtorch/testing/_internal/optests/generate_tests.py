"""`opcheck`: an operator is called with sample inputs, and each test looks at one promise of its registration.

In PyTorch: `torch/testing/_internal/optests/generate_tests.py`. Explained in the chapter "One operator call".
"""

import readtorch
from readtorch._library.custom_ops import CustomOpDef
from readtorch._ops import OpOverload, OpOverloadPacket
from readtorch._subclasses.schema_check_mode import SchemaCheckMode
from readtorch._tensor import Tensor
from readtorch.utils import _pytree as pytree

from .autograd_registration import autograd_registration_check
from .fake_tensor import fake_check


class OpCheckError(Exception):
    """A test of `opcheck` has failed."""


def safe_schema_check(op, args, kwargs):
    with SchemaCheckMode():
        op(*args, **kwargs)


def safe_autograd_registration_check(op, args, kwargs):
    if any(t.requires_grad for t in _tensors(args, kwargs)):
        autograd_registration_check(op, args, kwargs)


def safe_fake_check(op, args, kwargs):
    fake_check(op, args, kwargs)


def safe_aot_autograd_check(op, args, kwargs):
    """In PyTorch: whether compilers can use the operator, and give the same gradients. There is no AOTAutograd here yet."""
    raise NotImplementedError("test_aot_dispatch: there is no AOTAutograd here yet")


ALL_TEST_UTILS = {
    "test_schema": safe_schema_check,
    "test_autograd_registration": safe_autograd_registration_check,
    "test_faketensor": safe_fake_check,
    "test_aot_dispatch_static": safe_aot_autograd_check,
    "test_aot_dispatch_dynamic": safe_aot_autograd_check,
}
DEFAULT_TEST_UTILS = ("test_schema", "test_autograd_registration", "test_faketensor")


def opcheck(op, args, kwargs=None, *, test_utils=DEFAULT_TEST_UTILS, raise_exception=True, rtol=None, atol=None):
    """See `torch.library.opcheck`."""
    if (rtol is None) ^ (atol is None):
        raise ValueError("opcheck(op, ...): if you specify one of rtol/atol, you must specify both")
    op, test_utils = _overload_of(op), _names_of(test_utils)
    results = {}
    for name in test_utils:
        try:
            _run(name, op, args, kwargs or {})
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(
                    f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)"
                ) from error
            results[name] = error
    return results


def _run(name, op, args, kwargs):
    """One test, with copies of the arguments. Tensors without elements tell nothing."""
    if any(t.is_meta for t in _tensors(args, kwargs)):
        return
    args, kwargs = pytree.tree_map_only(Tensor, _clone_input, (args, kwargs))
    ALL_TEST_UTILS[name](op, args, kwargs)


def _overload_of(op):
    if isinstance(op, CustomOpDef):
        op = op._opoverload
    if isinstance(op, OpOverloadPacket):
        op = resolve_unique_overload_or_throw(op)
    if not isinstance(op, OpOverload):
        raise ValueError(
            "opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. torch.ops.aten.sin.default, got "
            f"{type(op)}"
        )
    return op


def resolve_unique_overload_or_throw(op):
    """The only overload of a packet. Raises RuntimeError if there are several."""
    overloads = op.overloads()
    if len(overloads) != 1:
        raise RuntimeError(
            "opcheck can only test operators without overloads. Got the following overloads for "
            f"{op._qualified_op_name}: {op._overload_names}"
        )
    return getattr(op, overloads[0])


def _names_of(test_utils):
    if test_utils == "ALL":
        return tuple(ALL_TEST_UTILS)
    names = (test_utils,) if isinstance(test_utils, str) else test_utils
    if not isinstance(names, (tuple, list)) or not {*names} <= ALL_TEST_UTILS.keys():
        raise ValueError(
            f"opcheck(op, ..., test_utils={names}), expected test_utils to be subset of {tuple(ALL_TEST_UTILS)} but it was not"
        )
    return names


def _tensors(args, kwargs):
    return [v for v in pytree.arg_tree_leaves(*args, **kwargs) if isinstance(v, Tensor)]


def _clone_input(t):
    """A copy with the same strides; of a leaf one that requires grad as it does."""
    with readtorch.no_grad():
        made = readtorch.empty_strided(t.size(), t.stride(), dtype=t.dtype, device=t.device).copy_(t)
        return made.requires_grad_(t.requires_grad) if t.is_leaf else made
