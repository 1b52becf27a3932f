"""The figure of an ONNX file's bytes: what it decodes is what the package `onnx` reads, and it refuses what onnx refuses."""

import random

import onnx
import pytest

from readtorch.viz.figure_kit import find
from readtorch.viz.figures import protobuf_bytes
from readtorch.viz.inputs import Refusal

FIGURE = find("protobuf_bytes")


def read(inputs):
    """onnx's message, or None."""
    try:
        return onnx.ModelProto.FromString(bytes.fromhex(inputs["bytes"]))
    except Exception:
        return None


def decoded(inputs):
    try:
        return FIGURE.model(inputs)["rows"]
    except Refusal:
        return None


def values(rows, depth, name):
    return [row["value"] for row in rows if (row["depth"], row["name"]) == (depth, name)]


def test_the_model_as_it_is():
    rows, message = FIGURE.result()["rows"], read({"bytes": protobuf_bytes.ADD})
    onnx.checker.check_model(message)
    assert values(rows, 0, "ir_version") == [str(message.ir_version)]
    assert values(rows, 2, "op_type") == ['"Add"'] == [f'"{n.op_type}"' for n in message.graph.node]
    assert values(rows, 2, "input") == ['"x"', '"x"']
    assert FIGURE.result()["say"].startswith(f"{message.ByteSize()} bytes, {len(rows)} fields: sum = Add(x, x).")


@pytest.mark.parametrize("seed", range(6))
def test_changed_bytes(seed):
    generator, agreed = random.Random(seed), 0
    for _ in range(200):
        inputs = FIGURE.random_inputs(generator)
        rows, message = decoded(inputs), read(inputs)
        if message is None or rows is None:
            continue
        assert values(rows, 0, "ir_version")[-1:] == (
            [str(message.ir_version)] if message.HasField("ir_version") else []
        )
        wanted = [str(o.version) for o in message.opset_import if o.HasField("version")]
        assert values(rows, 1, "version")[-1:] == wanted[-1:]
        inputs_of_nodes = [name for node in message.graph.node for name in node.input]
        if all(
            isinstance(name, str) and name.isprintable() and name.isascii() and "\\" not in name
            for name in inputs_of_nodes
        ):
            assert values(rows, 2, "input") == [f'"{name}"' for name in inputs_of_nodes]
        agreed += 1
    assert agreed > 50


def test_what_is_refused_onnx_refuses():
    """Field 0, a value that does not fit, a number that does not end."""
    for broken in ("00 01", "0a 05 61", "08 80", "08 80 80 80 80 80 80 80 80 80 80 80 01", "0e 01"):
        assert decoded({"bytes": broken, "at": 0}) is None and read({"bytes": broken}) is None, broken


@pytest.mark.parametrize("written", ["080A", "0x08 0x0a", "0x08, 0x0a", "\\x08\\x0a", "08,0a"])
def test_bytes_may_be_written_as_programs_print_them(written):
    assert FIGURE.result(bytes=written)["bytes"] == ["08", "0a"]


def test_what_the_chosen_byte_is_for():
    for chosen, said in (
        (17, "Byte 17, 22, is the tag of field 4, op_type: 34 = 8 · 4 + 2."),
        (18, "Byte 18, 03, is the length of field 4, op_type: 3."),
        (19, "Byte 19, 41, is in the value of field 4, op_type."),
        (1, "Byte 1, 0a, is in the value of field 1, ir_version."),
    ):
        assert FIGURE.result(at=chosen)["say"].endswith(said)
    long = FIGURE.result(bytes="a2 01 02 61 62", at=1)["say"]
    assert long.endswith("Byte 1, 01, is the tag of field 20: 162 = 8 · 20 + 2.")


def test_an_unknown_field_shows_what_it_holds():
    """The nine bytes of the chapter: a model has a text in field 2, and no field 9 or 13."""
    shown = lambda data: [row["value"] for row in FIGURE.result(bytes=data)["rows"]]
    assert shown("08 0a 1a 02 68 69 10 ac 02") == ["10", '"hi"', "300 (unknown, skipped)"]
    assert shown("4d 00 00 80 3f 6a 00") == ["00 00 80 3f (unknown, skipped)", "empty (unknown, skipped)"]
