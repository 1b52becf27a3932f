"""Is a derivative right? Compares what autograd says with what differences of function values say.

In PyTorch: `torch/autograd/gradcheck.py`. Explained in the chapter "Autograd".

Note [ Two Jacobians ]
The numerical Jacobian comes column by column: one element of an input is moved by eps to both sides, and the outputs' central
difference is a column. The analytical one comes row by row from backward, with a one for one element of an output, or column by
column from forward mode, with a tangent of a one. Jacobians here have a row for each element of the input and a column for each
element of the output.

Note [ Fast mode ]
All elements of a Jacobian J take as many calls as it has rows or columns. One number, v^T J u for random u and v, takes three: the
difference of the function along u, and one backward with v. If it is right, the Jacobian most likely is.

Note [ Complex numbers ]
A function with complex outputs is checked as two functions, its real and its imaginary part. For a complex input the difference is
taken along both axes: ds/dx + i ds/dy, which is what backward gives for a real output.
Forward mode starts from inputs, so there the inputs are taken apart instead.
"""

import warnings
from itertools import product

from readtorch.aten.functions import at
from readtorch.c10.layout import sparse_coo, strided
from readtorch.c10.memory_format import contiguous_format
from readtorch.c10.scalar_type import complex128, float64, promote_types
from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.autograd.basic_ops import UndefinedGrad
from readtorch.csrc.generator import Generator
from readtorch.csrc.utils.disable_torch_function import is_tensor_like

__all__ = [
    "gradcheck",
    "gradgradcheck",
    "GradcheckError",
    "get_numerical_jacobian",
    "get_analytical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
]


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
    check_batched_forward_grad=False,
    check_forward_ad=False,
    check_backward_ad=True,
    fast_mode=False,
    masked=None,
):
    """Whether the derivatives of `func` at `inputs` (double precision, requires_grad) agree with differences.

    Returns True; on a mismatch raises GradcheckError, or returns False if not raise_exception.
    nondet_tol: how much two backwards may differ. check_undefined_grad: outputs without a gradient count as zeros.
    check_batched_grad, check_batched_forward_grad: the same under vmap. check_forward_ad, check_backward_ad: which mode.
    fast_mode: one random projection of each Jacobian. masked: elements that a sparse tensor does not hold are left out.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    settings = _Settings(eps, atol, rtol, nondet_tol, check_grad_dtypes, fast_mode, masked)
    try:
        inputs = _as_tuple(inputs)
        _check_inputs(inputs)
        outputs = func(*inputs)
        _check_outputs(_differentiable_outputs(outputs))
        if check_backward_ad:
            _check_backward_mode(func, inputs, outputs, settings)
        if check_forward_ad:
            _check_forward_mode(func, inputs, outputs, settings, check_undefined_grad)
        if check_batched_forward_grad:
            _test_batched_grad_forward_ad(func, inputs)
        if check_backward_ad:
            _check_around_backward(func, inputs, outputs, settings, check_batched_grad, check_undefined_grad)
        return True
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
    check_fwd_over_rev=False,
    check_rev_over_rev=True,
    fast_mode=False,
    masked=False,
):
    """`gradcheck` of the gradient of `func`, as a function of its inputs and of the gradients given to its outputs.

    grad_outputs: these gradients (random ones if None). check_fwd_over_rev, check_rev_over_rev: the mode of the outer
    derivative; the inner one is backward's.
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    for name, wanted in (("check_undefined_grad", check_undefined_grad), ("check_batched_grad", check_batched_grad)):
        if wanted and not check_rev_over_rev:
            raise AssertionError(f"Setting {name}=True requires check_rev_over_rev to be True")
    inputs = _as_tuple(inputs)
    if grad_outputs is None:
        outputs = _differentiable_outputs(func(*inputs))
        vectors = tuple([_random_gradient(o, gen_non_contig_grad_outputs) for o in outputs])
    else:
        vectors = _as_tuple(grad_outputs)
    return gradcheck(
        _gradient_of(func, inputs, vectors),
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
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        masked=masked,
    )


def _gradient_of(func, inputs, vectors):
    """The function (inputs, gradients of the outputs) -> gradients of the inputs."""
    asked = [
        is_tensor_like(t) and t.requires_grad for t in inputs + vectors
    ]  # gradcheck detaches them for forward mode
    count = len(inputs)

    def gradient(*arguments):
        given = [a.requires_grad_() if wanted else a for a, wanted in zip(arguments, asked)]
        outputs = _differentiable_outputs(func(*given[:count]))
        wanted = tuple([a for a, is_asked in zip(given[:count], asked) if is_asked])
        grads = _grad(outputs, wanted, tuple(given[count:]), create_graph=True, allow_unused=True)
        return tuple([g for g in grads if g is not None])

    return gradient


def _random_gradient(output, noncontiguous):
    """A tensor like an output with elements between -1 and 1."""
    dtype = output.dtype if output.is_floating_point() or output.is_complex() else float64
    made = at.empty(output.shape, dtype=dtype.to_real(), device=output.device).uniform_(-1, 1)
    if dtype.is_complex:
        made = at.complex(made, at.empty_like(made).uniform_(-1, 1))
    if noncontiguous and made.numel() > 1:
        made = at.repeat_interleave(made, 2, dim=-1)[..., ::2]
    return made.requires_grad_()


class _Settings:
    """How exact the comparison is, and what belongs to it."""

    def __init__(self, eps, atol, rtol, nondet_tol, check_grad_dtypes, fast_mode, masked):
        self.eps, self.atol, self.rtol, self.nondet_tol = eps, atol, rtol, nondet_tol
        self.check_grad_dtypes, self.fast_mode, self.masked = check_grad_dtypes, fast_mode, masked

    def allclose(self, a, b, atol=None):
        dtype = promote_types(a.dtype, b.dtype)
        return at.allclose(a.to(dtype), b.to(a.device).to(dtype), self.rtol, self.atol if atol is None else atol)


def _grad(*args, **kwargs):
    from . import grad

    return grad(*args, **kwargs)


# ----------------------------------------------------------------------------------- which comparisons a function needs


class _Case:
    """One function to compare, with what it was given and what it has returned.

    complex_indices: of which outputs (in forward mode: inputs) this function has the real or imaginary part only.
    """

    def __init__(self, func, inputs, returned, settings, forward=False, complex_indices=None, is_imaginary=False):
        self.func, self.inputs, self.settings, self.forward = func, inputs, settings, forward
        self.returned = _as_tuple(returned)
        self.outputs = _differentiable_outputs(returned)
        self.complex_indices, self.is_imaginary = complex_indices, is_imaginary

    def check(self):
        (_check_fast if self.settings.fast_mode else _check_slow)(self)

    def mismatch(self, analytical, numerical, output, given):
        """What to say if two derivatives differ."""
        part, mode = "", ""
        if self.complex_indices and (given if self.forward else output) in self.complex_indices:
            element = "inputs" if self.forward else "outputs"
            part = (
                f"While considering the {'imaginary' if self.is_imaginary else 'real'} part of complex {element} only, "
            )
        if self.forward:
            mode = "computed with forward mode "
        return (
            f"{part}Jacobian {mode}mismatch for output {output} with respect to input {given},\n"
            f"numerical:{numerical}\nanalytical:{analytical}\n"
        )


def _check_backward_mode(func, inputs, returned, settings):
    """Compare with backward; a function with complex outputs in two parts: Note [ Complex numbers ]."""
    if not any(o.is_complex() for o in _as_tuple(returned)):
        _Case(func, inputs, returned, settings).check()
        return
    indices = [i for i, o in enumerate(_differentiable_outputs(returned)) if o.is_complex()]
    for take, is_imaginary in ((at.imag, True), (at.real, False)):

        def part(*given, take=take):
            return tuple([take(o) if o.is_complex() else o for o in _as_tuple(func(*given))])

        _Case(part, inputs, part(*inputs), settings, complex_indices=indices, is_imaginary=is_imaginary).check()


def _check_forward_mode(func, inputs, returned, settings, check_undefined_grad):
    """Compare with forward mode; a function of complex inputs in two parts."""
    indices = [i for i, t in enumerate(inputs) if is_tensor_like(t) and t.is_complex()]
    if not indices:
        _Case(func, inputs, returned, settings, forward=True).check()
        if check_undefined_grad:
            _test_undefined_forward_mode(func, _differentiable_outputs(returned), inputs)
        return
    cases = []
    for is_imaginary in (True, False):
        part = _of_one_part(func, inputs, indices, is_imaginary)
        taken = [(t.imag if is_imaginary else t.real) if i in indices else t for i, t in enumerate(inputs)]
        cases.append(_Case(part, taken, part(*taken), settings, True, indices, is_imaginary))
        cases[-1].check()
    if check_undefined_grad:
        for case in cases:
            _test_undefined_forward_mode(case.func, case.returned, case.inputs)


def _of_one_part(func, inputs, indices, is_imaginary):
    """`func` of the real or imaginary parts of its complex inputs; the other parts stay as they are."""

    def part(*given):
        given = list(given)
        for i in indices:
            whole = inputs[i]
            given[i] = whole.real + given[i] * 1j if is_imaginary else given[i] + whole.imag * 1j
        return _as_tuple(func(*given))

    return part


def _check_around_backward(func, inputs, returned, settings, check_batched_grad, check_undefined_grad):
    outputs = _differentiable_outputs(returned)
    if check_batched_grad:
        for i, output in enumerate(outputs):
            _test_batched_grad(inputs, output, i)
    _test_backward_mul_by_grad_output(outputs, inputs, settings.masked)
    if check_undefined_grad:
        _test_undefined_backward_mode(func, outputs, inputs)


def _check_slow(case):
    """Compare whole Jacobians."""
    settings, inputs = case.settings, case.inputs
    if not case.outputs:
        _check_nothing_changes(case)
        return
    given = inputs if settings.masked else _densify(inputs)
    numerical = _get_numerical_jacobian(case.func, given, case.returned, None, settings.eps, case.forward)
    columns = [[n for o, n in zip(case.returned, of_input) if o.requires_grad] for of_input in numerical]
    if case.forward:
        analytical = _get_analytical_jacobian_forward_ad(case.func, inputs, case.returned, settings.check_grad_dtypes)
        by_output = [[of_input[i] for of_input in analytical] for i in range(len(case.outputs))]
    for i, output in enumerate(case.outputs):
        row = by_output[i] if case.forward else _check_analytical_jacobian_attributes(inputs, output, settings)
        for j, (a, of_input) in enumerate(zip(row, columns)):
            if not settings.allclose(a, of_input[i]):
                raise GradcheckError(case.mismatch(a, of_input[i], i, j))


def _check_nothing_changes(case):
    """Without differentiable outputs, differences must be zero."""
    jacobians = _get_numerical_jacobian(case.func, case.inputs, case.returned, None, case.settings.eps, case.forward)
    if any(at.ne(jacobian, 0).sum() > 0 for of_input in jacobians for jacobian in of_input):
        raise GradcheckError("Numerical gradient for function expected to be zero")


# -------------------------------------------------------------------------------------------------- numerical Jacobians


def _get_numerical_jacobian(fn, inputs, outputs=None, target=None, eps=1e-3, is_forward_ad=False):
    """For each tensor of `target` (of `inputs`, if None) that requires grad: a Jacobian for each output."""
    outputs = _as_tuple(fn(*_as_tuple(inputs))) if outputs is None else outputs
    if not is_forward_ad and any(o.is_complex() for o in outputs):
        raise ValueError(
            "Expected output to be non-complex. get_numerical_jacobian no longer supports functions that return complex outputs."
        )
    target = inputs if target is None else target
    numbers = [i for i, t in enumerate(target) if is_tensor_like(t) and t.requires_grad]
    return [
        get_numerical_jacobian_wrt_specific_input(fn, i, inputs, outputs, eps, input=t, is_forward_ad=is_forward_ad)
        for t, i in zip(_iter_tensors(target, True), numbers)
    ]


def get_numerical_jacobian_wrt_specific_input(fn, input_idx, inputs, outputs, eps, input=None, is_forward_ad=False):
    """A Jacobian for each output with respect to one input: see Note [ Two Jacobians ]."""
    input = inputs[input_idx] if input is None else input
    if not input.requires_grad:
        raise AssertionError("Expected input to have requires_grad=True")
    columns = {}
    for moved, index, place in _iter_tensor(input):
        call = _with_prepare_inputs(fn, inputs, input_idx, moved)
        difference = _Difference(call, moved[index], eps, f"on index {index} by {eps}")
        columns[place] = difference.along_axes(eps, eps, moved.is_complex(), is_forward_ad)
    dtype = input.dtype if input.dtype.is_complex else None
    jacobians = _allocate_jacobians_with_outputs(outputs, input.numel(), dtype)
    for i, jacobian in enumerate(jacobians):
        for place, column in columns.items():
            jacobian[place] = column[i]
    return jacobians


class _Difference:
    """Central differences of `call()` while `entry`, which it reads, is moved."""

    def __init__(self, call, entry, norm, where):
        self.call, self.entry, self.norm, self.where = call, entry, norm, where

    def along_axes(self, real, imaginary, is_complex, is_forward_ad):
        """Along the real axis and, of a complex input, along the imaginary one: Note [ Complex numbers ]."""
        by_real = self.along(real)
        if not is_complex:
            if not is_forward_ad and any(d.is_complex() for d in by_real):
                raise AssertionError("Expected ds_dx to be real-valued, not complex.")
            return by_real
        if any(d.is_complex() for d in by_real):
            raise AssertionError("Expected ds_dx to be real-valued, not complex")
        return [x + y * 1j for x, y in zip(by_real, self.along(imaginary * 1j))]

    def along(self, step):
        """(f(x + step) - f(x - step)) / 2 norm for each output, flat."""
        entry = self.entry
        original = entry.clone()
        entry.copy_(original - step)
        below = self.call()
        entry.copy_(original + step)
        above = self.call()
        entry.copy_(original)
        for a, b in zip(below, above):
            self.check_alike(a, b)
        return [((b - a) / (2 * self.norm)).detach().reshape(-1) for a, b in zip(below, above)]

    def check_alike(self, a, b):
        for what, one, other in (("shape", a.shape, b.shape), ("dtype", a.dtype, b.dtype)):
            if one != other:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed {self.where}, but got: "
                    f"{what}s {one} and {other}."
                )


def _iter_tensor(tensor):
    """(what to move, an index into it, the flat place in the Jacobian), for each element that the tensor holds.

    `.data` is moved, so that no version is counted.
    """
    if tensor.layout is not sparse_coo:
        moved = tensor.data
        yield from ((moved, index, place) for place, index in enumerate(product(*map(range, moved.shape))))
        return
    places, values = tensor._indices().t().tolist(), tensor._values().data
    for begin, value in zip(places, values):
        for rest in product(*map(range, value.shape)):
            place = 0
            for i, size in zip((*begin, *rest), tensor.shape):
                place = place * size + i
            yield value, rest, place


def _with_prepare_inputs(fn, inputs, input_idx, moved, fast_mode=False):
    """`fn` of the inputs; of a sparse one in fast mode the moved copy, since its values are not the input's own."""
    given = list(_as_tuple(inputs))
    if fast_mode and is_tensor_like(given[input_idx]) and given[input_idx].layout is sparse_coo:
        given[input_idx] = moved
    return lambda: tuple([o.clone() for o in _as_tuple(fn(*given))])


def get_numerical_jacobian(fn, inputs, target=None, eps=1e-3, grad_out=1.0):
    """Deprecated: the Jacobians of the first output of `fn(inputs)` with respect to each of `target`."""
    _warn_of_old_name("get_numerical_jacobian")
    if grad_out != 1.0:
        raise ValueError(
            "Expected grad_out to be 1.0. get_numerical_jacobian no longer supports values of grad_out != 1.0."
        )
    jacobians = _get_numerical_jacobian(lambda *given: fn(given), inputs, None, target, eps)
    return tuple([of_input[0] for of_input in jacobians])


def _warn_of_old_name(name):
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be removed in "
        "a future version of PyTorch. If you have a specific use for this or feature request for this to be a stable API, please "
        "file us an issue at https://github.com/pytorch/pytorch/issues/new",
        FutureWarning,
        stacklevel=3,
    )


# ------------------------------------------------------------------------------------------------- analytical Jacobians


FAILED_NONDET_MSG = """\n
NOTE: If your op relies on non-deterministic operations i.e., it is listed here:
https://pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html
this failure might be expected.

If you are adding a new operator, please file an issue and then use one of the
workarounds. The workaround depends on how your test invokes gradcheck/gradgradcheck.
If the test
- manually invokes gradcheck/gradgradcheck, then call gradcheck/gradgradcheck
  with `nondet_tol=<tol>` as a keyword argument.
- is OpInfo-based (e.g., in test_ops_gradients.py), then modify the OpInfo for the test
  to have `gradcheck_nondet_tol=<tol>`.
- is a Module test (e.g., in common_nn.py), then modify the corresponding
  module_test entry to have `gradcheck_nondet_tol=<tol>`
"""


def _check_analytical_jacobian_attributes(inputs, output, settings, v=None):
    """The Jacobians of one output by backward, taken twice: they must be the same, and of the inputs' sizes and dtypes.

    With `v` only v^T J, as a Jacobian with one column.
    """
    tensors = list(_iter_tensors(inputs, True))
    first, second = [_rows(output, tensors, v) for _ in range(2)]
    width = output.numel() if v is None else 1
    jacobians, sizes_fit, dtypes_fit = _stack_and_check_tensors(first, tensors, width)
    again, _, _ = _stack_and_check_tensors(second, tensors, width)
    if not dtypes_fit and settings.check_grad_dtypes:
        raise GradcheckError("Gradient has dtype mismatch")
    if not sizes_fit:
        raise GradcheckError("Analytical gradient has incorrect size")
    if not _check_jacobians_equal(jacobians, again, settings.nondet_tol):
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different "
            "values, although analytical gradient matches numerical gradient."
            f"The tolerance for nondeterminism was {settings.nondet_tol}." + FAILED_NONDET_MSG
        )
    return jacobians


def _rows(output, tensors, v=None):
    """For each input the gradients that backward gives: with a one at each element of the output in turn, or with `v`."""
    sample = output.clone()
    if v is not None:
        vectors = [v.reshape(sample.shape)]
    else:
        vectors = _ones_in_turn(at.zeros_like(sample, memory_format=contiguous_format))
    rows = []
    for j, vector in enumerate(vectors):
        grads = _grad(output, tensors, vector, retain_graph=True, allow_unused=True)
        rows = rows or [[] for _ in grads]
        for row, g in zip(rows, grads):
            row.append(g.clone() if isinstance(g, TensorImpl) else None)
    return rows


def _ones_in_turn(tensor):
    """The same tensor again and again, with its one at another element."""
    flat = tensor.view(-1)
    for j in range(flat.numel()):
        flat.zero_()
        flat[j] = 1.0
        yield tensor


def _stack_and_check_tensors(rows, tensors, width):
    """(a Jacobian for each input, whether all gradients have its size, whether they have its dtype)"""
    jacobians = _allocate_jacobians_with_inputs(tensors, width)
    sizes_fit = dtypes_fit = True
    for row, t, jacobian in zip(rows, tensors, jacobians):
        for j, g in enumerate(row):
            if g is None:
                jacobian[:, j].zero_()
                continue
            if g.size() != t.size():
                sizes_fit = False
            elif g.dtype != t.dtype:
                dtypes_fit = False
            dense = g.to_dense() if g.layout is not strided else g
            if jacobian[:, j].numel() != dense.numel():
                raise AssertionError(
                    f"Expected out_jacobian column to have {dense.numel()} elements, but got {jacobian[:, j].numel()}"
                )
            jacobian[:, j] = dense.reshape(-1)
    return jacobians, sizes_fit, dtypes_fit


def _check_jacobians_equal(j1, j2, atol):
    """Whether no element differs by more than atol."""
    return not any(a.numel() != 0 and (a - b).abs().max() > atol for a, b in zip(j1, j2))


def get_analytical_jacobian(inputs, output, nondet_tol=0.0, grad_out=1.0):
    """Deprecated: (Jacobians, whether two backwards gave the same, whether sizes fit, whether dtypes fit)."""
    _warn_of_old_name("get_analytical_jacobian")
    if grad_out != 1.0:
        raise ValueError(
            "Expected grad_out to be 1.0. get_analytical_jacobian no longer supports values of grad_out != 1.0."
        )
    if output.is_complex():
        raise ValueError(
            "Expected output to be non-complex. get_analytical_jacobian no longer supports functions that return complex outputs."
        )
    tensors = list(_iter_tensors(inputs, True))
    first, second = [_rows(output, tensors) for _ in range(2)]
    jacobians, sizes_fit, dtypes_fit = _stack_and_check_tensors(first, tensors, output.numel())
    again, _, _ = _stack_and_check_tensors(second, tensors, output.numel())
    return jacobians, _check_jacobians_equal(jacobians, again, nondet_tol), dtypes_fit, sizes_fit


def _get_analytical_jacobian_forward_ad(fn, inputs, outputs, check_grad_dtypes=False, all_u=None):
    """For each input that requires grad a Jacobian for each output, by forward mode; with `all_u` only J u, flat."""
    from . import forward_ad

    tensors = [t for t in inputs if is_tensor_like(t) and t.requires_grad]
    if any(t.is_complex() for t in tensors):
        raise ValueError("Expected inputs to be non-complex for _get_analytical_jacobian_forward_ad.")
    jacobians = tuple([_allocate_jacobians_with_outputs(outputs, 1 if all_u else t.numel()) for t in tensors])
    with forward_ad.dual_level():
        duals, tangents = _dual_inputs(inputs)
        for i, tangent in enumerate(tangents):
            steps = [(0, None)] if all_u else enumerate(product(*map(range, tangent.shape)))
            for row, index in steps:
                if all_u:
                    tangent.copy_(all_u[i].view_as(tangent))
                else:
                    tangent[index] = 1.0
                for jacobian, t in zip(jacobians[i], _output_tangents(fn, duals, check_grad_dtypes)):
                    jacobian[row].zero_() if t is None else jacobian[row].copy_(t.reshape(-1))
                tangent.zero_() if all_u else tangent.__setitem__(index, 0.0)
    return tuple([tuple([j.squeeze(0) for j in of_input]) for of_input in jacobians]) if all_u else jacobians


def _dual_inputs(inputs):
    """The inputs with tangents of zeros on those that require grad, and these tangents."""
    from . import forward_ad

    duals, tangents = [], []
    for t in inputs:
        if is_tensor_like(t) and t.requires_grad:
            t = forward_ad.make_dual(t.detach(), at.zeros_like(t))
            tangents.append(forward_ad.unpack_dual(t)[1])
        duals.append(t)
    return duals, tangents


def _output_tangents(fn, duals, check_grad_dtypes=False):
    """The tangent of each floating output, or None."""
    from . import forward_ad

    tangents = []
    for output in filter(_is_float_or_complex_tensor, _as_tuple(fn(*duals))):
        value, tangent = forward_ad.unpack_dual(output)
        if check_grad_dtypes and tangent is not None and value.is_complex() != tangent.is_complex():
            raise GradcheckError("Forward AD gradient has dtype mismatch.")
        tangents.append(tangent)
    return tangents


# ------------------------------------------------------------------------------------------------------------ fast mode


def _check_fast(case):
    """Compare v^T J u: Note [ Fast mode ]."""
    settings, inputs = case.settings, case.inputs
    numbers = [i for i, t in enumerate(inputs) if is_tensor_like(t) and t.requires_grad]
    all_v, all_u = _make_vectors([inputs[i] for i in numbers], case.outputs, case.forward)
    given, dense_u, dense_v = (inputs, all_u, all_v) if settings.masked else _densify((inputs, all_u, all_v))
    numerical = [_numerical_projection(case, given, i, u, dense_v) for i, u in zip(numbers, dense_u)]
    if case.forward:
        analytical = _get_analytical_jacobian_forward_ad(
            case.func, inputs, case.returned, settings.check_grad_dtypes, all_u
        )
    else:
        if not case.outputs:
            _check_nothing_changes_along(case, numbers, all_u)
        flat_u = _map_tensors(all_u, lambda u: u.to_dense().reshape(-1) if u.layout is sparse_coo else u)
        by_output = [_analytical_projection(case, o, v, flat_u) for o, v in zip(case.outputs, all_v)]
        analytical = [[of_output[i] for of_output in by_output] for i in range(len(numbers))]
    for i, of_input in enumerate(numerical):
        for j, n in enumerate(of_input):
            a = analytical[i][j]
            if not settings.allclose(a, n, _adjusted_atol(settings.atol, all_u[i], all_v[j] if all_v else None)):
                raise GradcheckError(case.mismatch(a, n, j, i) + _slow_jacobians(case, i, j))


def _map_tensors(values, change):
    return [tuple([change(part) for part in u]) if isinstance(u, tuple) else change(u) for u in values]


def _difference_along(case, inputs, number, u):
    """The difference of all outputs along `u` of one input; of a complex input along a vector for each axis."""
    t, eps = inputs[number], case.settings.eps
    moved = t.clone() if t.layout is sparse_coo else t.data
    call = _with_prepare_inputs(case.func, inputs, number, moved, fast_mode=True)
    steps = [part if part.layout is sparse_coo else part.reshape(moved.shape) for part in _as_tuple(u)]
    difference = _Difference(call, moved, eps, f"by {eps}")
    return difference.along_axes(eps * steps[0], eps * steps[-1], t.is_complex(), case.forward)


def _numerical_projection(case, inputs, number, u, all_v):
    """v^T J u for each floating output; J u if there is no v."""
    along = _difference_along(case, inputs, number, u)
    along = [d for d, o in zip(along, case.returned) if _is_float_or_complex_tensor(o)]
    return along if all_v is None else [(v * d).sum() for v, d in zip(all_v, along)]


def _analytical_projection(case, output, v, all_u):
    """v^T J u for each input, by one backward."""
    found = []
    for jacobian, u in zip(_check_analytical_jacobian_attributes(case.inputs, output, case.settings, v), all_u):
        row = jacobian.T.squeeze(0)
        if row.is_complex():
            parts = at.view_as_real(row.resolve_conj())
            found.append(parts.select(-1, 0).dot(u[0]) + 1j * parts.select(-1, 1).dot(u[1]))
        else:
            found.append(row.dot(u))
    return found


def _check_nothing_changes_along(case, numbers, all_u):
    for number, u in zip(numbers, all_u):
        for d in _difference_along(case, case.inputs, number, u):
            if d.numel() and d.abs().max() > case.settings.nondet_tol:
                raise GradcheckError("Numerical gradient for function expected to be zero")


def _make_vectors(tensors, outputs, use_forward_ad):
    """(v for each output, or None; u for each input: a pair for a complex one), of length one, from a generator of their own."""
    generator = Generator()
    all_u = []
    for t in tensors:
        parts = [_vec_from_tensor(t, generator, downcast_complex=True) for _ in range(2 if t.is_complex() else 1)]
        all_u.append(tuple(parts) if len(parts) == 2 else parts[0])
    return None if use_forward_ad else [_vec_from_tensor(o, generator) for o in outputs], all_u


def _vec_from_tensor(x, generator, downcast_complex=False):
    """A random flat vector of length one and x's dtype (or its real type); of a sparse x one with the same indices."""
    dtype = x.dtype.to_real() if downcast_complex and x.is_complex() else x.dtype
    values = x._values() if x.layout is sparse_coo else x
    vector = at.rand(values.numel(), generator=generator, device="cpu").to(dtype=dtype, device=x.device)
    if x.layout is sparse_coo:
        vector = vector.view(values.shape)
    vector /= vector.norm()
    if x.layout is sparse_coo:
        return at.sparse_coo_tensor(x._indices(), vector, x.size(), device=x.device)
    return vector


def _adjusted_atol(atol, u, v):
    """What atol for each element of J allows for v^T J u: atol times the sums of |u| and |v|, none of which is negative."""
    sum_of_v = 1.0 if v is None else float(v.sum())
    return atol * sum([float(part.sum()) for part in _as_tuple(u)]) * sum_of_v


FAST_FAIL_SLOW_OK_MSG = """
Fast gradcheck failed but element-wise differences are small. This means that the
test might've passed in slow_mode!

If you are adding a new operator, please file an issue and then use one of the
workarounds. The workaround depends on how your test invokes gradcheck/gradgradcheck:

If the test
- manually invokes gradcheck/gradgradcheck, then call gradcheck/gradgradcheck
  with `fast_mode=False` as a keyword argument.
- is OpInfo-based (e.g., in test_ops_gradients.py), then modify the OpInfo for the test
  to have `gradcheck_fast_mode=False`
- is a Module test (e.g., in common_nn.py), then modify the corresponding
  module_test entry to have `gradcheck_fast_mode=False`
""".strip()


def _slow_jacobians(case, given, output):
    """The two whole Jacobians, as text: fast mode alone does not show which element is wrong."""
    settings, inputs, outputs = case.settings, case.inputs, case.outputs
    numerical = _get_numerical_jacobian(case.func, inputs, outputs, None, settings.eps, case.forward)[given][output]
    if case.forward:

        def alone(t):
            return _as_tuple(case.func(*inputs[:given], t, *inputs[given + 1 :]))[output]

        analytical = _get_analytical_jacobian_forward_ad(alone, (inputs[given],), (outputs[output],))[0][0]
    else:
        lenient = _Settings(0, 0, 0, float("inf"), False, False, None)
        analytical = _check_analytical_jacobian_attributes(inputs, outputs[output], lenient)[given]
    text = (
        "\nThe above quantities relating the numerical and analytical jacobians are computed \n"
        "in fast mode. See: https://github.com/pytorch/pytorch/issues/53876 for more background \n"
        "about fast mode. Below, we recompute numerical and analytical jacobians in slow mode:\n\n"
        f"Numerical:\n {numerical}\nAnalytical:\n{analytical}\n\n"
        f"The max per-element difference (slow mode) is: {(numerical - analytical).abs().max()}.\n"
    )
    agree = at.allclose(analytical, numerical, settings.rtol, settings.atol)
    return text + FAST_FAIL_SLOW_OK_MSG if agree else text


# -------------------------------------------------------------------------------------- what else must hold of backward


FAILED_BATCHED_GRAD_MSG = """
gradcheck or gradgradcheck failed while testing batched gradient computation.
This could have been invoked in a number of ways (via a test that calls
gradcheck/gradgradcheck directly or via an autogenerated test).

If you are adding a new operator, please file an issue and then use one of the
workarounds. The workaround depends on how your test invokes gradcheck/gradgradcheck.
If the test
- manually invokes gradcheck/gradgradcheck, then call gradcheck/gradgradcheck
  with `check_batched_grad=False` as a keyword argument.
- is OpInfo-based (e.g., in test_ops_gradients.py), then modify the OpInfo for the test
  to have `check_batched_grad=False` and/or `check_batched_gradgrad=False`.

If you're modifying an existing operator that supports batched grad computation,
or wish to make a new operator work with batched grad computation, please read
the following.

To compute batched grads (e.g., jacobians, hessians), we vmap over the backward
computation. The most common failure case is if there is a 'vmap-incompatible
operation' in the backward pass. Please see
NOTE: [How to write vmap-compatible backward formulas]
in the codebase for an explanation of how to fix this.
""".strip()

FAILED_BATCHED_GRAD_MSG_FWD_AD = """
gradcheck failed while testing batched gradient computation with forward-mode AD.
This test is enabled automatically when both `check_batched_grad=True`
and `check_forward_ad=True`, but can be disabled in the following ways
dependong on how the test was invoked (via a test that calls gradcheck
directly or via an autogenerated test).

If you are adding a new operator, please file an issue and then use one of the
workarounds. The workaround depends on how your test invokes gradcheck/gradgradcheck.
If the test
- manually invokes gradcheck/gradgradcheck, then call gradcheck/gradgradcheck
  with `check_batched_forward_grad=False` as a keyword argument.
- is OpInfo-based (e.g., in test_ops_gradients.py), then modify the OpInfo for the test
  to have `check_batched_forward_grad=False`
"""


def _compare_batched(function, samples, output_idx, message):
    """`function` of each sample, and of all at once by vmap. output_idx: None in forward mode, where outputs are counted."""
    from readtorch._vmap_internals import _vmap

    expected = [at.stack(shards) for shards in zip(*[function(s) for s in samples])]
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="There is a performance drop")
            result = _vmap(function)(at.stack(samples))
    except RuntimeError as error:
        raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{message}") from error
    for i, (res, exp) in enumerate(zip(result, expected)):
        if not at.allclose(res, exp):
            output = i if output_idx is None else output_idx
            raise GradcheckError(
                f"For output {output} and input {i}:\n\n{message}\n\nGot:\n{res}\n\nExpected:\n{exp}".strip()
            )


def _zeros_without_memory(t):
    return at.zeros([], dtype=t.dtype, device=t.device).expand(t.shape)


def _test_batched_grad(inputs, output, output_idx):
    """Two gradients by one backward under vmap are those of two backwards."""
    tensors = list(_iter_tensors(inputs, True))

    def vjp(v):
        grads = _grad(output, tensors, v, retain_graph=True, allow_unused=True)
        return tuple([_zeros_without_memory(t) if g is None else g for g, t in zip(grads, tensors)])

    _compare_batched(vjp, [at.randn_like(output) for _ in range(2)], output_idx, FAILED_BATCHED_GRAD_MSG)


def _test_batched_grad_forward_ad(func, inputs):
    """Two tangents at once under vmap give those of two runs."""
    from . import forward_ad

    for number, given in enumerate(inputs):
        if not (is_tensor_like(given) and given.requires_grad and _is_float_or_complex_tensor(given)):
            continue

        def jvp(tangent, number=number, given=given):
            with forward_ad.dual_level():
                dual = forward_ad.make_dual(given.detach(), tangent)
                arguments = [t.detach() if is_tensor_like(t) else t for t in inputs]
                arguments[number] = dual
                outputs = [forward_ad.unpack_dual(o) for o in _as_tuple(func(*arguments)) if o is not None]
                return tuple([_zeros_without_memory(primal) if t is None else t for primal, t in outputs])

        _compare_batched(jvp, [at.randn_like(given) for _ in range(2)], None, FAILED_BATCHED_GRAD_MSG_FWD_AD)


def _test_backward_mul_by_grad_output(outputs, inputs, masked):
    """Gradients of zeros for all outputs give zeros, of the inputs' layout, dtype, device and size."""
    tensors = list(_iter_tensors(inputs, True))
    if not tensors:
        raise GradcheckError("no Tensors requiring grad found in input")
    zeros = [at.zeros_like(o, memory_format=contiguous_format) for o in outputs]
    for g, t in zip(_grad(outputs, tensors, zeros, allow_unused=True), tensors):
        if g is None:
            continue
        if g.layout is not strided:
            _check_sparse_gradient(g, t)
            g, t = g.to_dense(), t.to_dense()
        if not (at.allclose(g, at.zeros_like(g)) if masked else g.eq(0).all()):
            raise GradcheckError("backward not multiplied by grad_output")
        for what, one, other in (
            ("type", g.dtype, t.dtype),
            ("device", g.device, t.device),
            ("size", g.size(), t.size()),
        ):
            if one != other:
                raise GradcheckError(f"grad is incorrect {what}")


def _check_sparse_gradient(g, t):
    if g.layout != t.layout:
        raise GradcheckError(f"grad is incorrect layout ({g.layout} is not {t.layout})")
    for what in ("sparse_dim", "dense_dim"):
        one, other = getattr(g, what)(), getattr(t, what)()
        if one != other:
            raise GradcheckError(f"grad is sparse tensor, but has incorrect {what} {one}, expected {other}")


def _test_undefined_backward_mode(func, outputs, inputs):
    """Outputs that receive no gradient at all, all of them and each alone, count as zeros."""
    tensors = list(_iter_tensors(inputs, True))
    if not tensors:
        raise GradcheckError("no Tensors requiring grad found in input")
    fresh = [o for o in _differentiable_outputs(func(*inputs)) if isinstance(o, TensorImpl)]
    _check_undefined_grads([_undefined(o) for o in fresh], tensors)
    for number in range(len(outputs) if len(fresh) > 1 else 0):
        fresh = _differentiable_outputs(func(*inputs))
        _check_undefined_grads([_undefined(o) if i == number else o for i, o in enumerate(fresh)], tensors)


def _undefined(t):
    """`t` behind a node that keeps its gradient back."""
    return UndefinedGrad()(t)


def _check_undefined_grads(outputs, tensors):
    zeros = [at.zeros_like(o, memory_format=contiguous_format) for o in outputs]
    where = 'Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
    try:
        grads = _grad(outputs, tensors, zeros, allow_unused=True)
    except RuntimeError as error:
        _warn_of_undefined_check()
        raise GradcheckError(f"Expected backward function to handle undefined output grads. {where}") from error
    if any(g is not None and not g.eq(0).all() for g in grads):
        _warn_of_undefined_check()
        raise GradcheckError(
            f"Expected all input grads to be undefined or zero when all output grads are undefined or zero. {where}"
        )


def _warn_of_undefined_check():
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break existing "
        'callers of this function. If this is true for you, you can call this function with "check_undefined_grad=False" to '
        "disable the feature",
        stacklevel=3,
    )


def _test_undefined_forward_mode(func, outputs, inputs):
    """An input without a tangent is one with a tangent of zeros."""
    from . import forward_ad

    tensors = [t for t in inputs if is_tensor_like(t) and t.requires_grad]
    _, all_u = _make_vectors(tensors, outputs, use_forward_ad=True)
    with forward_ad.dual_level():
        duals, tangents = _dual_inputs(inputs)
        for tangent, u in zip(tangents, all_u):
            tangent.copy_(u.view_as(tangent))
        for i, t in enumerate(inputs):
            if not (is_tensor_like(t) and t.requires_grad):
                continue
            zero = forward_ad.make_dual(t.detach(), at.zeros_like(t))
            with_zeros = _output_tangents(func, [*duals[:i], zero, *duals[i + 1 :]])
            without = _output_tangents(func, [*duals[:i], t.detach(), *duals[i + 1 :]])
            for number, (one, other) in enumerate(zip(with_zeros, without)):
                if one is not None and other is not None and not at.allclose(one, other):
                    raise GradcheckError(
                        "Mismatch in tangent values for output with index: ",
                        number,
                        " when input: ",
                        t,
                        " has an undefined tangent value. ",
                        " Got: ",
                        one,
                        " but expected: ",
                        other,
                    )


# --------------------------------------------------------------------------------------------------------- shared parts


def _check_inputs(inputs):
    any_requires_grad = False
    for i, t in enumerate(inputs):
        if not (is_tensor_like(t) and t.requires_grad):
            continue
        any_requires_grad = True
        if t.dtype not in (float64, complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will likely fail "
                "if all the inputs are not of double precision floating point or complex. ",
                stacklevel=3,
            )
        content = t._values() if t.is_sparse else t
        if not all(step > 0 or n <= 1 for step, n in zip(content.stride(), content.size())):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able "
                "to compute the numerical gradients correctly. You should call .contiguous on the input before passing it to "
                "gradcheck."
            )
    if not any_requires_grad:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


def _check_outputs(outputs):
    if any(isinstance(o, TensorImpl) and o.layout is sparse_coo for o in outputs):
        raise ValueError(
            "Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output of fn for gradcheck."
        )


def _as_tuple(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _differentiable_outputs(outputs):
    return tuple([o for o in _as_tuple(outputs) if o.requires_grad])


def _is_float_or_complex_tensor(value):
    return is_tensor_like(value) and (value.is_floating_point() or value.is_complex())


def _iter_tensors(value, only_requiring_grad=False):
    """The tensors in nested iterables."""
    if is_tensor_like(value):
        if value.requires_grad or not only_requiring_grad:
            yield value
    elif hasattr(value, "__iter__") and not isinstance(value, str):
        for element in value:
            yield from _iter_tensors(element, only_requiring_grad)


def _allocate_jacobians_with_inputs(tensors, width):
    floating = filter(_is_float_or_complex_tensor, tensors)
    return tuple([at.zeros((t.numel(), width), dtype=t.dtype, device=t.device) for t in floating])


def _allocate_jacobians_with_outputs(outputs, height, dtype=None):
    floating = filter(_is_float_or_complex_tensor, outputs)
    return tuple([at.zeros((height, o.numel()), dtype=dtype or o.dtype, device=o.device) for o in floating])


def _densify(value):
    """Sparse tensors with all their elements: those that they did not hold are zeros that they hold."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_densify, value))
    if not is_tensor_like(value) or value.layout is not sparse_coo:
        return value
    count = value.sparse_dim()
    everywhere = at.ones(value.shape[:count], device=value.device).nonzero().t()
    held = value.detach().to_dense().reshape((-1, *value.shape[count:]))
    made = at.sparse_coo_tensor(everywhere, held, value.shape)
    return made._coalesced_(True).requires_grad_(value.requires_grad)
