"""Cross entropy of logits whose classes are divided among the ranks. In PyTorch: `torch/distributed/tensor/parallel/loss.py`.

Note [ A softmax over ranks ]
The logits of one position are spread over the ranks, and there may be many: a vocabulary. Two numbers of each position are all that the
log softmax needs of the others, the largest logit and the sum of exponentials, so two all-reduces of one number a position take the place
of an all-gather of all. The loss wants the entry of the target class, which one rank has; the others bring 0 to a third all-reduce. In
the backward the gradient of the loss and of the log softmax together is softmax minus one at the target, of which each rank computes its
classes: the operator of the loss does both steps, and that of the log softmax passes on what it gets. So both must run in the `with` block.
"""

from contextlib import contextmanager

import readtorch
from readtorch.distributed import _functional_collectives as funcol
from readtorch.distributed.distributed_c10d import current
from readtorch.distributed.tensor import DTensor, Partial, Replicate
from readtorch.distributed.tensor._dtensor_spec import DTensorSpec
from readtorch.distributed.tensor._ops._embedding_ops import _MaskPartial
from readtorch.distributed.tensor._ops._math_ops import replicate_reduction_dims
from readtorch.distributed.tensor._ops.utils import arguments, normalize_dim, several, shift_shard_dims_after_remove
from readtorch.distributed.tensor._sharding_prop import propagate_tensor_meta

aten = readtorch.ops.aten

__all__ = ["loss_parallel"]

NONE, MEAN, SUM = 0, 1, 2  # of `reduction`


@contextmanager
def loss_parallel():
    """Within its `with` block `cross_entropy` takes logits that are cut along the classes, and leaves them so: Note [ A softmax over ranks ].

    `backward()` belongs into the block, too. The logits: a DTensor of which one dimension of the mesh cuts the classes; the others may cut
    another dimension. The targets: indices of classes, a plain tensor where every rank has all of them, else a DTensor that is placed as
    the logits are. reduction="mean" takes a mesh of one dimension; label smoothing and probabilities as targets are not supported.
    """
    _enable_custom_loss_ops()
    try:  # in PyTorch: without, so an exception in the block leaves the operators as they are here
        yield
    finally:
        _disable_custom_loss_ops()


def _find_all_reduce_mesh_dim(placements, dim):
    """The dimension of the mesh that cuts the classes."""
    found = [i for i, p in enumerate(placements) if p.is_shard(dim)]
    if len(found) != 1:
        raise ValueError(
            f"loss_parallel() requires exactly one mesh dim to shard tensor dimension {dim}, but got placements {placements} with "
            f"{len(found)} such mesh dim(s)."
        )
    for i, p in enumerate(placements):
        if not (p.is_shard() or p.is_replicate()):
            raise ValueError(f"loss_parallel() expects non-TP mesh dims to be Shard or Replicate, got {p} at dim {i}.")
    return found[0]


def _cast_to_dtensor(tensor, placements, mesh):
    if isinstance(tensor, DTensor):
        if tensor.placements == placements:
            return tensor
        raise RuntimeError(f"Expected {placements} but got {tensor.placements}.")
    if not isinstance(tensor, readtorch.Tensor):
        raise TypeError(f"Unsupported type {type(tensor)}")
    if any(p.is_shard() for p in placements):
        raise ValueError(
            f"loss_parallel() requires a DTensor (not a plain torch.Tensor) when the derived placements {placements} contain Shard "
            "— this happens on a multi-dimensional mesh with a batch-sharded non-TP dim. Wrap the tensor with DTensor.from_local or "
            "distribute_tensor to make the sharding explicit."
        )
    return DTensor.from_local(tensor, mesh, placements, run_check=False)


def _made(cls, op_call, args, local, placements):
    """A DTensor of these placements; its sizes and dtype are those of the operator's first output."""
    schema, _, _ = cls._op_dispatcher.unwrap(cls, op_call, args, {})
    metas, mesh = propagate_tensor_meta(schema), schema.args_spec[0].mesh
    meta = metas[0] if several(metas) else metas
    return cls(local, DTensorSpec(mesh, placements, meta), requires_grad=local.requires_grad)


# ------------------------------------------------------------------------- log softmax


def _log_softmax(x, dim, half_to_float, mesh, mesh_dim):
    dtype, group = x.dtype, (mesh, mesh_dim)
    if half_to_float and dtype != readtorch.half:
        raise AssertionError
    x = x.to(readtorch.float32 if dtype in (readtorch.half, readtorch.bfloat16) else dtype).contiguous()
    shifted = x - funcol.all_reduce(_largest(x, dim), "max", group)
    total = funcol.all_reduce(shifted.exp().sum(dim, keepdim=True), "sum", group)
    result = shifted - total.log()
    return result if half_to_float else result.to(dtype)


def _largest(x, dim):
    """The largest along a dimension; of a rank that has no class, what no maximum notices."""
    if x.size(dim):
        return x.amax(dim, keepdim=True)
    return x.new_full([1 if i == dim else n for i, n in enumerate(x.shape)], float("-inf"))


def _log_softmax_handler(cls, op_call, args, kwargs):
    a = arguments(op_call, args, kwargs)
    dim = normalize_dim(a.dim, a.self.dim())
    spec = a.self._spec
    mesh_dim = _find_all_reduce_mesh_dim(spec.placements, dim)
    result = _log_softmax(a.self._local_tensor, dim, a.half_to_float, spec.mesh, mesh_dim)
    return _made(cls, op_call, args, result, spec.placements)


def _log_softmax_backward_handler(cls, op_call, args, kwargs):
    """The loss's own backward has computed it."""
    a = arguments(op_call, args, kwargs)
    return a.grad_output.to(a.input_dtype)


# ------------------------------------------------------------------------- the loss of the target classes


class _Targets:
    """The arguments of a loss or of its backward, with targets and weights as DTensors, and where its classes are.

    dim: of the classes; mesh_dim: what cuts them; wanted: that of the targets; mask: which targets are classes of other ranks.
    """

    def __init__(self, a):
        self.spec, self.x = a.self._spec, a.self._local_tensor
        self.dim = 1 if a.self.dim() >= 2 else 0
        self.mesh_dim = _find_all_reduce_mesh_dim(self.spec.placements, self.dim)
        self.placements = shift_shard_dims_after_remove(
            replicate_reduction_dims(self.spec.placements, [self.dim]), self.dim
        )
        self.replicated = (Replicate(),) * self.spec.mesh.ndim
        self.target = _cast_to_dtensor(a.target, self.placements, self.spec.mesh)
        self.weight = None if a.weight is None else _cast_to_dtensor(a.weight, self.replicated, self.spec.mesh)
        self.counts = self.target._local_tensor != a.ignore_index
        self.safe = readtorch.where(self.counts, self.target._local_tensor, 0)
        self._masked = _MaskPartial(offset_shape=self.spec.shape, offset_dim=self.dim)

    def own_indices(self):
        """The targets among this rank's classes, the first class for the others."""
        index = self._masked._partition_value(self.safe.unsqueeze(self.dim), self.spec.mesh, self.mesh_dim)
        self.mask = self._masked.mask_buffer.data
        return index

    def entries(self):
        """What `x` has at the targets, from whichever rank that has it."""
        index = self.own_indices()
        mine = self.x.gather(self.dim, index) if self.x.size(self.dim) else self.x.new_zeros(index.shape)
        return self._masked._reduce_value(mine, self.spec.mesh, self.mesh_dim).squeeze(self.dim)

    def minus_one_at_targets(self):
        """As large as `x`, and 0 elsewhere."""
        made, index = readtorch.zeros_like(self.x), self.own_indices()
        return made.scatter_(self.dim, index, self.mask.to(made.dtype) - 1) if made.size(self.dim) else made

    def weights(self):
        """Of each target that counts: that of its class, or 1; 0 of the others."""
        if self.weight is None:
            return self.counts.to(self.x.dtype)
        chosen = self.weight._local_tensor.index_select(0, self.safe.flatten()).view(self.safe.shape)
        return readtorch.where(self.counts, chosen, 0)


def _nll_loss_forward(targets, reduction):
    """(the loss, the sum of weights that a mean divides by)"""
    weights = targets.weights()
    loss = -targets.entries() * weights if targets.weight is not None else -targets.entries()
    loss = readtorch.where(targets.counts, loss, 0)
    if reduction == NONE and targets.x.dim() > 1:
        return loss, targets.x.new_full((), 0.0)
    total = weights.sum()
    if reduction == NONE:
        return loss, total
    return (loss.sum() if reduction == SUM else loss.sum() / total), total


def _nll_loss_forward_handler(cls, op_call, args, kwargs):
    a = arguments(op_call, args, kwargs)
    targets = _Targets(a)
    placements = targets.placements if a.reduction == NONE else _of_a_scalar(targets, a.reduction)
    loss, total = _nll_loss_forward(targets, a.reduction)
    args = [a.self, targets.target, targets.weight, a.reduction, a.ignore_index]
    return _made(cls, op_call, args, loss, placements), total


def _of_a_scalar(targets, reduction):
    """Where positions are cut each rank has the sum of its own: a summand."""
    if reduction == MEAN and targets.spec.mesh.ndim > 1:
        raise NotImplementedError(
            "loss_parallel() with reduction='mean' is only supported on one-dimensional DeviceMesh; got mesh with "
            f"ndim={targets.spec.mesh.ndim}. Use reduction='sum' or 'none' instead."
        )
    return tuple(
        Replicate() if i == targets.mesh_dim else Partial() if p.is_shard() else p
        for i, p in enumerate(targets.spec.placements)
    )


def _nll_loss_and_log_softmax_backward(grad, targets, reduction, total_weight):
    """The gradient of the logits, `x` being their log softmax: Note [ A softmax over ranks ]."""
    if reduction == MEAN:
        grad = grad / total_weight
    if targets.weight is not None:
        grad = grad * targets.weights()
    grad = readtorch.where(targets.counts, grad, 0)
    return (targets.minus_one_at_targets() + targets.x.exp()) * grad.unsqueeze(targets.dim)


def _nll_loss_backward_handler(cls, op_call, args, kwargs):
    a = arguments(op_call, args, kwargs)
    targets, grad = _Targets(a), a.grad_output
    if a.reduction == NONE:
        grad = grad.redistribute(placements=targets.placements)
    result = _nll_loss_and_log_softmax_backward(grad._local_tensor, targets, a.reduction, a.total_weight)
    total = _cast_to_dtensor(a.total_weight, targets.replicated, targets.spec.mesh)
    args = [grad, a.self, targets.target, targets.weight, a.reduction, a.ignore_index, total]
    return _made(cls, op_call, args, result, targets.spec.placements)


customized_loss_ops = {
    aten._log_softmax.default: _log_softmax_handler,
    aten._log_softmax_backward_data.default: _log_softmax_backward_handler,
    aten.nll_loss_forward.default: _nll_loss_forward_handler,
    aten.nll_loss2d_forward.default: _nll_loss_forward_handler,
    aten.nll_loss_backward.default: _nll_loss_backward_handler,
    aten.nll_loss2d_backward.default: _nll_loss_backward_handler,
}


def _enable_custom_loss_ops():
    DTensor._op_dispatcher.push_handlers(current.world.number, customized_loss_ops)


def _disable_custom_loss_ops():
    DTensor._op_dispatcher.pop_handlers(current.world.number)
