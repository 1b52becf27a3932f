"""Cross entropy of a linear layer's scores, chunk by chunk.

Note [ A loss that never holds all scores ]
A language model scores each token of its vocabulary at each position: that matrix is by far the largest of the
whole network, and cross entropy needs each of its rows only once. So a chunk of rows is scored, its losses are
taken, and its gradients too, as long as the scores are there: of the input's rows, and added up for weight and
bias. Backward has nothing left to do but to multiply by the gradient that arrives. Without a reduction that
gradient has an entry for each row and must be known first: then backward scores the chunks again.

In PyTorch: `torch/nn/modules/linear_cross_entropy.py`, two custom operators with buffers that are used again and
again, in layouts that depend on device and `acc_policy`. Here all policies compute as "accurate" does.
"""

import readtorch
from readtorch.autograd import Function


# The names of the next two classes are those that `torch.library` gives to the derivatives of its operators.
class GeneratedBackwardFor_torch_nn__linear_cross_entropy_batch_chunked_default(Function):
    """The sum or mean of the losses; the gradients come with it."""

    @staticmethod
    def forward(ctx, input, linear_weight, target, linear_bias, weight, reduction, ignore_index, options):
        row_weights = _row_weights(target, weight, ignore_index, options.acc_dtype)
        if reduction == "mean":
            total = row_weights.sum()
            row_weights = row_weights / readtorch.where(total == 0, readtorch.nan, total)
        losses, ctx.gradients = _run(
            input, linear_weight, target, linear_bias, row_weights, options, ctx.needs_input_grad
        )
        ctx.allow_retain_graph = options.allow_retain_graph
        if reduction == "mean" and len(target) == 0:
            return input.new_full((), readtorch.nan)
        return losses.sum().to(input.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        if ctx.gradients is None:
            raise RuntimeError(
                "linear_cross_entropy chunked backward called twice; "
                "retain_graph=True / double backward are not supported."
            )
        gradients = [g if g is None else g * grad_output for g in ctx.gradients]
        if not ctx.allow_retain_graph:
            ctx.gradients = None
        return _in_place_of_arguments(gradients, 8)


class GeneratedBackwardFor_torch_nn__linear_cross_entropy_batch_chunked_no_reduction_default(Function):
    """The loss of each row."""

    @staticmethod
    def forward(ctx, input, linear_weight, target, linear_bias, weight, ignore_index, options):
        ctx.save_for_backward(
            input.detach(),
            linear_weight.detach(),
            target,
            linear_bias if linear_bias is None else linear_bias.detach(),
            weight,
        )
        ctx.settings = ignore_index, options
        row_weights = _row_weights(target, weight, ignore_index, options.acc_dtype)
        nothing = (False,) * 4
        return _run(input, linear_weight, target, linear_bias, row_weights, options, nothing)[0].to(input.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        input, linear_weight, target, linear_bias, weight = ctx.saved_tensors
        ignore_index, options = ctx.settings
        row_weights = _row_weights(target, weight, ignore_index, options.acc_dtype) * grad_output.to(options.acc_dtype)
        _, gradients = _run(input, linear_weight, target, linear_bias, row_weights, options, ctx.needs_input_grad)
        return _in_place_of_arguments(gradients, 7)


def _in_place_of_arguments(gradients, count):
    for_input, for_linear_weight, for_linear_bias = gradients
    return (for_input, for_linear_weight, None, for_linear_bias) + (None,) * (count - 4)


def _row_weights(target, weight, ignore_index, dtype):
    """How much each row's loss counts: its class's weight, or 1; 0 if it is ignored."""
    ignored = target == ignore_index
    if weight is None:
        return (~ignored).to(dtype)
    return weight.to(dtype)[_existing(target, ignored)].masked_fill(ignored, 0)


def _existing(target, ignored):
    """Class 0 where a row is ignored: its target may be no class at all."""
    return target.masked_fill(ignored, 0)


def _run(input, linear_weight, target, linear_bias, row_weights, options, wanted):
    """The weighted losses of all rows (N); the gradients of their sum by input, weight and bias, where `wanted`.

    Nothing here can be differentiated again: the first `out=` refuses it.
    """
    for_input, for_weight, _, for_bias = wanted[:4]
    classes = _existing(target, row_weights == 0)
    matrix = linear_weight.to(options.acc_dtype)
    losses = row_weights.new_empty(len(input))
    grad_input = readtorch.empty_like(input) if for_input else None
    grad_weight = readtorch.zeros_like(linear_weight) if for_weight else None
    grad_bias = readtorch.zeros_like(linear_bias) if linear_bias is not None and for_bias else None
    factors = matrix.new_empty(len(input))
    for start in range(0, len(input), options.batch_chunk_size):
        rows = slice(start, start + options.batch_chunk_size)
        x, row_weight = input[rows].to(options.acc_dtype), row_weights[rows]
        losses[rows], slope = _chunk(x, matrix, classes[rows], linear_bias, row_weight, factors[rows])
        if for_input:
            grad_input[rows] = slope @ matrix
        if for_weight:
            grad_weight += (slope.T @ x).to(grad_weight.dtype)
        if grad_bias is not None:
            grad_bias += slope.sum(0).to(grad_bias.dtype)
    return losses, (grad_input, grad_weight, grad_bias)


def _chunk(x, matrix, classes, linear_bias, row_weight, factors):
    """The weighted losses of some rows, and their slopes by the scores: softmax minus 1 at the right class."""
    scores = x @ matrix.T
    if linear_bias is not None:
        scores += linear_bias.to(scores.dtype)
    scores -= scores.amax(1, keepdim=True)
    right = classes.unsqueeze(1)
    right_score = scores.gather(1, right).squeeze(1)
    slope = scores.exp_()  # in the memory of the scores
    total = slope.sum(1)
    slope *= readtorch.div(row_weight, total, out=factors).unsqueeze(1)
    losses = row_weight * (total.log() - right_score)
    slope.scatter_add_(1, right, -row_weight.unsqueeze(1).to(slope.dtype))  # which autocast may have lowered
    return losses, slope
