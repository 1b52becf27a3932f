"""The options of `load` and `save`, next to the reference."""

import io
import mmap
import pickle
import sys
import warnings
import zipfile

import pytest
import torch

import readtorch
from tests.serialization.describe import describe

BOTH = (torch, readtorch)


def saved(T, obj, **options):
    file = io.BytesIO()
    T.save(obj, file, **options)
    file.seek(0)
    return file


def same(program):
    """`program(T)` on both sides: equal results, or errors of equal type and text."""
    seen = []
    for T in BOTH:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                seen.append(describe(program(T)))
            except Exception as error:
                seen.append((type(error), str(error).replace("readtorch", "torch")))
    assert seen[0] == seen[1]
    return seen[0]


class Allowed:
    def __init__(self):
        self.a = 1

    def __repr__(self):
        return f"Allowed({self.__dict__})"


class WithState(Allowed):
    def __setstate__(self, state):
        self.__dict__.update(state, restored=True)


class WithSlots:
    __slots__ = ("b",)

    def __repr__(self):
        return f"WithSlots({self.b})"


def refused(function):
    with pytest.raises(pickle.UnpicklingError) as caught:
        function()
    return str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda T: T.nn.Linear(1, 1),
        lambda T: Allowed(),
        lambda T: print,
        lambda T: __import__("os").system,
        lambda T: sys.exit,
        lambda T: T.nn.functional.relu,
        lambda T: slice(1, 2),
        lambda T: frozenset([1]),
    ],
)
def test_what_is_refused_is_refused_in_the_same_words(make):
    theirs, ours = (refused(lambda T=T: T.load(saved(T, make(T)))) for T in BOTH)
    assert theirs == ours


def test_safe_globals():
    def program(T):
        safe = T.serialization
        before = set(safe.get_safe_globals())
        safe.add_safe_globals([Allowed])
        with safe.safe_globals([WithState, (WithSlots, f"{WithSlots.__module__}.WithSlots")]):
            slots = WithSlots()
            slots.b = 2
            result = T.load(saved(T, [Allowed(), WithState(), slots]))
            names = sorted(getattr(g, "__name__", "tuple") for g in set(safe.get_safe_globals()) - before)
        after = {g.__name__ for g in set(safe.get_safe_globals()) - before}
        safe.clear_safe_globals()
        return result, names, after, len(safe.get_safe_globals())

    same(program)
    same(lambda T: T.load(saved(T, [Allowed()])))


def test_unsafe_globals_are_found_without_running_anything():
    same(
        lambda T: sorted(
            T.serialization.get_unsafe_globals_in_checkpoint(saved(T, [T.nn.Linear(1, 1), Allowed(), T.ones(1)]))
        )
    )
    same(lambda T: T.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b"nothing of the kind")))


@pytest.mark.parametrize(
    "map_location",
    [
        None,
        "cpu",
        {"cpu": "cpu"},
        {"cuda": "cpu"},
        lambda s, tag: s,
        lambda s, tag: None,
        {"cpu": "nowhere"},
        3,
        "hpu",
        "mtia:1",
    ],
)
def test_map_location(map_location):
    same(lambda T: T.load(saved(T, [T.ones(2)]), map_location=map_location))
    same(lambda T: T.load(saved(T, [T.ones(2)]), map_location=T.device("cpu")))


def test_map_location_sees_each_storage_once():
    def program(T):
        seen = []
        a = T.arange(4.0)
        T.load(
            saved(T, [a, a[1:], T.ones(1, dtype=T.int8)]),
            map_location=lambda s, tag: seen.append((tag, s.nbytes())) or s,
        )
        return seen

    same(program)


def test_register_package():
    def program(T):
        registry = [
            r
            for name, module in sys.modules.items()
            if name.startswith(f"{T.__name__}.serialization")
            for r in [getattr(module, "_package_registry", None)]
            if r is not None
        ][0]
        kept = list(registry)
        T.serialization.register_package(
            5, lambda s: "mars" if s.nbytes() == 8 else None, lambda s, tag: s if tag == "mars" else None
        )
        try:
            file = saved(T, [T.ones(2), T.ones(3)])
            tags = []
            return T.load(file, map_location=lambda s, tag: tags.append(tag)), tags
        finally:
            registry[:] = kept

    same(program)


def other_order(file, keep_record=True):
    """The same checkpoint as a machine of the other byte order writes it: four-byte elements only."""
    swapped = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(swapped, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if "/data/" in name:
                data = b"".join(data[i : i + 4][::-1] for i in range(0, len(data), 4))
            if name.endswith("byteorder"):
                data = b"big" if sys.byteorder == "little" else b"little"
            if keep_record or not name.endswith("byteorder"):
                new.writestr(name, data)
    swapped.seek(0)
    return swapped


def test_byte_order():
    value = [torch.arange(5, dtype=torch.int32), torch.ones(2, dtype=torch.complex64)]
    for T in BOTH:
        assert describe(T.load(other_order(saved(torch, value)))) == describe(value)
    for order in ("LITTLE", "BIG", "NATIVE"):
        for T in BOTH:
            T.serialization.set_default_load_endianness(T.serialization.LoadEndianness[order])
        try:
            theirs, ours = (describe(T.load(other_order(saved(torch, value), keep_record=False))) for T in BOTH)
        finally:
            for T in BOTH:
                T.serialization.set_default_load_endianness(None)
        assert theirs == ours
    same(lambda T: T.serialization.set_default_load_endianness("little"))


@pytest.mark.parametrize("shared", [False, True])
def test_mmap(tmp_path, shared):
    flags = mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE
    for T in BOTH:
        path = str(tmp_path / f"{T.__name__}.pt")
        T.save([T.arange(4.0)], path)
        with T.serialization.set_default_mmap_options(flags):
            loaded = T.load(path, mmap=True)[0]
        loaded[1] = 9.0
        assert loaded.tolist() == [0.0, 9.0, 2.0, 3.0]
        del loaded
        assert T.load(path)[0].tolist() == ([0.0, 9.0, 2.0, 3.0] if shared else [0.0, 1.0, 2.0, 3.0])
    same(lambda T: T.serialization.set_default_mmap_options(77))


def test_mapped_tensors_compute_as_others_do(tmp_path):
    readtorch.save({"w": readtorch.ones(3, 4), "x": readtorch.ones(4)}, tmp_path / "a.pt")
    loaded = readtorch.load(tmp_path / "a.pt", mmap=True)
    w = readtorch.nn.Parameter(loaded["w"])
    (w @ loaded["x"]).sum().backward()
    assert w.grad.tolist() == [[1.0] * 4] * 3
    assert readtorch.load(tmp_path / "a.pt", mmap=True)["w"].untyped_storage().nbytes() == 48


def test_mmap_by_default(tmp_path):
    for T in BOTH:
        config = __import__(f"{T.__name__}.utils.serialization.config", fromlist=["config"])
        T.save([T.ones(2)], tmp_path / "a.pt")
        config.load.mmap = True
        try:
            with pytest.raises(ValueError, match="f must be a file path"):
                T.load(io.BytesIO((tmp_path / "a.pt").read_bytes()))
            assert T.load(tmp_path / "a.pt")[0].tolist() == [1.0, 1.0]
        finally:
            config.load.mmap = False


def test_skip_data():
    def program(T):
        with T.serialization.skip_data():
            file = saved(T, [T.ones(3)])
            shape = T.load(file)[0].shape
        file.seek(0)
        return shape, T.load(file)

    same(program)


def test_protocols_and_pickle_modules():
    same(lambda T: T.load(saved(T, [1], pickle_protocol=4)))
    same(lambda T: T.load(saved(T, [1, T.ones(2)], pickle_protocol=4), weights_only=False))
    same(lambda T: T.load(saved(T, [1, T.ones(2)], pickle_module=pickle), pickle_module=pickle))
    same(lambda T: T.load(saved(T, [T.ones(2)]), pickle_module=pickle, weights_only=True))


@pytest.mark.parametrize(
    "variables", [{"NO_WEIGHTS_ONLY": "1"}, {"WEIGHTS_ONLY": "yes"}, {"WEIGHTS_ONLY": "1", "NO_WEIGHTS_ONLY": "1"}]
)
@pytest.mark.parametrize("weights_only", [None, True, False])
def test_variables_of_the_environment(monkeypatch, variables, weights_only):
    for name, value in variables.items():
        monkeypatch.setenv(f"TORCH_FORCE_{name}_LOAD", value)
    same(lambda T: T.load(saved(T, [Allowed()]), weights_only=weights_only))


def test_what_only_pytorch_builds_is_named():
    quantized = torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.qint8)
    with pytest.raises(pickle.UnpicklingError, match="readtorch does not build torch._utils._rebuild_qtensor"):
        readtorch.load(saved(torch, [quantized]))


@pytest.mark.parametrize(
    "parts",
    [((9,), None), ((2, 2), None), ((-1,), None), ((2**40, 3), None), ("size", None), ((2,), "yes"), ([2.0], None)],
    ids=str,
)
def test_sparse_tensors_that_do_not_fit_together_are_refused(parts):
    class Made:
        def __reduce__(self):
            size, is_coalesced = parts
            data = torch.tensor([[0, 9]]), torch.ones(2), size, is_coalesced
            return torch._utils._rebuild_sparse_tensor, (torch.sparse_coo, data)

    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        readtorch.load(saved(torch, [Made()]))


def test_every_public_name_is_there():
    assert readtorch.serialization.__all__ == torch.serialization.__all__
    assert all(hasattr(readtorch.serialization, name) for name in torch.serialization.__all__)


def test_module_versions():
    module = type(sys)("made_up")
    for version in ("1.2.3", "1.x.3", "0.9"):
        module.__version__ = version
        same(lambda T: T.serialization.check_module_version_greater_or_equal(module, (1, 2)))
        same(lambda T: T.serialization.check_module_version_greater_or_equal(module, (1, 2), error_if_malformed=False))
