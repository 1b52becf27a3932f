"""Prepared, full, closed and damaged caches of kernels: a share of `caches.py`, and that every kernel of the package is kept that way."""

import os
import random
import re
import subprocess
import sys

import pytest

from readtorch.c10 import cache_dir_utils
from tests.attack import caches, limits

SHARE = random.Random(7).sample(sorted(caches.CASES), 14)


@pytest.mark.parametrize("name", SHARE)
def test_a_cache(name):
    assert caches.judged(caches.CASES[name]) == "held"


@pytest.mark.parametrize("seed", range(3))
def test_a_file_damaged_at_random(seed):
    assert caches.judged(caches.mutant(seed)) == "held"


def test_three_processes_from_cold():
    assert all(caches.wrong({"result": outcome}, "kept", True) is None for outcome in caches.at_once())


def test_no_kernel_is_kept_by_numba_itself():
    """numba keeps files where others may write: beside the source, or wherever NUMBA_CACHE_DIR says."""
    for file in (limits.ROOT / "src/readtorch").rglob("*.py"):
        assert not re.search(r"\bcache=True|enable_caching", file.read_text(encoding="utf8")), file


# Kernels of one name and one signature, each with a helper that is too long to be put in the place of its calls.
TWO_OF_ONE_NAME = """
import sys
import numpy as np
from numba import njit
from readtorch.aten.codegen import compile_function
from readtorch.c10.codecache import keep

def kept(text, name, **names):
    function = compile_function(name, text, names | {"np": np, "__name__": "readtorch.aten.native.cpu.loops"})
    function.__code__ = function.__code__.replace(co_filename="kernels.py")
    return keep(njit(function), source=text)

def kernel(name, element):
    long = "".join([f"        x[k] = np.sin(x[k] + {i}) * 0 + x[k]\\n" for i in range(60)])
    helper = kept(f"def helper(x):\\n    for k in range(x.size):\\n        x[k] = {element}\\n{long}", "helper")
    return kept(f"def {name}(x, n):\\n    for i in range(n):\\n        helper(x[:1])\\n        helper(x[1:])\\n# {element}", name, helper=helper)

def result(kernel):
    x = np.ones(2)
    kernel(x, 1)
    return x.tolist()

for name, element in zip(sys.argv[1::2], sys.argv[2::2]):
    print(result(kernel(name, element)), end=" ")
"""


def test_a_kept_kernel_calls_what_it_was_compiled_with(tmp_path):
    def printed(*kernels):
        command = [sys.executable, "-c", TWO_OF_ONE_NAME, *kernels]
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert printed("twice", "2 * x[k]") == "[2.0, 2.0] "
    assert printed("more", "100 + x[k]", "twice", "2 * x[k]") == "[101.0, 101.0] [2.0, 2.0] "


def test_the_words_of_a_warning(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file/below"))
    with pytest.warns(UserWarning) as caught:
        assert cache_dir_utils.cache_directory() is None
    words = str(caught[0].message)
    assert (
        words.index(str(tmp_path / "file/below"))
        < words.index("it cannot be made: ")
        < words.index("Set NUMBA_CACHE_DIR to a directory of your own")
    )
