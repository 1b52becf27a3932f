"""Batching rules of what makes a tensor in the likeness of another.

In PyTorch: `aten/src/ATen/functorch/BatchRulesFactory.cpp`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.aten.dispatcher import registry
from readtorch.aten.functions import at

from .batch_rules_binary_ops import pointwise
from .batch_rules_helper import batch_rule, decomposition, rule_for, to_front
from .gen_vmap_plumbing import plumbed

rule_for(pointwise, "empty_like zeros_like ones_like full_like")


def of_size(operator):
    """The kernel of `new_zeros(self, size, …)` and its like: the batch is one dimension more."""

    def rule(self, self_bdim, size, *others):
        return operator.call(self, (self._array.shape[self_bdim], *size), *others), 0

    return plumbed(operator, rule)


rule_for(of_size, "new_empty new_zeros new_ones new_full")


@batch_rule("new_empty_strided")
def new_empty_strided_batch_rule(self, self_bdim, size, stride, *options):
    batch = self._array.shape[self_bdim]
    span = 1 + sum([(n - 1) * s for n, s in zip(size, stride)]) if 0 not in size else 0
    return registry["aten::new_empty_strided"].call(self, (batch, *size), (span, *stride), *options), 0


@decomposition("_has_same_storage_numel")
def has_same_storage_numel_batch_rule(self, other):
    """A batch has more room than one example, which says nothing about examples."""
    return True


@batch_rule("_new_zeros_with_same_feature_meta")
def new_zeros_with_same_feature_meta_batch_rule(self, self_bdim, other, other_bdim, self_num_batch_dims):
    """Zeros for a tangent `self` of the primal `other`: as many batches as the tangent has, examples as the primal's."""
    call = registry["aten::_new_zeros_with_same_feature_meta"].call
    if self_bdim is None:
        other = to_front(other, other_bdim)
        return call(self, other, self_num_batch_dims), (None if other_bdim is None else self_num_batch_dims)
    if other_bdim is None:
        return call(to_front(self, self_bdim), other, self_num_batch_dims=self_num_batch_dims + 1), 0
    self = at.movedim(self, self_bdim, self_num_batch_dims)  # behind the batches of the tangent alone
    return call(self, to_front(other, other_bdim), self_num_batch_dims), self_num_batch_dims
