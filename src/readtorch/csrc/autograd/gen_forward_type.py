"""Writes what an operator's Autograd kernel does with tangents, from its schema and its forward formulas: see load_derivatives.py.

In PyTorch: a part of the text that `tools/autograd/gen_variable_type.py` writes (`emit_fw_derivatives`). Here it is a kernel around
the one that notes the call in the graph, and is made when an operator first meets a tensor that may have a tangent: only calls with
the fact TANGENT come to it. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.aten.codegen import compile_function
from readtorch.aten.dispatcher import NOT_IMPLEMENTED
from readtorch.aten.register_dispatch_key import tensors_among
from readtorch.c10.local_dispatch_key_set import AutoFwGradMode
from readtorch.c10.tensor_geometry import TensorGeometry
from readtorch.c10.tensor_impl import strides_of

from . import forward_grad
from .gen_autograd_functions import FACTS, Formulas
from .load_derivatives import forward_derivatives


def make_forward_kernel(operator, kernel):
    """The kernel that runs `kernel`, then computes the tangents of what it returned."""
    functional = operator.variant_of or operator
    if operator.schema.is_out:
        return _refusing_kernel(operator, kernel) if functional.derivative is not None else kernel
    if functional.derivative is None:
        return kernel
    if functional.derivative is NOT_IMPLEMENTED:
        return _refusing_kernel(operator, kernel)
    formulas = Formulas(operator)
    derivatives = forward_derivatives(formulas)
    if not derivatives:
        return _refusing_kernel(operator, kernel)
    names = {
        **vars(forward_grad),  # what the text calls: tangent, primal, set_tangent …
        "kernel": kernel,
        "TensorGeometry": TensorGeometry,
        "strides_of": strides_of,
        **{f"jvp_{d.name}": d.function for d in derivatives},
    }
    return compile_function(f"{operator.schema.name}_forward", forward_source(operator, formulas, derivatives), names)


def without_tangents(kernel):
    """A backend's kernel, which may call operators: autograd computes the tangents of what it returns, not of what it does."""

    def kernel_without_tangents(*arguments):
        with AutoFwGradMode(False):
            return kernel(*arguments)

    return kernel_without_tangents


def forward_source(operator, formulas, derivatives):
    """The text of a kernel for operands that may have tangents. For `mul.Tensor` it is:

        def mul_forward(self, other):
            tangent_self = tangent(self)
            tangent_other = tangent(other)
            result = kernel(self, other)
            if tangent_self is not None or tangent_other is not None:
                self_t = zero_tangent(self) if tangent_self is None else tangent_self
                other_t = zero_tangent(other) if tangent_other is None else tangent_other
                tangent_result = jvp_result(primal(self), self_t, primal(other), other_t)
            else:
                tangent_result = None
            if tangent_result is not None:
                set_tangent(result, tangent_result)
            return result

    The formulas run before any output gets its tangent, so an output is its value in them.
    """
    parameters = ", ".join(a.name for a in operator.schema.arguments)
    write = _inplace_lines if formulas.inplace else _functional_lines
    body = _tangent_lines(formulas, derivatives) + write(formulas, derivatives, f"kernel({parameters})")
    return f"def {operator.schema.name}_forward({parameters}):\n    " + "\n    ".join(body) + "\n"


def _tangent_lines(formulas, derivatives):
    asked = {name for d in derivatives for name in d.tangents}
    return [
        f"tangent_{a.name} = {'tangents' if a.type.is_list else 'tangent'}({a.name})"
        for a in formulas.arguments.values()
        if a.name in asked
    ]


def _functional_lines(formulas, derivatives, call):
    """The usual form: the outputs are new tensors, or views of the input."""
    schema = formulas.operator.schema
    whole = "result" if len(formulas.outputs) == 1 else "results"
    lines = [f"{whole} = {call}"]
    if len(formulas.outputs) > 1:
        lines.append(f"{', '.join(formulas.outputs)} = results")
    if schema.is_view:
        each = f"for t in {whole}: " if formulas.returns_list else "t = result; "
        lines.append(f"{each}inherit_forward_base(t, {schema.arguments[0].name})")
    for d in derivatives:
        lines.append(f"if {_any_tangent(formulas, d)}:")
        lines += _indented(_formula_lines(formulas, d) + [f"tangent_{d.name} = jvp_{d.name}({_values(formulas, d)})"])
        lines += ["else:", f"    tangent_{d.name} = None"]
    for d in derivatives:
        lines += _setting_lines(formulas, d)
    return lines + [f"return {whole}"]


def _setting_lines(formulas, d):
    if len(d.outputs) > 1:
        setting = [f"set_tangents(({', '.join(d.outputs)},), tangent_{d.name})"]
    elif formulas.returns_list:
        setting = [f"set_tangents(result, tangent_{d.name})"]
    else:
        setting = [f"set_tangent({d.name}, tangent_{d.name})"]
    saved = [name for name in d.outputs if formulas.saved.get(name, ("",))[0] == "output"]
    setting += [f"save_tangent({name}, 'saved_{name}')" for name in saved]
    return [f"if tangent_{d.name} is not None:"] + _indented(setting)


def _inplace_lines(formulas, derivatives, call):
    """The in-place form: what a formula asks of `self` is kept before, and its tangent is written in place, too.

    For `sin_` the kernel's text is:

        def sin__forward(self):
            tangent_self = tangent(self)
            if self._base is not None and self._view_version != self._counter[0]: check_stale(self)
            if not (tangent_self is not None): return kernel(self)
            self_t = kept_tangent(self, tangent_self)
            self_p = primal(self).clone()
            kernel(self)
            result = primal(self)
            write_tangent(self, tangent_self, jvp_result(self_t, self_p))
            return self

    An operator that has no other form writes its tangent itself: its formula gets it as it is.
    """
    (d,) = derivatives
    lines = ["if self._base is not None and self._view_version != self._counter[0]: check_stale(self)"]
    lines += [f"if not ({_any_tangent(formulas, d)}): return {call}"]
    lines += [line for line in _formula_lines(formulas, d) if not line.startswith("self_t =")]
    if "self_t" not in d.parameters:
        lines.append("tangent_self = tangent(self)")
    elif formulas.own_inplace:
        written = [
            f", tangent_{n}"
            for n in dict.fromkeys(d.tangents)
            if n != "self" and not formulas.arguments[n].type.is_list
        ]
        zeros = f"zeros_to_write(self{''.join(written[:1])})"
        lines.append(f"self_t = {zeros} if tangent_self is None else tangent_self")
    else:
        lines.append("self_t = kept_tangent(self, tangent_self)")
    if "self_p" in d.parameters:
        lines.append("self_p = primal(self).clone()")
    facts = [p for p in d.parameters if formulas.is_fact(p)]
    lines += [f"{p} = {_fact(formulas, p)}" for p in facts]
    lines += [call, "result = primal(self)"]
    lines.append(f"write_tangent(self, tangent_self, jvp_result({_values(formulas, d, inplace=True)}))")
    if formulas.saved.get("result", ("",))[0] == "output":
        lines.append("save_tangent(self, 'saved_result')")
    return lines + ["return self"]


def _any_tangent(formulas, d):
    """Whether one of the tangents that a formula asks for is there."""
    conditions = [
        f"any([t is not None for t in tangent_{name}])"
        if formulas.arguments[name].type.is_list
        else f"tangent_{name} is not None"
        for name in dict.fromkeys(d.tangents)
    ]
    return " or ".join(conditions)


def _formula_lines(formulas, d):
    """Lines that put zeros for the tangents that are not there."""
    lines = []
    for name in dict.fromkeys(d.tangents):
        if formulas.arguments[name].type.is_list:
            lines.append(f"{name}_t = tangents_or_zeros(tangent_{name}, {name})")
        else:
            lines.append(f"{name}_t = zero_tangent({name}) if tangent_{name} is None else tangent_{name}")
    return lines


def _values(formulas, d, inplace=False):
    return ", ".join([_value(formulas, parameter, inplace) for parameter in d.parameters])


def _value(formulas, parameter, inplace):
    if parameter.endswith("_p") and parameter[:-2] in formulas.arguments:
        a = formulas.arguments[parameter[:-2]]
        if inplace and a.name == "self":
            return "self_p"
        return f"primals({a.name})" if a.type.is_list else f"primal({a.name})"
    return _fact(formulas, parameter) if formulas.is_fact(parameter) and not inplace else parameter


def _fact(formulas, parameter):
    owner = max((a for a in formulas.arguments if parameter.startswith(a + "_")), key=len)
    return FACTS[parameter[len(owner) + 1 :]].format(owner)


def _indented(lines):
    return [f"    {line}" for line in lines]


# ---------------------------------------------------------------------------------------------------- refusals


def _refusing_kernel(operator, kernel):
    """For an operator with a derivative that forward mode does not have: never silently zero."""
    schema = operator.schema
    message = f"Trying to use forward AD with {schema.name}{'_out' if schema.is_out else ''} that does not support it "
    if schema.is_out:
        message += "because it is an out= function"
    else:
        message += (
            "because it has not been implemented yet.\nPlease file an issue to PyTorch at https://github.com/pytorch/pytorch/issues/"
            "new?template=feature-request.yml so that we can prioritize its implementation"
        )
        message += "." if schema.is_inplace else " or submit a PR adding the implementation to derivatives.yaml"

    def refusing_forward(*arguments):
        result = kernel(*arguments)
        if any([forward_grad.tangent(t) is not None for t in tensors_among(arguments)]):
            raise NotImplementedError(message)
        return result

    return refusing_forward
