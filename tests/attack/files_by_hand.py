"""Files made by hand to exhaust the machine, or to reach what they should not: name -> (bytes or what makes
them, what the error says; None: no error).

    python -m tests.attack.files_by_hand      opens each in a process of its own, prints what came of it as JSON
"""

import io
import json
import pathlib
import pickle
import struct
import tempfile
import zipfile

DEEP = 100_000


def zipped(records, compress=True):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as archive:
        for name, data in records.items():
            archive.writestr(f"archive/{name}", data)
    return file.getvalue()


def checkpoint(pickle, **records):
    return zipped({"data.pkl": pickle, "version": b"3\n", "byteorder": b"little", **records})


def checkpoints():
    tensor = (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nByteStorage\nX\x01\0\0\x000X\x03\0\0\0cpu"
        b"J" + struct.pack("<i", 300 << 20) + b"tQK\0K\x01\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR."
    )
    too_far = "would expand from"
    return {
        "60 MB of lists": (lambda: checkpoint(b"\x80\x02(" + b"]" * 60_000_000 + b"t."), too_far),
        "60 MB of sets": (lambda: checkpoint(b"\x80\x02(" + b"\x8f" * 60_000_000 + b"t."), too_far),
        "2 MB of sets": (lambda: checkpoint(b"\x80\x02(" + b"\x8f" * 2_000_000 + b"t."), None),
        "60 MB of marks": (lambda: checkpoint(b"\x80\x02" + b"(" * 60_000_000 + b"."), too_far),
        "a version of 60 MB": (lambda: checkpoint(b"\x80\x02N.", version=b"3" + b" " * 60_000_000), "no short text"),
        "a storage of 300 MB": (lambda: checkpoint(tensor, **{"data/0": bytes(300 << 20)}), too_far),
        "thirty storages of 10 MB": (
            lambda: checkpoint(b"\x80\x02N.", **{f"data/{i}": bytes(10 << 20) for i in range(30)}),
            too_far,
        ),
    }


def tensors_in_safetensors():
    def file(dtype, size):
        header = json.dumps({"a": {"dtype": dtype, "shape": [8], "data_offsets": [0, size]}}).encode()
        return struct.pack("<Q", len(header)) + header + bytes(size)

    return {
        dtype: (file(dtype, size), f"Dtype not understood: {dtype}, of the tensor 'a'")
        for dtype, size in {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E8M0": 8}.items()
    }


def snapshots():
    def snapshot(event):
        return b"\x80\x02}(X\x08\0\0\0segments]X\x0d\0\0\0device_traces](](" + event + b"eeu."

    alloc = b"}(X\x06\0\0\0actionX\x05\0\0\0allocX\x04\0\0\0addrK\0X\x04\0\0\0sizeK\x01X\x06\0\0\0streamK\0"
    plain = "plain data; this file asks for"
    same = [{"action": "alloc", "addr": 0, "size": 1, "stream": 0}] * 30_000
    block = {"address": 0, "size": 512, "requested_size": 1, "state": "inactive"}
    segment = {"address": 0, "total_size": 512, "stream": 0, "segment_type": "small", "blocks": [block] * 30_000}
    deep = [{"name": "f", "filename": "f.py", "line": 1}] * 30_000
    oom = {"action": "oom", "addr": 0, "size": 1, "stream": 0, "device_free": 0}
    free = [
        {"address": i << 21, "total_size": 512, "stream": 0, "segment_type": "small", "blocks": []}
        for i in range(30_000)
    ]
    doubled = b")q\0" + b"h\0h\0\x86q\0" * 60
    return {
        "a call": (b"\x80\x02cos\nsystem\nX\x04\0\0\0true\x85R.", f"{plain} os.system"),
        "a call, protocol 4": (b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.", f"{plain} os.system"),
        "INST": (b"\x80\x02(X\x04\0\0\0trueios\nsystem\n.", "Unsupported operand 105"),
        "a state for a dictionary": (b"\x80\x02}N}X\x05\0\0\0clearNs\x86b.", "Unsupported operand 98"),
        "slots of a list": (b"\x80\x02]N}X\x08\0\0\0__doc__sNs\x86b.", "Unsupported operand 98"),
        "an extension": (b"\x80\x02\x82\x01.", "Unsupported operand 130"),
        "a persistent id": (b"\x80\x02K\x01Q.", "Unsupported operand 81"),
        "the highest place of the memo": (b"\x80\x02Nr\xff\xff\xff\xff0.", "Unsupported operand 48"),
        "a place of five bytes for gigabytes": (b"\x80\x02Nr\xff\xff\xff\x0b.", "it must be a dictionary"),
        "a text of 4 GB": (b"\x80\x04\x8d" + struct.pack("<Q", 1 << 32) + b".", "breaks off"),
        "a key that doubles": (b"\x80\x02" + doubled + b"}h\0Ns.", "too large tuples as keys"),
        "a deep key": (b"\x80\x02})" + b"\x85" * DEEP + b"Ns.", "too large tuples as keys"),
        "a list as a key": (b"\x80\x02}]Ns.", "unhashable"),
        "deep lists": (b"\x80\x02" + b"]" * DEEP + b"a" * (DEEP - 1) + b".", "it must be a dictionary"),
        "a deep name": (b"\x80\x04" + b"]" * DEEP + b"a" * (DEEP - 1) + b"\x8c\x01x\x93.", "no text"),
        "breaks off": (b"\x80\x02}(X\x08\0\0\0segm", "breaks off"),
        "nothing": (b"", "breaks off"),
        "a number": (b"\x80\x02K\x01.", "it must be a dictionary"),
        "segments of numbers": (b"\x80\x02}X\x08\0\0\0segments]K\x01as.", r"segments\[0\] must be a dictionary"),
        "an event without a size": (
            snapshot(b"}X\x06\0\0\0actionX\x05\0\0\0allocs"),
            r"device_traces\[0\]\[0\]\['size'\]",
        ),
        "a method as an action": (snapshot(alloc.replace(b"\x05\0\0\0alloc", b"\x06\0\0\0_init_") + b"u"), None),
        "an address of 80 bits": (
            snapshot(alloc + b"X\x04\0\0\0addr\x8a\x0a" + b"\x7f" * 10 + b"u"),
            "a number of 62 bits",
        ),
        "frames that are no frames": (
            snapshot(alloc + b"X\x06\0\0\0frames]K\x01au"),
            r"\['frames'\]\[0\] must be a dictionary",
        ),
        "a block size that is a text": (
            snapshot(alloc + b"X\x07\0\0\0details}X\x0a\0\0\0block_sizeX\x01\0\0\0xsu"),
            "block_size is a number",
        ),
        "the same blocks in many segments": (traced(same, [{**segment} for _ in range(30_000)]), "a list of its own"),
        "the same history of many devices": (
            pickle.dumps({"segments": [], "device_traces": [same] * 30_000}),
            "a list of its own",
        ),
        "many events without memory, among many free blocks": (traced([oom] * 30_000, free), None),
        "the same deep stack at many events": (traced([same[0] | {"frames": deep}] * 30_000), None),
    }


def traced(events, segments=()):
    return pickle.dumps({"segments": list(segments), "device_traces": [events]})


# ----------------------------------------------------------------------------------------------- opening them

SUBJECTS = {"checkpoint": checkpoints, "safetensors": tensors_in_safetensors, "snapshot": snapshots}


def open_file(subject, path):
    """What reads files of this kind, with torch's name for it if there is one."""
    import readtorch

    if subject == "snapshot":
        from readtorch.viz.allocator_history import allocator_history

        return allocator_history(path)
    return readtorch.load(path)


def said(subject, path):
    """ "opened", or what the error says."""
    try:
        open_file(subject, path)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"[:2000]
    return "opened"


def main():
    from tests.attack import limits

    outcomes = {}
    with tempfile.TemporaryDirectory() as folder:
        for subject, files in SUBJECTS.items():
            path = pathlib.Path(folder) / ("hostile.safetensors" if subject == "safetensors" else "hostile")
            path.write_bytes(b"")
            said(subject, path)  # imports what is imported at the first use
            for name, (data, _) in files().items():
                path.write_bytes(data() if callable(data) else data)
                outcomes[f"{subject}: {name}"] = limits.alone(lambda: said(subject, path), seconds=30)
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main()
