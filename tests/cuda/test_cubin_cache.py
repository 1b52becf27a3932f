"""Kernels kept on disk: what their key depends on, which files are used, and a second process that compiles nothing."""

import functools
import os
import subprocess
import sys

import numpy as np
import pytest

from readtorch.c10 import cache_dir_utils
from readtorch.c10.cuda import cubin_cache
from readtorch.c10.cuda.launch import launching_by
from tests.cuda.ptx_cases import cases
from tests.gpu.fake import environment, missing

CUBIN = b"\x7fELF" + bytes(range(256)) * 20
FLOATS = np.zeros(4, np.float32)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache_dir_utils, "_reported", set())
    return tmp_path


# ------------------------------------------------------------------------------------------------------- the key


def double(x):
    return x + x


def triple(x):
    return x + x + x


@functools.cache
def kernel_of(function, times=2, name="work"):
    def work(x, y):
        y[0] = function(x[0]) * times

    work.__name__ = name
    return work


def key(kernel=None, arguments=(FLOATS, FLOATS), capability=(9, 0)):
    return cubin_cache.key_of(kernel or kernel_of(double), arguments, capability)


def test_a_key_is_one_line_and_the_same_for_the_same():
    again = kernel_of.__wrapped__(double)
    assert again is not kernel_of(double) and key(again) == key() and "\n" not in key()
    assert key(arguments=(np.ones(9, np.float32), FLOATS)) == key()  # sizes and values are no part of it


@pytest.mark.parametrize(
    "other",
    [
        lambda: key(kernel_of(triple)),
        lambda: key(kernel_of(double, 3)),
        lambda: key(kernel_of(double, 2.0)),
        lambda: key(kernel_of(lambda x: x)),
        lambda: key(capability=(8, 0)),
        lambda: key(arguments=(FLOATS.astype(np.float64), FLOATS)),
        lambda: key(arguments=(FLOATS[::2], FLOATS)),
        lambda: key(arguments=(FLOATS[None], FLOATS)),
        lambda: key(arguments=(FLOATS, np.float32(1))),
        lambda: key(arguments=(FLOATS, 1)),
        lambda: key(arguments=(FLOATS, (1,))),
        lambda: key(arguments=(FLOATS, ((1,),))),
    ],
)
def test_it_depends_on_all_that_the_code_depends_on(other):
    assert other() != key()


def test_it_depends_on_versions_and_launch_bounds(monkeypatch):
    before, kernel = key(), kernel_of.__wrapped__(double)
    kernel.launch_bounds = (64, 8)
    assert key(kernel) != before
    monkeypatch.setattr(cubin_cache, "version_of", lambda package: "0")
    assert key() != before


def test_what_is_not_known_has_no_key():
    assert key(kernel_of(double, object())) is None


def test_every_kernel_has_a_key_and_other_processes_make_the_same():
    found = {}

    def note(kernel, grid, block, *arguments, shared=0):
        found[cubin_cache.key_of(kernel, arguments, (9, 0))] = kernel

    with launching_by(note):
        for launcher, arguments in cases().values():
            launcher(*arguments)
    assert len(found) > 300 and None not in found
    script = "from tests.cuda.test_cubin_cache import *; print(key())"
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "7"}
    )
    assert told.stdout.strip() == key(), told.stderr


# ------------------------------------------------------------------------------------------------------ the files


def test_what_was_saved_is_loaded(folder):
    assert cubin_cache.load("a key") is None
    cubin_cache.save("a key", "entry$1", CUBIN)
    assert cubin_cache.load("a key") == ("entry$1", CUBIN) and cubin_cache.load("another") is None


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "another key", "another name", "no cubin"])
def test_a_file_that_is_not_as_it_was_written_is_of_no_use(folder, damage):
    cubin_cache.save("a key", "entry", CUBIN)
    path = cubin_cache.path_of("a key")
    data = bytearray(open(path, "rb").read())
    if damage == "another key":
        cubin_cache.save("b key", "entry", CUBIN)
        data = open(cubin_cache.path_of("b key"), "rb").read()
    elif damage in ("another name", "no cubin"):
        body = b"a key\n" + (b"no name!\n" + CUBIN if damage == "another name" else b"entry\nPTX")
        data = cubin_cache.MARK + cubin_cache.hashlib.sha256(body).digest() + body
    elif damage == "changed":
        data[-7] ^= 1
    else:
        data = data[: len(data) // 2 if damage == "cut" else 0]
    with open(path, "wb") as file:
        file.write(data)
    with pytest.warns(UserWarning, match="the file is written again"):
        assert cubin_cache.load("a key") is None


def test_a_file_that_others_may_write_to_is_not_read(folder):
    cubin_cache.save("a key", "entry", CUBIN)
    os.chmod(cubin_cache.path_of("a key"), 0o666)
    with pytest.warns(UserWarning, match="open to others"):
        assert cubin_cache.load("a key") is None


def test_names_that_are_none_are_not_saved(folder):
    cubin_cache.save("a key", "two\nlines", CUBIN)
    assert cubin_cache.load("a key") is None


# ------------------------------------------------------------------------------------------------- a second process

PROGRAM = """
import sys
import readtorch as rt
from readtorch.c10.cuda import numba_launch
if sys.argv[1] == "second":
    numba_launch.compiled = numba_launch.signature_of = None
print((rt.ones(3, device="cuda") + 1).exp().tolist())
"""


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_second_process_compiles_nothing(folder):
    told = [
        subprocess.run([sys.executable, "-c", PROGRAM, which], capture_output=True, text=True, env=environment())
        for which in ("first", "second")
    ]
    assert told[0].stdout and told[0].stdout == told[1].stdout, told[0].stderr + told[1].stderr
