"""Operators that make what others write: `zero` for `zero_`, `copy` for `copy_`, `_fused_adam` for `_fused_adam_`, for compilers,
which want no writes.

Each copies what would be written to, lets the writing operator write to the copies, and returns them behind the results that the
operator has anyway. One whose name has no underscore at its end is called `…_functional`.

In PyTorch: `torchgen/native_function_generation.py`, `gen_composite_functional_kernel`.
"""

import re

from readtorch.aten.dispatcher import NOT_IMPLEMENTED, registry
from readtorch.aten.native_function import below_autograd, native_function
from readtorch.aten.register_dispatch_key import any_device

from .activation import rrelu_with_noise_backward
from .copy import clone

HAND_WRITTEN = {
    "normal_": "normal_functional",
    "rrelu_with_noise_": "rrelu_with_noise_functional",
}  # in native_functions.yaml
WITHOUT = (
    "_sobol_engine_initialize_state_",
    "_sobol_engine_scramble_",
    "_sobol_engine_ff_",
)  # which PyTorch gives none


WITHOUT_FORMULA = ("copy_", *HAND_WRITTEN)  # that of copy_ says where a write goes, and this one writes nowhere


def functional_name(schema):
    if schema.name in HAND_WRITTEN:
        return HAND_WRITTEN[schema.name]
    return schema.name.removesuffix("_") if schema.name.endswith("_") else f"{schema.name}_functional"


def signature(schema):
    return [(a.name, a.type.base, a.type.is_list) for a in schema.arguments]


def written(schema):
    return [a for a in schema.arguments if a.type.writes]


def functional_text(schema):
    """The schema of the operator that makes what this one writes."""
    overload = f".{schema.overload}" if schema.overload else ""
    arguments = re.sub(r"\(\w!\)", "", schema.text[schema.text.index("(") : schema.text.rindex(" -> ")])
    own = [f"{r.type} {r.name}" if r.name else str(r.type) for r in schema.returns if not r.type.writes]
    made = [re.sub(r"\(\w!\)", "", f"{a.type} {a.name}_out") for a in written(schema)]
    if schema.is_inplace and not schema.arguments[0].type.is_list:
        made[0] = "Tensor"
    results = ", ".join(own + made)
    return f"{functional_name(schema)}{overload}{arguments} -> {results if len(own + made) == 1 else f'({results})'}"


def functional_form(operator):
    """Declare it."""
    schema = operator.schema
    places = [i for i, a in enumerate(schema.arguments) if a.type.writes]
    functional = native_function(functional_text(schema), "")

    @functional.kernel
    @any_device
    def copy_then_write(*arguments):
        arguments = list(arguments)
        with below_autograd():
            for i in places:
                arguments[i] = copies(arguments[i])
            results = operator.call(*arguments)
        made = own_results(schema, results) + [arguments[i] for i in places]
        return made[0] if len(made) == 1 else tuple(made)

    copy_then_write.made_of = operator
    functional.backward(
        NOT_IMPLEMENTED if schema.name in WITHOUT_FORMULA or operator.derivative is None else operator.derivative
    )


def own_results(schema, results):
    """What an operator returns besides the tensors that it has written to."""
    if not schema.returns or schema.returns[0].type.writes:
        return []
    return [results] if len(schema.returns) == 1 else list(results)


def copies(value):
    if value is None:
        return None
    return [clone.call(t, None) for t in value] if isinstance(value, list | tuple) else clone.call(value, None)


def is_missing(operator, signatures):
    """Whether an operator writes, is no out= form and no composition, and has no form that does not write."""
    schema = operator.schema
    composed = operator.composite is not None and not schema.name.startswith("_foreach_")
    if not written(schema) or schema.is_out or composed or schema.name in WITHOUT:
        return False
    return (schema.name.removesuffix("_"), signature(schema)) not in signatures


_signatures = [(o.schema.name, signature(o.schema)) for o in registry.values() if not written(o.schema)]
for _operator in [o for o in registry.values() if is_missing(o, _signatures)]:
    if f"aten::{functional_name(_operator.schema)}" not in registry:
        functional_form(_operator)


class RreluWithNoiseFunctionalBackward0:
    """With the noise that was given, as in PyTorch's `derivatives.yaml`, and not with that of the second result."""

    output_differentiability = [True, False]

    def self(grad, self, noise, lower, upper, training):
        return rrelu_with_noise_backward.call(grad, self, noise, lower, upper, training, False)


registry["aten::rrelu_with_noise_functional"].backward(RreluWithNoiseFunctionalBackward0)
