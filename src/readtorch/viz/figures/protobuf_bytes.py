"""The bytes of a small ONNX file, decoded again after each change (the chapter "export and ONNX").

In PyTorch: `torch/onnx/_internal/exporter/_onnx_program.py` has such a message; the names of the fields are those of `onnx.proto`.
`tests/viz/test_protobuf_bytes.py` compares with the package `onnx`.
"""

import re

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Expression, Integer, Refusal
from readtorch.viz.picture import drawing, text

MOST = 160  # bytes
ADD = (
    "08 0a 3a 39 0a 10 0a 01 78 0a 01 78 12 03 73 75 6d 22 03 41 64 64 12 01 67 5a 0f 0a 01 78 12 0a 0a 08 08 01 12 04 0a 02 "
    "08 02 62 11 0a 03 73 75 6d 12 0a 0a 08 08 01 12 04 0a 02 08 02 42 04 0a 00 10 14"
)
WANTED = f"Two hexadecimal digits a byte, 1 to {MOST} bytes."

# message -> {number of the field: (name, what it holds)}: int, float, text, bytes, or a message
SCHEMA = {
    "Model": {
        1: ("ir_version", "int"),
        2: ("producer_name", "text"),
        3: ("producer_version", "text"),
        7: ("graph", "Graph"),
        8: ("opset_import", "OperatorSetId"),
    },
    "OperatorSetId": {1: ("domain", "text"), 2: ("version", "int")},
    "Graph": {
        1: ("node", "Node"),
        2: ("name", "text"),
        5: ("initializer", "Tensor"),
        11: ("input", "ValueInfo"),
        12: ("output", "ValueInfo"),
    },
    "Node": {
        1: ("input", "text"),
        2: ("output", "text"),
        3: ("name", "text"),
        4: ("op_type", "text"),
        5: ("attribute", "Attribute"),
    },
    "Attribute": {1: ("name", "text"), 2: ("f", "float"), 3: ("i", "int"), 4: ("s", "bytes"), 20: ("type", "int")},
    "Tensor": {1: ("dims", "int"), 2: ("data_type", "int"), 8: ("name", "text"), 9: ("raw_data", "bytes")},
    "ValueInfo": {1: ("name", "text"), 2: ("type", "Type")},
    "Type": {1: ("tensor_type", "TensorType")},
    "TensorType": {1: ("elem_type", "int"), 2: ("shape", "Shape")},
    "Shape": {1: ("dim", "Dimension")},
    "Dimension": {1: ("dim_value", "int"), 2: ("dim_param", "text")},
}
WIRES = {"int": 0, "float": 5}  # how a value is written; all others: a length, and as many bytes
SIZES = {1: 8, 5: 4}


def bytes_of(words):
    digits = re.sub(r"\\x|\b0[xX]|[\s,]+", "", words)
    if not re.fullmatch(r"(?:[0-9a-fA-F]{2})+", digits) or len(digits) > 2 * MOST:
        raise Refusal(WANTED)
    return bytes.fromhex(digits)


def varint(data, at, end):
    number = 0
    for count in range(10):
        if at + count >= end:
            raise Refusal(f"Byte {at}: a number begins here, and the message ends before it does.")
        number |= (data[at + count] & 127) << (7 * count)
        if data[at + count] < 128:
            return number & (2**64 - 1), at + count + 1
    raise Refusal(f"Byte {at}: a number is longer than 10 bytes.")


def field(data, start, end):
    """(number, wire, value, where the tag ends, where the value begins, where it ends); the value of wire 0 is a number, else None."""
    tag, at = varint(data, start, end)
    tagged, number, wire = at, tag >> 3, tag & 7
    if not 0 < number < 2**29:
        raise Refusal(f"Byte {start}: there is no field {number}.")
    if wire == 0:
        value, stop = varint(data, at, end)
        return number, wire, value, tagged, at, stop
    if wire == 2:
        size, at = varint(data, at, end)
    elif wire in SIZES:
        size = SIZES[wire]
    else:
        raise Refusal(f"Byte {start}: the wire types are 0, 1, 2 and 5, and this tag says {wire}.")
    if at + size > end:
        raise Refusal(f"Byte {start}: {size} bytes should follow, and there are {end - at}.")
    return number, wire, None, tagged, at, at + size


def shown(data):
    """Text, with what is not printable ASCII as two digits."""
    return "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02x}" for b in data)


def rows_of(data, kind, start, end, depth):
    """A row for each field of a message, those of its parts below it."""
    while start < end:
        number, wire, value, tagged, at, stop = field(data, start, end)
        name, what = SCHEMA[kind].get(number, ("", ""))
        if wire != WIRES.get(what, 2):
            name, what = "", ""
        row = {
            "from": start,
            "tagged": tagged,
            "at": at,
            "to": stop,
            "depth": depth,
            "number": number,
            "wire": wire,
            "name": name,
        }
        if not what:
            raw = data[at:stop].hex(" ") if value is None else str(value)
            yield row | {"value": f"{raw or 'empty'} (unknown, skipped)"}
        elif what in SCHEMA:
            yield row | {"value": ""}
            yield from rows_of(data, what, at, stop, depth + 1)
        elif what == "int":
            yield row | {"value": str(value - 2**64 if value >= 2**63 else value)}
        elif what == "float":
            yield row | {"value": data[at:stop].hex(" ")}
        else:
            yield row | {"value": f'"{shown(data[at:stop])}"'}
        start = stop


def said(rows):
    """The model in a sentence."""
    nodes = [i for i, row in enumerate(rows) if (row["name"], row["depth"]) == ("node", 1)]
    parts = []
    for i in nodes:
        inner = rows[i + 1 :]
        count = next((k for k, row in enumerate(inner) if row["depth"] <= 1), len(inner))
        values = [(row["name"], row["value"].strip('"')) for row in inner[:count] if row["depth"] == 2]
        of = lambda name: [value for key, value in values if key == name]
        parts.append(f"{', '.join(of('output'))} = {''.join(of('op_type')[-1:])}({', '.join(of('input'))})")
    return "; ".join(parts) or "no node"


def role(row, chosen):
    """What a byte of a field is for."""
    named = f"field {row['number']}{', ' + row['name'] if row['name'] else ''}"
    if chosen >= row["at"]:
        return f"in the value of {named}"
    if chosen >= row["tagged"]:
        return f"the length of {named}: {row['to'] - row['at']}"
    tag = 8 * row["number"] + row["wire"]
    return f"the tag of {named}: {tag} = 8 · {row['number']} + {row['wire']}"


def model(inputs):
    data = bytes_of(inputs["bytes"])
    rows = list(rows_of(data, "Model", 0, len(data), 0))
    chosen = min(inputs["at"], len(data) - 1)
    holder = max(i for i, row in enumerate(rows) if row["from"] <= chosen < row["to"])
    return {
        "bytes": [f"{b:02x}" for b in data],
        "rows": rows,
        "chosen": chosen,
        "holder": holder,
        "say": f"{len(data)} bytes, {len(rows)} fields: {said(rows)}. Byte {chosen}, {data[chosen]:02x}, is {role(rows[holder], chosen)}.",
    }


def picture(result, step):
    rows = result["rows"]
    lines = [
        text(f"{row['from']}: field {row['number']} {row['name']} {row['value']}", 12 + 16 * row["depth"], 22 + 16 * i)
        for i, row in enumerate(rows)
    ]
    return drawing(640, 16 * len(rows) + 20, *lines)


def sample(random):
    """The model with one byte changed, and sometimes cut off."""
    data = bytearray.fromhex(ADD)
    if random.random() < 0.8:
        data[random.randrange(len(data))] = random.choice([random.randrange(256), random.randrange(32)])
    if random.random() < 0.2:
        data = data[: random.randrange(1, len(data))]
    return {"bytes": bytes(data).hex(" ")}


FIGURE = Figure(
    name="protobuf_bytes",
    title="An ONNX file's bytes",
    inputs=(Expression("bytes", "bytes", ADD, longest=5 * MOST), Integer("at", "byte", 18, low=0, high=MOST - 1)),
    model=model,
    picture=picture,
    hint="Press a byte to choose it.",
    sample=sample,
)
