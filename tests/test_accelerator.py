"""torch.accelerator: without a device as the reference says it, with simulated devices as readtorch.cuda says it."""

import inspect

import pytest
import torch

import readtorch
from readtorch import accelerator, cuda
from tests.programs import same

CALLS = [
    ("current_device_index",),
    ("set_device_index", 0),
    ("current_stream",),
    ("current_stream", 0),
    ("synchronize",),
]


def test_without_a_device():
    if torch.accelerator.is_available():
        pytest.skip("the reference sees an accelerator here")

    def program(T, show):
        a = T.accelerator
        show(a.is_available(), a.device_count(), a.current_accelerator(), a.current_accelerator(check_available=True))
        for name, *arguments in CALLS:
            show.error(lambda: getattr(a, name)(*arguments))
        with a.device_index(None):
            show(a.current_accelerator().type if a.is_available() else "cpu")
        show.error(lambda: a.device_index(0).__enter__())

    same(program)


@pytest.mark.parametrize("name", accelerator.__all__)
def test_signatures(name):
    ours, theirs = (inspect.signature(getattr(lib.accelerator, name)) for lib in (readtorch, torch))
    assert [(p.name, p.kind, p.default) for p in ours.parameters.values()] == [
        (p.name, p.kind, p.default) for p in theirs.parameters.values()
    ]


def test_with_devices():
    cuda.simulate(2, "64MiB")
    try:
        assert accelerator.is_available() and accelerator.device_count() == 2
        place = accelerator.current_accelerator()
        assert place == readtorch.device("cuda") and readtorch.ones(2, device=place).is_cuda
        accelerator.set_device_index(readtorch.device("cuda:1"))
        assert accelerator.current_device_index() == cuda.current_device() == 1
        with accelerator.device_index(0):
            assert cuda.current_device() == 0
        assert cuda.current_device() == 1
        stream = cuda.Stream(0)
        accelerator.set_stream(stream)
        assert (
            cuda.current_device() == 0
            and accelerator.current_stream() == accelerator.current_stream("cuda:0") == stream
        )
        accelerator.synchronize()
        accelerator.synchronize("cuda:1")
        with pytest.raises(ValueError, match="cpu doesn't match the current accelerator cuda"):
            accelerator.synchronize("cpu")
        with pytest.raises(
            ValueError, match="Expected a torch.device with a specified index or an integer, but got:cuda"
        ):
            accelerator.set_device_index("cuda")
    finally:
        cuda.simulate(0)
