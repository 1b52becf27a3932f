"""python tools/gpu.py [pytest's arguments]: the tests that need a GPU, then the benchmarks, on a chip or on the fake one.

What was measured is printed, and written where chapters show it, `benchmarks/results/gpu`. On the fake device of tests/gpu, where
times mean nothing, kernels do nothing while the benchmarks run, and the files go to `_build/fake_gpu/results`. Without a device it
says so and runs nothing. What this Python lacks is taken from `_build/gpu-wheels`, where `make gpu-wheels` put it; nothing is
installed into it.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WHEELS, UNPACKED = ROOT / "_build" / "gpu-wheels", ROOT / "_build" / "gpu-site"
IS_FAKE = "FAKE_GPU_KERNELS" in os.environ
RESULTS = ROOT / ("_build/fake_gpu/results" if IS_FAKE else "benchmarks/results/gpu")
DEVICES = """
import sys, readtorch as rt
if not rt.cuda.is_available():
    sys.exit(3)
for i in range(rt.cuda.device_count()):
    about = rt.cuda.get_device_properties(i)
    print(f"{i}: {about.name}, sm_{about.major}{about.minor}, {about.total_memory >> 20} MiB", flush=True)
"""


def unpack():
    """The wheels, beside what this Python has."""
    if IS_FAKE or not WHEELS.is_dir() or UNPACKED.is_dir():
        return
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
    if subprocess.run([*pip, "--target", UNPACKED, *sorted(WHEELS.glob("*.whl"))]).returncode:
        print(f"the wheels in {WHEELS} are for another Python: they are left out")


def environment(**more):
    paths = [
        str(ROOT / "src"),
        str(ROOT),
        *([str(UNPACKED)] if UNPACKED.is_dir() else []),
        os.environ.get("PYTHONPATH", ""),
    ]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **more}


def run(*arguments, stderr=None, **more):
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment(**more), stderr=stderr).returncode


def tests():
    """The files with tests that are marked so, and without PyTorch those that do not need it. No others are loaded: the machine
    need not have what they import."""
    texts = {file: file.read_text(encoding="utf8") for file in sorted((ROOT / "tests/cuda").glob("test_*.py"))}
    has_reference = run("-c", "import torch", stderr=subprocess.DEVNULL) == 0
    return [
        file
        for file, text in texts.items()
        if "pytest.mark.gpu" in text and (has_reference or "\nimport torch\n" not in text)
    ]


def main(arguments):
    unpack()
    found = run("-c", DEVICES)
    if found == 3:
        print("no NVIDIA GPU is visible here, or numba-cuda is not installed: nothing was run")
        return 0
    if found:
        return found
    RESULTS.mkdir(parents=True, exist_ok=True)
    junit = f"--junit-xml={RESULTS / 'tests.xml'}"
    failed = run("-m", "pytest", *tests(), "-m", "gpu", "-p", "no:cacheprovider", junit, *arguments)
    off = {"FAKE_GPU_RUN": "0", "FAKE_GPU_POISON": "0"} if IS_FAKE else {}
    failed |= run("-m", "benchmarks.gpu", "--results", RESULTS / "benchmarks.json", **off)
    print(f"written to {RESULTS}: tests.xml, benchmarks.json")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
