"""One stage of a pipeline: its module, and what it sends and receives. In PyTorch: `torch/distributed/pipelining/stage.py`.

Note [ What travels between stages ]

The output of a stage for a piece goes to the next rank; there it is a leaf of its own graph, and the gradient that the
backward pass leaves at this leaf comes back, where it is what the backward pass of this stage begins with. Before the first
piece a stage tells the next one sizes and dtypes, as numbers. in PyTorch: after a pass on the meta device, as a pickle.
"""

import readtorch
from readtorch import Tensor
from readtorch import distributed as dist
from readtorch.c10.scalar_type import ALL_TYPES

from ._backward import stage_backward

__all__ = ["PipelineStage"]


class PipelineStage:
    """The stage `stage_index` of `num_stages`: `submodule`, on this rank of `group`.

    input_args: example inputs, which save the first message about their sizes. in PyTorch: also for outputs and gradients,
    and several stages on one rank.
    """

    def __init__(self, submodule, stage_index, num_stages, device, input_args=None, output_args=None, group=None):
        if stage_index >= num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        self.submod = submodule
        self.stage_index = stage_index
        self.num_stages = num_stages
        self.device = readtorch.device(device)
        self.group = group
        self.group_rank = dist.get_rank(group)
        self.group_size = dist.get_world_size(group)
        if self.group_size > num_stages:
            raise RuntimeError(
                f"Pipeline group size {self.group_size} cannot be larger than number of stages {num_stages}"
            )
        if self.group_size < num_stages or self.group_rank != stage_index:
            raise NotImplementedError("readtorch's pipelines have one stage a rank: stage i on rank i of the group")
        self.has_backward = False
        self.input_meta = _metas(_as_tuple(input_args)) if input_args is not None else None
        self.output_meta = None
        self.clear_runtime_states()

    @property
    def is_first(self):
        return self.stage_index == 0

    @property
    def is_last(self):
        return self.stage_index == self.num_stages - 1

    def clear_runtime_states(self):
        """Forget the pieces of the last step."""
        self.fwd_cache = {}  # piece -> (outputs, inputs)
        self.bwd_cache = {}  # piece -> gradients of the inputs
        self.received = {}  # piece -> inputs from the stage before
        self.received_grads = {}
        self.output_chunks = []

    # ------------------------------------------------------------------------------- messages

    def get_fwd_recv_ops(self, chunk):
        """P2POps that receive the inputs of a piece."""
        if self.is_first:
            return []
        if self.input_meta is None:
            self.input_meta = _recv_meta(self.stage_index - 1, self.group)
        self.received[chunk] = [readtorch.empty(m[1], dtype=m[0], device=self.device) for m in self.input_meta]
        return [self._op(dist.irecv, buffer, self.stage_index - 1) for buffer in self.received[chunk]]

    def get_fwd_send_ops(self, chunk):
        """P2POps that send its outputs."""
        if self.is_last:
            return []
        outputs = self.fwd_cache[chunk][0]
        if self.output_meta is None:
            self.output_meta = _metas(outputs)
            _send_meta(self.output_meta, self.stage_index + 1, self.group)
        elif self.output_meta != _metas(outputs):
            raise ValueError(f"[Stage {self.stage_index}] outputs {_metas(outputs)}, before {self.output_meta}")
        return [self._op(dist.isend, out.detach().contiguous(), self.stage_index + 1) for out in outputs]

    def get_bwd_recv_ops(self, chunk):
        """P2POps that receive the gradients of its outputs."""
        if self.is_last or not self.has_backward:
            return []
        self.received_grads[chunk] = [
            readtorch.empty_like(out.detach()) if out.requires_grad else None for out in self.fwd_cache[chunk][0]
        ]
        buffers = [buffer for buffer in self.received_grads[chunk] if buffer is not None]
        return [self._op(dist.irecv, buffer, self.stage_index + 1) for buffer in buffers]

    def get_bwd_send_ops(self, chunk):
        """P2POps that send the gradients of its inputs."""
        if self.is_first or not self.has_backward:
            return []
        grads = [grad for grad in self.bwd_cache.pop(chunk) if grad is not None]
        return [self._op(dist.isend, grad.contiguous(), self.stage_index - 1) for grad in grads]

    def _op(self, op, tensor, stage):
        return dist.P2POp(op, tensor, group=self.group, group_peer=stage)

    # ------------------------------------------------------------------------------- computation

    def forward_one_chunk(self, chunk, args, kwargs=None, save_forward_output=True):
        """The output of the stage for one piece; `args` is used on the first stage, `kwargs` on all."""
        if not self.is_first:
            args = self._received_activations(chunk)
        output = self.submod(*args, **(kwargs or {}))
        if self.is_last and save_forward_output:
            self.output_chunks.append(output)
        self.fwd_cache[chunk] = _as_tuple(output), args
        return output

    def _received_activations(self, chunk):
        """Leaves, so that the backward pass leaves their gradients there."""
        metas = zip(self.received.pop(chunk), self.input_meta)
        return tuple(buffer.requires_grad_(self.has_backward and needs_grad) for buffer, (*_, needs_grad) in metas)

    def backward_one_chunk(self, chunk, loss=None):
        """The backward pass of one piece, on the last stage from the loss."""
        if not self.has_backward:
            return
        outputs, inputs = self.fwd_cache.pop(chunk)
        start, grads = (loss, None) if self.is_last else (outputs, self.received_grads.pop(chunk))
        grads = stage_backward(start, grads, inputs)
        self.bwd_cache[chunk] = () if self.is_first else grads
        if self.is_last:  # kept for the caller, who needs no graph
            self.output_chunks = [_detached(out) for out in self.output_chunks]

    def scale_grads(self, grad_scale_factor):
        """Divide all gradients, where the loss of a piece is a mean."""
        if grad_scale_factor != 1:
            for parameter in self.submod.parameters():
                if parameter.grad is not None:
                    parameter.grad.div_(grad_scale_factor)


def _detached(output):
    if isinstance(output, (list, tuple)):
        return type(output)(map(_detached, output))
    return output.detach() if isinstance(output, Tensor) else output


def _as_tuple(output):
    return tuple(output) if isinstance(output, (list, tuple)) else (output,)


# ------------------------------------------------------------------------------------ sizes and dtypes


def _metas(tensors):
    """(dtype, sizes, whether it needs a gradient) of each."""
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"stages of a pipeline pass tensors on, but got {type(tensor)}")
    return [(tensor.dtype, tuple(tensor.shape), tensor.requires_grad) for tensor in tensors]


def _send_meta(metas, stage, group):
    numbers = [n for dtype, sizes, grad in metas for n in (ALL_TYPES.index(dtype), int(grad), len(sizes), *sizes)]
    header = readtorch.tensor([len(metas), len(numbers)])
    works = [dist.isend(t, group=group, group_dst=stage) for t in (header, readtorch.tensor(numbers))]
    for work in works:
        work.wait()


def _recv_meta(stage, group):
    header = readtorch.zeros(2, dtype=readtorch.int64)
    dist.irecv(header, group=group, group_src=stage).wait()
    count, length = header.tolist()
    numbers = readtorch.zeros(length, dtype=readtorch.int64)
    dist.irecv(numbers, group=group, group_src=stage).wait()
    numbers, metas = numbers.tolist(), []
    for _ in range(count):
        (dtype, grad, dims), numbers = numbers[:3], numbers[3:]
        metas.append((ALL_TYPES[dtype], tuple(numbers[:dims]), bool(grad)))
        numbers = numbers[dims:]
    return metas
