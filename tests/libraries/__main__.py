"""Programs of libraries, unmodified from the package index, under PyTorch and under readtorch: `python -m tests.libraries`.

Each program of `tests/libraries/programs` runs in a process of its own, first under PyTorch, then under `python -m readtorch run`, and
the numbers that it reports are compared. The libraries stand in an environment of their own, `_build/libraries`, which is made from
`requirements.txt` when it is missing; `--python` names the interpreter of another one. What was found is written to
`tests/libraries/results.json`, from which appendix B makes its table.
"""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import time
import venv
from pathlib import Path

from .comparison import compare, results

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAMS = HERE / "programs"
RESULTS = HERE / "results.json"
TIMEOUT = 600
WANTING_OLD_RELEASES = ["d2l==1.0.3"]  # of NumPy and others: it is installed beside the new ones


def environment():
    """The interpreter of `_build/libraries`, which is filled if it is not there."""
    folder = ROOT / "_build" / "libraries"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        venv.create(folder, with_pip=True)
        pip = [python, "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "-r", HERE / "requirements.txt"], check=True)
        subprocess.run([*pip, "--no-deps", *WANTING_OLD_RELEASES], check=True)
    return str(python)


def programs(only):
    """The programs, by name: all, or those whose name has one of the given parts."""
    found = sorted(path for path in PROGRAMS.glob("*.py") if path.stem != "report")
    return [path for path in found if not only or any(part in path.stem for part in only)]


def described(path):
    """(library, what the program does): the first line of its docstring, "library: what"."""
    library, what = path.read_text(encoding="utf8").split('"""')[1].strip().splitlines()[0].split(": ", 1)
    return library, what


def run(command, source):
    """(output, the last line of the errors if it failed, seconds). If kernels were compiled, which are kept, a second run counts."""
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS")}
    path = {"PYTHONPATH": str(source)} if source else {}
    began = time.perf_counter()
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            env={**os.environ, "PYTHONPATH": "", **threads, **path},
        )
    except subprocess.TimeoutExpired:
        return "", f"after {TIMEOUT} s: it is stopped", TIMEOUT
    if not done.returncode and "compiling the kernel" in done.stderr:
        return run(command, source)
    lines = [line for line in done.stderr.splitlines() if line.strip()] or [f"exit status {done.returncode}"]
    return done.stdout, _without_paths(lines[-1]) if done.returncode else "", time.perf_counter() - began


def _without_paths(line):
    """A line of an error, without the folders of this machine."""
    return re.sub(r"/[\w./+-]*/(site-packages|programs)/", "", line)[:300]


def tried(path, python):
    """One row of the table: what a program does here and there."""
    library, what = described(path)
    expected, error, seconds = run([python, "-W", "ignore", str(HERE / "reference.py"), str(path)], None)
    row = dict(program=path.stem, library=library, what=what, numbers=0)
    if error:
        return row | dict(result="the reference stops", where=error)
    ours = [python, "-W", "ignore", "-m", "readtorch", "run", str(path)]
    output, error, ours_seconds = run(ours, ROOT / "src")
    row["numbers"], difference = compare(results(expected), results(output))
    row["result"] = "stops" if error else "differs" if difference else "same"
    if error or difference:
        row["where"] = error or difference
    else:
        row["time"] = round(ours_seconds / seconds, 2)
    return row


def versions(python):
    """{name of a distribution, lower case: its version} of an environment."""
    code = "import importlib.metadata as m, json; print(json.dumps([(d.metadata['Name'], d.version) for d in m.distributions()]))"
    pairs = json.loads(subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout)
    return {name.lower().replace("_", "-"): version for name, version in pairs}


DISTRIBUTIONS = {"ignite": "pytorch-ignite", "pyro": "pyro-ppl"}  # those whose name on the index is another one


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.libraries", description=__doc__.splitlines()[0])
    parser.add_argument("--python", help="the interpreter of an environment that has the libraries and torch")
    parser.add_argument("--only", nargs="+", default=[], metavar="PART", help="programs whose name has this part")
    parser.add_argument(
        "--results", type=Path, default=RESULTS, help="the file to write; rows of programs that do not run stay"
    )
    options = parser.parse_args()
    python = options.python or environment()
    installed = versions(python)
    rows = (
        {row["program"]: row for row in json.loads(options.results.read_text())["programs"]}
        if options.results.exists()
        else {}
    )
    for path in programs(options.only):
        row = rows[path.stem] = tried(path, python)
        library = row["library"].lower().replace("_", "-")
        row["version"] = installed.get(DISTRIBUTIONS.get(library, library), "")
        print(
            f"{row['program']:28} {row['version']:8} {row['numbers']:6} {row['result']:8} {row.get('time', row.get('where'))}",
            flush=True,
        )
        table = dict(date=datetime.date.today().isoformat(), torch=installed["torch"].partition("+")[0])
        table |= dict(python=sys.version.split()[0], programs=[rows[name] for name in sorted(rows)])
        options.results.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf8")
    return 0 if all(row["result"] == "same" for row in rows.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
