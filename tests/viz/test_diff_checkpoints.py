"""The checkpoint diff's model: its verdicts are those of `load_state_dict`, for either library and across both."""

import pytest
import torch

import readtorch
from readtorch.viz.diff_checkpoints import MOST_ROWS, diff_checkpoints

LIBRARIES = pytest.mark.parametrize("T", [torch, readtorch], ids=["torch", "readtorch"])


def verdicts(left, right):
    return {row["name"]: row["verdict"] for row in diff_checkpoints(left, right)["rows"]}


def row_of(left, right, name):
    return next(row for row in diff_checkpoints(left, right)["rows"] if row["name"] == name)


@LIBRARIES
def test_verdicts_are_those_of_load_state_dict(T):
    net = T.nn.Sequential(T.nn.Linear(2, 3), T.nn.BatchNorm1d(3))
    state = T.nn.Sequential(T.nn.Linear(2, 4), T.nn.BatchNorm1d(3)).state_dict()
    state["1.bias"] = T.ones(3)
    state["1.running_var"] = T.ones(3, dtype=T.float64)
    state["extra"] = T.ones(1)
    del state["1.running_mean"]
    assert verdicts(net, state) == {
        "0.weight": "shape",
        "0.bias": "shape",
        "1.weight": "same",
        "1.bias": "value",
        "1.running_mean": "missing",
        "1.running_var": "dtype",
        "1.num_batches_tracked": "same",
        "extra": "unexpected",
    }
    for name in ("0.weight", "0.bias"):
        del state[name]
    keys = net.load_state_dict(state, strict=False)
    after = verdicts(net.state_dict(), state)
    assert [name for name, verdict in after.items() if verdict == "missing"] == keys.missing_keys
    assert [name for name, verdict in after.items() if verdict == "unexpected"] == keys.unexpected_keys


@LIBRARIES
def test_sharing_is_told_on_each_side(T):
    tied = T.ones(4)
    row = row_of({"a": tied, "b": tied[2:]}, {"a": T.ones(4), "b": T.ones(2)}, "a")
    assert row["left"]["shared_with"] == ["b"] and row["right"]["shared_with"] == []


@LIBRARIES
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int64", "bool", "complex64"])
def test_values_of_all_dtypes(T, dtype):
    x = T.tensor([0, 1, 1]).to(getattr(T, dtype))
    y = T.tensor([0, 1, 0]).to(getattr(T, dtype))
    row = row_of({"x": x}, {"x": y}, "x")
    assert row["verdict"] == "value" and row["values"] == "1 of 3 differs, by at most 1"
    assert row["left"]["dtype"] == dtype and row["left"]["shape"] == [3]
    assert verdicts({"x": x}, {"x": x.clone()}) == {"x": "same"}


def test_integers_are_compared_exactly_and_nan_is_like_nan():
    big = 2**53
    assert verdicts({"x": torch.tensor(big)}, {"x": torch.tensor(big + 1)}) == {"x": "value"}
    nan = torch.tensor([float("nan"), 1.0])
    assert verdicts({"x": nan}, {"x": nan.clone()}) == {"x": "same"}


def test_one_side_of_each_library_and_files(tmp_path):
    net = torch.nn.Linear(2, 2)
    torch.save({"model": net.state_dict(), "epoch": 3}, tmp_path / "a.pt")
    ours = {"model": {name: readtorch.tensor(value.tolist()) for name, value in net.state_dict().items()}, "epoch": 4}
    assert verdicts(tmp_path / "a.pt", ours) == {"model.weight": "same", "model.bias": "same", "epoch": "value"}
    assert verdicts(str(tmp_path / "a.pt"), {"model": net.state_dict()})["epoch"] == "missing"


@LIBRARIES
def test_versions_and_many(T):
    net = T.nn.Sequential(T.nn.BatchNorm1d(2))
    state = net.state_dict()
    state._metadata["0"] = {"version": 1}
    assert diff_checkpoints(net, state)["versions"] == [["0", 2, 1]]
    many = diff_checkpoints({str(i): i for i in range(MOST_ROWS + 2)}, {})
    assert len(many["rows"]) == MOST_ROWS and many["left_out"] == 2


def test_a_meta_tensor_has_no_values():
    row = row_of({"x": torch.empty(2, device="meta")}, {"x": torch.ones(2)}, "x")
    assert row["verdict"] == "same" and "no values" in row["values"]


def test_what_is_no_checkpoint():
    with pytest.raises(TypeError, match="not int"):
        diff_checkpoints(3, {})
