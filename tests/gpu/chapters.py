"""python -m tests.gpu.chapters [NAME …]: the cells of chapters, one after the other, where `device="cuda"` is a GPU.

Without names, every chapter that uses devices. A chapter is to be the same book where there is a GPU, simulated devices included.
To be run on a chip or on the fake: `python -m tests.gpu python -m tests.gpu.chapters`, there with FAKE_GPU_RUN=0, as cells that
measure have too much to do for it. An error ends it, but in cells that shall raise one.
"""

import os
import pathlib
import re
import sys
import tempfile

BOOK = pathlib.Path(__file__).parents[2] / "book"
USES = re.compile(r"(?<!torch\.)\bcuda\.(simulate|is_available|jit)\b|^import readtorch as torch$", re.M)


def names():
    """Of the chapters that use devices in a cell, not in their prose."""
    return [path.stem for path in sorted(BOOK.glob("*.md")) if any(USES.search(code) for code, _ in cells(path))]


def cells(path):
    """(code, may it fail) of each."""
    for body in re.findall(r"^`{3,}\{code-cell\}[^\n]*\n(.*?)^`{3,}\s*$", path.read_text(encoding="utf8"), re.S | re.M):
        options, code = re.fullmatch(r"(---\n.*?\n---\n|(?::[\w-]+:[^\n]*\n)*)(.*)", body, re.S).groups()
        yield code, "raises-exception" in options


def run(name):
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance(display_banner=False)
    for number, (code, may_fail) in enumerate(cells(BOOK / f"{name}.md"), 1):
        done = shell.run_cell(code)
        if not done.success and not may_fail:
            print(f"{name}: cell {number} failed:\n{code}", flush=True)
            return False
    print(f"{name}: {number} cells", flush=True)
    return True


def main(chosen):
    os.environ.setdefault("IPYTHONDIR", tempfile.mkdtemp())
    os.chdir(BOOK)
    if len(chosen) == 1:
        return not run(chosen[0])
    done = [
        os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-m", __spec__.name, name]) for name in chosen or names()
    ]
    return any(done)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
