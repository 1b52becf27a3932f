"""What each contestant of a benchmark is given: threads, malloc, BLAS kernels.

Note [ The same malloc ] `import readtorch` tells glibc's malloc to keep freed memory (Note [ Freed memory is kept ] in
`c10/cpu_allocator.py`); PyTorch leaves malloc as it is. By glibc's defaults a large result lies in fresh pages each time, which
the system has to clear and to map, and from some megabytes on that can cost more than the arithmetic. A comparison of kernels
must not measure that. So the ratio of a case is taken with the same two thresholds on both sides, and beside it stands what a
user of PyTorch sees who sets nothing: the contestant "torch, glibc's malloc".

Note [ Each its own BLAS ] NumPy brings OpenBLAS, PyTorch's wheel MKL; each chooses its kernels by the processor, and they do not
choose alike: OpenBLAS goes by what the processor can do, MKL also by who made it. Variables that hold a library to other kernels are removed
from the environment of all contestants; what ran is recorded with the results.
"""

import functools
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
POOLS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
KEEPING = {
    "MALLOC_TRIM_THRESHOLD_": str(512 << 20),
    "MALLOC_MMAP_THRESHOLD_": str(256 << 20),
}  # as cpu_allocator sets them
CHOICES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR", "ATEN_CPU_CAPABILITY")

# name of the contestant: the module it imports, and whether malloc keeps freed memory
CONTESTANTS = {"readtorch": ("readtorch", True), "torch": ("torch", True), "torch, glibc's malloc": ("torch", False)}


def environment(threads=1, keeps_memory=True, source=None):
    """As many threads for every pool, the package found where it lies (or in the folder `source`), libraries that choose their
    own kernels, and malloc as said: see the notes above."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = os.pathsep.join(dict.fromkeys(filter(None, [source and str(source), *given, str(ROOT / "src"), str(ROOT)])))
    inherited = {name: value for name, value in os.environ.items() if name not in (*CHOICES, *KEEPING)}
    pools = dict.fromkeys(POOLS, str(threads))
    return {**inherited, **pools, **(KEEPING if keeps_memory else {}), "PYTHONPATH": paths}


@functools.cache
def libraries():
    """Which BLAS, and which of its kernels, each side runs on this processor, as the libraries themselves say."""
    return {"readtorch": _asked(_OPENBLAS), "torch": _asked(_MKL, MKL_VERBOSE="1")}


_OPENBLAS = """
import numpy, scipy.linalg.blas, threadpoolctl
found = {(i["internal_api"], i["version"], i["architecture"]) for i in threadpoolctl.threadpool_info() if i["user_api"] == "blas"}
print("; ".join(f"{api} {version}, kernels {kind}" for api, version, kind in sorted(found)))
"""
_MKL = """
import torch
torch.mm(torch.ones(2, 2), torch.ones(2, 2))
print("ATen's loops", torch.backends.cpu.get_cpu_capability())
"""


def _asked(program, **variables):
    """The lines that a fresh process prints."""
    lines = subprocess.run(
        [sys.executable, "-c", program], env=environment() | variables, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    verbose = [line.removeprefix("MKL_VERBOSE ") for line in lines if line.startswith("MKL_VERBOSE oneMKL")]
    return "; ".join([*verbose, *(line for line in lines if not line.startswith("MKL_VERBOSE"))])


if __name__ == "__main__":
    print(json.dumps(libraries(), indent=2))
