"""Checkpoints of many ranks: PyTorch reads ours, we read its own, and a file is never trusted."""

import io
import pickle
import random
import re
import warnings
from pickle import UnpicklingError

import pytest
import torch
import torch.distributed.checkpoint as reference
import torch.distributed.checkpoint.state_dict as reference_state_dict

import readtorch
from readtorch import distributed as dist
from readtorch.distributed import checkpoint as dcp
from readtorch.distributed.checkpoint import _metadata_pickle, metadata, state_dict
from readtorch.distributed.checkpoint.filesystem import _StorageInfo
from readtorch.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys
from readtorch.serialization import add_safe_globals, clear_safe_globals

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")


def example(lib):
    return {
        "model": {"weight": lib.arange(6.0).view(2, 3).t(), "half": lib.ones(4, dtype=lib.bfloat16)[1:3]},
        "step": 3,
        "optimizer": {
            "groups": [{"lr": 0.1, "betas": (0.9, 0.99)}],
            "list": [lib.tensor(7), {"deep": lib.zeros(0, 2)}],
        },
        "name": "a word",
    }


def blank(lib):
    empty = example(lib)
    for tensor in (empty["model"]["weight"], empty["model"]["half"], empty["optimizer"]["list"][0]):
        tensor.fill_(0)
    return empty | {"step": 0, "name": ""}


def shown(obj):
    return re.sub(r"save_id='[^']*'|checkpoint_id=\w*\('[^']*'\)", "", repr(obj))


def test_pytorch_reads_ours_and_we_its_own(tmp_path):
    reference.save(example(torch), checkpoint_id=tmp_path / "theirs")
    dcp.save(example(readtorch), checkpoint_id=tmp_path / "ours")
    theirs, ours = blank(torch), blank(readtorch)
    reference.load(theirs, checkpoint_id=tmp_path / "ours")
    dcp.load(ours, checkpoint_id=tmp_path / "theirs")
    assert repr(theirs) == repr(example(torch))
    assert repr(ours) == repr(example(readtorch)) == repr(example(torch))


def test_the_metadata_says_the_same(tmp_path):
    reference.save(example(torch), checkpoint_id=tmp_path / "theirs")
    ours = dcp.save(example(readtorch), checkpoint_id=tmp_path / "ours")
    read = reference.FileSystemReader(tmp_path / "ours").read_metadata()
    theirs = dcp.FileSystemReader(tmp_path / "theirs").read_metadata()
    assert type(theirs) is dcp.Metadata and type(read) is reference.Metadata
    assert shown(ours.state_dict_metadata) == shown(theirs.state_dict_metadata) == shown(read.state_dict_metadata)
    assert ours.planner_data == theirs.planner_data == read.planner_data
    assert {index.fqn for index in ours.storage_data} == {index.fqn for index in theirs.storage_data}
    assert ours.version == theirs.version == "1.0.0"


def test_what_all_ranks_have_one_of_them_writes(tmp_path):
    def save(rank):
        return dcp.save({"a": readtorch.ones(8), "b": readtorch.ones(8), f"own{rank}": rank}, checkpoint_id=tmp_path)

    saved = dist.run_threads(save, 4)[0]
    files = {index.fqn: info.relative_path for index, info in saved.storage_data.items()}
    assert files == {
        "a": "__0_0.distcp",
        "b": "__1_0.distcp",
        **{f"own{rank}": f"__{rank}_0.distcp" for rank in range(4)},
    }
    theirs = {"a": torch.zeros(8), "own3": -1}
    reference.load(theirs, checkpoint_id=tmp_path)
    assert theirs["a"].tolist() == [1] * 8 and theirs["own3"] == 3


def test_threads_write_files_side_by_side(tmp_path):
    tensors = {str(i): readtorch.full((i + 1,), float(i)) for i in range(9)}
    dcp.save(tensors | {"n": 9}, storage_writer=dcp.FileSystemWriter(tmp_path, thread_count=3))
    assert len(list(tmp_path.glob("__0_?.distcp"))) == 3
    theirs = {str(i): torch.zeros(i + 1) for i in range(9)} | {"n": 0}
    reference.load(theirs, checkpoint_id=tmp_path)
    assert theirs["n"] == 9 and all(theirs[str(i)].tolist() == [i] * (i + 1) for i in range(9))


@pytest.mark.parametrize("wanted", [{"weight": 4}, {"absent": 2}, {"weight": 3, "other": {"x": 1}}])
def test_errors(tmp_path, wanted):
    def error(lib, its):
        def fill(sizes):
            return {key: fill(n) if isinstance(n, dict) else lib.zeros(n) for key, n in sizes.items()}

        with pytest.raises(its.CheckpointException) as caught:
            its.load(fill(wanted), checkpoint_id=tmp_path)
        [(rank, (inner, _))] = caught.value.failures.items()
        return rank, type(inner), str(inner), str(caught.value).splitlines()[0]

    dcp.save({"weight": readtorch.zeros(3)}, checkpoint_id=tmp_path)
    assert error(readtorch, dcp) == error(torch, reference)


def test_a_rank_that_fails_fails_all(tmp_path):
    def load(rank):
        with pytest.raises(dcp.CheckpointException, match="RANK 1"):
            dcp.load({"a": readtorch.zeros(4 - rank)}, checkpoint_id=tmp_path)

    dcp.save({"a": readtorch.zeros(4)}, checkpoint_id=tmp_path)
    dist.run_threads(load, 2)


def test_existing_checkpoints(tmp_path):
    dcp.save({"a": readtorch.zeros(1)}, checkpoint_id=tmp_path)
    with pytest.warns(UserWarning, match="Detected an existing checkpoint"):
        dcp.save({"a": readtorch.ones(1)}, checkpoint_id=tmp_path)
    with pytest.raises(dcp.CheckpointException, match="Checkpoint already exists and self.overwrite=False"):
        dcp.save({}, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))
    with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
        dcp.save({})


def test_meta_tensors_become_real(tmp_path):
    dcp.save({"a": readtorch.ones(2)}, checkpoint_id=tmp_path)
    wanted = {"a": readtorch.empty(2, device="meta")}
    dcp.load(wanted, checkpoint_id=tmp_path)
    assert wanted["a"].tolist() == [1, 1]


def test_what_the_metadata_says_is_made(tmp_path):
    reference.save(example(torch), checkpoint_id=tmp_path)
    assert repr(_load_state_dict_from_keys(checkpoint_id=tmp_path)["model"]) == repr(example(readtorch)["model"])
    assert _load_state_dict_from_keys("optimizer.groups", checkpoint_id=tmp_path) == {
        "optimizer": {"groups": example(readtorch)["optimizer"]["groups"]}
    }


# -- no trust -----------------------------------------------------------------------------------


class _Runs:
    def __reduce__(self):
        return print, ("the file has run",)


def _with(**fields):
    return pickle.dumps(reference.Metadata(**({"state_dict_metadata": {}} | fields)))


def _of_a_class(state):
    """A pickle that sets a state on the class itself."""
    named = b"\x8c" + bytes([37]) + b"torch.distributed.checkpoint.metadata" + b"\x8c\x08Metadata\x93"
    return b"\x80\x04" + named + pickle.dumps(state, protocol=2)[2:-1] + b"b."


HOSTILE = [
    pickle.dumps(_Runs()),
    _with(planner_data=_Runs()),
    _with(planner_data={"a": torch.nn.Module}),
    _of_a_class((None, {"__setstate__": 1})),
    _with().replace(b"planner_data", b"__class____a"),
    _with(planner_data={(1, 2): 3}),
    pickle.dumps({"state_dict_metadata": {}}),
    pickle.dumps(reference.ChunkStorageMetadata(torch.Size([1]), torch.Size([1]))),
]


@pytest.mark.parametrize("data", HOSTILE)
def test_nothing_is_run(data, capsys):
    with pytest.raises(UnpicklingError):
        _metadata_pickle.load(io.BytesIO(data), _StorageInfo)
    assert capsys.readouterr().out == ""


def test_damaged_metadata(tmp_path):
    """Any bytes give a Metadata or one of the errors of a damaged pickle."""
    reference.save(example(torch), checkpoint_id=tmp_path)
    whole = (tmp_path / ".metadata").read_bytes()
    rng = random.Random(0)
    refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(1500):
            data = bytearray(whole[: rng.choice((len(whole), rng.randrange(1, len(whole))))])
            for _ in range(rng.randrange(1, 4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            try:
                assert type(_metadata_pickle.load(io.BytesIO(data), _StorageInfo)) is metadata.Metadata
            except (UnpicklingError, EOFError):
                refused += 1
    assert refused > 1000


def test_a_file_outside_is_not_read(tmp_path):
    dcp.save({"a": readtorch.zeros(1)}, checkpoint_id=tmp_path / "inner")
    (tmp_path / "stray").write_bytes((tmp_path / "inner" / "__0_0.distcp").read_bytes())
    path = tmp_path / "inner" / ".metadata"
    inner, outer = b"__0_0.distcp", b"../././stray"
    path.write_bytes(path.read_bytes().replace(inner, outer))
    with pytest.raises(dcp.CheckpointException, match="names a file outside of it"):
        dcp.load({"a": readtorch.zeros(1)}, checkpoint_id=tmp_path / "inner")


class Config:
    """Not known to the unpickler."""


def test_objects_of_ones_own_classes_must_be_allowed(tmp_path):
    dcp.save({"config": Config()}, checkpoint_id=tmp_path)
    with pytest.raises(dcp.CheckpointException, match="Unsupported global"):
        dcp.load({"config": None}, checkpoint_id=tmp_path)
    add_safe_globals([Config])
    try:
        wanted = {"config": None}
        dcp.load(wanted, checkpoint_id=tmp_path)
        assert type(wanted["config"]) is Config
    finally:
        clear_safe_globals()


# -- state_dicts by names -----------------------------------------------------------------------


def trained(lib, order=1, steps=2, freeze=True):
    """A model with a frozen parameter, and its optimizer with two groups, in one order or the other."""
    lib.manual_seed(0)
    model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.Tanh(), lib.nn.Linear(4, 2)).double()
    model[2].weight.requires_grad_(not freeze)
    groups = [{"params": list(model[2].parameters())}, {"params": list(model[0].parameters()), "lr": 0.5}]
    optimizer = lib.optim.AdamW(groups[::order], lr=0.1)
    x = lib.arange(15, dtype=lib.float64).view(5, 3) / 7
    for _ in range(steps):
        model(x).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer


def flat(obj, prefix=""):
    """Nested containers as {path: number or list}, rounded."""
    if isinstance(obj, dict):
        return {k: v for key, value in obj.items() for k, v in flat(value, f"{prefix}/{key}").items()}
    if hasattr(obj, "tolist"):
        obj = obj.tolist()
    if isinstance(obj, (list, tuple)):
        return {k: v for i, value in enumerate(obj) for k, v in flat(value, f"{prefix}/{i}").items()}
    return {prefix: round(obj, 12) if isinstance(obj, float) else obj}


OPTIONS = [{}, {"ignore_frozen_params": True}, {"flatten_optimizer_state_dict": True}, {"full_state_dict": True}]


@pytest.mark.parametrize("options", OPTIONS)
def test_state_dicts_are_pytorchs(options):
    def get(lib, its):
        return [flat(part) for part in its.get_state_dict(*trained(lib), options=its.StateDictOptions(**options))]

    assert get(readtorch, state_dict) == get(torch, reference_state_dict)


@pytest.mark.parametrize("options", OPTIONS)
def test_into_pytorchs_optimizer_with_other_numbers(tmp_path, options):
    """Saved here, loaded by PyTorch into groups of another order, and the other way round."""

    def save(lib, its, names):
        model, optimizer = names.get_state_dict(*trained(lib), options=names.StateDictOptions(**options))
        its.save({"model": model, "optimizer": optimizer}, checkpoint_id=tmp_path / lib.__name__)

    def load(lib, its, names, source):
        chosen = names.StateDictOptions(**options, strict="ignore_frozen_params" not in options)
        net, opt = trained(lib, order=-1, steps=1)
        model, optimizer = names.get_state_dict(net, opt, options=chosen)
        wanted = {"model": model, "optimizer": optimizer}
        its.load(wanted, checkpoint_id=tmp_path / source)
        names.set_state_dict(
            net, opt, model_state_dict=wanted["model"], optim_state_dict=wanted["optimizer"], options=chosen
        )
        return flat(net.state_dict()), flat(opt.state_dict())

    save(readtorch, dcp, state_dict)
    save(torch, reference, reference_state_dict)
    theirs = load(torch, reference, reference_state_dict, "readtorch")
    ours = load(readtorch, dcp, state_dict, "torch")
    assert ours == theirs
    assert [v for k, v in theirs[1].items() if k.endswith("/lr")] == [0.5, 0.1]


def test_errors_of_state_dicts():
    model, optimizer = trained(readtorch)
    saved = state_dict.get_optimizer_state_dict(model, optimizer)
    del saved["state"]["0.weight"]
    with pytest.raises(RuntimeError, match="Missing optimizer state for parameter '0.weight' in checkpoint"):
        state_dict.set_optimizer_state_dict(model, optimizer, saved)
    with pytest.raises(ValueError, match="full_state_dict must be True when broadcast_from_rank0 is True"):
        state_dict.get_model_state_dict(model, options=state_dict.StateDictOptions(broadcast_from_rank0=True))


def test_from_rank_0():
    def load(rank):
        model, optimizer = trained(readtorch, steps=2 if rank == 0 else 0)
        saved = state_dict.get_state_dict(model, optimizer) if rank == 0 else ({}, {})
        chosen = state_dict.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        state_dict.set_state_dict(
            model, optimizer, model_state_dict=saved[0], optim_state_dict=saved[1], options=chosen
        )
        return flat(model.state_dict()), flat(optimizer.state_dict())

    first, second = dist.run_threads(load, 2)
    assert first == second


def test_names_of_wrapped_models():
    plain = readtorch.nn.Sequential(readtorch.nn.Linear(2, 2))

    def names(rank):
        wrapped = readtorch.nn.parallel.DistributedDataParallel(plain)
        return list(state_dict.get_model_state_dict(wrapped))

    assert dist.run_threads(names, 1)[0] == list(plain.state_dict())
