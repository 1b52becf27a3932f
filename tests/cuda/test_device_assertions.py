"""Errors that kernels find: what is written, what is raised, and that it does not go away."""

import re

import numpy as np
import pytest

import readtorch as rt
import readtorch.nn.functional as F
from readtorch import cuda
from readtorch.c10.cuda import compile, simulator
from readtorch.c10.cuda.cuda_device_assertion import DeviceAssert, cuda_kernel_assert
from readtorch.c10.cuda.launch import launch

ASSERTED = "CUDA error: device-side assert triggered\nSearch for `cudaErrorAssert' in "


@pytest.fixture(autouse=True)
def devices():
    cuda.simulate(1, "64MiB", kernels=True)
    yield
    cuda.simulate(0)


def on_device(*values, **named):
    return rt.tensor(*values, device="cuda", **named)


CALLS = {
    "index": lambda x: x[on_device([0, 3])],
    "index, from the end": lambda x: x[on_device([-4])],
    "index_put_": lambda x: x.index_put_((on_device([1]), on_device([4])), on_device([1.0])),
    "gather": lambda x: x.gather(1, on_device([[4]])),
    "gather, from the end": lambda x: x.gather(1, on_device([[-1]])),
    "scatter": lambda x: x.scatter(0, on_device([[3]]), 1.0),
    "scatter_add": lambda x: x.scatter_add(0, on_device([[-1]]), on_device([[1.0]])),
    "scatter_reduce": lambda x: x.scatter_reduce(0, on_device([[5]]), on_device([[1.0]]), "amax"),
    "index_select": lambda x: x.index_select(0, on_device([3])),
    "index_add": lambda x: x.index_add(0, on_device([3]), x[:1]),
    "index_copy": lambda x: x.index_copy(0, on_device([3]), x[:1]),
    "index_fill": lambda x: x.index_fill(0, on_device([-4]), 1.0),
    "take": lambda x: x.take(on_device([12])),
    "put": lambda x: x.put(on_device([-13]), on_device([1.0])),
    "embedding": lambda x: F.embedding(on_device([3]), x),
    "embedding_bag": lambda x: F.embedding_bag(on_device([[3]]), x),
    "embedding_bag, max": lambda x: F.embedding_bag(on_device([[0, 3]]), x, mode="max"),
    "cross_entropy": lambda x: F.cross_entropy(x, on_device([0, 4, 1])),
    "binary_cross_entropy": lambda x: F.binary_cross_entropy(x * 1.5, x),
    "binary_cross_entropy, target": lambda x: F.binary_cross_entropy(x, -x),
    "nll_loss2d": lambda x: F.nll_loss(x.view(1, 3, 2, 2), on_device([[[0, 1], [2, -1]]])),
}


def asserts(call, capfd):
    """Whether a call ends with an assertion, as seen by the host that asks for its result."""
    try:
        call(rt.ones(3, 4, device="cuda")).sum().item()
    except rt.AcceleratorError as error:
        assert str(error).startswith(ASSERTED) and "at some other API call" in str(error)
        written = capfd.readouterr().err
        assert re.search(
            r"\.py:\d+: \w+: block: \[\d+,\d+,\d+\], thread: \[\d+,\d+,\d+\] Assertion `[^`]+` failed\.\n", written
        )
        return True
    return False


@pytest.mark.parametrize("name", CALLS)
def test_an_index_out_of_bounds(name, capfd):
    assert asserts(CALLS[name], capfd)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x[on_device([-3, 2])],
        lambda x: x.take(on_device([-12, 11])),
        lambda x: x.index_fill(0, on_device([-3]), 1.0),
        lambda x: F.embedding(on_device([2, 0]), x, padding_idx=0),
        lambda x: F.cross_entropy(x, on_device([0, -100, 3])),
        lambda x: F.binary_cross_entropy(x, x * 0),
    ],
)
def test_indices_that_are_within(call, capfd):
    assert not asserts(call, capfd)


def test_what_is_written_names_file_line_and_thread(capfd):
    index = rt.zeros(300, dtype=rt.int64)
    index[257] = 9
    with pytest.raises(rt.AcceleratorError):
        rt.ones(4, device="cuda").gather(0, index.cuda()).cpu()
    file, source = (
        __import__("readtorch").aten.native.cuda.scatter_gather_kernel.__file__,
        "cuda_kernel_assert(0 <= index",
    )
    line = next(i for i, text in enumerate(open(file), 1) if source in text)
    assert capfd.readouterr().err == (
        f"{file}:{line}: in_bounds: block: [1,0,0], thread: [1,0,0] "
        'Assertion `0 <= index < size and "index out of bounds"` failed.\n'
    )


def test_the_error_stays(capfd):
    x, event = rt.ones(3, device="cuda"), cuda.Event()
    event.record()
    x.gather(0, on_device([3]))
    pinned = rt.ones(3)
    calls = [
        cuda.synchronize,
        cuda.current_stream().synchronize,
        cuda.current_stream().query,
        event.record,
        event.query,
        event.synchronize,
        cuda.mem_get_info,
        lambda: x.cpu(),
        lambda: x + x,
        lambda: x.copy_(pinned),
        lambda: rt.ones(3, pin_memory=True),
        lambda: rt.empty(1 << 22, device="cuda"),
        lambda: repr(x),
    ]
    messages = set()
    for call in calls:
        with pytest.raises(rt.AcceleratorError) as caught:
            call()
        messages.add(str(caught.value))
    assert len(messages) == 1 and messages.pop().startswith(ASSERTED)
    assert x.shape == (3,) and x[1:].data_ptr() == x.data_ptr() + 4  # what asks the device for nothing works
    cuda.simulate(1, "64MiB", kernels=True)  # another machine
    assert rt.ones(3, device="cuda").sum().item() == 3


def test_with_launch_blocking_the_launch_says_so(monkeypatch, capfd):
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    x = rt.ones(3, 4, device="cuda")
    with pytest.raises(rt.AcceleratorError, match=ASSERTED) as caught:
        CALLS["embedding"](x)
    assert "asynchronously" not in str(caught.value)
    assert caught.value.__notes__ == ["It came to light in the operator 'aten::embedding'."]


def beyond(x):
    x[x.size + 5] = 1


def test_an_illegal_access_stays_too():
    x = rt.ones(3, device="cuda")
    with pytest.raises(rt.AcceleratorError, match="an illegal memory access was encountered[^~]*x"):
        launch(beyond, 1, 1, x._array)
    with pytest.raises(
        rt.AcceleratorError, match="^CUDA error: an illegal memory access was encountered\nSearch for `cudaErrorIll"
    ):
        cuda.synchronize()


def two(x, i):
    """Two assertions of one function."""
    cuda_kernel_assert(x[0] == 1, "the first")
    cuda_kernel_assert(
        x[i]
        == 1
    )  # over several lines  # fmt: skip


@pytest.mark.parametrize("values, text", [([0, 1], '`x[0] == 1 and "the first"`'), ([1, 0], "`x[i] == 1`")])
def test_each_assertion_has_its_text(values, text, capfd):
    with pytest.raises(DeviceAssert):
        simulator.launch(two, 1, 1, np.array(values), 1)
    launch(two, 1, 1, on_device(values)._array, 1)
    assert text in capfd.readouterr().err


def test_what_the_chip_is_told():
    numba = pytest.importorskip("numba")
    pytest.importorskip("numba.cuda")
    text = compile.ptx(two, (numba.int64[:], numba.int64), (9, 0))
    constants = [bytes(map(int, found.split(","))).decode() for found in re.findall(r"\.const .*= \{([\d, ]+)\}", text)]
    assert {'x[0] == 1 and "the first"', "x[i] == 1", "two", __file__} == set(constants)
    assert text.count("__assertfail,") == 2
    with pytest.raises(RuntimeError, match="cuda_kernel_assert is for kernels"):
        cuda_kernel_assert(True)
