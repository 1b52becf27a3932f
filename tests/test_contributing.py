"""CONTRIBUTING.md adds an operator in one file: the file that it shows is added to a copy of the package, and used."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from readtorch.show import _chapters

ROOT = Path(__file__).resolve().parents[1]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf8")


def test_the_quotations_of_the_guide_fit():
    assert _chapters.problems(ROOT / "CONTRIBUTING.md") == []
    assert len(list(_chapters.calls(GUIDE))) == 2


def test_an_operator_in_one_file(tmp_path):
    operator, program = re.findall(r"```python\n(.*?)```", GUIDE.split("## Adding an operator")[1], re.DOTALL)[:2]
    package = shutil.copytree(ROOT / "src/readtorch", tmp_path / "readtorch", ignore=shutil.ignore_patterns("static"))
    (package / "aten/native/squareplus.py").write_text(operator, encoding="utf8")
    families = package / "aten/native/__init__.py"
    text = families.read_text(encoding="utf8")
    families.write_text(text.replace("    activation,\n", "    activation,\n    squareplus,\n"), encoding="utf8")
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
