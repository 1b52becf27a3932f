"""Batching rules of pointwise operators: with the batches in front and ranks made equal, broadcasting does the rest.

In PyTorch: `aten/src/ATen/functorch/BatchRulesBinaryOps.cpp`, `aten/src/ATen/functorch/BatchRulesUnaryOps.cpp`. Explained in the
chapter "Forward mode, vmap and torch.func".
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.c10.dispatch_key import WRAPPED_NUMBER
from readtorch.c10.tensor_impl import dtype_of, wrap

from .batch_rules_helper import POINTWISE, batch_rule, logical_rank, makers, padded, rule_for
from .batched_fallback import check_inplace
from .gen_vmap_plumbing import plumbed


def pointwise(operator):
    """The kernel of a pointwise operator, functional or in place, of any number of tensors."""
    places = tensor_places(operator)
    if operator.schema.is_inplace:
        return plumbed(operator, _in_place(operator, places))
    return plumbed(operator, _unary(operator) if len(places) == 1 else _of_several(operator, places))


makers[POINTWISE] = pointwise


def tensor_places(operator):
    """The positions of the tensors among a rule's arguments; behind each stands its batch dimension."""
    places, position = [], 0
    for a in operator.schema.arguments:
        if a.type.is_tensor:
            places.append(position)
            position += 1
        position += 1
    return places


def _unary(operator):
    """With one tensor nothing has to be moved."""
    call, place = operator.call, tensor_places(operator)[0]
    several = len(operator.schema.returns) > 1

    def rule(*flat):
        bdim = flat[place + 1]
        result = call(*flat[: place + 1], *flat[place + 2 :])
        return [part for r in result for part in (r, bdim)] if several else (result, bdim)

    return rule


def _of_several(operator, places):
    call = operator.call
    several = len(operator.schema.returns) > 1
    if [a.type.is_tensor for a in operator.schema.arguments] == [True, True]:
        return _binary(call)

    def rule(*flat):
        arguments = without_bdims(flat, places, aligned(flat, places))
        result = call(*arguments)
        return [part for r in result for part in (r, 0)] if several else (result, 0)

    return rule


def _binary(call):
    """For two tensors alone: the common cases need no moving."""

    def rule(a, a_bdim, b, b_bdim):
        if a_bdim == b_bdim and a._array.ndim == b._array.ndim:
            if a._array.ndim > 1 or a._array.dtype is b._array.dtype:
                return call(a, b), a_bdim
        elif b_bdim is None and not b._array.ndim and (a._array.ndim > 1 or a._array.dtype is b._array.dtype):
            return call(a, b), a_bdim
        a, b = aligned((a, a_bdim, b, b_bdim), (0, 2))
        return call(a, b), 0

    return rule


def aligned(flat, places):
    """The tensors with their batches in front, and as many dimensions behind these as the largest example has."""
    pairs = [(flat[i], flat[i + 1]) for i in places]
    ranks = [logical_rank(t, bdim) for t, bdim in pairs if t is not None]
    rank = max(ranks)
    if 0 in ranks or any([t is not None and t._keys & WRAPPED_NUMBER for t, _ in pairs]):
        pairs = promoted(pairs)
    return [t if t is None else padded(t, bdim, rank) for t, bdim in pairs]


def promoted(pairs):
    """Examples without dimensions count less in type promotion than those with some: they are cast before they look like these.

    In PyTorch: `handleScalarTypePromotion`.
    """
    dtypes = {dtype_of(t) for t, _ in pairs if t is not None}
    if len(dtypes) == 1:
        return pairs
    examples = [_like_example(t, bdim) for t, bdim in pairs if t is not None]
    common = examples[0].dtype
    for i, e in enumerate(examples):
        common = at.result_type(examples[0], e) if i == 1 else common
    if len(examples) > 2:
        common = _result_type_of(examples)
    return [
        (at.to(t, common), bdim) if t is not None and bdim is not None and not logical_rank(t, bdim) else (t, bdim)
        for t, bdim in pairs
    ]


def _result_type_of(examples):
    from readtorch.aten.native.tensor_iterator import result_type  # operators are loaded before rules

    return result_type(*examples)


def _like_example(t, bdim):
    """A tensor that takes part in type promotion as an example does."""
    if bdim is None:
        return t
    example = wrap(np.zeros((1,) * min(1, logical_rank(t, bdim)), t._array.dtype))
    if t._keys & WRAPPED_NUMBER:
        example._keys |= WRAPPED_NUMBER
        example._creation = t._creation
    return example


def without_bdims(flat, places, tensors):
    """A rule's arguments as the operator takes them, with these in the places of the tensors."""
    arguments, position, tensors = [], 0, iter(tensors)
    while position < len(flat):
        if position in places:
            arguments.append(next(tensors))
            position += 2
        else:
            arguments.append(flat[position])
            position += 1
    return arguments


# What PyTorch calls an in-place operator that cannot write something of each example to a tensor of all; "" where it lets the
# shapes say it.
_CALLED = dict.fromkeys(
    "sub mul div copy clamp_min clamp_max masked_fill logical_and logical_or logical_xor".split(), "inplace arithmetic"
) | dict.fromkeys("add bitwise_and bitwise_or bitwise_xor atan2 gcd lcm copysign".split(), "")


def _in_place(operator, places):
    call = operator.call
    name = _CALLED.get(operator.schema.name.removesuffix("_"), operator.schema.qualified_name)

    def rule(*flat):
        if name:
            check_inplace(operator, flat, name)
        if len(places) == 1:
            call(flat[0], *flat[2:])
            return
        pairs = [(flat[i], flat[i + 1]) for i in places]
        rank = max([logical_rank(t, bdim) for t, bdim in pairs if t is not None])
        call(*without_bdims(flat, places, [t if t is None else padded(t, bdim, rank) for t, bdim in pairs]))

    return rule


rule_for(
    pointwise,
    "clamp.Tensor clamp clamp_min.Tensor clamp_min clamp_max.Tensor clamp_max div.Tensor_mode div_.Tensor_mode bitwise_not bitwise_not_ heaviside nan_to_num "
    "nan_to_num_ frexp.Tensor mvlgamma special_airy_ai _to_copy complex polar native_dropout_backward pow.Tensor_Scalar "
    "pow_.Scalar copy_ fill_.Scalar zero_ threshold_ leaky_relu_ elu_ celu_ asinh_ acosh_ atanh_ _conj _neg_view detach alias "
    "lift_fresh _standard_gamma_grad _dirichlet_grad mse_loss_backward.pointwise rrelu_with_noise_backward "
    "fake_quantize_per_tensor_affine clamp_ clamp_.Tensor clamp_min_ clamp_min_.Tensor clamp_max_ clamp_max_.Tensor "
    "_prelu_kernel_backward log_sigmoid_forward log_sigmoid_backward fill.Scalar",
)


@batch_rule("fill_.Tensor")
def fill__tensor_batch_rule(self, self_bdim, value, value_bdim):
    check_inplace(None, (self, self_bdim), "fill_")
    at.copy_(self, padded(value, value_bdim, logical_rank(self, self_bdim)))


# A condition or a mask has no part in type promotion, though it may have no dimensions.


@batch_rule("where.self")
def where_batch_rule(condition, condition_bdim, self, self_bdim, other, other_bdim):
    rank = max(logical_rank(condition, condition_bdim), logical_rank(self, self_bdim), logical_rank(other, other_bdim))
    chosen = [padded(t, bdim, rank) for t, bdim in promoted([(self, self_bdim), (other, other_bdim)])]
    return at.where(padded(condition, condition_bdim, rank), *chosen), 0


@batch_rule("masked_fill.Scalar")
def masked_fill_batch_rule(self, self_bdim, mask, mask_bdim, value):
    rank = max(logical_rank(self, self_bdim), logical_rank(mask, mask_bdim))
    return at.masked_fill(padded(self, self_bdim, rank), padded(mask, mask_bdim, rank), value), 0


@batch_rule("masked_fill.Tensor")
def masked_fill_tensor_batch_rule(self, self_bdim, mask, mask_bdim, value, value_bdim):
    if logical_rank(value, value_bdim):
        raise RuntimeError(
            "masked_fill only supports a 0-dimensional value tensor, but got tensor with "
            f"{logical_rank(value, value_bdim)} dimension(s)."
        )
    rank = max(logical_rank(self, self_bdim), logical_rank(mask, mask_bdim))
    value = padded(value.to(self.dtype), value_bdim, rank)
    return at.where(padded(mask, mask_bdim, rank), value, padded(self, self_bdim, rank)), 0
