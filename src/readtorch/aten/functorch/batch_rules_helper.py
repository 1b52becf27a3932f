"""What batching rules are written with: see Note [ Batching rules ].

In PyTorch: `aten/src/ATen/functorch/BatchRulesHelper.cpp`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.aten.dispatcher import registry
from readtorch.aten.functions import at
from readtorch.c10.dispatch_key import BATCHED, CPU, VMAP_MODE
from readtorch.c10.local_dispatch_key_set import tls
from readtorch.c10.tensor_impl import TensorImpl
from readtorch.c10.wrap_dim import wrap_dim

from .batched_fallback import loop_over_examples
from .gen_vmap_plumbing import plumbed
from .vmap_interpreter import interposed

# Full name of an operator -> its batching rule. decompositions: -> function that takes the operator's arguments and calls other
# operators, under the same vmap. makers: -> function that makes the kernel from the operator.
rules, decompositions, makers = {}, {}, {}
POINTWISE = "pointwise"  # in `makers`: what serves every operator that has a scalar function


def batch_rule(*names):
    """Decorator: the batching rule of the operators with these names ("sum.dim_IntList"), which belong to aten unless they say."""

    def register(rule):
        for name in names:
            rules[_full(name)] = rule
        return rule

    return register


def decomposition(*names):
    """Decorator: under vmap the function is called in the operators' place, with their arguments."""

    def register(function):
        for name in names:
            decompositions[_full(name)] = function
        return function

    return register


def rule_for(make, names):
    """Each of the operators has the batching rule `make(operator)`. names: a text with spaces between them."""
    for name in names.split():
        makers[_full(name)] = make


def _full(name):
    return name if "::" in name else f"aten::{name}"


# What autograd's own vmap has a decomposition for, `torch.vmap` none: see legacy_batching_registrations.py.
REFUSING = {"aten::_make_dual", "aten::_unpack_dual", "aten::_fw_primal"}

# ---------------------------------------------------------------------------------------------------- dimensions


def logical_rank(t, bdim):
    """How many dimensions an example has."""
    return t._array.ndim - (bdim is not None)


def to_front(t, bdim):
    """The batch with its dimension in front; a tensor that is not batched as it is."""
    return t if not bdim else at.movedim(t, bdim, 0)


def with_bdim(t, bdim, batch_size):
    """The batch with its dimension in front, which is made by expanding if there is none."""
    return to_front(t, bdim) if bdim is not None else at.expand(at.unsqueeze(t, 0), (batch_size, *t._array.shape))


def padded(t, bdim, rank):
    """The batch in front, and examples of so many dimensions: new ones of size 1 come behind the batch's."""
    if bdim is None:
        return t
    t = to_front(t, bdim)
    missing = rank + 1 - t._array.ndim
    if missing <= 0:
        return t
    shape = t._array.shape
    return (
        at.view(t, (shape[0], *[1] * missing, *shape[1:])) if t._array.flags.c_contiguous else _unsqueezed(t, missing)
    )


def _unsqueezed(t, count):
    for _ in range(count):
        t = at.unsqueeze(t, 1)
    return t


def physical(dim, rank):
    """Dimension `dim` of examples with so many dimensions, in a batch with its dimension in front."""
    return wrap_dim(dim, rank) + 1


def batch_size_of(flat):
    """How many examples: of (tensor, bdim) pairs among a rule's arguments."""
    for t, bdim in zip(flat, flat[1:]):
        if type(bdim) is int and hasattr(t, "_array"):
            return t._array.shape[bdim]


def reshape_dim_into(source, target, t):
    """`t` with dimension `source` merged into dimension `target` of the others, which becomes as many times as long."""
    rank = t._array.ndim
    source, target = wrap_dim(source, rank), wrap_dim(target, rank - 1)
    moved = at.movedim(t, source, target)
    shape = moved._array.shape
    return at.reshape(moved, (*shape[:target], shape[target] * shape[target + 1], *shape[target + 2 :]))


def reshape_dim_outof(dim, size, t):
    """`t` with dimension `dim` split in two, the first of which has this size."""
    shape = t._array.shape
    dim = wrap_dim(dim, len(shape))
    rest = shape[dim] // size if size else 0
    return at.reshape(t, (*shape[:dim], size, rest, *shape[dim + 1 :]))


# ------------------------------------------------------------------------------------------------------ families


def vmap_support(names):
    """Decorator: `rule(call, …)` is the batching rule of these operators; `call` is the operator. It returns the results, and one
    batch dimension for all, or a tuple of them.
    """

    def register(rule):
        def make(operator):
            return plumbed(operator, lambda *flat: paired(*rule(operator.call, *flat)))

        rule_for(make, names)
        return rule

    return register


def paired(results, bdim):
    """Results as a batching rule returns them: each with its batch dimension behind it."""
    if results is None or isinstance(results, TensorImpl):
        return results, bdim
    bdims = bdim if type(bdim) is tuple else (bdim,) * len(results)
    return [part for pair in zip(results, bdims) for part in pair]


def changed(operator, flat, change):
    """The operator's arguments, of a rule's: with `change(tensor, bdim)` for each tensor that is there."""
    arguments, flat = [], iter(flat)
    for a in operator.schema.arguments:
        value = next(flat)
        if a.type.is_tensor:
            bdim = next(flat)
            value = value if value is None else change(value, bdim)
        arguments.append(value)
    return arguments


def existing_bdim(operator):
    """For an operator whose tensors have a batch dimension in front anyway: the new one is merged into it.

    In PyTorch: EXISTING_BDIM_ALL_BOXED.
    """

    def rule(*flat):
        size = batch_size_of(flat)
        results = operator.call(
            *changed(operator, flat, lambda t, bdim: reshape_dim_into(0, 0, with_bdim(t, bdim, size)))
        )
        if len(operator.schema.returns) == 1:
            return reshape_dim_outof(0, size, results), 0
        return paired([r if r is None else reshape_dim_outof(0, size, r) for r in results], 0)

    return plumbed(operator, rule)


# ------------------------------------------------------------------------------------------------------ kernels


def make_batched_kernel(operator, keys):
    """The kernel of any operator at FuncTorchBatched: its rule, its decomposition, what the build composes it of, else a loop."""
    name = operator.name
    if name in rules:
        return plumbed(operator, rules[name])
    if name in decompositions:
        return decompositions[name]
    if name in makers:
        return makers[name](operator)
    if operator.composite is not None:
        return operator.composite
    general = pointwise_or_in_place(operator)
    return loop_over_examples(operator) if general is None else general


def pointwise_or_in_place(operator):
    """The kernel that an operator has because it is pointwise, or is another's form in place; None if it is neither."""
    functional = operator.variant_of or operator
    if operator.schema.is_out:
        return None
    if functional.scalar_function is not None or takes_a_number(operator):
        return makers[POINTWISE](operator)
    if operator.schema.is_inplace and operator.variant_of is not None:
        return computed_then_copied(operator)
    if operator.serves_every_backend():
        return operator.kernels[CPU]
    return None


def takes_a_number(operator):
    """Whether it is the form of a pointwise operator in which a number stands for a tensor: "add.Scalar", "pow.Scalar"."""
    schema = operator.schema
    tensors = [a for a in schema.arguments if a.type.is_tensor]
    return "scalar" in (schema.overload or "").lower() and len(tensors) == 1 and not schema.is_inplace


def computed_then_copied(operator):
    """An operator in place by its functional form, and `copy_`."""
    functional = operator.variant_of

    def in_place(self, *arguments):
        return at.copy_(self, functional.call(self, *arguments))

    return in_place


def has_batching_rule(operator, key):
    """Whether an operator has a rule of its own under vmap, at FuncTorchBatched or, for random numbers, at FuncTorchVmapMode."""
    if key == VMAP_MODE:
        return operator in interposed
    name = operator.name
    if key != BATCHED or name in REFUSING or operator.composite is not None and name not in decompositions:
        return False
    has_one = name in rules or name in decompositions or name in makers or pointwise_or_in_place(operator) is not None
    return has_one and operator not in interposed


def batched_kernels(name):
    """By which way an operator goes under vmap, for tests: "rule", "decomposition", "composite", "pointwise" or "fallback"."""
    operator = registry[name]
    if name in rules or name in makers:
        return "rule"
    if name in decompositions:
        return "decomposition"
    if operator.composite is not None:
        return "composite"
    return "fallback" if pointwise_or_in_place(operator) is None else "pointwise"


def current_layer():
    """The vmap that a decomposition runs under."""
    return tls.functorch[-1]


def is_batched_here(t):
    """Whether a tensor is batched by the vmap that a decomposition runs under."""
    return bool(t._keys & BATCHED) and t._storage_impl.layer is tls.functorch[-1]
