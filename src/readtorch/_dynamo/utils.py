"""Counters and logs. In PyTorch: `torch/_dynamo/utils.py`, `torch/_logging/_internal.py`."""

import collections
import dis
import logging
import os

from readtorch.c10.device import device

# counters["stats"]["unique_graphs"], counters["graph_break"][reason], counters["frames"]["ok"] …
counters = collections.defaultdict(collections.Counter)

ARTIFACTS = ("bytecode", "graph_breaks", "recompiles", "guards", "graph_code")
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


def log_bytecode(prefix, code, made):
    """The instructions of `made`, under the name and the place of the code that it stands for."""
    if "bytecode" in _shown:
        where = f"{code.co_name} {code.co_filename} line {code.co_firstlineno}"
        log_artifact("bytecode", f"{prefix} {where} \n{dis.Bytecode(made).dis()}\n")


def is_compile_supported(device_type):
    """Whether `compile` makes kernels for devices of this type: for the CPU."""
    return device(device_type).type == "cpu"
