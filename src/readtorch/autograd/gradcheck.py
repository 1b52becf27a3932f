"""Derivatives checked against differences: `gradcheck`, `gradgradcheck`.

In PyTorch: `torch/autograd/gradcheck.py`. Explained in the chapter "Autograd".

For each input element x_i the numerical column of the Jacobian is (f(x + eps e_i) - f(x - eps e_i)) / 2 eps; the analytical
one is collected row by row, one backward for each output element. For complex tensors both are taken as functions of the
real and imaginary parts, and backward gives the conjugate Wirtinger derivative, as PyTorch defines it.
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.c10.tensor_impl import TensorImpl, host_array, resolved, wrap

__all__ = ["gradcheck", "gradgradcheck", "GradcheckError"]


class GradcheckError(RuntimeError):
    """The analytical and the numerical derivative differ, or a check around them failed."""


def gradcheck(
    func,
    inputs,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_backward_ad=True,
    fast_mode=False,
):
    """Whether the gradients of `func` at `inputs` (double precision, requires_grad) agree with differences.

    `fast_mode` compares one random projection instead of whole Jacobians. Returns True; on a mismatch raises GradcheckError,
    or returns False if not `raise_exception`.
    """
    try:
        return _check(
            func,
            inputs,
            eps,
            atol,
            rtol,
            nondet_tol,
            check_undefined_grad,
            check_grad_dtypes,
            check_batched_grad,
            fast_mode,
        )
    except GradcheckError:
        if raise_exception:
            raise
        return False


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    gen_non_contig_grad_outputs=False,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    fast_mode=False,
):
    """`gradcheck` of the gradient of `func` as a function of its inputs and of the gradients given to its outputs."""
    from . import grad

    inputs = _as_tuple(inputs)
    outputs = _differentiable(func(*inputs))
    vectors = (
        _as_tuple(grad_outputs)
        if grad_outputs is not None
        else tuple([_random_like(o).requires_grad_() for o in outputs])
    )
    count = len(vectors)

    def gradient(*arguments):
        given, vectors = arguments[:-count], arguments[-count:]
        results = _differentiable(func(*given))
        wanted = tuple([a for a in given if isinstance(a, TensorImpl) and a.requires_grad])
        grads = grad(results, wanted, vectors, create_graph=True, allow_unused=True)
        return tuple([g for g in grads if g is not None])

    return gradcheck(
        gradient,
        inputs + vectors,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        fast_mode=fast_mode,
    )


def _check(
    func, inputs, eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes, check_batched_grad, fast_mode
):
    inputs = _as_tuple(inputs)
    wanted = _check_inputs(inputs)
    results = _as_tuple(func(*inputs))
    differentiable = [i for i, r in enumerate(results) if isinstance(r, TensorImpl) and r.requires_grad]
    for i in differentiable:
        output = results[i]
        analytical = analytical_jacobian(output, wanted)
        repeated = analytical_jacobian(_as_tuple(func(*inputs))[i], wanted)
        for j, given in enumerate(wanted):
            if np.abs(analytical[j] - repeated[j]).max(initial=0) > nondet_tol:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and "
                    "grad_output multiple times gives different values, although "
                    "analytical gradient matches numerical gradient. The tolerance for "
                    f"nondeterminism was {nondet_tol}."
                )
            numerical = numerical_jacobian(lambda: _as_tuple(func(*inputs))[i], given, output, eps)
            if not _agree(analytical[j], numerical, rtol, atol, fast_mode):
                raise GradcheckError(
                    f"Jacobian mismatch for output {i} with respect to input "
                    f"{j},\nnumerical:{wrap(numerical)}\nanalytical:{wrap(analytical[j])}\n"
                )
        if check_grad_dtypes:
            _check_grad_types(output, wanted)
    if check_undefined_grad and differentiable:
        _check_undefined(func, inputs)
    return True


def _check_inputs(inputs):
    wanted = [t for t in inputs if isinstance(t, TensorImpl) and t.requires_grad]
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the "
            "them have requires_grad=True."
        )
    for i, t in enumerate(inputs):
        if isinstance(t, TensorImpl) and t.requires_grad and t.dtype.name not in ("float64", "complex128"):
            import warnings

            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex. ",
                stacklevel=4,
            )
        if isinstance(t, TensorImpl) and t.requires_grad and any(s == 0 and n > 1 for s, n in zip(t.stride(), t.shape)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports "
                "inputs that are non-overlapping to be able to compute the numerical "
                "gradients correctly. You should call .contiguous on the input before "
                "passing it to gradcheck."
            )
    return wanted


def analytical_jacobian(output, inputs):
    """For each input an array (input elements, output elements), by one backward an output element.

    A complex output takes a second one with the vector i, which gives its imaginary part.
    """
    from . import grad

    columns = [np.zeros((t.numel(), output.numel()), _result_type(t, output)) for t in inputs]
    for j in range(output.numel()):
        for vector, part in ((1, 1), (1j, 1j))[: 2 if output.is_complex() else 1]:
            seed = np.zeros(output.numel(), output._array.dtype)
            seed[j] = vector
            grads = grad(output, inputs, wrap(seed.reshape(output.shape)), retain_graph=True, allow_unused=True)
            for column, g in zip(columns, grads):
                if g is not None:
                    _add_projection(column[:, j], host_array(g).reshape(-1), part, output.is_complex())
    return columns


def _add_projection(target, gradient, part, complex_output):
    """Backward with vector v gives conj(v) dL + ...; for v = 1 and v = i the sum below restores the derivative itself."""
    if not complex_output:
        target += gradient.conj() if target.dtype.kind == "c" else gradient
    elif gradient.dtype.kind == "c":
        target += 0.5 * (gradient.conj() if part == 1 else 1j * gradient.conj())
    else:
        target += gradient * part


def numerical_jacobian(compute, given, output, eps):
    """The same array by central differences; a complex input is moved along both axes."""
    jacobian = np.zeros((given.numel(), output.numel()), _result_type(given, output))
    for i, index in enumerate(np.ndindex(given._array.shape)):
        jacobian[i] = _difference(compute, given, index, eps)
        if given.is_complex():
            along_imaginary = _difference(compute, given, index, eps * 1j)
            jacobian[i] = (
                0.5 * (jacobian[i] - 1j * along_imaginary)
                if output.is_complex()
                else jacobian[i] - 1j * along_imaginary
            )
    return jacobian


def _difference(compute, given, index, step):
    """(f(x + h) - f(x - h)) / 2|h| for one element, moved in place and put back."""
    array, original = given._array, given._array[index]
    moved = resolved(np.array(step), given._keys)[()]  # what lies in memory may be the conjugate
    array[index] = original + moved  # the array itself: autograd need not know
    above = host_array(compute()).reshape(-1).copy()
    array[index] = original - moved
    below = host_array(compute()).reshape(-1).copy()
    array[index] = original
    return (above - below) / (2 * abs(step))


def _agree(analytical, numerical, rtol, atol, fast_mode):
    if fast_mode:
        generator = np.random.default_rng(0)
        u, v = generator.standard_normal(analytical.shape[0]), generator.standard_normal(analytical.shape[1])
        analytical, numerical = u @ analytical @ v, u @ numerical @ v
        atol = atol * max(1, u.size * v.size) ** 0.5
    return np.allclose(analytical, numerical, rtol, atol, equal_nan=True)


def _check_grad_types(output, inputs):
    from . import grad

    for given, g in zip(inputs, grad(output, inputs, at.ones_like(output), retain_graph=True, allow_unused=True)):
        if g is not None and g.dtype is not given.dtype:
            raise GradcheckError(
                f"expected the gradient of a {given.dtype} input to be of that type, but it is {g.dtype}"
            )


def _check_undefined(func, inputs):
    """A gradient of zeros for every output must give zeros."""
    from . import grad

    wanted = [t for t in inputs if isinstance(t, TensorImpl) and t.requires_grad]
    outputs = _differentiable(func(*inputs))
    grads = grad(outputs, wanted, tuple([at.zeros_like(o) for o in outputs]), allow_unused=True)
    if any(g is not None and not (g._array == 0).all() for g in grads):
        raise GradcheckError(
            "Expected backward function to handle undefined output grads. Please look at "
            "'Notes about undefined output gradients' in 'tools/autograd/derivatives.yaml'"
        )


def _as_tuple(value):
    return (value,) if isinstance(value, TensorImpl) else tuple(value)


def _differentiable(outputs):
    return tuple([o for o in _as_tuple(outputs) if isinstance(o, TensorImpl) and o.requires_grad])


def _random_like(t):
    values = np.random.default_rng(0).standard_normal(t.shape)
    return wrap(np.asarray(values).astype(t._array.dtype))


def _result_type(a, b):
    return np.complex128 if a.is_complex() or b.is_complex() else np.float64
