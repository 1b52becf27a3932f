"""Modules and tensors without memory: what people do with the Meta device, compared with PyTorch, words of errors included."""

import copy
import io
import pickle

import pytest

import readtorch
from tests.programs import same


def without_memory(T):
    with T.device("meta"):
        return T.nn.Linear(3, 2)


def described(module):
    return [
        (name, tuple(t.shape), str(t.device), t.requires_grad, type(t).__name__)
        for name, t in module.state_dict(keep_vars=True).items()
    ]


MODULES = {
    "the largest tensor": lambda T: T.empty(2**63 - 1, dtype=T.int8, device="meta").shape,
    "too large a tensor": lambda T: T.empty(2**62, 2, dtype=T.int8, device="meta"),
    "too large for its dtype": lambda T: T.empty(2**62, dtype=T.int16, device="meta"),
    "made under the device": lambda T: described(without_memory(T)),
    "forward": lambda T: without_memory(T)(T.empty(4, 3, device="meta")),
    "to cpu": lambda T: without_memory(T).to("cpu"),
    "cpu": lambda T: without_memory(T).cpu(),
    "double": lambda T: described(without_memory(T).double()),
    "half": lambda T: described(without_memory(T).to(T.float16)),
    "to_empty": lambda T: described(without_memory(T).to_empty(device="cpu")),
    "to_empty, one level": lambda T: described(
        T.nn.Sequential(without_memory(T)).to_empty(device="cpu", recurse=False)
    ),
    "to meta": lambda T: described(T.nn.Linear(3, 2).to("meta")),
    "to meta, dtype": lambda T: T.nn.Linear(2, 2).to(device="meta", dtype=T.bfloat16).weight,
    "batch norm": lambda T: described(T.nn.BatchNorm1d(3, device="meta")),
    "batch norm, forward": lambda T: T.nn.BatchNorm1d(3, device="meta")(T.empty(2, 3, device="meta")),
    "init": lambda T: T.nn.init.kaiming_uniform_(T.empty(2, 3, device="meta")),
    "deepcopy": lambda T: described(copy.deepcopy(without_memory(T))),
    "pickle": lambda T: described(pickle.loads(pickle.dumps(without_memory(T)))),
    "share_memory": lambda T: without_memory(T).share_memory(),
    "skip_init": lambda T: described(T.nn.utils.skip_init(T.nn.Linear, 2, 3)),
    "lazy": lambda T: T.nn.LazyLinear(2, device="meta")(T.empty(2, 3, device="meta")).shape,
    "sequential": lambda T: T.nn.Sequential(without_memory(T), T.nn.ReLU(), T.nn.Dropout())(
        T.empty(1, 3, device="meta")
    ),
    "convolution": lambda T: T.nn.Conv2d(3, 4, 3, device="meta")(T.empty(1, 3, 8, 8, device="meta")),
    "LSTM": lambda T: T.nn.LSTM(3, 4, device="meta")(T.empty(5, 1, 3, device="meta"))[0],
    "encoder layer": lambda T: T.nn.TransformerEncoderLayer(8, 2, device="meta")(T.empty(5, 1, 8, device="meta")),
    "embedding": lambda T: T.nn.Embedding(3, 4, device="meta")(T.empty(5, dtype=T.int64, device="meta")),
    "cross_entropy": lambda T: T.nn.functional.cross_entropy(
        T.empty(5, 3, device="meta"), T.empty(5, dtype=T.int64, device="meta")
    ),
    "clip_grad_norm_": lambda T: T.nn.utils.clip_grad_norm_([T.nn.Parameter(T.empty(2, device="meta"))], 1.0),
    "parameters_to_vector": lambda T: T.nn.utils.parameters_to_vector(without_memory(T).parameters()),
    "parameter": lambda T: T.nn.Parameter(T.empty(2, device="meta")),
    "buffer": lambda T: T.nn.Buffer(T.empty(2, device="meta")),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    same(lambda T, show: show.error(lambda: show(MODULES[name](T))))


def test_gradients_and_steps():
    def program(T, show):
        for make in (lambda p: T.optim.SGD(p, 0.1, momentum=0.9), T.optim.Adam):
            m = without_memory(T)
            optimizer = make(m.parameters())
            m(T.empty(4, 3, device="meta")).sum().backward()
            show([(p.grad.device, p.grad.shape) for p in m.parameters()])
            optimizer.step()
            show([p._version for p in m.parameters()])
            for state in optimizer.state_dict()["state"].values():
                show({k: v if v is None else (v.device, v.shape) for k, v in state.items()})

    same(program)


def test_state_dicts():
    def program(T, show):
        state = T.nn.Linear(3, 2).state_dict()
        plain, assigned = without_memory(T), without_memory(T)
        show.warnings(lambda: show(plain.load_state_dict(state), described(plain)))
        show.warnings(lambda: show(assigned.load_state_dict(state, assign=True), described(assigned)))
        show(T.equal(assigned.weight, state["weight"]), assigned(T.empty(1, 3)).shape)
        loaded = T.nn.Linear(3, 2)
        show.error(lambda: loaded.load_state_dict(without_memory(T).state_dict()))
        show(loaded.load_state_dict(without_memory(T).state_dict(), assign=True), described(loaded))

    same(program)


def test_files(tmp_path):
    def program(T, show):
        path = tmp_path / f"{T.__name__}.pt"
        T.save(without_memory(T).state_dict(), path)
        show(T.load(path))
        state = T.nn.Linear(3, 2).state_dict()
        T.save(state, path)
        show(T.load(path, map_location="meta"), T.load(path, mmap=True, map_location="meta"))
        m = without_memory(T)
        show(m.load_state_dict(T.load(path, mmap=True), assign=True), described(m))
        show(T.equal(m.weight, state["weight"]), m(T.ones(1, 3)).shape)

    same(program)


def test_files_of_one_library_in_the_other():
    import torch

    for T, other in ((torch, readtorch), (readtorch, torch)):
        file = io.BytesIO()
        T.save({"t": T.empty(2, 3, device="meta").t(), "g": T.empty(1, device="meta", requires_grad=True)}, file)
        file.seek(0)
        read = other.load(file)
        assert str(read["t"].device) == "meta" and read["t"].stride() == (1, 3) and read["g"].requires_grad


def test_deferred_initialisation_costs_no_memory():
    """A model of four terabytes."""
    m = readtorch.nn.Linear(10**6, 10**6, device="meta")
    assert sum(p.numel() for p in m.parameters()) == 10**12 + 10**6
    assert m.weight.untyped_storage().nbytes() == 4 * 10**12
    assert m.double().weight[:2].contiguous().shape == (2, 10**6)
    assert m.to_empty(device="meta").weight.is_meta


TENSORS = {
    "item": lambda T, m: m.item(),
    "item of several": lambda T, m: T.empty(2, 3, device="meta").item(),
    "tolist": lambda T, m: m.tolist(),
    "numpy": lambda T, m: m.numpy(),
    "bool": lambda T, m: bool(m),
    "float": lambda T, m: float(m),
    "index": lambda T, m: [1, 2][m.long()],
    "format": lambda T, m: f"{m}",
    "repr": lambda T, m: m,
    "cpu": lambda T, m: m.cpu(),
    "copied to cpu": lambda T, m: T.ones(()).copy_(m),
    "copied from cpu": lambda T, m: m.copy_(T.ones(())),
    "copied, shapes": lambda T, m: m.copy_(T.ones(3)),
    "mixed": lambda T, m: T.ones(2, 3) + T.empty(2, 3, device="meta"),
    "mixed, the other way": lambda T, m: T.empty(2, 3, device="meta") + T.ones(2, 3),
    "with a number of the cpu": lambda T, m: T.empty(2, 3, device="meta") + T.ones(()),
    "a number beside a tensor of the cpu": lambda T, m: T.ones(2) + m,
    "in place, mixed": lambda T, m: T.empty(2, device="meta").add_(T.ones(2)),
    "in place, shapes": lambda T, m: T.empty(2, device="meta").add_(T.empty(3, device="meta")),
    "in place, broadcast": lambda T, m: T.empty(2, device="meta").add_(T.empty(3, 2, device="meta")),
    "in place, dtype": lambda T, m: T.empty(2, device="meta", dtype=T.int64).add_(T.empty(2, device="meta")),
    "random": lambda T, m: T.empty(2, device="meta").normal_(),
    "randn": lambda T, m: T.randn(2, device="meta"),
    "randint": lambda T, m: T.randint(3, (2,), device="meta"),
    "randperm": lambda T, m: T.randperm(5, device="meta"),
    "arange": lambda T, m: T.arange(3, device="meta"),
    "linspace": lambda T, m: T.linspace(0, 1, 5, device="meta"),
    "tensor": lambda T, m: T.tensor([1, 2], device="meta"),
    "as_tensor": lambda T, m: T.as_tensor([1.0, 2.0], device="meta"),
    "to": lambda T, m: T.ones(2).to(device="meta", dtype=T.float64),
    "data_ptr": lambda T, m: m.data_ptr(),
    "storage": lambda T, m: m.untyped_storage(),
    "bytes": lambda T, m: (m.untyped_storage().nbytes(), m.untyped_storage().data_ptr()),
    "offset": lambda T, m: T.empty(4, device="meta")[1:].storage_offset(),
    "storage of a size": lambda T, m: T.UntypedStorage(10**15, device="meta").nbytes(),
    "nonzero": lambda T, m: m.nonzero(),
    "mask": lambda T, m: m[m > 0],
    "where": lambda T, m: T.where(m > 0),
    "unique": lambda T, m: m.unique(),
    "equal": lambda T, m: T.equal(m, m),
    "allclose": lambda T, m: T.allclose(m, m),
    "device": lambda T, m: (m.device, T.device("meta", 0), T.empty(2, device="meta:0").device),
    "large": lambda T, m: T.empty(10**15, device="meta"),
    "too large": lambda T, m: T.empty(10**15, 10**15, device="meta"),
    "negative": lambda T, m: T.empty(-1, device="meta"),
    "deepcopy": lambda T, m: copy.deepcopy(m),
    "pickle": lambda T, m: pickle.loads(pickle.dumps(m)),
    "share_memory_": lambda T, m: m.share_memory_(),
    "type": lambda T, m: m.type(),
    "resize_": lambda T, m: T.empty(2, device="meta").resize_(5),
    "set_": lambda T, m: T.empty(2, device="meta").set_(T.empty(5, device="meta")),
    "strides": lambda T, m: T.empty(2, 3, device="meta").t().clone().stride(),
    "view": lambda T, m: T.empty(4, device="meta").view(2, 2).t().contiguous().stride(),
    "view, sizes": lambda T, m: T.empty(4, device="meta").view(3),
    "iter": lambda T, m: list(T.empty(2, device="meta")),
    "requires_grad": lambda T, m: T.empty(2, device="meta", requires_grad=True),
    "eq": lambda T, m: m == m,
    "dlpack": lambda T, m: m.__dlpack__(),
}
# Behind these words PyTorch's go on about settings of the compilers, or name an address.
BEGIN_ALIKE = {"nonzero", "mask", "where", "unique", "equal"}
# Where PyTorch's Meta device runs a reference in Python, with words of its own; ours are those of the CPU.
OWN_WORDS = {"in place, shapes", "in place, broadcast", "in place, dtype"}


@pytest.mark.parametrize("name", TENSORS)
def test_tensors(name):
    def program(T, show):
        m = T.empty((), device="meta")
        try:
            show(TENSORS[name](T, m))
        except Exception as error:
            words = str(error)[: 40 if name in BEGIN_ALIKE else None]
            show(type(error).__name__, name in OWN_WORDS or words)

    same(program)
