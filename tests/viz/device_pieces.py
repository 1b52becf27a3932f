"""What a device timeline draws, made up: one device, and two."""

from dataclasses import astuple

from readtorch.viz.record_devices import PHASES, Piece, device_numbers


def run(label, total, pieces):
    return {
        "label": label,
        "total": total,
        "launch": 5.0,
        "left_out": 0,
        "pieces": [astuple(p) for p in pieces],
        "devices": [device_numbers(pieces, device) for device in range(2)],
    }


def piece(device, stream, operator, phase, start, end, asked, nbytes=4096):
    return Piece(device, stream, operator, PHASES.index(phase), start, end, asked, nbytes)


def two_runs():
    alone = [piece(0, 0, "mm", "forward", 10.0, 100.0, 10.0)]
    both = [
        piece(0, 3, "_to_copy", "scatter", 5.0, 25.0, 5.0),
        piece(0, 0, "addmm", "forward", 25.0, 125.0, 10.0),
        piece(1, 0, "addmm", "forward", 30.0, 90.0, 30.0),
        piece(1, 0, "add", "reduce-add", 160.0, 200.0, 40.0),
    ]
    return {"phases": PHASES, "runs": [run("one", 100.0, alone), run("two", 200.0, both)]}
