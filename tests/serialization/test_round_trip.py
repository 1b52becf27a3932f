"""What one implementation saved the other loads: equal values, types, strides, and the same storages shared."""

import importlib
import io
import pickle
import warnings

import pytest
import torch

import readtorch
from tests.serialization.describe import describe
from tests.serialization.state_dicts import random_checkpoint


def saved(T, obj, **options):
    file = io.BytesIO()
    T.save(obj, file, **options)
    file.seek(0)
    return file


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_two_hundred_random_state_dicts(first, tmp_path):
    for seed in range(first, first + 20):
        theirs = random_checkpoint(seed)
        expected = describe(torch.load(saved(torch, theirs)))
        ours = readtorch.load(saved(torch, theirs))
        assert describe(ours) == expected, f"theirs to ours, seed {seed}"
        assert describe(torch.load(saved(readtorch, ours))) == expected, f"ours to theirs, seed {seed}"
        assert describe(readtorch.load(saved(readtorch, ours))) == expected
        assert describe(readtorch.load(saved(torch, theirs), weights_only=False)) == expected
        assert describe(torch.load(saved(readtorch, ours), weights_only=False)) == expected
        if seed % 5 == 0:
            readtorch.save(ours, tmp_path / "ours.pt")
            torch.save(theirs, tmp_path / "theirs.pt")
            assert describe(torch.load(tmp_path / "ours.pt", mmap=True)) == expected
            assert describe(readtorch.load(tmp_path / "theirs.pt", mmap=True)) == expected


def test_the_description_sees_values_and_sharing():
    a = torch.arange(4.0)
    assert describe([a, a[1:]]) != describe([a, a[1:].clone()])
    assert describe([a]) != describe([a + 1]) and describe([a]) != describe([a.double()])
    assert describe([a, a]) != describe([a, a[:]])


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_whole_modules_of_either_side_open_on_the_other(protocol):
    def build(T):
        return T.nn.Sequential(
            T.nn.Conv2d(1, 2, 3),
            T.nn.BatchNorm2d(2),
            T.nn.ReLU(),
            T.nn.Flatten(),
            T.nn.Linear(8, 3),
            T.nn.ParameterList([T.ones(2)]),
        ).eval()

    theirs = build(torch)
    ours = readtorch.load(saved(torch, theirs, pickle_protocol=protocol), weights_only=False)
    assert repr(ours) == repr(theirs) and type(ours) is readtorch.nn.Sequential
    x = torch.randn(2, 1, 4, 4)
    y = theirs[:5](x)
    torch.testing.assert_close(torch.tensor(ours[:5](readtorch.tensor(x.tolist())).tolist()), y)
    back = torch.load(saved(readtorch, ours, pickle_protocol=protocol), weights_only=False)
    assert type(back) is torch.nn.Sequential and describe(back.state_dict()) == describe(theirs.state_dict())


def every_module_class():
    return sorted(
        name
        for name, cls in vars(torch.nn).items()
        if isinstance(cls, type) and issubclass(cls, torch.nn.Module) and hasattr(readtorch.nn, name)
    )


@pytest.mark.parametrize("name", every_module_class())
def test_every_module_has_the_reference_s_name_in_a_checkpoint(name):
    from readtorch.serialization._names import readtorch_name, torch_name

    ours, theirs = getattr(readtorch.nn, name), getattr(torch.nn, name)
    assert torch_name(ours.__module__, ours.__qualname__) == (theirs.__module__, theirs.__qualname__)
    module, found = readtorch_name(theirs.__module__, theirs.__qualname__)
    assert getattr(importlib.import_module(module), found) is ours


def test_a_conjugate_is_loaded_as_its_values():
    a = torch.tensor([1 + 2j, 3 - 4j])
    b = torch.tensor([5 + 2j, -4j])
    ours = readtorch.load(saved(torch, {"a": a, "conjugate": a.conj(), "negative": b.conj().imag}))
    assert ours["conjugate"].tolist() == [1 - 2j, 3 + 4j] and ours["a"].tolist() == [1 + 2j, 3 - 4j]
    assert ours["negative"].tolist() == [-2.0, 4.0]


def test_subclasses_and_attributes():
    for T in (torch, readtorch):
        cls = MARKED[T]
        t = cls(T.ones(2))
        t.note = "kept"
        with pytest.raises(pickle.UnpicklingError, match="was not an allowed global by default"):
            T.load(saved(T, [t]))
        with T.serialization.safe_globals([cls]):
            back = T.load(saved(T, [t]))[0]
        assert type(back) is cls and back.note == "kept" and back.tolist() == [1.0, 1.0]


class MarkedTheirs(torch.Tensor):
    pass


class MarkedOurs(readtorch.Tensor):
    pass


MARKED = {torch: MarkedTheirs, readtorch: MarkedOurs}


def test_hooks_are_left_out_with_a_warning():
    for T in (torch, readtorch):
        t = T.ones(2, requires_grad=True)
        t.register_hook(lambda grad: grad)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            back = T.load(saved(T, t))
        assert "will not be serialized" in str(caught[0].message)
        assert back.requires_grad and not back._backward_hooks


def test_results_are_saved_as_leaves():
    for T in (torch, readtorch):
        back = T.load(saved(T, T.ones(2, requires_grad=True) * 2))
        assert back.is_leaf and back.requires_grad


def test_storages_themselves():
    theirs = torch.arange(3, dtype=torch.int16)
    ours = readtorch.load(saved(torch, [theirs.untyped_storage()]))
    assert describe(ours) == describe(torch.load(saved(torch, [theirs.untyped_storage()])))
    assert isinstance(readtorch.ones(2).storage(), readtorch.FloatStorage)
    assert not isinstance(readtorch.ones(2).storage(), readtorch.LongStorage)
    assert readtorch.LongStorage(3).dtype is readtorch.int64
    assert describe(torch.load(saved(readtorch, [readtorch.arange(3).storage()]))) == describe(
        [torch.arange(3).storage()]
    )


def test_one_storage_as_two_dtypes_is_refused():
    for T in (torch, readtorch):
        t = T.ones(4)
        with pytest.raises(RuntimeError, match="view the same data as different types"):
            T.save([t, t.view(T.int32)], io.BytesIO())


def wrapper_class(T):
    """A class of tensors without elements, which wrap one."""

    class Wrapper(T.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return T.Tensor._make_wrapper_subclass(
                cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad
            )

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            return NotImplemented

    Wrapper.__name__ = Wrapper.__qualname__ = f"Wrapper_{T.__name__}"
    globals()[Wrapper.__name__] = Wrapper
    return Wrapper


WRAPPERS = {T: wrapper_class(T) for T in (torch, readtorch)}


@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize("weights_only", [True, False])
def test_wrappers_of_tensors(new, weights_only):
    seen = []
    for T in (torch, readtorch):
        cls = WRAPPERS[T]
        wrapped = cls(T.arange(3.0)).requires_grad_()
        with T.serialization.safe_globals([cls]):
            made = []
            for place in (None, "cpu", {T.device("cpu"): T.device("cpu")}):
                file = saved(T, [wrapped], _use_new_zipfile_serialization=new)
                back = T.load(file, weights_only=weights_only, map_location=place)[0]
                assert type(back) is cls
                made.append((back.inner.tolist(), back.shape, back.stride(), str(back.dtype), back.requires_grad))
        seen.append(repr(made).replace("readtorch", "torch"))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("new", [True, False])
def test_storages_without_bytes_are_not_written_as_if_they_had_some(new):
    for T in (torch, readtorch):
        with pytest.raises(RuntimeError, match="invalid python storage"):
            saved(T, WRAPPERS[T](T.arange(3.0)).untyped_storage(), _use_new_zipfile_serialization=new)


def test_a_load_that_fails_forgets_its_map_location():
    """PyTorch's does not: the next load of an old file with such a tensor hears of the function that was given to this one."""
    cls = WRAPPERS[readtorch]
    wrapped = cls(readtorch.arange(3.0))
    with readtorch.serialization.safe_globals([cls]):
        with pytest.raises(RuntimeError, match="Callable map_location not supported"):
            readtorch.load(saved(readtorch, wrapped), map_location=lambda storage, tag: storage)
        assert readtorch.load(saved(readtorch, wrapped, _use_new_zipfile_serialization=False)).inner.tolist() == [
            0,
            1,
            2,
        ]
    assert readtorch.serialization._serialization_tls.map_location is None
