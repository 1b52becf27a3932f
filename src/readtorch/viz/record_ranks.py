"""What the ranks of a process group did when, out of their recorded timelines, for the rank timeline.

The recording is in csrc/distributed/timeline.py; here times become milliseconds since the first rank began.
"""

from __future__ import annotations

from readtorch.csrc.distributed.timeline import hidden_share

MOST_RUNS = 8
MOST_SPANS = 1200
LANES = ["compute", "communication", "wait"]


def record_ranks(runs) -> dict:
    """Recordings of one or several runs -> JSON.

    runs: what `Timeline.export` gave on each rank, in a list, or a dict of label and such a list. ValueError for too
    many runs, for none, and for one in which nothing was recorded.
    """
    pairs = list(runs.items()) if hasattr(runs, "items") else [("", runs)]
    if not 1 <= len(pairs) <= MOST_RUNS:
        raise ValueError(f"{len(pairs)} runs; the rank timeline draws 1 to {MOST_RUNS}")
    return {"lanes": LANES, "runs": [run_of(label, list(timelines)) for label, timelines in pairs]}


def run_of(label, timelines) -> dict:
    began = min((span["begin"] for timeline in timelines for span in timeline["spans"]), default=None)
    if began is None:
        raise ValueError(f"run {label!r}: no rank has recorded anything")
    milliseconds = Clock(began)
    spans = sorted(
        (span_of(timeline["rank"], span, milliseconds) for timeline in timelines for span in timeline["spans"]),
        key=lambda span: (span["begin"], span["rank"]),
    )
    return {
        "label": label,
        "total": max(span["end"] for span in spans),
        "ranks": [numbers_of(timeline, spans) for timeline in timelines],
        "spans": spans[:MOST_SPANS],
        "gradients": [gradient for timeline in timelines for gradient in gradients_of(timeline, milliseconds)],
        "left_out": max(0, len(spans) - MOST_SPANS),
    }


class Clock:
    """Milliseconds since a moment, out of seconds of the ranks' common clock."""

    def __init__(self, began):
        self.began = began

    def __call__(self, seconds):
        return round(1000 * (seconds - self.began), 3)


def span_of(rank, span, milliseconds) -> dict:
    """moving: when all ranks had come and the line was free. Only collectives have it, bytes and parameters."""
    begin, end = milliseconds(span["begin"]), milliseconds(span["end"])
    return {
        "rank": rank,
        "lane": LANES.index(span["lane"]),
        "name": span["name"],
        "begin": begin,
        "end": end,
        "moving": milliseconds(span["moving"]) if "moving" in span else begin,
        "bucket": span.get("bucket"),
        "bytes": span.get("bytes"),
        "parameters": list(span.get("parameters", ())),
    }


def gradients_of(timeline, milliseconds) -> list:
    """[rank, moment, bucket, parameter] of each gradient that was complete."""
    return [
        [timeline["rank"], milliseconds(instant["at"]), instant["bucket"], instant["parameter"]]
        for instant in timeline["instants"]
        if instant["name"] == "gradient"
    ]


def numbers_of(timeline, spans) -> dict:
    """How long a rank did what, and the share of communication that it did not wait for."""
    own = [span for span in spans if span["rank"] == timeline["rank"]]
    times = [
        round(sum(span["end"] - span["moving"] for span in own if span["lane"] == lane), 3)
        for lane in range(len(LANES))
    ]
    communicates = any(span["lane"] == LANES.index("communication") for span in own)
    return {
        "rank": timeline["rank"],
        "times": times,
        "hidden": round(hidden_share(timeline), 4) if communicates else None,
    }
