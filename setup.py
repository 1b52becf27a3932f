"""A wheel takes along what chapters read beside the package, recordings, results and titles: see `readtorch.show.checkout`."""

import shutil
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class WithRecordings(build_py):
    """The package, and in a folder of it what pyproject.toml names under tool.readtorch, at the paths of the checkout."""

    def run(self):
        super().run()
        if self.editable_mode:  # it works in the checkout
            return
        settings = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf8"))["tool"]["readtorch"]
        for pattern in settings["beside"]:
            for file in Path().glob(pattern):
                target = Path(self.build_lib, "readtorch", "_checkout", file)
                target.parent.mkdir(parents=True, exist_ok=True)
                if file.suffix == ".md":
                    target.write_text(title(file.read_text(encoding="utf8")), encoding="utf8")
                else:
                    shutil.copy(file, target)


def title(chapter: str) -> str:
    """The chapter's first heading, which is all that is asked of it elsewhere."""
    return next(line for line in chapter.split("\n") if line.startswith("# ")) + "\n"


setup(cmdclass={"build_py": WithRecordings})
