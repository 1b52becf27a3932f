"""A custom `autograd.Function` under transforms.

`Function.apply` comes before the dispatcher, so it asks the transforms itself: `custom_function_call` is an operator that is written in
Python, which the topmost interpreter takes as it takes others.

- `grad` and `jvp` make a Function for their level alone. Its forward unwraps the tensors, calls the operator again for the levels below
  and wraps what comes back; its backward and its jvp are the user's.
- `vmap` calls the user's `vmap`, or makes a Function out of three vmaps: of forward, backward and jvp (`generate_vmap_rule`).

In PyTorch: `torch/_functorch/autograd_function.py`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from typing import Any, NamedTuple

from readtorch import _C
from readtorch._C import _functorch
from readtorch._C._functorch import TransformType, current_level
from readtorch._ops import HigherOrderOperator
from readtorch._tensor import Tensor
from readtorch.autograd.forward_ad import _set_fwd_grad_enabled
from readtorch.autograd.function import Function, FunctionMeta, _SingleLevelFunction
from readtorch.autograd.grad_mode import enable_grad
from readtorch.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_leaves, tree_map_only, tree_unflatten

from .apis import vmap
from .pyfunctorch import dispatch_functorch, retrieve_current_functorch_interpreter
from .utils import enable_single_level_autograd_function
from .vmap import restore_vmap, unwrap_batched, wrap_batched

SEE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class CustomFunctionHigherOrderOperator(HigherOrderOperator):
    """The call of a Function as an operator."""

    def __init__(self):
        super().__init__("custom_function_call")

    def __call__(self, autograd_function, *args, **kwargs):
        if _C._are_functorch_transforms_active():
            return dispatch_functorch(self, (autograd_function, *args), kwargs)
        return autograd_function.apply(*args, **kwargs)


custom_function_call = CustomFunctionHigherOrderOperator()
_functorch.CustomFunctions.call = custom_function_call


# --------------------------------------------------------------------------------------------- differentiation


@custom_function_call.py_impl(TransformType.Grad)
@custom_function_call.py_impl(TransformType.Jvp)
def custom_function_call_grad(interpreter, autograd_function, *operands):
    function = generate_single_level_function(interpreter, autograd_function)
    with enable_single_level_autograd_function():
        return function.apply(*operands)


def generate_single_level_function(interpreter, autograd_function):
    """The Function for the level of this interpreter alone."""
    level = interpreter.level()

    def forward(*operands):
        values = tree_map_only(Tensor, lambda t: _functorch._unwrap_for_grad(t, level), operands)
        # `apply` has switched both off for the sake of this level; it is not the business of those below.
        with enable_grad(), _set_fwd_grad_enabled(True), interpreter.lower():
            outputs = custom_function_call(autograd_function, *values)
        wrap = lambda t: _functorch._wrap_for_grad(t, level)
        return wrap_outputs_maintaining_identity(outputs, values, operands, wrap)

    names = {
        "forward": staticmethod(forward),
        "setup_context": staticmethod(lambda ctx, inputs, output: autograd_function.setup_context(ctx, inputs, output)),
        "backward": staticmethod(lambda ctx, *grads: autograd_function.backward(ctx, *grads)),
        "jvp": staticmethod(lambda ctx, *tangents: autograd_function.jvp(ctx, *tangents)),
    }
    return type(f"{autograd_function.__name__}Generated", (_SingleLevelFunction,), names)


NO_OUT_DIMS = "not specified"


def wrap_outputs_maintaining_identity(outputs, unwrapped_inputs, orig_inputs, wrap_fn, out_dims=NO_OUT_DIMS):
    """The outputs wrapped. One that is an input comes back as that very tensor: `ctx.mark_dirty` asks which it is.

    out_dims: what the user's `vmap` said; RuntimeError if it does not fit the outputs.
    """
    originals = dict(zip(map(id, tree_leaves(unwrapped_inputs)), tree_leaves(orig_inputs)))
    flat, spec = tree_flatten(outputs)
    given = [(t,) for t in flat]
    if out_dims != NO_OUT_DIMS:
        dims = _broadcast_to_and_flatten(out_dims, spec)
        if dims is None:
            raise RuntimeError(
                "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
                f"out_dims={out_dims} to be compatible with the structure of `output`. out_dims has structure "
                f"{tree_flatten(out_dims)[1]} but output has structure {spec}. {SEE}"
            )
        given = zip(flat, dims)
    wrapped = [
        t if not isinstance(t, Tensor) else originals[id(t)] if id(t) in originals else wrap_fn(t, *dim)
        for t, *dim in given
    ]
    return tree_unflatten(wrapped, spec)


# --------------------------------------------------------------------------------------------------------- vmap


class VmapInfo(NamedTuple):
    """What a `vmap` staticmethod is told of the vmap. randomness: "error", "same" or "different"."""

    batch_size: int
    randomness: str


def has_overridden_vmap_rule(autograd_function):
    return autograd_function.vmap is not Function.vmap


@custom_function_call.py_impl(TransformType.Vmap)
def custom_function_call_vmap(interpreter, autograd_function, *operands, **kwargs):
    name = autograd_function.__name__
    if any(isinstance(value, Tensor) for value in tree_leaves(kwargs)):
        raise NotImplementedError(
            "Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass kwarg-only Tensors to autograd.Function. "
            f"Got: {kwargs}"
        )
    if autograd_function.generate_vmap_rule:
        if has_overridden_vmap_rule(autograd_function):
            raise RuntimeError(
                f"You tried to vmap over {name}, but it has both generate_vmap_rule=True and an overridden vmap staticmethod. Please "
                f"set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity. {SEE}"
            )
        return custom_function_call_vmap_generate_rule(interpreter, autograd_function, *operands)
    if not has_overridden_vmap_rule(autograd_function):
        raise RuntimeError(
            f"You tried to vmap over {name}, but it does not have vmap support. Please override and implement the vmap staticmethod or "
            f"set generate_vmap_rule=True. {SEE}"
        )
    return custom_function_call_vmap_helper(interpreter, autograd_function.vmap, autograd_function, *operands, **kwargs)


def custom_function_call_vmap_helper(interpreter, vmap_function, op, *operands, **kwargs):
    """A call by the user's rule: of a Function (`vmap`), or of an operator (`torch.library.register_vmap`)."""
    level = interpreter.level()
    info = VmapInfo(batch_size=interpreter.batch_size(), randomness=interpreter.randomness())
    values, in_dims = unwrap_batched(operands, level)
    with interpreter.lower():
        if all(dim is None for dim in tree_leaves(in_dims)):  # the rule has nothing to do
            is_function = isinstance(op, FunctionMeta)
            return custom_function_call(op, *values) if is_function else op(*values, **kwargs)
        result = vmap_function(info, in_dims, *values, **kwargs)
    validate_vmap_returns_tuple_of_two_elements(result)
    outputs, out_dims = result
    wrap = lambda t, dim: t if dim is None else _functorch._add_batch_dim(t, dim, level)
    return wrap_outputs_maintaining_identity(outputs, values, operands, wrap, out_dims)


def batched_kernel(op, rule):
    """The kernel at FuncTorchBatched of an operator whose rule is written in Python. rule(): the newest one."""

    def kernel(keyset, *args, **kwargs):
        return custom_function_call_vmap_helper(retrieve_current_functorch_interpreter(), rule(), op, *args, **kwargs)

    return kernel


def validate_vmap_returns_tuple_of_two_elements(result):
    """RuntimeError unless the user's rule returned (outputs, their dimensions)."""
    expected = "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible with the output. "
    if not isinstance(result, tuple):
        raise RuntimeError(f"{expected}Got a {type(result)} instead")
    if len(result) != 2:
        raise RuntimeError(f"{expected}Got {len(result)} returns instead")


# ---------------------------------------------------------------------------------------- a rule that is generated

# Note [ A Function of vmaps ]
# With `generate_vmap_rule` a Function `F` under vmap becomes another Function, on whole batches. Its forward is vmap of F's forward, its
# backward vmap of F's backward, its jvp vmap of F's jvp. What is batched in the first of these vmaps is noted for the others: the
# dimensions of the outputs come back from forward as one more output, those of saved tensors are noted by the ctx that F sees. F's
# setup_context runs under vmap, too, so that a shape that it notes is that of one example.


def custom_function_call_vmap_generate_rule(interpreter, autograd_function, *operands):
    values, in_dims = unwrap_batched(operands, interpreter.level())
    function = vmapify_autograd_function(autograd_function, in_dims, interpreter.batch_size(), interpreter.randomness())
    with interpreter.lower():
        outputs = custom_function_call(function, *values)
    outputs, out_dims = unpack_outputs(outputs)
    return wrap_batched(outputs, out_dims, interpreter.level())


def unpack_outputs(outputs):
    """(outputs, their dimensions), of the outputs of a generated forward."""
    *outputs, out_dims = outputs
    return (tuple(outputs), out_dims) if isinstance(out_dims, tuple) else (outputs[0], out_dims)


class _Noted(NamedTuple):
    """What one call notes in its ctx. Dimensions are those of batches, None for what is the same for all examples."""

    out_dims: Any
    saved_dims: Any
    input_shapes: Any  # of one example; None for what is no tensor


def vmapify_autograd_function(autograd_function, in_dims, batch_size, randomness):
    """The Function on whole batches: Note [ A Function of vmaps ]."""

    def vmapped(function, in_dims):
        return restore_vmap(function, in_dims, batch_size, randomness)

    def notes(ctx):
        if not hasattr(ctx, "_pt_vmapped"):
            ctx._pt_vmapped = {}
        return ctx._pt_vmapped  # one ctx may serve several such Functions, one in the other

    def forward(*operands):
        outputs, out_dims = vmapped(autograd_function.forward, in_dims)(*operands)
        return (outputs, out_dims) if isinstance(outputs, Tensor) else (*outputs, out_dims)

    def setup_context(ctx, inputs, outputs):
        outputs, out_dims = unpack_outputs(outputs)
        noted = {}

        def inner(inputs, outputs):
            batched_ctx = CtxCustomSave(ctx, current_level())
            autograd_function.setup_context(batched_ctx, inputs, outputs)
            shapes = tuple([t.shape if isinstance(t, Tensor) else None for t in inputs])
            noted["saved_dims"], noted["input_shapes"] = batched_ctx._pt_saved_tensors_bdims, shapes

        vmapped(inner, (in_dims, out_dims))(inputs, outputs)
        notes(ctx)[generated] = _Noted(out_dims, **noted)

    def jvp(ctx, *tangents):
        noted = notes(ctx)[generated]
        flat_dims, spec = tree_flatten(in_dims)
        dims = [None if t is None else dim for t, dim in zip(tree_leaves(tangents), flat_dims)]

        def of_example(saved_tensors, tangents):
            return autograd_function.jvp(CtxWithSavedTensors(ctx, saved_tensors), *tangents)

        both_dims = (noted.saved_dims, tree_unflatten(dims, spec))
        results, result_dims = vmapped(of_example, both_dims)(ctx.saved_tensors, tangents)
        return (*reductify(results, result_dims, noted.out_dims, batch_size), None)

    def backward(ctx, *grads):
        noted = notes(ctx)[generated]
        grads = grads[:-1]  # the last is of the dimensions
        out_dims = noted.out_dims if isinstance(noted.out_dims, tuple) else (noted.out_dims,)
        dims = tuple([None if g is None else dim for g, dim in zip(grads, out_dims)])

        def of_example(saved_tensors, grads):
            return autograd_function.backward(CtxWithSavedTensors(ctx, saved_tensors), *grads)

        results, result_dims = vmapped(of_example, (noted.saved_dims, dims))(ctx.saved_tensors, grads)
        return reductify(results, result_dims, in_dims, batch_size, noted.input_shapes)

    names = {f.__name__: staticmethod(f) for f in (forward, setup_context, jvp, backward)}
    generated = type(f"Vmapped{autograd_function.__name__}", (Function,), {**names, "generate_vmap_rule": True})
    return generated


class WrappedCtx:
    """A ctx that differs from another in what its class defines. RuntimeError if the other has such a name already."""

    _pt_reserved_attrs = ("_pt_reserved_attrs", "_pt_inner_ctx")

    def __init__(self, ctx):
        reserved = type(self)._pt_reserved_attrs
        if not isinstance(ctx, WrappedCtx) and any(hasattr(ctx, name) for name in reserved):
            raise RuntimeError(
                f"PyTorch reserves the {reserved} field on ctx. Please name your fields on ctx something else to avoid name collision."
            )
        self._pt_inner_ctx = ctx

    def __getattr__(self, name):
        return getattr(self._pt_inner_ctx, name)

    def __setattr__(self, name, value):
        if name in type(self)._pt_reserved_attrs:
            self.__dict__[name] = value
        else:
            setattr(self._pt_inner_ctx, name, value)


class CtxWithSavedTensors(WrappedCtx):
    """A ctx with other saved tensors."""

    _pt_reserved_attrs = ("_pt_new_saved_tensors", *WrappedCtx._pt_reserved_attrs)

    def __init__(self, ctx, new_saved_tensors):
        super().__init__(ctx)
        self._pt_new_saved_tensors = new_saved_tensors

    @property
    def saved_tensors(self):
        return self._pt_new_saved_tensors


class CtxCustomSave(WrappedCtx):
    """A ctx that saves whole batches of what it is given, and notes their dimensions."""

    _pt_reserved_attrs = ("_pt_saved_tensors_bdims", "_pt_current_level", *WrappedCtx._pt_reserved_attrs)

    def __init__(self, ctx, current_level):
        super().__init__(ctx)
        self._pt_saved_tensors_bdims = ()
        self._pt_current_level = current_level

    def save_for_backward(self, *tensors):
        self._pt_inner_ctx.save_for_backward(*self._whole(tensors))

    def save_for_forward(self, *tensors):
        self._pt_inner_ctx.save_for_forward(*self._whole(tensors))

    def _whole(self, tensors):
        whole, self._pt_saved_tensors_bdims = unwrap_batched(tensors, self._pt_current_level)
        return whole


def reductify(grad_input, grad_input_bdim, input_bdim, batch_size, target_shape_without_bdim_to_reduce_to=None):
    """Gradients as their inputs are batched, each by `reductify_leaf`; a tuple always."""
    as_tuple = lambda value: value if isinstance(value, tuple) else (value,)
    grads = as_tuple(grad_input)
    shapes = target_shape_without_bdim_to_reduce_to or len(grads) * (None,)
    each = zip(grads, as_tuple(grad_input_bdim), as_tuple(input_bdim), shapes)
    return tuple([reductify_leaf(g, dim, of_input, batch_size, shape) for g, dim, of_input, shape in each])


def reductify_leaf(grad_input, grad_input_bdim, input_bdim, batch_size, target_shape_without_bdim_to_reduce_to=None):
    """A gradient whose examples lie in dimension `grad_input_bdim`, for an input with them in `input_bdim`.

    An input that is the same for all examples gets the sum over them. The last argument: the shape of an example of the input, to which
    that of a gradient is summed, as autograd sums a gradient that was not reduced after broadcasting; it could not with a batch before it.
    """
    if grad_input is None or grad_input_bdim is None and input_bdim is None:
        return grad_input
    if input_bdim is None:
        return grad_input.sum(grad_input_bdim)
    if grad_input_bdim is None:
        grad_input = grad_input.unsqueeze(input_bdim)
        sizes = list(grad_input.shape)
        sizes[input_bdim] = batch_size
        grad_input, grad_input_bdim = grad_input.expand(sizes), input_bdim
    if target_shape_without_bdim_to_reduce_to is not None:
        to_size = vmap(Tensor.sum_to_size, in_dims=(grad_input_bdim, None), out_dims=input_bdim)
        return to_size(grad_input, target_shape_without_bdim_to_reduce_to)
    return grad_input if input_bdim == grad_input_bdim else grad_input.movedim(grad_input_bdim, input_bdim)
