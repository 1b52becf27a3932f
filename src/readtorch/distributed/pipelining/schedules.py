"""In which order a stage computes forward and backward passes of pieces. In PyTorch: `torch/distributed/pipelining/schedules.py`.

Note [ The bubble ]

The last of S stages can begin when S - 1 others have computed the first piece, and the first one waits as long for the last
gradient. With M pieces a rank is idle for (S - 1) / (M + S - 1) of the time, whichever of the two schedules it follows.
What differs is memory: GPipe computes all pieces forward, then all backward, so it keeps the activations of M pieces. 1F1B
begins the backward pass of a piece as soon as it can and keeps those of S - s pieces at most on stage s.
"""

import readtorch
from readtorch import distributed as dist

from .microbatch import merge_chunks, split_args_kwargs_into_chunks, split_tensor

__all__ = ["PipelineScheduleSingle", "Schedule1F1B", "ScheduleGPipe"]


class PipelineScheduleSingle:
    """A schedule with one stage a rank.

    loss_fn(output, target): on the last stage; without one there is no backward pass. scale_grads: divide gradients by the
    number of pieces, as is right where the loss is a mean.
    """

    def __init__(self, stage, n_microbatches, loss_fn=None, scale_grads=True):
        self._stage = stage
        self._num_stages = stage.num_stages
        self._n_microbatches = n_microbatches
        self._loss_fn = loss_fn
        self.scale_grads = scale_grads
        self._has_backward = loss_fn is not None
        self._internal_losses = []

    def step(self, *args, target=None, losses=None, return_outputs=True, **kwargs):
        """One batch, whole. `args` on the first stage; `target` and the list `losses`, which is filled, on the last one,
        which returns the output.
        """
        if self._has_backward and not readtorch.is_grad_enabled():
            raise RuntimeError(
                "step() requires gradients to be enabled for backward computation; it should not be used under "
                "torch.no_grad() context. Please call eval() instead."
            )
        return self._run(args, kwargs, target, losses, return_outputs, self._has_backward)

    def eval(self, *args, target=None, losses=None, **kwargs):
        """The same without gradients."""
        with readtorch.no_grad():
            return self._run(args, kwargs, target, losses, True, False)

    def _run(self, args, kwargs, target, losses, return_outputs, has_backward):
        self._stage.has_backward = has_backward
        self._stage.clear_runtime_states()
        self._internal_losses = []
        count = self._n_microbatches
        arg_mbs, kwarg_mbs = split_args_kwargs_into_chunks(args, kwargs, count)
        targets = split_tensor(target, count) if target is not None else None
        pieces = _Pieces(self, arg_mbs, kwarg_mbs, targets, return_outputs)
        self._step_microbatches(pieces)
        if losses is not None and self._stage.is_last:
            losses[:] = self._internal_losses
        if has_backward:
            self._stage.scale_grads(count if self.scale_grads else 1)
        if self._stage.is_last and return_outputs:
            return merge_chunks(self._stage.output_chunks)
        return None

    def _step_microbatches(self, pieces):
        raise NotImplementedError


class _Pieces:
    """What a schedule puts in order: receive, compute, send, forward and backward."""

    def __init__(self, schedule, args, kwargs, targets, return_outputs):
        self.schedule = schedule
        self.stage = schedule._stage
        self.args = args
        self.kwargs = kwargs
        self.targets = targets
        self.return_outputs = return_outputs

    def forward(self, i):
        """Compute a piece whose inputs are there, and its loss."""
        output = self.stage.forward_one_chunk(i, self.args[i], self.kwargs[i], self.return_outputs)
        if self.stage.is_last and self.schedule._loss_fn is not None:
            self.schedule._internal_losses.append(self.schedule._loss_fn(output, self.targets[i]))

    def backward(self, i):
        losses = self.schedule._internal_losses
        self.stage.backward_one_chunk(i, losses[i] if self.stage.is_last else None)


def _batch_p2p(ops):
    return dist.batch_isend_irecv(ops) if ops else []


def _wait_batch_p2p(works):
    for work in works:
        work.wait()


class ScheduleGPipe(PipelineScheduleSingle):
    """All pieces forward, then all backward: Note [ The bubble ]."""

    def _step_microbatches(self, pieces):
        stage, sends = self._stage, []
        for i in range(self._n_microbatches):
            _wait_batch_p2p(_batch_p2p(stage.get_fwd_recv_ops(i)))
            pieces.forward(i)
            sends += _batch_p2p(stage.get_fwd_send_ops(i))
        _wait_batch_p2p(sends)
        if not stage.has_backward:
            return
        sends = []
        for i in range(self._n_microbatches):
            _wait_batch_p2p(_batch_p2p(stage.get_bwd_recv_ops(i)))
            pieces.backward(i)
            sends += _batch_p2p(stage.get_bwd_send_ops(i))
        _wait_batch_p2p(sends)


class Schedule1F1B(PipelineScheduleSingle):
    """As many pieces forward as there are stages behind, then in turn one backward and one forward: Note [ The bubble ]."""

    def __init__(self, stage, n_microbatches, loss_fn=None, scale_grads=True):
        super().__init__(stage, n_microbatches, loss_fn, scale_grads)
        if n_microbatches < self._num_stages:
            raise ValueError(
                f"Number of microbatches ({n_microbatches}) must be greater than "
                f"or equal to the number of stages ({self._num_stages})."
            )

    def _step_microbatches(self, pieces):
        """A send and the receive that answers it are begun together, or two neighbours that both send would wait for
        each other for ever.
        """
        stage, count = self._stage, self._n_microbatches
        warmup = min(count, self._num_stages - stage.stage_index)
        sends, last_sends = [], []
        for i in range(warmup):
            _wait_batch_p2p(_batch_p2p(stage.get_fwd_recv_ops(i)))
            pieces.forward(i)
            _wait_batch_p2p(sends)
            last_sends = stage.get_fwd_send_ops(i)
            sends = _batch_p2p(last_sends) if i < warmup - 1 else []
        for i in range(count):
            _wait_batch_p2p(_batch_p2p(last_sends + stage.get_bwd_recv_ops(i)))
            pieces.backward(i)
            grads = stage.get_bwd_send_ops(i)
            following = i + warmup
            if following < count:
                _wait_batch_p2p(_batch_p2p(grads + stage.get_fwd_recv_ops(following)))
                pieces.forward(following)
                last_sends = stage.get_fwd_send_ops(following)
            else:
                _wait_batch_p2p(_batch_p2p(grads))
                last_sends = []
