"""A watch over imports: a finder in front of all others notes who asks for what, and how long it takes.

Needs nothing of ours, so that it can also run alone, in a fresh interpreter: ``python watch_imports.py
PROGRAM`` runs the program and prints what was imported, as JSON, in its last line.
"""

import json
import os
import sys
from time import perf_counter

PROGRAM = 0  # the place of the program itself among the records


class Watch:
    """Stands at the head of ``sys.meta_path``, where Python asks for every module that ``sys.modules`` lacks.

    ``records``: [name, place of the importer, begin, end, loader, file, whether it is a package], in the
    order in which they began. The importer is what ran when it was asked for; threads are not told apart.
    """

    def __init__(self):
        self.records, self.running = [], []

    def run(self, program):
        """Run the text of a program, watched."""
        self.begin("", perf_counter())
        sys.meta_path.insert(0, self)
        try:
            exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
        finally:
            sys.meta_path.remove(self)
            self.end()

    def find_spec(self, name, path=None, target=None):
        """Asked by `import`: the others find it, and its loader goes through our hands."""
        asked = perf_counter()
        spec = self.ask_the_others(name, path, target)
        if spec is None or spec.loader is None:
            self.begin(name, asked, "not found" if spec is None else "namespace")
            self.end()
        elif hasattr(spec.loader, "exec_module"):
            spec.loader = _WatchedLoader(self, spec, asked)
        return spec

    def ask_the_others(self, name, path, target):
        specs = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
        return next((spec for spec in specs if spec is not None), None)

    def begin(self, name, at, loader="", file="", package=False):
        importer = self.running[-1] if self.running else None
        self.running.append(len(self.records))
        self.records.append([name, importer, at, at, loader, file, package])

    def end(self):
        self.records[self.running.pop()][3] = perf_counter()


class _WatchedLoader:
    """Stands for a loader until its module runs: begins when it is made, ends when its code has run."""

    def __init__(self, watch, spec, asked):
        self.watch, self.loader, self.asked = watch, spec.loader, asked

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        """For an extension everything happens here: the library is mapped and its PyInit function called."""
        kind = getattr(self.loader, "__name__", type(self.loader).__name__)  # some loaders are classes
        package = spec.submodule_search_locations is not None
        self.watch.begin(spec.name, self.asked, kind, spec.origin or "", package)
        try:
            return self.loader.create_module(spec)
        except BaseException:
            self.watch.end()
            raise

    def exec_module(self, module):
        """For a Python file it happens here."""
        module.__spec__.loader = module.__loader__ = self.loader
        try:
            self.loader.exec_module(module)
        finally:
            self.watch.end()


def without_folder(file):
    """A file's path from the folder of `sys.path` that it lies in; "built-in", "frozen" stay as they are."""
    folders = [folder for folder in map(os.path.abspath, sys.path) if file.startswith(folder + os.sep)]
    return os.path.relpath(file, max(folders, key=len)) if folders else os.path.basename(file)


if __name__ == "__main__":
    watch = Watch()
    watch.run(sys.argv[1])
    print()
    print(json.dumps([[*record[:5], without_folder(record[5]), record[6]] for record in watch.records]))
