"""The backward pass of one stage for one piece. In PyTorch: `torch/distributed/pipelining/_backward.py`."""

from readtorch import Tensor, autograd


def stage_backward(stage_output, output_grads, input_values):
    """Backward from the stage's outputs (or its loss, without `output_grads`); returns the gradients of its inputs."""
    outputs = (stage_output,) if isinstance(stage_output, Tensor) else tuple(stage_output)
    grads = [None] * len(outputs) if output_grads is None else output_grads
    pairs = [(out, grad) for out, grad in zip(outputs, grads) if isinstance(out, Tensor) and out.requires_grad]
    autograd.backward([out for out, _ in pairs], [grad for _, grad in pairs])
    received = []
    for value in input_values:
        received.append(value.grad if isinstance(value, Tensor) else None)
        if isinstance(value, Tensor) and value.requires_grad and value.is_leaf:
            value.grad = None
    return tuple(received)
