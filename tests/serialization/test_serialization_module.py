"""`torch.serialization`, `torch.utils.serialization.config`, `map_location`, and large models: values, errors and warnings beside PyTorch's."""

import collections
import importlib
import io
import types
import warnings

import pytest
import torch

import readtorch

BOTH = (torch, readtorch)


def told(T, program, folder):
    """What `program(T, folder)` gives, or its error, and its warnings, in words."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            text = repr(program(T, folder))
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
    said = [f"{w.category.__name__}: {w.message}" for w in caught if w.category is not DeprecationWarning]
    return "\n".join([text, *said]).replace("readtorch", "torch")


def net(T, device=None):
    with T.device(device or "cpu"):
        made = T.nn.Sequential(T.nn.Linear(2, 3), T.nn.BatchNorm1d(3))
    for i, (_, tensor) in enumerate(made.state_dict().items()):
        if device is None:
            tensor.fill_(i)
    return made


def stored(T, folder, obj=None, **options):
    path = str(folder / f"{T.__name__}.pt")
    T.save(net(T).state_dict() if obj is None else obj, path, **options)
    return path


def places(state_dict):
    return [(name, str(t.device), tuple(t.shape), t.requires_grad) for name, t in state_dict.items()]


def assigned(T, folder):
    model = net(T, "meta")
    keys = model.load_state_dict(T.load(stored(T, folder), mmap=True), assign=True)
    weight = model[0].weight
    return (
        keys,
        type(weight).__name__,
        weight.requires_grad,
        weight.is_leaf,
        weight.tolist(),
        places(model.state_dict()),
    )


def with_prefix(T, prefix):
    plain = net(T).state_dict()
    made = collections.OrderedDict((prefix + name, tensor) for name, tensor in plain.items())
    made._metadata = collections.OrderedDict([("", {}), (prefix[:-1], {"version": 1}), (prefix + "0", {"version": 1})])
    return made


def without_prefix(T, prefix):
    made = with_prefix(T, prefix)
    T.nn.modules.utils.consume_prefix_in_state_dict_if_present(made, prefix)
    return list(made), made._metadata, net(T).load_state_dict(made)


def offsets(T, folder):
    return [t.untyped_storage()._checkpoint_offset for t in T.load(stored(T, folder), map_location="meta").values()]


def aligned(T, folder):
    with T.utils.serialization.config.patch({"save.storage_alignment": 4096}):
        path = stored(T, folder)
    return [t.untyped_storage()._checkpoint_offset % 4096 for t in T.load(path, map_location="meta").values()]


def calculated(T, folder):
    with T.utils.serialization.config.patch("load.calculate_storage_offsets", True):
        return [t.sum().item() for t in T.load(stored(T, folder), mmap=True).values()]


def restored(place):
    return lambda T, f: T.serialization.default_restore_location(T.UntypedStorage([1, 2]), place)


def loaded(place):
    return lambda T, f: T.load(stored(T, f), map_location=place(T))["0.bias"].device


def allowing(what):
    def program(T, folder):
        try:
            T.serialization.add_safe_globals(what)
            return T.load(stored(T, folder))["0.bias"].shape
        finally:
            T.serialization.clear_safe_globals()

    return program


def patched(T, folder):
    config = T.utils.serialization.config
    with config.patch("load.mmap", True):
        inside = config.load.mmap
    with config.patch({"load.mmap": True, "save.compute_crc32": False}):
        inside = inside, config.load.mmap, config.save.compute_crc32
    return inside, config.load.mmap, config.save.compute_crc32


class Mars:
    device = types.SimpleNamespace(type="mars", index=None)


PROGRAMS = {
    # large models
    "a checkpoint into a model on meta": lambda T, f: net(T, "meta").load_state_dict(net(T).state_dict()),
    "assigned": assigned,
    "meta into meta": lambda T, f: net(T, "meta").load_state_dict(T.load(stored(T, f), map_location="meta")),
    "meta into a model": lambda T, f: net(T).load_state_dict(net(T, "meta").state_dict()),
    "meta assigned": lambda T, f: net(T).load_state_dict(net(T, "meta").state_dict(), assign=True),
    "meta to cpu": lambda T, f: net(T, "meta").to("cpu"),
    "to_empty": lambda T, f: places(net(T, "meta").to_empty(device="cpu").state_dict()),
    "mapped": lambda T, f: [
        ((s := t.untyped_storage()).is_shared(), s.resizable(), s.filename) for t in T.load(stored(T, f), mmap=True).values()
    ],
    "mapped to meta": lambda T, f: T.load(stored(T, f), mmap=True, map_location="meta"),
    "offsets": offsets,
    "aligned": aligned,
    "calculated": calculated,
    "prefix module.": lambda T, f: without_prefix(T, "module."),
    "prefix _orig_mod.": lambda T, f: without_prefix(T, "_orig_mod."),
    "prefix in the way": lambda T, f: net(T).load_state_dict(with_prefix(T, "_orig_mod.")),
    # options
    "options": lambda T, f: [T.utils.serialization.config.load.mmap, T.utils.serialization.config.save.storage_alignment],
    "an unknown option": lambda T, f: T.utils.serialization.config.load.foo,
    "an unknown option set": lambda T, f: setattr(T.utils.serialization.config.load, "foo", 1),
    "an unknown group": lambda T, f: setattr(T.utils.serialization.config, "foo", 1),
    "all options": lambda T, f: {k: v for k, v in T.utils.serialization.config.to_dict().items() if k[0] != "_"},
    "patch": patched,
    "patch of an unknown option": lambda T, f: T.utils.serialization.config.patch("load.foo", 1).__enter__(),
    "save_config": lambda T, f: T.utils.serialization.config.load_config(T.utils.serialization.config.save_config()),
    "getters": lambda T, f: [getattr(T.serialization, f"get_{n}")() for n in ("crc32_options", "default_mmap_options", "default_load_endianness")],
    "odd endianness": lambda T, f: T.serialization.set_default_load_endianness("big"),
    "odd flags": lambda T, f: T.serialization.set_default_mmap_options(77),
    # locations
    **{f"to {place}": restored(place) for place in ("cpu", "cuda", "cuda:3", "hpu", "hpu:1", "mps", "xpu", "mtia:1", "privateuseone", "meta", "foo", "cpu:0")},
    "a device": loaded(lambda T: T.device("cpu")),
    "a meta device": loaded(lambda T: T.device("meta")),
    "bytes": loaded(lambda T: b"cpu"),
    "a dictionary": loaded(lambda T: {"cpu": "meta"}),
    "an odd dictionary": loaded(lambda T: {"cpu": "foo"}),
    "a number": loaded(lambda T: 3),
    "a function that gives a number": loaded(lambda T: lambda s, tag: 3),
    "a function": loaded(lambda T: lambda s, tag: T.UntypedStorage(s.nbytes(), device="meta")),
    "a GPU": loaded(lambda T: "cuda:0"),
    "validate cuda": lambda T, f: T.serialization.validate_cuda_device("cuda:0"),
    "validate hpu": lambda T, f: T.serialization.validate_hpu_device("hpu"),
    "tags": lambda T, f: [T.serialization.location_tag(T.UntypedStorage(2, device=d)) for d in ("cpu", "meta")],
    "an unknown tag": lambda T, f: T.serialization.location_tag(Mars()),
    "an unknown place": lambda T, f: T.serialization.default_restore_location(Mars(), "mars"),
    "priorities": lambda T, f: [entry[0] for entry in T.serialization._package_registry],
    # the rest
    "normalize": lambda T, f: [T.serialization.normalize_storage_type(c) for c in (T.FloatStorage, T.UntypedStorage)],
    "tensor type": lambda T, f: T.serialization.storage_to_tensor_type(T.UntypedStorage(2)),
    "no pair": allowing([("x",)]),
    "no text": allowing([("x", 1)]),
    "no list": allowing(3),
    "is it a zip": lambda T, f: [T.serialization._is_zipfile(io.BytesIO(b)) for b in (b"PK\3\4", b"PK\5\6", b"")],
    "numbers": lambda T, f: [getattr(T.serialization, n) for n in "MAGIC_NUMBER PROTOCOL_VERSION LONG_SIZE INT_SIZE SHORT_SIZE DEFAULT_PROTOCOL".split()],
    "StorageType": lambda T, f: [str(T.serialization.StorageType("FloatStorage")), T.serialization.StorageType("HalfStorage").dtype],
    "no StorageType": lambda T, f: T.serialization.StorageType("FooStorage"),
    "old dill": lambda T, f: T.save(1, io.BytesIO(), pickle_module=types.SimpleNamespace(__name__="dill", __version__="0.3.0")),
    "old dill loads": lambda T, f: T.load(io.BytesIO(), pickle_module=types.SimpleNamespace(__name__="dill", __version__="0.3.0")),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, tmp_path):
    theirs, ours = (told(T, PROGRAMS[name], tmp_path) for T in BOTH)
    assert ours == theirs


def test_offsets_are_debugged(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_SERIALIZATION_DEBUG", "1")
    assert told(torch, calculated, tmp_path) == told(readtorch, calculated, tmp_path)


def test_nothing_is_read_for_the_meta_device(tmp_path):
    path = stored(readtorch, tmp_path)
    read = []

    class Counting(io.FileIO):
        def readinto(self, buffer):
            read.append(len(buffer))
            return super().readinto(buffer)

    readtorch.load(Counting(path), map_location="meta")
    assert not read
    readtorch.load(Counting(path))
    assert read


def test_simulated_devices(tmp_path):
    readtorch.cuda.simulate(2)
    try:
        state = {name: tensor.cuda(1) for name, tensor in net(readtorch).state_dict().items()}
        path = stored(readtorch, tmp_path, state)
        back = readtorch.load(path)
        assert {str(t.device) for t in back.values()} == {"cuda:1"} and back["0.bias"].tolist() == [1.0, 1.0, 1.0]
        assert str(readtorch.load(path, map_location={"cuda:1": "cuda:0"})["0.bias"].device) == "cuda:0"
        assert str(readtorch.load(path, map_location=lambda s, tag: s.cuda(0))["0.bias"].device) == "cuda:0"
        with pytest.raises(RuntimeError, match="CUDA device 3 but torch.cuda.device_count.. is 2"):
            readtorch.load(path, map_location="cuda:3")
        assert readtorch.serialization.location_tag(back["0.bias"].untyped_storage()) == "cuda:1"
        assert readtorch.serialization.validate_cuda_device("cuda:1") == 1
        del back, state
    finally:
        readtorch.cuda.simulate(0)


def test_torchscript_archives_go_to_jit_load(tmp_path):
    path = str(tmp_path / "a.pt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(torch.nn.Linear(2, 1)), path)
    seen = []
    for T in BOTH:
        seen += [
            [told(T, lambda T, f: T.load(path), None), told(T, lambda T, f: T.load(path, weights_only=False), None)]
        ]
        seen[-1] += [told(T, lambda T, f: T.serialization.get_unsafe_globals_in_checkpoint(path), None)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seen[-1].append(T.load(open(path, "rb"), weights_only=False)(T.ones(1, 2)).shape == (1, 1))
    assert seen[0] == seen[1]


def fake_mode(T):
    return importlib.import_module(f"{T.__name__}._subclasses").FakeTensorMode()


def kinds(values):
    return [
        (type(v).__name__, str(v.device), str(v.dtype), v.shape, v.stride(), v.untyped_storage()._checkpoint_offset)
        for v in values
    ]


FAKE_PLACES = {
    "as saved": lambda T: None,
    "cuda": lambda T: "cuda",
    "a device": lambda T: T.device("cuda", 1),
    "meta": lambda T: "meta",
    "a dictionary": lambda T: {"cpu": "cuda:3"},
    "a function": lambda T: lambda storage, tag: storage,
}


@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize("place", FAKE_PLACES)
def test_under_a_fake_tensor_mode_nothing_is_read(place, new, tmp_path):
    seen = []
    for T in BOTH:
        a = T.arange(6.0).view(2, 3)
        path = str(tmp_path / f"{T.__name__}.pt")
        T.save([a, a[1:], T.nn.Parameter(a), T.ones(2, dtype=T.int8)], path, _use_new_zipfile_serialization=new)
        with fake_mode(T):
            try:
                seen.append(repr(kinds(T.load(path, map_location=FAKE_PLACES[place](T)))).replace("readtorch", "torch"))
            except Exception as error:
                seen.append((type(error), str(error)))
    assert seen[0] == seen[1]


def test_fake_tensors_make_room_in_a_file():
    """The bytes can be filled in later: `skip_data(materialize_fake_tensors=True)`."""
    files = []
    for T in BOTH:
        with fake_mode(T):
            model = T.nn.Linear(2, 3)
            more = [T.ones(3, device="cuda:1"), T.ones(2, dtype=T.uint16)]
        file = io.BytesIO()
        with T.serialization.skip_data(materialize_fake_tensors=True):
            T.save([model.state_dict(), more], file)
        files.append(file.getvalue())
    for data in files:
        for T in BOTH:
            state, (there, young) = T.load(io.BytesIO(data), map_location="cpu")
            assert state["weight"].shape == (3, 2) and there.tolist() == [0, 0, 0] and young.dtype is T.uint16
            tags = []
            T.load(io.BytesIO(data), map_location=lambda storage, tag: tags.append(tag) or storage)
            assert tags == ["cpu", "cpu", "cuda:1", "cpu"]
