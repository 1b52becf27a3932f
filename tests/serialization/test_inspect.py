"""`readtorch inspect` and safetensors."""

import os
import pathlib
import subprocess
import sys

import pytest
import torch

import readtorch
from readtorch import _inspect, _run
from tests.serialization.mutants import mutant, with_pickle


def table(tmp_path, obj, T=torch):
    T.save(obj, tmp_path / "a.pt")
    return _inspect.lines_about(tmp_path / "a.pt")


def cells(lines):
    return [line.split() for line in lines]


def test_names_shapes_and_sharing(tmp_path):
    a = torch.arange(12.0).view(3, 4)
    value = {
        "a": a,
        "view": a.t()[1:],
        "nested": [{"x": torch.ones(2, dtype=torch.bfloat16)}],
        "epoch": 3,
        "p": torch.nn.Parameter(torch.ones(2)),
        "buffer": torch.nn.Buffer(torch.ones(1)),
        "u": torch.ones(3, dtype=torch.uint16),
    }
    lines = table(tmp_path, value)
    assert ["a", "Tensor", "float32", "[3,", "4]", "48", "B", "data/0"] in cells(lines)
    assert ["view", "Tensor", "float32", "[3,", "3]", "36", "B", "data/0", "[1,", "4],", "1"] in cells(lines)
    assert ["nested[0].x", "Tensor", "bfloat16", "[2]", "4", "B", "data/1"] in cells(lines)
    assert [line.split()[1] for line in lines if line.startswith(("p ", "buffer "))] == ["Parameter", "Buffer"]
    assert "data/0 is shared by a, view" in lines
    assert lines[0].endswith("little endian, aligned to 64, version 3")
    columns = {line.index("data/") for line in lines[3:9]}
    assert len(columns) == 1  # aligned
    assert table(tmp_path, readtorch.load(tmp_path / "a.pt"), readtorch)[1:] == lines[1:]


def test_whole_modules_are_looked_at_without_being_built(tmp_path):
    lines = table(tmp_path, torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)))
    names = [line.split()[0] for line in lines[3:10]]
    assert names == [
        "0.weight",
        "0.bias",
        "1.weight",
        "1.bias",
        "1.running_mean",
        "1.running_var",
        "1.num_batches_tracked",
    ]
    assert "torch.nn.modules.linear.Linear" in lines


def test_no_bytes_of_tensors_are_read(tmp_path):
    with torch.serialization.skip_data():
        torch.save({"huge": torch.empty(2_000_000_000, dtype=torch.uint8)}, tmp_path / "a.pt")
    assert any("2.0 GB" in line for line in _inspect.lines_about(tmp_path / "a.pt"))
    os.unlink(tmp_path / "a.pt")


def test_hostile_files_run_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "system", lambda command: pytest.fail("it ran"))
    (tmp_path / "a.pt").write_bytes(with_pickle(b"\x80\x02}X\x06\0\0\0a\x1b[31mcposix\nsystem\nX\x04\0\0\0true\x85Rs."))
    lines = _inspect.lines_about(tmp_path / "a.pt")
    assert "posix.system" in lines
    assert not any("\x1b" in line for line in lines)


def test_spoiled_files_are_shown_or_refused(tmp_path):
    for seed in range(300):
        (tmp_path / "a.pt").write_bytes(mutant(seed)[1])
        try:
            _inspect.lines_about(tmp_path / "a.pt")
        except _run.UNREADABLE:
            pass


def test_the_command(tmp_path):
    torch.save({"a": torch.ones(2)}, tmp_path / "a.pt")
    (tmp_path / "b.pt").write_bytes(b"nothing")
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(readtorch.__file__).parents[1])}
    run = [sys.executable, "-W", "ignore", "-m", "readtorch", "inspect"]
    done = subprocess.run([*run, tmp_path / "a.pt"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and "1 tensor in 1 storage of 8 B" in done.stdout
    for name in ("b.pt", "absent.pt"):
        done = subprocess.run([*run, tmp_path / name], capture_output=True, text=True, env=environment)
        assert done.returncode == 1 and done.stderr.startswith("readtorch inspect: ") and "Traceback" not in done.stderr


# safetensors


@pytest.fixture
def theirs():
    pytest.importorskip("safetensors")
    import safetensors.torch

    return safetensors.torch


def test_safetensors_go_both_ways(tmp_path, theirs):
    from readtorch.utils import safetensors as ours

    names = [
        "float32",
        "float64",
        "float16",
        "bfloat16",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "bool",
        "complex64",
        "float8_e4m3fn",
        "float8_e5m2",
    ]
    tensors = {name: torch.tensor([[0, 1, 1]]).to(getattr(torch, name)) for name in names}
    tensors["empty"], tensors["number"] = torch.empty(0, 2), torch.tensor(2.5)
    theirs.save_file(tensors, tmp_path / "a.safetensors", {"note": "kept"})
    loaded = readtorch.load(tmp_path / "a.safetensors")
    assert {name: str(t.dtype) for name, t in loaded.items()} == {name: str(t.dtype) for name, t in tensors.items()}
    ours.save_file(loaded, tmp_path / "b.safetensors")
    for back in (theirs.load_file(tmp_path / "b.safetensors"), theirs.load(ours.save(loaded))):
        assert all(
            torch.equal(back[name].view(torch.uint8), t.view(torch.uint8)) for name, t in tensors.items() if t.dim()
        )
        assert back["number"].item() == 2.5
    assert loaded["float32"].add_(1).tolist() == [[1.0, 2.0, 2.0]]
    lines = _inspect.lines_about(tmp_path / "a.safetensors")
    assert "note = kept" in lines and ["bfloat16", "BF16", "[1,", "3]", "6", "B"] in cells(lines)


def test_safetensors_refuses_what_the_format_cannot_hold(theirs):
    from readtorch.utils import safetensors as ours

    a = readtorch.ones(3, 4)
    with pytest.raises(RuntimeError, match="share memory"):
        ours.save({"a": a, "b": a[1:]})
    with pytest.raises(ValueError, match="non contiguous"):
        ours.save({"a": a.t()})


def test_safetensors_with_a_mapping_is_refused(tmp_path, theirs):
    theirs.save_file({"a": torch.ones(1)}, tmp_path / "a.safetensors")
    for T in (torch, readtorch):
        for map_location in ({"cpu": "cpu"}, lambda s, tag: s):
            with pytest.raises(RuntimeError, match="map_location is not supported"):
                T.load(tmp_path / "a.safetensors", map_location=map_location)
