"""Batching rules of the activations that are not pointwise: those that cut a dimension in halves.

In PyTorch: `aten/src/ATen/functorch/BatchRulesActivation.cpp`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.aten.functions import at

from .batch_rules_helper import batch_rule, batch_size_of, physical, to_front, with_bdim


def check_has_dims(self):
    if self.dim() < 2:
        raise RuntimeError("glu does not support 0-dimensional tensors")


@batch_rule("glu")
def glu_batch_rule(self, self_bdim, dim):
    check_has_dims(self)
    return at.glu(to_front(self, self_bdim), physical(dim, self.dim() - 1)), 0


@batch_rule("glu_backward")
def glu_backward_batch_rule(grad_output, grad_bdim, self, self_bdim, dim):
    size = batch_size_of((grad_output, grad_bdim, self, self_bdim))
    grad_output, self = with_bdim(grad_output, grad_bdim, size), with_bdim(self, self_bdim, size)
    check_has_dims(self)
    return at.glu_backward(grad_output, self, physical(dim, self.dim() - 1)), 0
