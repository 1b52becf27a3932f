"""What CUDA operators refuse: the same calls as on the CPU, with an error of the same type and, but for the backend's name, the same words."""

import re

import pytest

import readtorch as rt
from readtorch.aten.native.cuda.register_dispatch_key import cuda_impl, cuda_kernel, operator_named
from tests.aten.refused_calls import CALLS
from tests.cuda.test_operator_table import device  # noqa: F401  a fixture

# CUDA refuses these with words of its own, as PyTorch's does, or finds another fault of the call first.
OTHER_WORDS = {"mm, dtypes", "histc, bins", "max_unpool3d, dtype", "nansum of complex", "eye"}


def refusal(place, call):
    try:
        call(rt, rt.ones(2, 2, device=place))
    except Exception as error:
        words = re.sub(r"'?cuda(:0)?'?|'?cpu'?|CUDA|CPU", "DEVICE", str(error))
        return type(error).__name__, re.sub(r'"\w+" not implemented', '"…" not implemented', words)
    return "none", "it was not refused"


@pytest.mark.parametrize("name", CALLS)
def test_refused_as_on_the_cpu(name):
    ours, expected = refusal("cuda", CALLS[name]), refusal("cpu", CALLS[name])
    assert "none" not in (ours[0], expected[0])
    assert ours[0] == expected[0]
    assert name in OTHER_WORDS or ours == expected


@pytest.mark.parametrize("name", ["_fused_adam_", "_fused_adamw_", "_fused_sgd_"])
def test_fused_steps_that_unscale(name):
    step = getattr(rt.ops.aten, name)
    for place in ("cpu", "cuda"):

        def stepped(grad, **scaling):
            x, grads = [rt.ones(2, device=place)], [rt.full((2,), grad, device=place)]
            state = [[rt.full((2,), 0.5, device=place)] for _ in range(2)]
            numbers = dict(lr=0.1, weight_decay=0.0, maximize=False)
            if name == "_fused_sgd_":
                settings = dict(momentum=0.0, dampening=0.0, nesterov=False, is_first_step=True, **numbers)
                lists = x, grads, []
            else:
                settings = dict(beta1=0.9, beta2=0.99, eps=1e-8, amsgrad=False, **numbers)
                lists = x, grads, *state, [], [rt.ones((), device=place)]
            step(*lists, **settings, **{key: rt.tensor(value, device=place) for key, value in scaling.items()})
            return x[0].tolist(), grads[0].tolist()

        assert stepped(6.0, grad_scale=4.0) == stepped(1.5)
        assert stepped(6.0, grad_scale=4.0, found_inf=0.0) == stepped(1.5)
        assert stepped(6.0, found_inf=1.0) == ([1.0, 1.0], [6.0, 6.0])


def test_a_second_kernel_would_be_dead_code():
    for register in (cuda_kernel, cuda_impl):
        with pytest.raises(RuntimeError, match="'aten::mm' has a CUDA kernel already"):
            register(operator_named("mm"))(print)
