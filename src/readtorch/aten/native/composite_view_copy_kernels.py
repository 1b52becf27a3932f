"""Views as copies: expand_copy, permute_copy, split_copy …, for compilers, which do not want views.

Each is its view operator followed by a copy, with the same derivative; so all are derived from their view operators.

In PyTorch: `torchgen/gen_functionalization_type.py` generates `CompositeViewCopyKernels.cpp` from the template
`aten/src/ATen/templates/CompositeViewCopyKernels.cpp`; narrow_copy is in `aten/src/ATen/native/TensorShape.cpp`.
"""

import re

from readtorch.aten.dispatcher import NOT_IMPLEMENTED, registry
from readtorch.aten.native_function import below_autograd, native_function, packets
from readtorch.aten.register_dispatch_key import any_device, write_out
from readtorch.c10.memory_format import contiguous_format
from readtorch.c10.wrap_dim import wrap_dim

from .copy import clone
from .exact_out import check_expected_dtype, exact_out
from .tensor_shape.slice import slice_backward

COPIED = (
    "as_strided",
    "expand",
    "permute",
    "diagonal",
    "select.int",
    "slice.Tensor",
    "split.Tensor",
    "split_with_sizes",
    "squeeze",
    "squeeze.dim",
    "squeeze.dims",
    "t",
    "transpose.int",
    "unsqueeze",
    "unbind.int",
    "view",
    "view.dtype",
    "unfold",
    "alias",
    "detach",
    "view_as_real",
    "view_as_complex",
)


def copied(t):
    return clone.call(t, contiguous_format)


def without_aliases(text):
    return re.sub(r"\(a[^)]*\)", "", text)


def copying_form(view, namespaces="function"):
    """Declare `<view>_copy`."""
    schema = view.schema
    text = without_aliases(schema.text).replace(schema.name, f"{schema.name}_copy", 1)
    is_list = schema.returns[0].type.is_list
    operator = native_function(text, namespaces, out=not is_list and exact_out())

    @operator.kernel
    @any_device
    def view_then_copy(self, *arguments):
        with below_autograd():
            seen = view.call(self, *arguments)
            return tuple([copied(t) for t in seen]) if is_list else copied(seen)

    if is_list:
        list_out(operator, text)
    if view.derivative is not None:
        formulas = {name: f for name, f in vars(view.derivative).items() if not name.startswith("__")}
        operator.backward(type(f"{view.derivative.__name__}_copy", (), formulas))
    return operator


def list_out(operator, text):
    """The out= form of an operator that returns a list: it fills a list of tensors, and returns None."""
    schema = operator.schema
    overload = f"{schema.overload}_out" if schema.overload else "out"
    arguments = text[text.index("(") + 1 : text.rindex(") ->")]
    out = native_function(f"{schema.name}.{overload}({arguments}, *, Tensor(a!)[] out) -> ()", "")
    packet = packets["torch", schema.name]
    packet.overloads.remove(out)
    packet.out[operator] = out

    @out.kernel
    @any_device
    def compute_then_copy(*arguments):
        *arguments, outs = arguments
        results = operator.call(*arguments)
        if len(outs) != len(results):
            raise RuntimeError(
                f"{schema.name}_{overload} expected an out= argument of size {len(results)}, got size {len(outs)}"
            )
        for result, target in zip(results, outs):
            check_expected_dtype(target, result)
            write_out(result, (target,))


for _name in COPIED:
    copying_form(registry[f"aten::{_name}"])
registry["aten::detach_copy"].backward(NOT_IMPLEMENTED)


@copying_form(registry["aten::lift_fresh"], "").backward
class LiftFreshBackward0_copy:
    def self(grad):
        return grad

    result = "auto_linear"


narrow_copy = native_function(
    "narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor", "function, method", out=exact_out()
)


@narrow_copy.kernel
@any_device
def narrow_copy_of_view(self, dim, start, length):
    ndim = self._array.ndim
    if ndim and dim >= ndim:
        raise RuntimeError(
            "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.  (Could "
            "this error message be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    if length < 0:
        size = self._array.shape[wrap_dim(dim, ndim)]
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    with below_autograd():
        return copied(self.narrow(dim, start, length))


@narrow_copy.backward
class NarrowCopyBackward0:
    def self(grad, self_sym_sizes, dim, start, length):
        return slice_backward.call(grad, self_sym_sizes, dim, start, start + length, 1)

    result = "auto_linear"
