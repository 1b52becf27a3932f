"""What `pip install .` installs: every file of the package, and the commands."""

import configparser
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    if find_spec("setuptools") is None:
        pytest.skip("setuptools is not installed beside this Python")
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(
        ROOT / "src/readtorch", folder / "src/readtorch", ignore=shutil.ignore_patterns("__pycache__", ".*")
    )
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--wheel-dir",
        folder,
        folder,
    ]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(next(folder.glob("readtorch-*.whl")))


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
