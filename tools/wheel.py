"""python tools/wheel.py FOLDER: build the package's wheel into FOLDER and print its path.

It is built from a copy, so that setuptools leaves nothing in the checkout, and without a network where setuptools is installed.
"""

import shutil
import subprocess
import sys
import tempfile
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OLDEST = 77  # of setuptools, that pyproject.toml asks for


def build(folder: Path) -> Path:
    """The wheel's path. Raises RuntimeError with pip's last line where it cannot be built."""
    with tempfile.TemporaryDirectory() as copy:
        lay_out(Path(copy, "source"))
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", f"{copy}/wheel"]
        if has_setuptools():
            command += ["--no-build-isolation", "--no-index"]
        done = subprocess.run([*command, f"{copy}/source"], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError((done.stderr.strip() or "pip says nothing").splitlines()[-1])
        [wheel] = Path(copy, "wheel").glob("*.whl")
        folder.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(wheel, folder))


def lay_out(folder: Path) -> None:
    """Copy what the wheel is made from."""
    hidden = shutil.ignore_patterns("__pycache__", ".*")
    shutil.copytree(ROOT / "src/readtorch", folder / "src/readtorch", ignore=hidden)
    beside = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["tool"]["readtorch"]["beside"]
    for pattern in ("pyproject.toml", "setup.py", "README.md", "LICENSE", *beside):
        for file in ROOT.glob(pattern):
            target = folder / file.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)


def has_setuptools() -> bool:
    try:
        return int(version("setuptools").split(".")[0]) >= OLDEST
    except PackageNotFoundError:
        return False


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))
