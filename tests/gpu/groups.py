"""Groups of what needs a GPU. Each is a process of its own, which alone sees the fake device.

What `make test` runs of it takes about six minutes of one core; `make fake-gpu` runs all of it.
"""

import re
import subprocess
import sys

from .fake import ROOT, environment

OPERATORS, REST = "tests/cuda/test_gpu_operators.py", "tests/cuda/test_gpu.py"
# Operators whose samples take longest.
LONG = "grid_sample or unique or norm or svd or bilinear or det or addmm or max_pool2d or linear or conv3d or bmm or median"
FEW = "[mul] or [mm] or [sum] or [softmax] or [sort] or [cat]"


def run(*command, **settings):
    """(exit status, what was printed) of a module of Python."""
    outputs = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    done = subprocess.run([sys.executable, "-m", *map(str, command)], cwd=ROOT, env=environment(**settings), **outputs)
    return done.returncode, done.stdout


def check_tests(file, choice="", **settings):
    """The tests of a file that pytest's -k chooses: all pass, and none is skipped for want of a GPU."""
    status, said = run("pytest", file, "-k", choice, "-q", "-p", "no:cacheprovider", **settings)
    assert status == 0, said[-6000:]
    assert re.search(r"\d+ passed", said) and "needs an NVIDIA GPU" not in said, said[-2000:]
