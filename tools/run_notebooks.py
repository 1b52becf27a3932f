"""python tools/run_notebooks.py [NAME …]: run the downloaded notebooks as a reader would.

Each runs in an empty folder of its own, where the package is installed from its wheel, beside the libraries of this Python. A line
a notebook says how long it took, or which cell failed and why. Without names all chapters run, `--jobs N` at a time.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 600  # for one notebook, where kernels are compiled for the first time
ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
PROGRAM = """
import sys
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

notebook = nbformat.read(sys.argv[1], 4)
where = nbformat.v4.new_code_cell("import readtorch; print(readtorch.__file__)")
notebook.cells.append(where)
try:
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
except CellExecutionError as error:
    raise SystemExit(str(error)[-2000:])
print(where.outputs[0]["text"].strip())
"""


def chapters() -> list[str]:
    return sorted(
        file.stem for file in (ROOT / "book").glob("*.md") if "kernelspec:" in file.read_text(encoding="utf8")[:500]
    )


def notebook(name: str) -> str:
    """The text that the site offers for download."""
    sys.path.insert(0, str(ROOT / "book/_ext"))
    from rt_notebook import as_notebook, installing

    text = (ROOT / f"book/{name}.md").read_text(encoding="utf8")
    return as_notebook(text, installing(wheel="readtorch.whl"))


def install(folder: Path) -> Path:
    """The folder with the package, unpacked from its wheel as pip does it."""
    build = [sys.executable, ROOT / "tools/wheel.py", folder / "wheel"]
    wheel = subprocess.run(build, capture_output=True, text=True, check=True).stdout.strip()
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        folder / "installed",
        wheel,
    ]
    subprocess.run(pip, capture_output=True, text=True, check=True)
    return folder / "installed"


def run(name: str, installed: Path, folder: Path) -> tuple[str, float, str]:
    """-> (name, seconds, what went wrong or nothing)"""
    folder.mkdir()
    file = folder / f"{name}.ipynb"
    file.write_text(notebook(name), encoding="utf8")
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("READTORCH_")}
    settings = {
        "PYTHONPATH": str(installed),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "IPYTHONDIR": str(installed.parent / "ipython"),
    }
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, file],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=inherited | dict.fromkeys(ONE_THREAD, "1") | settings,
    )
    seconds = time.monotonic() - began
    if done.returncode:
        return name, seconds, done.stderr.strip() or f"it ended with {done.returncode}"
    elsewhere = not Path(done.stdout.strip().splitlines()[-1]).is_relative_to(installed)
    return name, seconds, f"another readtorch was imported: {done.stdout}" if elsewhere else ""


def run_all(names: list[str], jobs: int, report=lambda result: None) -> list[tuple[str, float, str]]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        installed = install(place)
        with ThreadPoolExecutor(jobs) as pool:
            results = []
            for result in pool.map(lambda name: run(name, installed, place / name), names):
                report(result)
                results.append(result)
        return results


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    began = time.monotonic()
    report = lambda result: print(f"{result[1]:6.1f} s  {result[0]}  {result[2] or 'ran to its end'}", flush=True)
    results = run_all(options.names or chapters(), options.jobs, report)
    failed = [name for name, _, problem in results if problem]
    print(f"{len(results) - len(failed)} of {len(results)} ran to their end in {time.monotonic() - began:.0f} s")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
