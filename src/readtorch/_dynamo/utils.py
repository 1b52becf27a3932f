"""Counters and logs. In PyTorch: `torch/_dynamo/utils.py`, `torch/_logging/_internal.py`."""

import collections
import logging
import os

# counters["stats"]["unique_graphs"], counters["graph_break"][reason], counters["frames"]["ok"] …
counters = collections.defaultdict(collections.Counter)

ARTIFACTS = ("graph_breaks", "recompiles", "guards", "graph_code")
_shown = set(os.environ.get("TORCH_LOGS", "").replace("+", "").split(",")) & set(ARTIFACTS)
log = logging.getLogger("readtorch._dynamo")


def set_logs(**artifacts):
    """Which artifacts are logged: `set_logs(recompiles=True)`. In PyTorch: `torch._logging.set_logs`."""
    unknown = artifacts.keys() - set(ARTIFACTS)
    if unknown:
        raise ValueError(f"Unrecognized log or artifact name: {', '.join(sorted(unknown))}")
    _shown.clear()
    _shown.update(name for name, is_shown in artifacts.items() if is_shown)


def log_artifact(artifact, message):
    if artifact in _shown:
        log.warning("[__%s] %s", artifact, message)
