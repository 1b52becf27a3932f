"""A simulator of CUDA kernels: it runs, thread by thread and without a GPU, the functions that numba
compiles.

    launch(kernel, grid, block, *arguments)    run it; every index is checked
    check(kernel, grid, block, *arguments)     run it; DataRace where two threads are not in order
    record(kernel, grid, block, *arguments)    run it; every access of memory, to draw and to count

`grid` and `block` are a number or up to three. `shared` is the number of bytes of dynamic shared memory.
`order` is the order in which threads run between two barriers: None, "reversed", or the seed of a random one.

    Note [ Threads as coroutines ]     schedule.py     how a block runs
    Note [ Whose cuda ]                rebuild.py      how a kernel comes to mean this simulator by `cuda`
    Note [ Numbers as on the device ]  arithmetic.py   what is computed, and where a GPU differs
    Note [ The lanes of a mask ]       warp.py         shuffles, votes
    Note [ Fragments ]                 mma.py          products of small matrices by a warp
    Note [ What counts as a race ]     races.py
    Note [ A warp's access ]           recording.py    sectors and banks

PyTorch has no such package; NVIDIA's compute-sanitizer looks for races on a real GPU. Numba's own simulator
(NUMBA_ENABLE_CUDASIM=1) has a Python thread for each CUDA thread and no shuffles. Explained in the chapter
"CUDA kernels with numba".
"""

from .errors import BarrierDivergence, DataRace, InactiveLane, OutOfBounds, SimulatorError
from .launcher import Launch
from .races import Race, RaceDetector
from .recording import Access, Recording, WarpAccess

__all__ = [
    "Access",
    "BarrierDivergence",
    "DataRace",
    "InactiveLane",
    "OutOfBounds",
    "Race",
    "Recording",
    "SimulatorError",
    "WarpAccess",
    "check",
    "launch",
    "record",
    "races_of",
]


def launch(kernel, grid, block, *arguments, shared=0, order=None):
    """Run a kernel. Raises OutOfBounds, BarrierDivergence, InactiveLane."""
    Launch(kernel, grid, block, arguments, shared, order).run()


def check(kernel, grid, block, *arguments, shared=0, order=None):
    """Run a kernel; raises also DataRace."""
    Launch(kernel, grid, block, arguments, shared, order, [RaceDetector()]).run()


def races_of(kernel, grid, block, *arguments, shared=0, order=None):
    """Run a kernel to its end; the races that it has."""
    detector = RaceDetector(stop=False)
    Launch(kernel, grid, block, arguments, shared, order, [detector]).run()
    return detector.races


def record(kernel, grid, block, *arguments, shared=0, order=None):
    """Run a kernel and write down what it does with memory: a Recording, with its `races`."""
    recording, detector = Recording(), RaceDetector(stop=False)
    Launch(kernel, grid, block, arguments, shared, order, [detector, recording]).run()
    recording.races = detector.races
    return recording
