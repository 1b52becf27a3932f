"""python -m tests.allocator.report: replays every recorded run and writes results.json, which the book shows.

A row is a run: what it is about, its settings, how many operations and driver calls were recorded, and the first difference.
"""

from pathlib import Path

from benchmarks import record
from tests.allocator.replay import load, replay

HERE = Path(__file__).parent


def row(path):
    recording = load(path)
    calls = sum(count for call, count in recording["fake"].items() if call.startswith("cu"))
    return {
        "name": path.name.split(".")[0],
        "about": recording["title"],
        "settings": recording["alloc_conf"] or "",
        "operations": len(recording["ops"]),
        "driver_calls": calls,
        "difference": replay(path),
    }


if __name__ == "__main__":
    rows = [row(path) for path in sorted((HERE / "traces").glob("*.json.gz"))]
    record.write("results", rows, folder=HERE)
    same = sum(row["difference"] is None for row in rows)
    print(f"{same} of {len(rows)} recorded runs are the same")
