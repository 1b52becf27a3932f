"""What files of PyTorch's own suite found: the same calls on both sides, with their values, errors and warnings."""

import tempfile
import warnings

import numpy as np
import pytest
import torch

import readtorch


def from_file(T, **options):
    with tempfile.NamedTemporaryFile() as file:
        np.arange(5, dtype=np.float32).tofile(file.name)
        t = T.from_file(file.name, **options)
        t.fill_(3)
        return t, np.fromfile(file.name, np.float32), t.untyped_storage().filename is None


def assigned(T, value, dtype):
    t = T.tensor([2, 5, 6], dtype=dtype)
    t[0] = value
    return t


def masked(T, value):
    t = T.arange(4)
    t[t > 0] = T.tensor(value)
    return t


def gathered(T, shape, index_shape):
    x = T.ones(shape, requires_grad=True)
    T.gather(x, 0, T.zeros(index_shape, dtype=T.int64), sparse_grad=True).sum().backward()
    return x.grad.to_dense()


def power(T):
    x, y = T.tensor(-2.0, dtype=T.float64, requires_grad=True), T.tensor(0.5 + 1j, requires_grad=True)
    (x**y).abs().backward()
    return x.grad, y.grad


class Lender:
    """Another library's tensor."""

    def __init__(self, t):
        self.t = t
        self.__dlpack__, self.__dlpack_device__ = t.__dlpack__, t.__dlpack_device__


class Liar:
    def __len__(self):
        return 3

    def __getitem__(self, index):
        raise TypeError


def lent(T):
    x = T.ones(3, dtype=T.float64)
    y = T.utils.dlpack.from_dlpack(T.utils.dlpack.to_dlpack(x))
    y[0] = 21
    return x


def misfit(T):
    return T.from_numpy(np.lib.stride_tricks.as_strided(np.arange(8.0), (3,), (3,)))


CALLS = {
    # NumPy
    "array == tensor": lambda T: np.ones((2, 3), np.float32) == T.ones(2, 3),
    "tensor == array": lambda T: T.arange(2) == np.array([0.0, 2.0]),
    "tensor == array of words": lambda T: T.ones(2) == np.array(["a", "b"]),
    "tensor == other sizes": lambda T: T.ones(2) == np.ones(3),
    "assign int16": lambda T: assigned(T, np.int16(3), T.int32),
    "assign uint8": lambda T: assigned(T, np.uint8(3), T.float32),
    "misfit": misfit,
    "sizes that are arrays": lambda T: T.ones(np.array(3), np.int64(2)),
    "sizes in a tuple": lambda T: T.ones((np.array(3), 2)),
    "list of arrays": lambda T: T.tensor([np.array([0]), np.array([1])]),
    "frombuffer of none": lambda T: T.frombuffer([1, 2], dtype=T.int32),
    # making tensors
    "lent": lent,
    "tensor of a lender": lambda T: T.tensor(Lender(T.ones(3))),
    "as_tensor of a lender": lambda T: T.as_tensor(Lender(T.ones(3)), dtype=T.int32),
    "asarray of a capsule": lambda T: T.asarray(T.utils.dlpack.to_dlpack(T.ones(3))),
    "asarray of a capsule, as ints": lambda T: T.asarray(
        T.utils.dlpack.to_dlpack(T.ones(3)), dtype=T.int64, copy=False
    ),
    "a sequence that lies": lambda T: T.tensor(Liar()),
    "from_file": lambda T: from_file(T, size=3),
    "from_file shared": lambda T: from_file(T, size=5, shared=True),
    "from_file ints": lambda T: from_file(T, size=2, dtype=T.int32, shared=True),
    "from_file too long": lambda T: T.from_file("/dev/null", size=3),
    "from_file nowhere": lambda T: T.from_file("/nowhere", size=3),
    "from_file of a number": lambda T: T.from_file(3),
    "legacy with device": lambda T: T.Tensor(T.ones(2), device="cpu"),
    "out= requires grad": lambda T: T.zeros(2, out=T.ones(2), requires_grad=True).requires_grad,
    "arange out": lambda T: T.arange(1, 4, out=T.ones(1, 4)),
    "linspace out": lambda T: T.linspace(1, 3, 5, out=T.ones(1, 4)),
    "too large": lambda T: T.empty([0, 4, 2**61]),
    "cat of nothing": lambda T: T.cat([T.ones(0), T.ones(0)], 2),
    "meshgrid of nothing": lambda T: T.meshgrid([], indexing="ij"),
    "meshgrid of dtypes": lambda T: T.meshgrid(T.ones(2), T.arange(3), indexing="ij"),
    "meshgrid of devices": lambda T: T.meshgrid(T.ones(2), T.ones(3, device="meta"), indexing="ij"),
    "empty_like sparse": lambda T: T.empty_like(T.ones(2, 2).to_sparse(), memory_format=T.contiguous_format),
    # numbers
    "int of two": lambda T: int(T.ones(2)),
    "float of none": lambda T: float(T.ones(0)),
    "complex of two": lambda T: complex(T.ones(2)),
    "item of two": lambda T: T.ones(2).item(),
    **{f"Size {x}": lambda T, x=x: T.Size([2, x]) for x in (1.5, "a", None, True, np.int64(3))},
    "Size of a tensor": lambda T: T.Size([T.tensor(3)]),
    "Size of floats": lambda T: T.Size(T.ones(2)),
    # words
    **{f"split {x}": lambda T, x=x: T.ones(4).split(x) for x in ("a", 2.0, None, [2, 2.0])},
    "split of a tensor": lambda T: T.ones(4).split(T.tensor(2)),
    "norm keepdim": lambda T: T.ones(2).norm(keepdim=1),
    "a keyword": lambda T: T.topk(T.ones(2), k="a"),
    "a keyword of a method": lambda T: T.ones(2, 2).bmm(mat2=3),
    "a keyword of a list": lambda T: T.roll(T.ones(2), shifts=["a"]),
    "keepdim": lambda T: T.linalg.vector_norm(T.ones(2), keepdim=1),
    "keepdim by place": lambda T: T.linalg.vector_norm(T.ones(2), 2, 0, 1),
    "linalg": lambda T: T.linalg.det(3),
    "fft": lambda T: T.fft.fft("a"),
    "special": lambda T: T.special.expit(None),
    "type": lambda T: (T.ones(2, dtype=T.int32).type(T.Tensor), T.ones(1).type(str)),
    "type Tensor": lambda T: T.ones(2, dtype=T.int32).type(T.Tensor),
    # indices
    "outside": lambda T: T.ones(10, 3)[:, [1, 7]],
    "outside of nothing": lambda T: T.ones(10, 0)[:, [1, 2]],
    **{f"mask {x}": lambda T, x=x: masked(T, x) for x in ([], [1.5], [1.5] * 3, [1.5, 2.0], 1.5, [7])},
    "gather of a number": lambda T: gathered(T, (), (1,)),
    "gather by a number": lambda T: gathered(T, (3,), ()),
    "gather of rows": lambda T: gathered(T, (3, 2), (1, 2)),
    # the rest
    **{
        f"{f} {shape}": lambda T, f=f, shape=shape: getattr(T, f)(T.ones(shape), dim=-1)
        for f in ("var", "std", "var_mean", "std_mean")
        for shape in ((2, 1), (2, 0), (0, 2))
    },
    "var correction": lambda T: T.var(T.ones(2, 3), dim=-1, correction=3),
    "searchsorted": lambda T: T.searchsorted(T.ones(2, 3), T.ones(3, 2).t()),
    "bucketize": lambda T: T.bucketize(T.ones(3, 2), T.ones(6)[::2]),
    "power": power,
    "t of a sparse number": lambda T: T.tensor(1.0).to_sparse().t().to_dense(),
    "unsafe_split_with_sizes": lambda T: [
        t.grad_fn.name() for t in T.ones(4, requires_grad=True).unsafe_split_with_sizes([3, 1])
    ],
    "unsafe_split_with_sizes, refused": lambda T: T.unsafe_split_with_sizes(T.ones(4), [3, 2]),
    "pack nothing": lambda T: T.nn.utils.rnn.pack_padded_sequence(T.ones(0, 0), T.ones(1, 1, dtype=T.int64)),
    "SavedTensor": lambda T: T.autograd.SavedTensor(),
    "tf32": lambda T: T.cuda.is_tf32_supported() in (True, False),
}


@pytest.mark.parametrize("call", CALLS)
def test_both_say_the_same(call):
    def told(T):
        before = T.is_warn_always_enabled()
        T.set_warn_always(True)
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            try:
                text = repr(CALLS[call](T))
            except Exception as error:
                text = f"{type(error).__name__}: {error}".partition("\n")[0]
        T.set_warn_always(before)
        words = [f"{w.category.__name__}: {w.message}".partition(" (Triggered")[0] for w in given]
        return text, list(dict.fromkeys(w for w in words if "__array_wrap__" not in w))

    ours = told(readtorch)
    assert ours == told(torch)
    assert "readtorch" not in ours[0]
