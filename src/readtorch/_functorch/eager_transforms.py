"""The transforms that differentiate: each runs the function under an interpreter, on wrappers of its level.

In PyTorch: `torch/_functorch/eager_transforms.py`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

import contextlib
import functools

from readtorch import autograd
from readtorch._C import _functorch
from readtorch._tensor import Tensor
from readtorch.aten.functions import at
from readtorch.autograd import forward_ad
from readtorch.autograd.grad_mode import enable_grad, is_grad_enabled
from readtorch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_map_, tree_unflatten, treespec_pprint

from .utils import doesnt_support_saved_tensors_hooks, enable_inplace_requires_grad, exposed_in, transform
from .vmap import get_chunk_sizes, vmap_impl

# ------------------------------------------------------------------------------------------ wrapping for a level


def grad_nesting():
    """`with grad_nesting() as level:` differentiation backwards is under way."""
    return transform(_functorch._grad_increment_nesting, _functorch._grad_decrement_nesting)


def wrap_all_tensors(tree, level):
    """The tree with its tensors as the level sees them."""
    return tree_map(lambda t: _functorch._wrap_for_grad(t, level) if isinstance(t, Tensor) else t, tree)


def create_differentiable(tree):
    """Make the tensors of a tree leaves that require grad. ValueError for what is no tensor."""

    def create(t):
        if not isinstance(t, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(t)}")
        with enable_inplace_requires_grad(True):
            return t.requires_grad_()

    return tree_map(create, tree)


def unwrap_all_tensors(tree, level):
    """The tree with its tensors as the level below sees them. RuntimeError for what is no tensor."""

    def unwrap(t):
        if isinstance(t, Tensor):
            return _functorch._unwrap_for_grad(t, level)
        if isinstance(t, tuple):
            return tree_map(unwrap, tuple(t))
        raise RuntimeError(f"Expected tensors, got unsupported type {type(t)}")

    return tree_map(unwrap, tree)


# ----------------------------------------------------------------------------------------------------- arguments


def slice_argnums(args, argnums, as_tuple=True):
    """The arguments that are meant. RuntimeError for numbers that there are not, or that come twice."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if isinstance(argnums, int):
        chosen = args[wrapped_argnum(argnums, len(args))]
        return (chosen,) if as_tuple else chosen
    numbers = [wrapped_argnum(n, len(args)) for n in argnums]
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    if len(set(numbers)) != len(numbers):
        raise RuntimeError(f"argnums elements must be unique, got {tuple(numbers)}")
    return tuple([args[n] for n in numbers])


def wrapped_argnum(argnum, count):
    if not isinstance(argnum, int):
        raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
    if not -count <= argnum < count:
        raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
    return argnum % count


def parted_aux(output, call):
    """(output, something else), as a function with `has_aux` must return it."""
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{call}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return output


# ----------------------------------------------------------------------------------------------------- backwards


def autograd_grad(outputs, inputs, grad_outputs=None, retain_graph=False, create_graph=True):
    """The gradients of the outputs, with zeros for inputs that they do not depend on."""
    pairs = [(o, g) for o, g in zip(outputs, grad_outputs or [None] * len(outputs)) if o.requires_grad]
    if not pairs:
        return tuple([at.zeros_like(i) for i in inputs])
    roots, vectors = zip(*pairs)
    grads = autograd.grad(
        roots,
        inputs,
        None if grad_outputs is None else vectors,
        retain_graph=retain_graph,
        create_graph=create_graph,
        allow_unused=True,
    )
    return tuple([at.zeros_like(i) if g is None else g for g, i in zip(grads, inputs)])


_GRAD = "grad_and_value(f)(*args)"


@doesnt_support_saved_tensors_hooks
def grad_and_value_impl(func, argnums, has_aux, args, kwargs):
    aux = None
    with grad_nesting() as level, enable_grad():
        args, kwargs = wrap_all_tensors(args, level), wrap_all_tensors(kwargs, level)
        diff_args = slice_argnums(args, argnums, as_tuple=False)
        tree_map_(create_differentiable, diff_args)
        output = func(*args, **kwargs)
        if has_aux:
            output, aux = parted_aux(output, _GRAD)
        check_scalar(output)
        flat_diff_args, spec = tree_flatten(diff_args)
        grads = tree_unflatten(list(autograd_grad((output,), flat_diff_args)), spec)
        grads, output = unwrap_all_tensors(grads, level), unwrap_all_tensors(output, level)
        if has_aux:
            return grads, (output, unwrap_all_tensors(aux, level))
        return grads, output


def check_scalar(output):
    if not isinstance(output, Tensor):
        raise RuntimeError(f"{_GRAD}: Expected f(*args) to return a Tensor, got {type(output)}")
    if output.dim() != 0:
        raise RuntimeError(
            f"{_GRAD}: Expected f(*args) to return a scalar Tensor, got tensor with {output.dim()} dims. Maybe you wanted to use the "
            "vjp or jacrev APIs instead?"
        )


def grad_impl(func, argnums, has_aux, args, kwargs):
    grads, value = grad_and_value_impl(func, argnums, has_aux, args, kwargs)
    return (grads, value[1]) if has_aux else grads


@exposed_in("readtorch.func")
def vjp(func, *primals, has_aux=False):
    """(output of `func` at `primals`, the function that multiplies a vector with its Jacobian there).

    That function takes a tree of cotangents like the output and returns a tuple of one gradient for each of `primals`. has_aux:
    `func` returns (output, something else), which comes back third. Raises RuntimeError unless the output is made of tensors.
    """
    return vjp_with_argnums(func, *primals, has_aux=has_aux)


_VJP = "vjp(f, *primals)"


@doesnt_support_saved_tensors_hooks
def vjp_with_argnums(func, *primals, argnums=None, has_aux=False):
    """`vjp` with respect to some of the arguments alone."""
    aux = None
    with grad_nesting() as level, enable_grad():
        primals = wrap_all_tensors(primals, level)
        diff_primals = primals if argnums is None else slice_argnums(primals, argnums, as_tuple=False)
        tree_map_(create_differentiable, diff_primals)
        outputs = func(*primals)
        if has_aux:
            outputs, aux = parted_aux(outputs, _VJP)
            aux = unwrap_all_tensors(aux, level)
        flat_outputs, outputs_spec = tree_flatten(outputs)
        check_tensors(flat_outputs, _VJP)
        flat_diff_primals, primals_spec = tree_flatten(diff_primals)
        results = unwrap_all_tensors(outputs, level)
        check_differentiable(flat_outputs)

    def vjp_fn(cotangents, retain_graph=True, create_graph=None):
        create_graph = is_grad_enabled() if create_graph is None else create_graph
        flat_cotangents, spec = tree_flatten(cotangents)
        if spec != outputs_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. cotangents: "
                f"{treespec_pprint(spec)}, primal output: {treespec_pprint(outputs_spec)}"
            )
        grads = autograd_grad(flat_outputs, flat_diff_primals, flat_cotangents, retain_graph, create_graph)
        return tree_unflatten(list(grads), primals_spec)

    return (results, vjp_fn, aux) if has_aux else (results, vjp_fn)


def check_tensors(outputs, call):
    if not outputs or outputs == [None]:
        raise RuntimeError(f"{call}: Expected f to be a function that has non-empty output (got output = {outputs})")
    for o in outputs:
        if not isinstance(o, Tensor):
            raise RuntimeError(f"{call}: expected f(*primals) to return only tensors, got unsupported type {type(o)}")


def check_differentiable(outputs):
    for o in outputs:
        if not (o.is_floating_point() or o.is_complex()):
            raise RuntimeError(
                f"vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype {o.dtype}"
            )


@exposed_in("readtorch.func")
def debug_unwrap(tensor, *, recurse=True):
    """The tensor in a wrapper of a transform; recurse: and in that one, down to a tensor that wraps none. For looking at values only."""
    if not _functorch.is_functorch_wrapped_tensor(tensor):
        return tensor
    inner = _functorch.get_unwrapped(tensor)
    return debug_unwrap(inner) if recurse else inner


# ------------------------------------------------------------------------------------------------------ forwards

_JVP = "jvp(f, primals, tangents)"


@contextlib.contextmanager
def jvp_nesting():
    """`with jvp_nesting() as level:` differentiation forwards is under way. The outermost one begins the level of tangents: wrappers of
    different levels are different tensors, so one serves them all."""
    global _nested
    level = _functorch._jvp_increment_nesting()
    _nested += 1
    try:
        with (
            forward_ad._set_fwd_grad_enabled(True),
            forward_ad.dual_level() if _nested == 1 else contextlib.nullcontext(),
        ):
            yield level
    finally:
        _nested -= 1
        _functorch._jvp_decrement_nesting()


_nested = 0  # in PyTorch: JVP_NESTING


@exposed_in("readtorch.func")
def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """(output of `func` at `primals`, its derivative there in the direction of `tangents`).

    primals: a tuple of what `func` takes. strict: raise RuntimeError for an output that does not depend on the inputs. has_aux: `func`
    returns (output, something else), which comes back third. Raises RuntimeError unless the trees of tensors fit.
    """
    return jvp_with_argnums(func, primals, tangents, None, strict=strict, has_aux=has_aux)


def jvp_with_argnums(func, primals, tangents, argnums, *, strict=False, has_aux=False):
    """`jvp` with respect to some of the arguments alone."""
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{_JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    diff_args = primals if argnums is None else slice_argnums(primals, argnums)
    flat_primals, spec = tree_flatten(diff_args)
    flat_tangents = _flat_tangents(tangents, spec)
    for name, tensors in ("primals", flat_primals), ("tangents", flat_tangents):
        _check_given(tensors, name)
    aux = None
    with jvp_nesting() as level:
        # What is written to a dual in place is written to its tangent, too, which must not count as captured.
        own_tangents = [_functorch._wrap_for_grad(t, level) for t in flat_tangents]
        duals = tree_unflatten([forward_ad.make_dual(p, t) for p, t in zip(flat_primals, own_tangents)], spec)
        if argnums is not None:
            duals = replaced_args(wrap_all_tensors(primals, level), duals, argnums)
        outputs = func(*duals)
        if has_aux:
            outputs, aux = parted_aux(outputs, _JVP)
            aux = unwrap_all_tensors(aux, level)
        flat_outputs, spec = tree_flatten(outputs)
        check_tensors(flat_outputs, _JVP)
        pairs = [_parted_dual(dual, strict) for dual in flat_outputs]
        values, derivatives = [
            tree_unflatten([unwrap_all_tensors(t, level) for t in side], spec) for side in zip(*pairs)
        ]
        return (values, derivatives, aux) if has_aux else (values, derivatives)


def _flat_tangents(tangents, primals_spec):
    flat, spec = tree_flatten(tangents)
    if spec != primals_spec:
        raise RuntimeError(
            f"{_JVP}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple of 3 tensors, "
            f"tangents also must be. Got primals with structure {primals_spec} and tangents with structure {spec}"
        )
    return flat


def _check_given(tensors, name):
    if not tensors:
        raise RuntimeError(f"{_JVP}: Expected {name} to contain at least one Tensor.")
    for t in tensors:
        if not isinstance(t, Tensor):
            raise RuntimeError(f"{_JVP}: Expected {name} to only contain Tensors, got {type(t)}")


def replaced_args(args, new, argnums):
    """The arguments with these in the places that are meant."""
    if isinstance(argnums, int):
        argnums = (argnums,)
    args = list(args)
    for n, value in zip(argnums, new):
        args[wrapped_argnum(n, len(args))] = value
    return tuple(args)


def _parted_dual(dual, strict):
    primal, tangent = forward_ad.unpack_dual(dual)
    if tangent is None and strict:
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed with strict=True."
        )
    return primal, at.zeros_like(primal) if tangent is None else tangent


# ----------------------------------------------------------------------------------------------------- Jacobians


@exposed_in("readtorch.func")
def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """The function that computes the Jacobian of `func`, a row at a time: a vjp for each element of the output, under one vmap.

    For an output of sizes S and an input of sizes T each Jacobian has the sizes (*S, *T); there is one for each output of the tree and
    each argument of `argnums`. chunk_size: how many rows at a time, all if None. has_aux: as in `grad`. Raises RuntimeError for complex
    tensors, ValueError for a chunk size that is not positive.
    """
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def jacobian(*args):
        error_if_complex("jacrev", args, is_input=True)
        output, vjp_fn, *aux = vjp_with_argnums(func, *args, argnums=argnums, has_aux=has_aux)
        flat_output, output_spec = tree_flatten(output)
        error_if_complex("jacrev", flat_output, is_input=False)
        flat_primals, primals_spec = tree_flatten(slice_argnums(args, argnums))
        rows = [_rows(vjp_fn, basis, output_spec, chunk_size) for basis in standard_basis(flat_output, chunk_size)]
        rows = rows[0] if len(rows) == 1 else [at.cat(list(parts), 0) for parts in zip(*rows)]
        counts = [o.numel() for o in flat_output]
        by_input = [
            [part.view(o.shape + p.shape) for part, o in zip(at.split(r, counts, 0), flat_output)]
            for r, p in zip(rows, flat_primals)
        ]
        by_output = [tree_unflatten(list(parts), primals_spec) for parts in zip(*by_input)]
        result = tree_unflatten([j[0] for j in by_output] if isinstance(argnums, int) else by_output, output_spec)
        return (result, aux[0]) if has_aux else result

    return jacobian


def _rows(vjp_fn, basis, output_spec, chunk_size):
    """Some rows of the Jacobians with respect to each input."""
    if chunk_size == 1:
        grads = vjp_fn(tree_unflatten([at.squeeze(b, 0) for b in basis], output_spec))
        return [at.unsqueeze(g, 0) for g in tree_leaves(grads)]
    return tree_leaves(vmapped(vjp_fn)(tree_unflatten(basis, output_spec)))


def vmapped(func, randomness="error"):
    return functools.partial(vmap_impl, func, 0, 0, randomness, None)


def standard_basis(tensors, chunk_size=None):
    """The vectors with one 1, as many as all tensors together have elements, so many at a time: a list like `tensors` for each chunk."""
    counts = [t.numel() for t in tensors]
    total = sum(counts)
    begin = 0
    for size in get_chunk_sizes(total, min(chunk_size or total, total) or 1) or [0]:
        chunk, before = [], 0
        for t, count in zip(tensors, counts):
            part = t.new_zeros(size, count)
            part.diagonal(begin - before).fill_(1)
            chunk.append(part.view(size, *t.shape))
            before += count
        yield chunk
        begin += size


def error_if_complex(name, args, is_input):
    for i, arg in enumerate(tree_leaves(args)):
        if isinstance(arg, Tensor) and arg.dtype.is_complex:
            raise RuntimeError(
                f"{name}: Expected all {'inputs' if is_input else 'outputs'} to be real but received complex tensor at flattened input "
                f"idx: {i}"
            )


@exposed_in("readtorch.func")
def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """The function that computes the Jacobian of `func`, a column at a time: a jvp for each element of the inputs, under one vmap.

    The result is that of `jacrev`. randomness: as in `vmap`. Raises RuntimeError for complex tensors.
    """

    @functools.wraps(func)
    def jacobian(*args):
        error_if_complex("jacfwd", args, is_input=True)
        flat_primals, primals_spec = tree_flatten(args if argnums is None else slice_argnums(args, argnums))

        def push(basis):
            output = jvp_with_argnums(func, args, basis, argnums, has_aux=has_aux)
            error_if_complex("jacfwd", output[0], is_input=False)
            return output[1:] if has_aux else output[1]

        (basis,) = standard_basis(flat_primals)
        columns = vmapped(push, randomness)(tree_unflatten(basis, primals_spec))
        if has_aux:
            columns, aux = columns
            aux = tree_map(lambda t: t[0], aux)
        flat_columns, spec = tree_flatten(columns)
        jacobians = [_by_input(c, flat_primals, primals_spec) for c in flat_columns]
        result = tree_unflatten([j[0] for j in jacobians] if isinstance(argnums, int) else jacobians, spec)
        return (result, aux) if has_aux else result

    return jacobian


def _by_input(columns, primals, primals_spec):
    """Columns of all inputs together as one Jacobian for each."""
    parts = at.split(columns.movedim(0, -1), [p.numel() for p in primals], -1)
    shaped = [part.unflatten(-1, p.shape) if p.dim() else part.squeeze(-1) for part, p in zip(parts, primals)]
    return tree_unflatten(shaped, primals_spec)


@exposed_in("readtorch.func")
def hessian(func, argnums=0):
    """The function that computes the second derivatives of `func`: forward over reverse."""
    return jacfwd(jacrev(func, argnums), argnums)


@exposed_in("readtorch.func")
def functionalize(func, *, remove="mutations"):
    """`func` without writes: it computes the same, and writes to its own tensors make new ones; what it wrote to its arguments is copied
    into them at the end. remove="mutations_and_views": without views, too, by operators that copy (`view_copy`).

    Raises RuntimeError for another `remove`, and where a tensor that is no argument is written to.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}."
            " Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program, and replaced"
            " with their out-of-place equivalents.\n"
            "     remove='mutations_and_views': In addition to the above, all aliasing operators {view} will be"
            " replaced with their non-aliasing counterparts, {view}_copy.\n"
        )

    from readtorch._subclasses.functional_tensor import (  # what `import readtorch` does not load
        FunctionalTensorMode,
        from_functional,
        to_functional,
    )

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        with FunctionalTensorMode(reapply_views=remove == "mutations"):
            func_args, func_kwargs = to_functional((args, kwargs))
            outputs = from_functional(func(*func_args, **func_kwargs))
        for given, functional in zip(tree_leaves((args, kwargs)), tree_leaves((func_args, func_kwargs))):
            if isinstance(given, Tensor):
                _propagate_functional_input_mutation(given, functional)
        return outputs

    return wrapped


def _propagate_functional_input_mutation(given, functional):
    """Write to an argument what the function wrote to the FunctionalTensor that stood for it."""
    value = functional.from_functional()
    if value is given:
        return
    if given.shape != value.shape:
        given.resize_(value.shape)
    given.copy_(value)
