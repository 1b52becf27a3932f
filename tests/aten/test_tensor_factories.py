"""Tensors from nothing and from Python data, storages, and memory shared with NumPy, against the reference."""

import numpy as np
import pytest
import torch

import readtorch as rt
from tests.reference import both, default_dtype

FACTORIES = {
    "zeros": lambda T: [T.zeros(2, 3), T.zeros((2,), dtype=T.int32), T.zeros([1, 2]), T.zeros(0, 3), T.zeros(())],
    "ones": lambda T: [T.ones(2, 3), T.ones(2, dtype=bool), T.ones(size=(2,))],
    "full": lambda T: [
        T.full((2,), 1.5),
        T.full((2,), 3),
        T.full((2,), True),
        T.full((1,), 2j),
        T.full((2,), 1.5, dtype=T.int32),
    ],
    "eye": lambda T: [T.eye(3), T.eye(2, 3, dtype=T.int64), T.eye(0)],
    "requires_grad": lambda T: T.zeros(2, requires_grad=True),
    "arange": lambda T: [
        T.arange(5),
        T.arange(1, 5),
        T.arange(1, 9, 3),
        T.arange(0, 1, 0.25),
        T.arange(5.0),
        T.arange(5, 0, -2),
        T.arange(T.tensor(3)),
    ],
    "linspace": lambda T: [
        T.linspace(0, 1, 5),
        T.linspace(3, -3, 4, dtype=T.float64),
        T.linspace(0, 10, 4, dtype=T.int32),
        T.linspace(1, 2, 1),
    ],
    "logspace": lambda T: [T.logspace(0, 2, 3), T.logspace(0, 3, 4, base=2)],
    "indices": lambda T: [T.tril_indices(3, 4), T.triu_indices(3, 3, 1)],
    "scalar_tensor": lambda T: [T.scalar_tensor(3), T.scalar_tensor(3, dtype=T.int32)],
    "out": lambda T: T.zeros(2, out=T.ones(3, dtype=T.int32)),
    "shape": lambda T: [T.empty(2, 3).shape, T.empty_strided((2, 3), (1, 2)).stride()],
}


@pytest.mark.filterwarnings("ignore:An output with one or more elements")
@pytest.mark.parametrize("name", FACTORIES)
def test_factory(name):
    both(FACTORIES[name])


@pytest.mark.parametrize("name", ["zeros_like", "ones_like"])
def test_like(name):
    for layout in (lambda x: x, lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[0].expand(3, 4)):
        both(lambda T, x: getattr(T, name)(layout(x)), torch.rand(2, 4))
    both(
        lambda T, x: [
            getattr(T, name)(x, dtype=T.int64),
            T.full_like(x, 2),
            x.new_zeros(3),
            x.new_ones((1, 2)),
            x.new_full((2,), 7),
        ],
        torch.rand(2, 4),
    )


ERRORS = {
    "negative": lambda T: T.empty(-1),
    "cuda": lambda T: T.zeros(2, device="cuda"),
    "grad_of_ints": lambda T: T.zeros(2, dtype=T.int32, requires_grad=True),
    "step": lambda T: T.arange(0, 1, 0),
    "direction": lambda T: T.arange(0, -1),
    "infinite": lambda T: T.arange(0, float("inf")),
    "steps": lambda T: T.linspace(0, 1, -1),
    "overflow": lambda T: T.full((2,), 300, dtype=T.uint8),
    "eye": lambda T: T.eye(-1),
    "float_size": lambda T: T.zeros(2.5),
    "out_dtype": lambda T: T.zeros(2, dtype=T.int32, out=T.zeros(2)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_factory_errors(name):
    both(ERRORS[name])


DATA = [
    1,
    2.5,
    True,
    1j,
    [],
    [[], []],
    [1, 2.0, True],
    [1, 2j],
    [True, 2],
    [[1, 2], [3, 4]],
    (1, 2),
    range(3),
    np.ones(2),
    np.float32(1),
    [np.float32(1)],
    [np.float64(1)],
    [np.int32(1), 2.0],
    np.ones((2, 2), np.uint8),
    [[1, 2], [3]],
    [[1, 2], 3],
    [1, [2]],
    "a",
    ["a"],
    None,
    [None],
    {},
    object,
    2**63,
    [2**70],
    bytearray(b"ab"),
    b"ab",
    np.array("a"),
    [1e300],
    np.ones(3)[::-1],
]


def test_numpy_and_grad_mode():
    """A tensor that requires grad is shown to NumPy only where nothing is recorded."""

    def program(T, p):
        with T.no_grad():
            shown = p.numpy(), np.asarray(p), p.numpy(force=True)
        return [array.tolist() for array in shown] + [(p * 1).detach().numpy().tolist(), p.numpy(force=True).tolist()]

    both(program, torch.ones(3).requires_grad_())
    both(lambda T, p: p.numpy(), torch.ones(3).requires_grad_())
    both(lambda T, p: np.asarray(p), torch.ones(3).requires_grad_())


@pytest.mark.parametrize("data", DATA, ids=str)
def test_tensor(data):
    both(lambda T: T.tensor(data))


@pytest.mark.parametrize(
    "data, dtype",
    [
        ([1.7], "int32"),
        ([300], "uint8"),
        ([-1], "uint8"),
        (2**40, "int32"),
        ([1j], "float32"),
        ([2], "bool"),
        ([float("nan")], "int32"),
        ("a", "float32"),
        (b"a", "uint8"),
        ("", "float32"),
        ([0.1], "bfloat16"),
        ([1e40], "float16"),
        ([1, 2], "complex64"),
    ],
    ids=str,
)
def test_tensor_of_a_dtype(data, dtype):
    both(lambda T: T.tensor(data, dtype=getattr(T, dtype)))


def test_tensor_with_tensors_inside():
    both(lambda T: [T.tensor([T.tensor(1), T.tensor(2.0)]), T.tensor([T.tensor([1])])])
    both(lambda T: T.tensor([T.tensor([1, 2]), T.tensor([3, 4])]))


def test_default_dtype_decides_what_a_float_is():
    with default_dtype(torch.float64):
        both(lambda T: [T.tensor(1.5), T.tensor([1, 2.0]), T.zeros(2), T.arange(2.0), T.full((1,), 2.0), T.tensor([])])


def test_memory_shared_with_numpy():
    array = np.arange(6.0).reshape(2, 3)
    t = rt.from_numpy(array[1:])
    array[1, 0] = 40
    t[0, 1] = 50
    assert t.tolist() == [[40, 50, 5]] and array[1].tolist() == [40, 50, 5] and t.storage_offset() == 0
    assert rt.as_tensor(array).data_ptr() == array.ctypes.data and t.numpy().base is not None


@pytest.mark.parametrize(
    "data", [[1], np.array("a"), np.array([1, 2], dtype=">i4"), np.ones(3)[::-1], np.float32(1)], ids=str
)
def test_from_numpy_errors(data):
    both(lambda T: T.from_numpy(data))


def test_buffers_and_dlpack():
    both(
        lambda T: [
            T.frombuffer(bytearray(b"abcdabcd"), dtype=T.int32),
            T.frombuffer(bytearray(b"abcd"), dtype=T.int16, offset=2),
            T.asarray([1, 2]),
            T.asarray([1.0], requires_grad=True),
        ]
    )
    for length in (0, 3):
        both(lambda T: T.frombuffer(bytearray(length), dtype=T.int16))
    t = rt.arange(3)
    assert np.from_dlpack(t).ctypes.data == t.data_ptr() and rt.from_dlpack(np.arange(3)).tolist() == [0, 1, 2]


def test_storage():
    def describe(T):
        x = T.arange(3.0)
        s, typed = x.untyped_storage(), x.storage()
        return [
            s.nbytes(),
            s.tolist(),
            s[6],
            x[1:].untyped_storage().data_ptr() == s.data_ptr(),
            typed.tolist(),
            typed.size(),
            typed[1],
            s is x.untyped_storage(),
            len(s.clone()),
            repr(s),
            repr(typed),
        ]

    both(describe)


def test_set_and_resize():
    both(
        lambda T: [
            T.zeros(6).set_(T.arange(6.0).untyped_storage(), 1, (2,), (2,)),
            T.arange(6.0).resize_(2, 2),
            T.zeros(1).set_(T.arange(6.0)[2:]),
            T.zeros(3).set_(),
        ]
    )
    both(lambda T: T.zeros(2).set_(T.tensor([1])))


TO = {
    "dtype": lambda T, x: x.to(T.int32),
    "same": lambda T, x: x.to(T.float32) is x,
    "python": lambda T, x: x.to(dtype=float),
    "device": lambda T, x: x.to("cpu"),
    "both": lambda T, x: x.to("cpu", T.float64),
    "other": lambda T, x: x.to(T.tensor(1)),
    "copy": lambda T, x: x.to(T.float32, copy=True),
    "bad": lambda T, x: x.to(T.int32, T.float32),
    "bad_device": lambda T, x: x.to("float"),
    "named": lambda T, x: [x.half(), x.long(), x.bool(), x.double()],
    "format": lambda T, x: x.view(1, 1, 2, 3).to(memory_format=T.channels_last),
}


@pytest.mark.parametrize("name", TO)
def test_to(name):
    both(TO[name], torch.arange(6.0).reshape(2, 3).requires_grad_())


def test_on_meta_a_tensor_gets_no_other_device_s_storage():
    def there(T, *sizes):
        return T.empty(*sizes, device="meta")

    for T in (rt, torch):
        assert there(T, 2, 3).set_().device.type == "meta"
        assert there(T, 2).set_(there(T, 6)[2:]).storage_offset() == 2
        assert there(T, 2, 3).resize_(5, 5).untyped_storage().nbytes() == 100
        for one, other in ((there(T, 3), T.ones(3)), (T.ones(3), there(T, 3))):
            with pytest.raises(RuntimeError, match="the devices must match"):
                one.set_(other)


def test_normal_numbers_on_meta_look_at_no_deviation():
    for T in (rt, torch):
        std = T.empty(2, 3, device="meta")
        assert T.normal(0.0, std).shape == T.normal(std, 1.0).shape == T.normal(std, std[0]).shape == (2, 3)
        assert T.normal(0.0, 1.0, (2, 3), device="meta").device.type == "meta"
        assert T.randperm(3, out=T.empty(0, dtype=T.int64, device="meta")).shape == (3,)


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("out_dtype", ["float32", "complex64", "int64", "bool"])
@pytest.mark.parametrize(
    "call",
    [
        lambda T, x, out: T.normal(x, x, out=out),
        lambda T, x, out: T.normal(x, 2.0, out=out),
        lambda T, x, out: T.normal(1.0, x, out=out),
        lambda T, x, out: T.normal(0.0, 1.0, (2, 3), out=out),
        lambda T, x, out: out.normal_(),
    ],
)
def test_normal_numbers_are_one_write_to_an_output(call, out_dtype, device):
    """What is no number of floating point is refused by the CPU, and on meta where no tensor is a parameter."""
    found = []
    for T in (rt, torch):
        out = T.ones(2, 3, dtype=getattr(T, out_dtype), device=device)
        try:
            assert call(T, T.ones(2, 3, device=device), out) is out
            found.append(out._version)
        except RuntimeError as error:
            found.append(f"{type(error).__name__} {error}".replace("readtorch.", "torch."))
    assert found[0] == found[1]


@pytest.mark.parametrize("geometry", [((2, 2), (1, 2), 10), ((20,), (1,), 0), ((2, 2), (1, 2), 6), ((0,), (1,), 50)])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_view_on_meta_may_pass_the_end_of_its_storage_but_not_in_place(geometry, device):
    for method in ("as_strided", "as_strided_"):
        found = []
        for T in (rt, torch):
            try:
                found.append(getattr(T.ones(10, device=device), method)(*geometry).shape)
            except RuntimeError as error:
                found.append(str(error))
        assert found[0] == found[1], method
