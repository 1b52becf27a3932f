"""What `pip install .` installs: every file of the package, and the commands."""

import configparser
import subprocess
import sys
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    if find_spec("setuptools") is None:
        pytest.skip("setuptools is not installed beside this Python")
    done = subprocess.run(
        [sys.executable, ROOT / "tools/wheel.py", tmp_path_factory.mktemp("wheel")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(done.stdout.strip())


def test_every_file_is_installed(wheel):
    package = ROOT / "src/readtorch"
    files = {
        f"readtorch/{file.relative_to(package).as_posix()}"
        for file in package.rglob("*")
        if file.is_file()
        and not any(part.startswith((".", "__pycache__")) for part in file.parts[len(package.parts) :])
    }
    assert files - set(wheel.namelist()) == set()
    assert [name for name in wheel.namelist() if not name.startswith("readtorch")] == []


def test_the_commands_are_installed(wheel):
    entries = configparser.ConfigParser()
    entries.read_string(
        wheel.read(next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))).decode()
    )
    assert set(entries["console_scripts"]) == {"readtorch", "readtorchrun"}


def test_what_chapters_read_beside_the_package_is_taken_along(wheel):
    """At the paths of the checkout, where `show.checkout()` looks; of a chapter its title alone, and in all little."""
    beside = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["tool"]["readtorch"]["beside"]
    wanted = {f"readtorch/_checkout/{file.relative_to(ROOT).as_posix()}" for name in beside for file in ROOT.glob(name)}
    taken = {name for name in wheel.namelist() if name.startswith("readtorch/_checkout/")}
    assert taken == wanted and "readtorch/_checkout/tests/allocator/replay.py" in taken
    assert wheel.read("readtorch/_checkout/book/autograd.md") == b"# Autograd\n"
    assert sum(wheel.getinfo(name).compress_size for name in taken) < 1_500_000
