"""Prepared, full, closed and damaged caches of kernels: a share of `caches.py`, and that every kernel of the package is kept that way."""

import random
import re

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
