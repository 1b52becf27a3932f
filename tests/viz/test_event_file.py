"""The figure of the event file against PyTorch's writer and TensorBoard's reader."""

import random
import struct

import pytest
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from torch.utils.tensorboard import SummaryWriter

from readtorch.viz.figure_kit import find
from readtorch.viz.figures.event_file import LONGEST, VERSION, nested, record, sample, value_text
from readtorch.viz.inputs import Refusal

FIGURE = find("event_file")


def by_pytorch(folder, tag, value, global_step):
    """The records of two numbers; the first record, with time and writer, is left out."""
    with SummaryWriter(folder) as writer:
        writer.add_scalar(tag, value, global_step, walltime=0)
        writer.add_scalar(tag, value / 2, global_step + 1, walltime=0)
    (file,) = folder.iterdir()
    content = file.read_bytes()
    (first,) = struct.unpack("<Q", content[:8])
    return content[16 + first :]


def read_by_tensorboard(path, content):
    """[(version or tag, number, step)] up to the first broken record"""
    path.write_bytes(content)
    for event in EventFileLoader(str(path)).Load():
        if event.file_version:
            yield f"version {event.file_version}"
        for value in event.summary.value:
            (number,) = value.tensor.float_val or [value.simple_value]
            yield f"{value.tag} = {value_text(number)} at step {event.step}"


def test_the_numbers_are_written_as_pytorch_writes_them(tmp_path):
    generator = random.Random(0)
    for i in range(40):
        inputs = sample(generator) | {"value": generator.uniform(-1000, 1000)}
        written = bytes(FIGURE.result(**inputs)["bytes"])
        version, _ = record(nested(3, VERSION))
        assert written.removeprefix(version) == by_pytorch(tmp_path / str(i), **inputs)


def test_every_flipped_bit_is_read_as_by_tensorboard(tmp_path):
    size, states = len(FIGURE.result()["bytes"]), set()
    for byte in range(size):
        for bit in "0123456":
            result = FIGURE.result(byte=byte, bit=bit)
            assert [one["text"] for one in result["rows"] if one["state"] == "read"] == list(
                read_by_tensorboard(tmp_path / "events.out.tfevents.1", bytes(result["bytes"]))
            )
            assert result["rows"][-1]["state"] == "stops"  # a single bit never passes
            states |= {one["state"] for one in FIGURE.result(byte=byte, bit=bit, check=False)["rows"]}
    assert states == {"read", "wrong", "waits"}


def test_without_the_sums_a_wrong_number_is_read():
    inputs = {"byte": 58, "bit": "6", "check": False}
    number, tag = FIGURE.result(**inputs), FIGURE.result(**inputs | {"byte": 54})
    assert [one["state"] for one in number["rows"]] == ["read", "wrong", "read"]
    assert "loss = " in number["rows"][1]["text"] != FIGURE.result()["rows"][1]["text"]
    low = FIGURE.result(byte=56, bit="0", check=False)["rows"][1]  # the number's lowest bit
    assert low == {"text": "loss = about 0.5 at step 1", "state": "wrong"}
    # What the third record says, in the second:
    step = FIGURE.result(value=0, byte=44, bit="0", check=False, global_step=2)["rows"][1]
    assert step == {"text": "loss = 0 at step 3", "state": "wrong"}
    assert [one["state"] for one in tag["rows"]] == ["read", "wrong", "read"]


@pytest.mark.parametrize("tag", ["", "a b", "ä", "x" * (LONGEST + 1)])
def test_tags_that_are_refused(tag):
    with pytest.raises(Refusal):
        FIGURE.result(tag=tag)
