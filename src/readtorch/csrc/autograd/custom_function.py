"""The forward-mode part of a custom Function's call: its `jvp` computes the tangents of its outputs.

In PyTorch: `_process_forward_mode_AD` in `torch/csrc/autograd/custom_function.cpp`. Explained in the chapter "Forward mode, vmap and
torch.func".
"""

from readtorch.c10.local_dispatch_key_set import AutoFwGradMode
from readtorch.c10.tensor_impl import TensorImpl

from .forward_grad import forward_base, set_tangent, tangent


def process_forward_mode(call_jvp, inputs, raw_outputs, outputs, still, dirty):
    """Give the outputs of a custom Function the tangents that its `jvp` returns, if an input has one.

    call_jvp: (tangents of `inputs`, None where there is none) -> those of the outputs. raw_outputs: what `forward` returned, outputs:
    what the caller gets for it. still, dirty: ids of what is not differentiable, and of what was written to.
    Raises RuntimeError where a view's tangent is no view, or that of a written input was not written.
    """
    found = [tangent(t) for t in inputs]
    if all([f is None for f in found]):
        return
    versions = [None if f is None else f._counter[0] for f in found]
    with AutoFwGradMode(False):
        news = call_jvp(found)
    if len(news) != len(outputs):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(outputs)} but got {len(news)})"
        )
    places = {id(t): i for i, t in enumerate(inputs)}
    for i, (raw, output, new) in enumerate(zip(raw_outputs, outputs, news)):
        if not isinstance(raw, TensorImpl):
            continue
        if id(raw) in still or raw._array.dtype.kind in "biu":
            _refuse_tangent(i, new)
        elif new is None:  # in PyTorch: an assertion fails
            raise RuntimeError("Expected both tensor and its forward grad to be floating point or complex")
        elif id(raw) in dirty:
            place = places[id(raw)]
            _set_written(output, new, found[place], versions[place])
        else:
            inplace = _check_view(output, new, inputs)
            set_tangent(output, new, inplace=inplace)


def _refuse_tangent(i, new):
    if new is not None:
        raise RuntimeError(
            f"Function's jvp returned a gradient at position {i}, but  the corresponding forward output is not a differentiable Tensor."
            "You should return None at that position instead."
        )


def _set_written(output, new, found, version):
    """For an input that `forward` wrote to: its tangent must have been written to, too."""
    if found is None:
        set_tangent(output, new, inplace=True)
    elif new._counter[0] == version:
        raise RuntimeError(
            "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an input "
            "inplace, then the jvp function must modify the corresponding gradient inplace."
        )
    elif new is not found:
        raise RuntimeError(
            "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is modifying an input "
            "inplace, then the jvp function must modify the gradient inplace and return it as-is."
        )


def _check_view(output, new, inputs):
    """Raises RuntimeError unless the tangent of a view of an input is the same view of the input's tangent.

    Returns whether it counts as written in place: a view of an input without tangent got one.
    """
    base = forward_base(output)
    if base is None:
        return False
    match = next((t for t in reversed(inputs) if (forward_base(t) or t) is base), None)
    if match is None:
        return False
    of_input = tangent(match)
    if of_input is None:
        return True
    base_of_new = forward_base(new)
    if base_of_new is None:
        raise RuntimeError(
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
        )
    base_of_input = forward_base(of_input)
    if base_of_new is not (of_input if base_of_input is None else base_of_input):
        which = (
            "view of the given grad input" if base_of_input is None else "view of the same base as the given grad input"
        )
        raise RuntimeError(f"A custom Function is returning a view but the jvp is not returning a {which}.")
    return False
