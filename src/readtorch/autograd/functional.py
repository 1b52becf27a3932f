"""Products with the Jacobian and the Hessian of a function, and the matrices themselves.

In PyTorch: `torch/autograd/functional.py`. Explained in the chapter "Autograd".

Note [ Forward products from reverse mode ]
Backward computes v^T J. It is linear in v, so differentiating it with respect to v gives J^T; one more product with u gives
J u. That is how `jvp` and `hvp` work here: two backwards, the first through a v of zeros whose value does not matter.
"""

from readtorch.aten.functions import at
from readtorch.c10.tensor_impl import TensorImpl

from .grad_mode import enable_grad, is_grad_enabled, set_grad_enabled

__all__ = ["vjp", "jvp", "jacobian", "hessian", "hvp", "vhp"]


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """`(func(inputs), v^T J)`: the outputs and the vector-Jacobian product. `v` has the outputs' shapes."""
    with enable_grad():
        call = _Call(func, inputs, "vjp", create_graph, strict)
        v = call.vector(v, call.outputs, call.many_outputs, "user-provided function returns")
    with set_grad_enabled(create_graph or is_grad_enabled()):
        product = _grad(call.outputs, call.inputs, v, create_graph)
        product = _fill_zeros(product, call.inputs, strict, create_graph, "back")
    return call.result(product, call.many_inputs)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """`(func(inputs), J v)`; see Note [ Forward products from reverse mode ]. `v` has the inputs' shapes."""
    with enable_grad():
        call = _Call(func, inputs, "jvp", create_graph, strict, early_v=v)
        dummies = tuple([at.zeros_like(out).requires_grad_() for out in call.outputs])
        grad_inputs = _grad(call.outputs, call.inputs, dummies, create_graph=True)
        _check_requires_grad(grad_inputs, "grad_inputs", strict)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        product = _grad(grad_inputs, dummies, call.v, create_graph)
        product = _fill_zeros(product, call.outputs, strict, create_graph, "back_trick")
    return call.result(product, call.many_outputs)


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """`(func(inputs), v^T H)` for a function with one scalar output."""
    with enable_grad():
        call = _Call(func, inputs, "vhp", create_graph, strict, early_v=v, scalar=True)
        jacobian_ = _grad(call.outputs, call.inputs, None, create_graph=True)
        _check_requires_grad(jacobian_, "jacobian", strict)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        product = _grad(jacobian_, call.inputs, call.v, create_graph)
        product = _fill_zeros(product, call.inputs, strict, create_graph, "double_back")
    return call.result(product, call.many_inputs)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """`(func(inputs), H v)` for a function with one scalar output; `vhp` is faster, and equal where H is symmetric."""
    with enable_grad():
        call = _Call(func, inputs, "hvp", create_graph, strict, early_v=v, scalar=True)
        jacobian_ = _grad(call.outputs, call.inputs, None, create_graph=True)
        _check_requires_grad(jacobian_, "jacobian", strict)
        dummies = tuple([at.zeros_like(i).requires_grad_() for i in call.inputs])
        double_back = _grad(jacobian_, call.inputs, dummies, create_graph=True)
        _check_requires_grad(jacobian_, "hessian", strict)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        product = _grad(double_back, dummies, call.v, create_graph)
        product = _fill_zeros(product, call.inputs, strict, create_graph, "double_back_trick")
    return call.result(product, call.many_inputs)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """The Jacobian: for each output and input a tensor of shape output.shape + input.shape (nested as they are tuples).

    vectorize: all rows by one backward under vmap. strategy "forward-mode", which needs it: all columns by dual numbers.
    strict: RuntimeError for an output that does not depend on an input.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                "torch.autograd.functional.jacobian: `create_graph=True` and "
                '`strategy="forward-mode"` are not supported together (yet). Please '
                'either set `create_graph=False` or `strategy="reverse-mode"`.'
            )
        return _jacfwd(func, inputs, strict, vectorize)
    with enable_grad():
        call = _Call(func, inputs, "jacobian", create_graph, strict)
        if vectorize and strict:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not "
                "supported together. Please either set `strict=False` or `vectorize=False`."
            )
        blocks = (
            _blocks_at_once(call) if vectorize else [_blocks_of(call, i, o, strict) for i, o in enumerate(call.outputs)]
        )
    return _nested(_detach(tuple(blocks), create_graph), call.many_outputs, call.many_inputs)


def _nested(blocks, many_outputs, many_inputs):
    """Blocks by output and input, without the levels that the caller's function has not."""
    if not many_inputs:
        blocks = tuple([row[0] for row in blocks])
    return blocks if many_outputs else blocks[0]


def _blocks_of(call, i, output, strict):
    """The Jacobian of one output with respect to each input: one backward an element."""
    rows = [[] for _ in call.inputs]
    for j in range(output.numel()):
        grads = _grad((output.reshape(-1)[j],), call.inputs, None, call.create_graph, retain_graph=True)
        for k, (grad, given) in enumerate(zip(grads, call.inputs)):
            if grad is None and strict:
                raise RuntimeError(
                    f"Output {i} of the user-provided function is independent of input {k}. "
                    "This is not allowed in strict mode."
                )
            if grad is not None and strict and call.create_graph and not grad.requires_grad:
                raise RuntimeError(
                    "The jacobian of the user-provided function is independent of input "
                    f"{i}. This is not allowed in strict mode when create_graph=True."
                )
            rows[k].append(at.zeros_like(given) if grad is None else grad)
    return tuple([at.stack(row, 0).view(output.size() + given.size()) for row, given in zip(rows, call.inputs)])


def _blocks_at_once(call):
    """All rows by one backward.

    The outputs, flat and one behind the other, have N elements. The N gradients to start from are the rows of an identity
    matrix, of which each output gets its columns; vmap runs backward for all of them at a time.
    """
    counts = [o.numel() for o in call.outputs]
    flat = tuple([o.reshape(-1) for o in call.outputs])
    basis = _construct_standard_basis_for(call.outputs, counts)
    rows = _grad(flat, call.inputs, basis, call.create_graph, is_grads_batched=True)
    by_input = []
    for row, given in zip(rows, call.inputs):
        row = at.zeros_like(given).expand((sum(counts), *given.shape)) if row is None else row
        pieces = row.split(tuple(counts), dim=0)
        by_input.append([piece.view(o.shape + given.shape) for piece, o in zip(pieces, call.outputs)])
    return tuple(zip(*by_input))


def _construct_standard_basis_for(tensors, tensor_numels):
    """The columns of an identity matrix, as many as each tensor has elements, of its dtype and device."""
    begin, total, chunks = 0, sum(tensor_numels), []
    for t, count in zip(tensors, tensor_numels):
        chunks.append(t.new_zeros(total, count))
        chunks[-1].diagonal(begin).fill_(1)
        begin -= count
    return tuple(chunks)


def _jacfwd(func, inputs, strict=False, vectorize=False):
    """The Jacobian by forward mode: each element of the inputs has a tangent of a one in turn, all at a time by vmap."""
    if strict:
        raise RuntimeError(
            'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported together '
            '(yet). Please either set `strict=False` or `strategy="reverse-mode"`.'
        )
    many_inputs, inputs = _as_tuple(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for `vectorize=True`."
        )
    from readtorch._vmap_internals import _vmap

    from . import forward_ad

    counts = [t.numel() for t in inputs]
    seen = []  # whether the function returned a tuple, and what it returned

    def jvp(tangents):
        with forward_ad.dual_level():
            duals = [forward_ad.make_dual(t, tangent.view_as(t)) for t, tangent in zip(inputs, tangents)]
            many_outputs, outputs = _as_tuple(func(*duals), "outputs", None)
            pairs = [forward_ad.unpack_dual(o) for o in outputs]
            seen.append((many_outputs, [primal for primal, _ in pairs]))
            return tuple([at.zeros_like(primal) if tangent is None else tangent for primal, tangent in pairs])

    columns = _vmap(jvp)(_construct_standard_basis_for(inputs, counts))
    many_outputs, outputs = seen[0]
    blocks = []
    for column, o in zip(columns, outputs):
        pieces = column.split(tuple(counts), dim=0)
        last = [piece.permute(*range(1, piece.ndim), 0) for piece in pieces]
        blocks.append([piece.reshape((*o.shape, *t.shape)) for piece, t in zip(last, inputs)])
    return _nested(blocks, many_outputs, many_inputs)


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The matrix of second derivatives of a function with one scalar output: the Jacobian of its Jacobian.

    outer_jacobian_strategy: the mode of the second derivative ("forward-mode" needs `vectorize`); the first is backward's.
    """
    many, given = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar_function(*arguments):
        output = func(*arguments)
        is_tuple, outputs = _as_tuple(output, "outputs of the user-provided function", "hessian")
        _check_requires_grad(outputs, "outputs", strict)
        _check_scalar(outputs, is_tuple, "hessian")
        return outputs[0].squeeze()

    def gradient_function(*arguments):
        if outer_jacobian_strategy == "forward-mode":  # or jacobian would detach them, and their tangents with it
            arguments = tuple([t.requires_grad_(True) for t in arguments])
        gradient = jacobian(scalar_function, arguments, create_graph=True)
        _check_requires_grad(gradient, "jacobian", strict)
        return gradient

    blocks = jacobian(
        gradient_function,
        given,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )
    return _nested(blocks, many, many)


# -------------------------------------------------------------------------------------------------- shared parts


class _Call:
    """One call of the user's function on inputs prepared for it, everything checked and as tuples."""

    def __init__(self, func, inputs, name, create_graph, strict, early_v=None, scalar=False):
        self.name, self.create_graph = name, create_graph
        self.many_inputs, given = _as_tuple(inputs, "inputs", name)
        self.inputs = _prepare(given, create_graph, need_graph=True)
        if name in ("jvp", "vhp", "hvp"):
            self.v = self.vector(early_v, self.inputs, self.many_inputs, "input to the user-provided function is")
        outputs = func(*self.inputs)
        self.many_outputs, self.outputs = _as_tuple(outputs, "outputs of the user-provided function", name)
        _check_requires_grad(self.outputs, "outputs", strict)
        if scalar:
            _check_scalar(self.outputs, self.many_outputs, name)

    def vector(self, v, others, many, subject):
        """`v` as a tuple of tensors that fit `others`."""
        if v is None:
            if len(others) != 1 or others[0].numel() != 1:
                raise RuntimeError(
                    f"The vector v can only be None if the {subject} a single Tensor with a single element."
                )
            return None
        _, v = _as_tuple(v, "v", self.name)
        v = _prepare(v, self.create_graph, need_graph=False)
        _check_vector(v, others, many)
        return v

    def result(self, product, many):
        outputs, product = _detach(self.outputs, self.create_graph), _detach(product, self.create_graph)
        return outputs if self.many_outputs else outputs[0], product if many else product[0]


def _as_tuple(value, what, function):
    """(whether it is a tuple, the tensors). In PyTorch lists are taken where no name of a function is given."""
    if function is None and isinstance(value, list):
        return True, tuple(value)
    many = isinstance(value, tuple)
    values = value if many else (value,)
    for i, element in enumerate(values):
        if not isinstance(element, TensorImpl):
            subject = f" value at index {i} has type" if many else f" given {what} has type"
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors "
                f"but the{subject} {type(element)}."
            )
    return many, values


def _prepare(tensors, create_graph, need_graph):
    """Tensors to differentiate at: views if their own history matters, else fresh leaves."""
    prepared = []
    for t in tensors:
        if create_graph and t.requires_grad:
            prepared.append(t.clone() if t.is_sparse else t.view_as(t))
        else:
            prepared.append(t.detach().requires_grad_(need_graph))
    return tuple(prepared)


def _detach(values, create_graph):
    if create_graph:
        return values
    return tuple([v.detach() if isinstance(v, TensorImpl) else _detach(v, False) for v in values])


def _grad(outputs, inputs, vectors, create_graph, retain_graph=None, is_grads_batched=False):
    """`autograd.grad` over those outputs that have a graph."""
    from . import grad

    vectors = (None,) * len(outputs) if vectors is None else vectors
    pairs = [(o, v) for o, v in zip(outputs, vectors) if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    return grad(
        tuple(o for o, _ in pairs),
        inputs,
        tuple(v for _, v in pairs),
        allow_unused=True,
        create_graph=create_graph,
        retain_graph=retain_graph,
        is_grads_batched=is_grads_batched,
    )


def _check_scalar(outputs, many, name):
    if many:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")


def _check_vector(v, others, many):
    if len(v) != len(others):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(others)} but got {len(v)}."
            if many
            else "The given v should contain a single Tensor."
        )
    for i, (vector, other) in enumerate(zip(v, others)):
        if vector.shape != other.shape:
            raise RuntimeError(
                f"{f'Entry {i} in ' if many else ''}v has invalid size: should be {other.shape} but got {vector.shape}."
            )


_NOT_STRICT = {
    "outputs": "Output {i} of the user-provided function does not require gradients. The outputs must be "
    "computed in a differentiable manner from the input when running in strict mode.",
    "grad_inputs": "The gradient with respect to input {i} is independent of the inputs of the "
    "user-provided function. This is not allowed in strict mode.",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function with "
    "respect to input {i} is independent of the input. This is not allowed in strict mode. You "
    "should ensure that your function is twice differentiable and that the jacobian depends on "
    "the inputs (this would be violated by a linear function for example).",
    "hessian": "The hessian of the user-provided function with respect to input {i} is independent of the "
    "input. This is not allowed in strict mode. You should ensure that your function is thrice "
    "differentiable and that the hessian depends on the inputs.",
}


def _check_requires_grad(tensors, kind, strict):
    if not strict:
        return
    for i, t in enumerate((tensors,) if isinstance(tensors, TensorImpl) else tensors):
        if t is None:
            raise RuntimeError(
                f"The output of the user-provided function is independent of input {i}. This "
                "is not allowed in strict mode."
            )
        if not t.requires_grad:
            raise RuntimeError(_NOT_STRICT[kind].format(i=i))


_INDEPENDENT = {
    "back": "The output of the user-provided function is independent of input {i}. This is not allowed in strict mode.",
    "back_trick": "The gradient with respect to the input is independent of entry {i} in the grad_outputs "
    "when using the double backward trick to compute forward mode gradients. This is not "
    "allowed in strict mode.",
    "double_back": "The jacobian of the user-provided function is independent of input {i}. This is not "
    "allowed in strict mode.",
    "double_back_trick": "The hessian of the user-provided function is independent of entry {i} in the "
    "grad_jacobian. This is not allowed in strict mode as it prevents from using the "
    "double backward trick to replace forward mode AD.",
}


def _fill_zeros(grads, references, strict, create_graph, stage):
    """Zeros where no gradient arrived; in strict mode an error."""
    filled = []
    for i, (grad, reference) in enumerate(zip(grads, references)):
        if grad is None and strict:
            raise RuntimeError(_INDEPENDENT[stage].format(i=i))
        if grad is not None and strict and create_graph and not grad.requires_grad:
            what = "hessian" if "double" in stage else "jacobian"
            raise RuntimeError(
                f"The {what} of the user-provided function is independent of input {i}. This is not allowed in strict mode when "
                "create_graph=True."
            )
        filled.append(at.zeros_like(reference) if grad is None else grad)
    return tuple(filled)
