"""Writes the kernel of an operator for the key ADInplaceOrView: it counts the writes to a tensor, or marks a view.

Functional operators have none: their calls go on to the backend. Nor have compositions: their parts have.

In PyTorch: `tools/autograd/gen_inplace_or_view_type.py` writes `ADInplaceOrViewType_*.cpp` before the compiler runs. Here the text
is made when an operator first meets a tensor. Explained in the chapter "The tensor as an object".
"""

from readtorch.aten import dispatcher
from readtorch.aten.codegen import compile_function
from readtorch.aten.operator_entry import BELOW_AUTOGRAD
from readtorch.c10 import tensor_impl
from readtorch.c10.dispatch_key import (
    ADINPLACEORVIEW,
    AUTOGRAD,
    GRAD_FACTS,
    INFERENCE_TENSOR,
    OF_VIEWS,
    SPARSE,
    STALE,
    TANGENT,
)
from readtorch.c10.local_dispatch_key_set import threads_with_modes, tls
from readtorch.c10.tensor_impl import KEPT_BY_VIEWS, NO_EDGE, Creation, new, storage_impl

from .variable import as_view, keep_input_metadata, view_without_grad

# What the kernel below is looked up with. (An inference tensor's fact would bring the call back to this key.)
BELOW = ~(ADINPLACEORVIEW | AUTOGRAD | GRAD_FACTS | TANGENT | INFERENCE_TENSOR)

# They count a write only if they change anything.
COUNT_CHANGES = {"aten::resize_", "aten::resize_as_"}


def make_adinplaceorview_kernel(operator, keys):
    """The ADInplaceOrView kernel of `operator` for operands with these keys; None if it has none."""
    if not operator.writes_or_views():
        return None
    if operator.schema.is_view:
        return _view_kernel(operator, keys)
    kernel = operator.table[keys & BELOW]
    names = {"kernel": kernel, "keep_input_metadata": keep_input_metadata}
    return compile_function(f"{operator.schema.name}_adinplaceorview", writing_source(operator), names)


dispatcher.writers[ADINPLACEORVIEW] = make_adinplaceorview_kernel


# ------------------------------------------------------------------------------------------------------ writes


def writing_source(operator):
    """The text for an operator that writes: run the kernel below, then count one write to each tensor that is written to.

    The kernel may have called operators that counted, too; so the version is assigned. For `add_.Tensor` it returns:

        def add__adinplaceorview(self, other, alpha):
            counter = self._counter
            version = counter[0]
            kernel(self, other, alpha)
            counter[0] = version + 1
            return self

    In PyTorch: a guard takes the key away while the kernel runs, and `increment_version` adds one.
    """
    arguments = operator.schema.arguments
    # What it returns, that is. In PyTorch: nothing counts what else is written, such as running averages, either.
    written = (
        arguments[:1] if operator.schema.is_inplace else [a for a in arguments if a.type.writes and a.keyword_only]
    )
    parameters = ", ".join(a.name for a in arguments)
    head = f"def {operator.schema.name}_adinplaceorview({parameters}):\n    "
    if operator.name in COUNT_CHANGES:
        lines = ["array, version = self._array, self._counter[0]", f"kernel({parameters})"]
        lines += ["if self._array is not array: self._counter[0] = version + 1", "return self\n"]
        return head + "\n    ".join(lines)
    if len(written) == 1 and not written[0].type.is_list:
        name = written[0].name
        lines = [f"counter = {name}._counter", "version = counter[0]", f"kernel({parameters})"]
        if getattr(operator.derivative, "writes_no_elements", False):  # `t_` and its like
            lines.insert(0, "keep_input_metadata(self)")
        lines += ["counter[0] = version + 1", f"return {name}" if operator.schema.returns else "return None"]
        return head + "\n    ".join(lines) + "\n"
    tensors = "".join(f"{'*' if a.type.is_list else ''}{a.name}, " for a in written)
    return head + "\n    ".join(
        [
            f"written = ({tensors})",
            "versions = [t._counter[0] for t in written]",
            f"result = kernel({parameters})",
            "for t, version in zip(written, versions): t._counter[0] = version",
            "for t in written: t._counter[0] += 1",
            "return result\n",
        ]
    )


# ------------------------------------------------------------------------------------------------------- views


def _view_kernel(operator, keys):
    kernel = operator.table[keys & BELOW | STALE]
    if keys & INFERENCE_TENSOR:
        return unmarked(kernel)
    # `detach`, views of other bits: autograd does not follow them. In PyTorch: it follows those of a sparse tensor.
    if operator.derivative is None or keys & SPARSE:
        return kernel
    several = operator.schema.returns[0].type.is_list
    if keys & BELOW_AUTOGRAD:  # what comes back may be anybody's tensor
        creation = Creation.MULTI_OUTPUT_NODE if several else Creation.DEFAULT
        return _marking(kernel, several, creation)
    array_of = getattr(kernel, "array_of", None)
    names = {
        "kernel": kernel,
        "array_of": array_of,
        "new": new,
        "Tensor": tensor_impl.tensor_class,
        "KEPT_BY_VIEWS": KEPT_BY_VIEWS,
        "OF_VIEWS": OF_VIEWS,
        "NO_EDGE": NO_EDGE,
        "DEFAULT": Creation.DEFAULT,
        "MULTI_OUTPUT_NODE": Creation.MULTI_OUTPUT_NODE,
        "threads_with_modes": threads_with_modes,
        "tls": tls,
        "view_without_grad": view_without_grad,
    }
    source = viewing_source(operator, several, spelled_out=array_of is not None)
    return compile_function(f"{operator.schema.name}_adinplaceorview", source, names)


# `result = view(self, array)` of c10/tensor_impl.py, but for what a view's mark says.
_VIEW_SPELLED_OUT = """\
result = new(Tensor)
result._array = array
result._keys = self._keys & KEPT_BY_VIEWS | OF_VIEWS
result._counter = counter = self._counter
result._view_version = counter[0]
result._edge = NO_EDGE
result._storage_impl = self._storage_impl
result._autograd_meta = None""".splitlines()


def viewing_source(operator, several, spelled_out):
    """The text for an operator that makes a view: run the kernel below, which returns a tensor over the same memory with the
    same counter, then note whose view it is.

    spelled_out: the kernel below is the operator's `view_kernel`; of this it takes the array alone, and makes the tensor here:
    a call less. Then for `select.int` it returns:

        def select_adinplaceorview(self, dim, index):
            array = array_of(self, dim, index)
            result = new(Tensor)
            result._array = array
            result._keys = self._keys & KEPT_BY_VIEWS | OF_VIEWS
            result._counter = counter = self._counter
            result._view_version = counter[0]
            result._edge = NO_EDGE
            result._storage_impl = self._storage_impl
            result._autograd_meta = None
            root = self._base
            if root is None: result._base = self; result._creation = DEFAULT
            else: result._base = root; result._creation = self._creation
            if threads_with_modes and not tls.grad_mode: view_without_grad(self, result)
            return result

    else its first line is `result = kernel(self, dim, index)`, and `root = …` comes next.
    Views that come several at once may not be written to while autograd follows them: their creation says so.
    """
    parameters = ", ".join(a.name for a in operator.schema.arguments)
    base = operator.schema.arguments[0].name
    mark = [
        f"if root is None: result._base = {base}; result._creation = DEFAULT",
        f"else: result._base = root; result._creation = {base}._creation",
        f"if threads_with_modes and not tls.grad_mode: view_without_grad({base}, result)",
    ]
    if several:
        mark.append("else: result._creation = MULTI_OUTPUT_NODE")
        lines = [f"results = kernel({parameters})", f"root = {base}._base", "for result in results:"]
        lines += [f"    {line}" for line in mark] + ["return results"]
    else:
        made = [f"result = kernel({parameters})"]
        if spelled_out:
            made = [f"array = array_of({parameters})", *_VIEW_SPELLED_OUT]
        lines = [*made, f"root = {base}._base", *mark, "return result"]
    return f"def {operator.schema.name}_adinplaceorview({parameters}):\n    " + "\n    ".join(lines) + "\n"


def _marking(kernel, several, creation):
    def marking(self, *arguments):
        result = kernel(self, *arguments)
        for t in result if several else (result,):
            as_view(self, t, creation)
        return result

    return marking


def unmarked(kernel):
    """A kernel of views that nobody marks: each has its base's storage, for it has no base to ask for it, and a counter of its own."""

    array_of = getattr(kernel, "array_of", None)

    def unmarked_view(self, *arguments):
        storage = self._storage_impl or storage_impl(self)
        if array_of is not None:
            result = tensor_impl.view(self, array_of(self, *arguments))
            if not self._keys & INFERENCE_TENSOR:
                result._counter = [0]
            return result
        result = kernel(self, *arguments)
        for t in result if isinstance(result, (tuple, list)) else (result,):
            if t._storage_impl is None:
                t._storage_impl = storage
            if not self._keys & INFERENCE_TENSOR:
                t._counter = [0]
        return result

    return unmarked_view


dispatcher.writers[STALE] = unmarked
