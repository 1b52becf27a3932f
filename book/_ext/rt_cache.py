"""Executed pages are kept from build to build, but not longer than they are true."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import readtorch

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

# What recorded outputs depend on besides the cells themselves and our package.
LIBRARIES = ["torch", "numpy", "numba", "ml_dtypes", "matplotlib", "anywidget", "ipywidgets"]
# ... and, for the page of results, on what it shows.
RESULTS = [
    "tests/conformance/results.json",
    "tests/conformance/page.py",
    "tests/dynamo/page.py",
    "tests/dynamo/table.json",
    "tests/lockstep/results.json",
    "tests/allocator/results.json",
    "benchmarks/page.py",
    *(
        f"benchmarks/results/{name}.json"
        for name in ("cpu", "fusion", "simulator", "allocator", "distributed", "footprint", "gpu/benchmarks")
    ),
]
KEPT_CACHES = 3

# Kernels inherit these: steady timings, and no fight between thread pools on a small machine.
ONE_THREAD = ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"]


def key_cache(app, config):
    """jupyter-cache looks at the code cells only; outputs also depend on the package that the cells import."""
    package = Path(next(iter(readtorch.__path__)))
    shown = [(ROOT / name).read_text(encoding="utf8") for name in RESULTS if (ROOT / name).exists()]
    used = [f"{name}=={version_of(name)}" for name in LIBRARIES]
    addresses = os.environ.get("READTORCH_REPOSITORY", "")  # quotes link to it
    config.rt_package_hash = hash_of([package], [platform.python_version(), addresses, *used, *shown])
    config.rt_machinery_hash = hash_of([HERE, *(Path(app.confdir) / p for p in page_parts(config))])
    caches = Path(app.srcdir) / "_build" / ".jupyter_cache"
    config.nb_execution_cache_path = str(caches / config.rt_package_hash)
    prune(caches, keep=config.rt_package_hash)


def page_parts(config) -> list[str]:
    return [*config.html_static_path, *config.templates_path]


def hash_of(folders, words=()) -> str:
    digest = hashlib.sha256("\n".join(words).encode())
    for folder in folders:
        for file in sorted(f for f in folder.rglob("*") if f.is_file() and "__pycache__" not in f.parts):
            digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def version_of(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def prune(caches: Path, keep: str) -> None:
    if caches.is_dir():
        others = sorted((c for c in caches.iterdir() if c.name != keep), key=lambda c: c.stat().st_mtime)
        for old in others[: -KEPT_CACHES + 1]:
            shutil.rmtree(old, ignore_errors=True)


def setup(app):
    for name in ONE_THREAD:
        os.environ.setdefault(name, "1")
    os.environ["READTORCH_QUIET"] = "1"  # a line on stderr fails the build, and compiling kernels may take a while
    app.add_config_value("rt_package_hash", "", "env")
    app.add_config_value("rt_machinery_hash", "", "env")
    app.connect("config-inited", key_cache, priority=600)  # after rt_launch has settled the addresses
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
