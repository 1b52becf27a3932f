"""Reads the forward formulas of an operator: how the tangents of its outputs follow from those of its inputs.

They stand in the operator's derivative class, under the outputs' names. A formula's parameters say what it gets: `x_t` is the
tangent of the input `x`, `x_p` its value without the tangent, `result` the output; other arguments go by their own names. Two rules
serve for most operators and are written as their names.

- "auto_linear": the operator is linear in all its differentiable inputs together, so the tangent is what it makes of theirs.
- "auto_element_wise": each element of the output depends on its own element of the one input, so the Jacobian is diagonal, and the
  formula of the gradient gives the tangent as well.

In PyTorch: `tools/autograd/load_derivatives.py`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

import inspect

from .gen_autograd_functions import joint

AUTO_LINEAR = "auto_linear"
AUTO_ELEMENT_WISE = "auto_element_wise"


class ForwardDerivative:
    """A formula for the tangents of one output, or of several: its function and what it is called with."""

    def __init__(self, outputs, function, parameters):
        self.outputs = outputs
        self.function = function
        self.parameters = parameters
        self.tangents = [p[:-2] for p in parameters if p.endswith("_t")]

    @property
    def name(self):
        return "__".join(self.outputs)


def forward_derivatives(formulas):
    """The ForwardDerivatives of the operator that `formulas` describe; empty if it has none."""
    return [_read(formulas, name, rule) for name, rule in formulas.forward.items()]


def _read(formulas, name, rule):
    if rule == AUTO_LINEAR:
        return _linear(formulas, name)
    if rule == AUTO_ELEMENT_WISE:
        return _element_wise(formulas, name)
    return ForwardDerivative(joint(name), rule, list(inspect.signature(rule).parameters))


def _linear(formulas, name):
    """The operator itself, of the tangents."""
    inputs = {a.name for a in formulas.inputs}
    parameters = [f"{a}_t" if a in inputs else a for a in formulas.arguments]
    return ForwardDerivative([name], formulas.operator.call, parameters)


def _element_wise(formulas, name):
    """The formula of the gradient with the tangent for the gradient. The gradient of a complex function is that of its conjugate,
    so the tangent goes in conjugated and the result comes out so."""
    (input,) = formulas.inputs
    gradient = formulas.functions[input.name]
    wanted = formulas.parameters[input.name]
    others = [f"{input.name}_p" if p == input.name else p for p in wanted if p != "grad"]
    at_grad = wanted.index("grad") if "grad" in wanted else None

    def element_wise(tangent, *values):
        if at_grad is None:
            return gradient(*values)
        return gradient(*values[:at_grad], tangent.conj(), *values[at_grad:]).conj()

    return ForwardDerivative([name], element_wise, [f"{input.name}_t", *others])
