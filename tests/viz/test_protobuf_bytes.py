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
