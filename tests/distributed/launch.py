"""Starting ranks that are processes."""

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from readtorch.csrc.distributed.process_group_mpi import is_available

ROOT = Path(__file__).parents[2]

# Where CI is set there must be an MPI: then these tests fail instead of being skipped.
needs_mpi = pytest.mark.skipif(
    not is_available() and not os.environ.get("CI"), reason="needs mpi4py and an MPI (mpirun)"
)


def environment():
    """For all ranks: one thread each, more of them than processors, and root may start them (in a container it must)."""
    return os.environ | {
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        "OMP_NUM_THREADS": "1",
        "NUMBA_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMPI_MCA_hwloc_base_binding_policy": "none",
    }


def mpirun(ranks, *program):
    """The command that starts `python program…` under MPI."""
    return [shutil.which("mpirun") or "mpiexec", "-n", str(ranks), sys.executable, *map(str, program)]


def readtorchrun(ranks, *program):
    """The command that starts `python program…` under our launcher."""
    return [sys.executable, "-m", "readtorch.distributed.run", "--nproc-per-node", str(ranks), *map(str, program)]


def run(command, timeout=300):
    return subprocess.run(command, env=environment(), cwd=ROOT, capture_output=True, text=True, timeout=timeout)


def results(name, api, backend, ranks, folder):
    """What program `name` returns on each rank."""
    Path(folder).mkdir(exist_ok=True)
    program = ["-m", "tests.distributed.programs", name, api, backend, folder]
    done = run((mpirun if backend == "mpi" else readtorchrun)(ranks, *program))
    assert done.returncode == 0, done.stdout + done.stderr
    return [pickle.loads((Path(folder) / f"{rank}.pickle").read_bytes()) for rank in range(ranks)]
