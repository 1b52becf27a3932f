"""Operators whose result depends on the elements in its size, or in what Python does next: no batch of examples has one such.

In PyTorch: `aten/src/ATen/functorch/BatchRulesDynamic.cpp`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from .batch_rules_helper import batch_rule, rule_for
from .batched_tensor_impl import NO_CONTROL_FLOW, NO_ITEM
from .gen_vmap_plumbing import plumbed


def dynamic(operator):
    def rule(*flat):
        raise RuntimeError(
            "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
            f"{operator.schema.qualified_name}. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this "
            "feature."
        )

    return plumbed(operator, rule)


rule_for(
    dynamic, "nonzero where unique_dim unique_consecutive unique_dim_consecutive _unique2 _unique masked_select.dynamic"
)


@batch_rule("_local_scalar_dense", "item")
def local_scalar_dense_batch_rule(self, self_bdim):
    raise RuntimeError(NO_ITEM)


@batch_rule("is_nonzero")
def is_nonzero_batch_rule(self, self_bdim):
    raise RuntimeError(NO_CONTROL_FLOW)


@batch_rule("allclose")
def allclose_batch_rule(self, self_bdim, other, other_bdim, rtol, atol, equal_nan):
    raise RuntimeError(
        "vmap over torch.allclose isn't supported yet. Please file an issue at https://github.com/pytorch/pytorch/issues if you need "
        "this feature."
    )
