"""The bytes of an event file, and what a reader makes of them when a bit is flipped (the chapter "Multiprocessing and
TensorBoard").

`tests/viz/test_event_file.py` writes the same two numbers with PyTorch, and reads each damaged file with TensorBoard.
"""

import struct

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Integer, Number, Refusal, Switch, Text
from readtorch.viz.picture import box, drawing, text

VERSION = b"brain.Event:2"
LONGEST = 12  # letters of a tag
ROW = 16  # bytes
BITS = {"none": "no bit", **{str(bit): f"bit {bit}" for bit in range(8)}}
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./"


# Writing


def remainder(byte):
    """What one byte contributes to a CRC-32C."""
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


REMAINDERS = [remainder(byte) for byte in range(256)]


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = REMAINDERS[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(number):
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def nested(number, content):
    """A field of kind 2."""
    return bytes([number << 3 | 2, len(content)]) + content


def scalar_event(tag, value, step):
    summary = nested(1, nested(1, tag.encode()) + b"\x15" + struct.pack("<f", value))
    return (b"\x10" + varint(step) if step else b"") + nested(5, summary)


def record(body):
    """The bytes, and what each is for."""
    length = struct.pack("<Q", len(body))
    content = length + struct.pack("<I", masked_crc(length)) + body + struct.pack("<I", masked_crc(body))
    parts = ["length"] * 8 + ["sum of the length"] * 4 + ["data"] * len(body) + ["sum of the data"] * 4
    return content, parts


# Reading


def read_varint(data, at):
    """(number, where it ends), or None. Five bytes at most: the figure writes no longer ones."""
    number = 0
    for i in range(5):
        if at + i >= len(data):
            return None
        number += (data[at + i] & 127) * 128**i
        if data[at + i] < 128:
            return number, at + i + 1
    return None


def fields(data):
    """{(number, kind): value}, or None where the bytes are no list of fields."""
    found, at = {}, 0
    while at < len(data):
        key = read_varint(data, at)
        if not key:
            return None
        number, kind, at = key[0] // 8, key[0] % 8, key[1]
        if kind == 0:
            value = read_varint(data, at)
            if not value:
                return None
            found[number, kind], at = value
            continue
        size = (read_varint(data, at) if kind == 2 else {1: (8, at), 5: (4, at)}.get(kind)) or (len(data), at)
        end = size[0] + size[1]
        if end > len(data):
            return None
        found[number, kind], at = data[size[1] : end], end
    return found


def value_text(x):
    """A float32 to four places, "about" where it has more: the same text in both languages."""
    if x != x:
        return "nan"
    sign, x = "-" if x < 0 else "", abs(x)
    if x >= 1e7:
        return f"{sign}10,000,000 or more"
    units = int(x * 10000 + 0.5)
    if units == 0 and x > 0:
        return "almost 0"
    places = f"{units % 10000:04}".rstrip("0")
    exact = struct.pack("<f", units / 10000) == struct.pack("<f", x)
    return ("" if exact else "about ") + f"{sign}{units // 10000}" + (f".{places}" if places else "")


def seen(data):
    return "".join(chr(byte) if 32 < byte < 127 else "·" for byte in data)


def event_text(body):
    """What a reader of scalars finds."""
    event = fields(body)
    if event is None:
        return "no list of fields"
    if (3, 2) in event:
        return f"version {seen(event[3, 2])}"
    summary = fields(event.get((5, 2), b""))
    value = fields(summary.get((1, 2), b"")) if summary else None
    if not value or (2, 5) not in value:
        return "no number"
    number = value_text(struct.unpack("<f", value[2, 5])[0])
    return f"{seen(value.get((1, 2), b''))} = {number} at step {event.get((0, 0), event.get((2, 0), 0))}"


def records_of(data, check):
    """What a reader says of each record: {text, state}."""
    at = 0
    while at < len(data):
        rest = len(data) - at
        if rest < 12:
            yield {"text": "too few bytes for a length: the reader waits for more", "state": "waits"}
            return
        if check and (broken := differs("length", data[at : at + 8], data[at + 8 : at + 12])):
            yield broken
            return
        size = int.from_bytes(data[at : at + 8], "little")
        if 12 + size + 4 > rest:
            yield {"text": "longer than the rest of the file: the reader waits for more", "state": "waits"}
            return
        body, stored = data[at + 12 : at + 12 + size], data[at + 12 + size : at + 16 + size]
        if check and (broken := differs("data", body, stored)):
            yield broken
            return
        yield {"text": event_text(body), "state": "read"}
        at += 16 + size


def differs(name, data, stored):
    """None if the checksum is right."""
    computed, stored = masked_crc(data), int.from_bytes(stored, "little")
    if computed == stored:
        return None
    return {
        "text": f"the {name}: {computed:08x} computed, {stored:08x} in the file: the reader stops",
        "state": "stops",
    }


# The figure


def model(inputs):
    if any(letter not in LETTERS for letter in inputs["tag"]) or not inputs["tag"]:
        raise Refusal("A tag has letters of the alphabet, digits and _ - . / here.")
    step, value = inputs["global_step"], inputs["value"]
    bodies = [
        nested(3, VERSION),
        scalar_event(inputs["tag"], value, step),
        scalar_event(inputs["tag"], value / 2, step + 1),
    ]
    written = [record(body) for body in bodies]
    clean = b"".join(content for content, _ in written)
    parts = [[number + 1, part] for number, (_, names) in enumerate(written) for part in names]
    data, byte = bytearray(clean), min(inputs["byte"], len(clean) - 1)
    changed = inputs["bit"] != "none"
    if changed:
        data[byte] ^= 1 << int(inputs["bit"])
    right = [one["text"] for one in records_of(clean, True)]
    rows = list(records_of(bytes(data), inputs["check"]))
    number, part = parts[byte]
    for at, one in enumerate(rows, 1):
        hit = changed and part == "data" and at == number  # wrong even where the text is the same
        if one["state"] == "read" and (hit or one["text"] not in right):
            one["state"] = "wrong"
    wrong = any(one["state"] == "wrong" for one in rows)
    intact = sum(one["state"] == "read" for one in rows)
    say = (
        f"Bit {inputs['bit']} of byte {byte} is flipped, in the {part} of record {number}. "
        if changed
        else "Nothing is changed. "
    )
    say += f"Of the 3 records {intact} {'is' if intact == 1 else 'are'} read as written."
    say += " What else is read was never written." if wrong else ""
    return {"bytes": list(data), "parts": parts, "byte": byte, "changed": changed, "rows": rows, "say": say}


KINDS = {"length": "plain", "data": "pale", "sum of the length": "gold", "sum of the data": "gold"}


def picture(result, step):
    """The bytes in rows, and what a reader says."""
    boxes = []
    for i, (byte, (_, part)) in enumerate(zip(result["bytes"], result["parts"], strict=True)):
        kind = "pick" if result["changed"] and i == result["byte"] else KINDS[part]
        boxes.append(box(8 + 28 * (i % ROW), 8 + 22 * (i // ROW), 26, 20, kind, f"{byte:02x}"))
    below = 30 + 22 * (1 + (len(result["bytes"]) - 1) // ROW)
    lines = [text(f"{i + 1}: {one['text']}", 8, below + 20 * i) for i, one in enumerate(result["rows"])]
    return drawing(470, below + 20 * len(lines), *boxes, *lines)


def sample(random):
    tag = "".join(random.choice(LETTERS) for _ in range(random.randint(1, LONGEST)))
    return {"tag": tag, "global_step": random.choice([0, 1, 127, 128, 20_000, random.randint(0, 1_000_000)])}


FIGURE = Figure(
    name="event_file",
    title="An event file, bit by bit",
    inputs=(
        Text("tag", "tag", "loss", longest=LONGEST),
        Number("value", "number", 0.5, low=-1000, high=1000),
        Integer("global_step", "step", 1, low=0, high=1_000_000),
        Choice("bit", "flip", "none", options=BITS),
        Integer("byte", "of byte", 58, low=0, high=140),
        Switch("check", "check the sums", True),
    ),
    model=model,
    picture=picture,
    sample=sample,
    hint="Click a byte, or use the arrow keys in the bytes.",
)
