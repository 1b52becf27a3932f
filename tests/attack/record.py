"""What the attack programs have in common: drawing cases by number, counting outcomes, writing the summary.

An outcome is a few words; one that begins with BAD is a fault.
"""

import argparse
import collections
import datetime
import json
import platform
import sys
import time
from pathlib import Path


def main(doc, attack, count):
    """`attack(seed, number)` for every number; returns the exit code."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report", help="where to write the summary, as JSON")
    options = parser.parse_args()
    outcomes, bad, began = collections.Counter(), [], time.time()
    for number in range(options.count):
        outcome = attack(options.seed, number)
        outcomes[outcome] += 1
        if outcome.startswith("BAD"):
            bad.append(f"{number}: {outcome}")
            print(bad[-1], flush=True)
    print(f"{options.count} cases, {len(bad)} faults, {time.time() - began:.0f} s")
    if options.report:
        summary = {
            "cases": options.count,
            "seed": options.seed,
            "faults": bad,
            "outcomes": dict(sorted(outcomes.items())),
            "seconds": round(time.time() - began),
            "date": str(datetime.date.today()),
            **versions(),
        }
        Path(options.report).write_text(json.dumps(summary, indent=1) + "\n")
    return len(bad) > 0


def versions():
    import numpy

    import readtorch

    return {
        "readtorch": readtorch.__version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "system": sys.platform,
    }
