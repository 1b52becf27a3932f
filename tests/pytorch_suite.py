"""Run files of PyTorch's own test suite under PyTorch and under readtorch, and say which tests that pass there pass here, too.

    python -m tests.pytorch_suite /path/to/pytorch/test/test_fx.py …      -v: each test that fails here, with its error

The files are not part of this repository: give the path of a tree of PyTorch's source. Each runs in a process of its own, once with
PyTorch and once with readtorch under the name torch, as under `readtorch run`. What the installed PyTorch lacks fails there, and is not
counted. A busy machine needs more time for each test: PYTORCH_SUITE_SECONDS, 30 without it.

PyTorch's tools for tests, `torch.testing._internal`, are not part of readtorch: those of the installed PyTorch that are Python alone
(`INSTALLED`) are loaded over it, what is in this file stands in for the others. Tests for each device are made for the CPU; those for each
entry of a list of operators, modules or optimizers are left out on both sides, `tests.conformance` goes through the lists. "Not there"
are tests that this side does not make: their file imports what readtorch lacks, or asks PyTorch's functions for annotations.
"""

import argparse
import ast
import contextlib
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import signal
import subprocess
import sys
import types
import unittest
from pathlib import Path

from tests import pytorch_suite_ranks as ranks

SECONDS = float(os.environ.get("PYTORCH_SUITE_SECONDS", 30))  # for one test


# ---------------------------------------------------------------------------------------- one file, on one side


class Absent:
    """What could not be imported. As a decorator it changes nothing, as a base class it is none; the tests that need more fail."""

    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __mro_entries__(self, bases):
        return ()

    def __iter__(self):
        return iter(())

    def __bool__(self):
        return False


ABSENT = Absent()


def tried(expression):
    """The value of a decorator, a function without parameters here; ABSENT if it needs what is not there."""
    try:
        return expression()
    except Exception:
        return ABSENT


def or_nothing(statement):
    """The statement; if it fails, nothing, and what it would have named is ABSENT."""
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    absent = ast.parse("; ".join([f"{name} = __absent__" for name in names]) or "pass").body
    handler = ast.ExceptHandler(ast.Name("Exception", ast.Load()), None, absent)
    return ast.Try([statement], [handler], [], [])


def tolerant(tree):
    """Let the imports of a module, each name by itself, and its decorators leave ABSENT where they fail, and other
    statements nothing."""
    body = []
    within = [m for c in tree.body if isinstance(c, ast.ClassDef) for m in c.body]
    for definition in (*tree.body, *within):
        for i, decorator in enumerate(getattr(definition, "decorator_list", ())):
            if (
                not isinstance(decorator, ast.Name) and getattr(decorator, "attr", "") != "setter"
            ):  # of names of the class
                inner = ast.Lambda(ast.arguments([], [], None, [], [], None, []), decorator)
                definition.decorator_list[i] = ast.Call(ast.Name("__tried__", ast.Load()), [inner], [])
    for statement in tree.body:
        if not isinstance(statement, ast.Import | ast.ImportFrom) or getattr(statement, "module", "") == "__future__":
            plain = isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.ImportFrom)
            body.append(statement if plain else or_nothing(statement))
            continue
        for alias in statement.names:
            alone = (
                ast.Import([alias])
                if isinstance(statement, ast.Import)
                else ast.ImportFrom(statement.module, [alias], 0)
            )
            name = (alias.asname or alias.name).partition(".")[0]
            absent = ast.parse(f"{name} = globals().get({name!r}, __absent__)").body
            handler = ast.ExceptHandler(ast.Name("Exception", ast.Load()), None, absent)
            body.append(ast.Try([alone], [handler], [], []))
    return ast.fix_missing_locations(ast.Module(body, []))


def module_of(path):
    """The file as a module, which others may import by its name."""
    module = types.ModuleType(path.stem)
    sys.modules[path.stem] = sys.modules["__main__"] = module  # pickle looks there
    fill(module, path)
    return module


def fill(module, path):
    """Run the file as `module`, as far as it goes."""
    module.__file__ = str(path)
    module.__absent__, module.__tried__ = ABSENT, tried
    exec(compile(tolerant(ast.parse(path.read_text())), str(path), "exec"), vars(module))


def run_file(path, side):
    """Name of each test -> "" if it passes, else what it says."""
    if side == "readtorch":
        from readtorch import _as_torch

        installed = Path(importlib.util.find_spec("torch").origin).parent
        _as_torch.install()
        sys.meta_path[:0] = [StandIns(installed), Siblings(path.parent)]
    import torch

    if side == "readtorch" and path.parent.name == "distributed":
        ranks.compile_before_forking(torch)

    use_stand_ins(torch, side)
    sys.path.insert(0, str(path.parent))
    sys.argv = [str(path)]
    os.chdir(path.parent)
    module = module_of(path)
    results = {}
    for name, cls in list(vars(module).items()):
        if isinstance(cls, type) and issubclass(cls, unittest.TestCase) and cls.__module__ == module.__name__:
            for test in unittest.defaultTestLoader.loadTestsFromTestCase(cls):
                results[f"{name}.{test._testMethodName}"] = outcome(test)
    return results


def outcome(test):
    def too_long(*_):
        raise TimeoutError(f"longer than {SECONDS:.0f} s")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(round(SECONDS))
    result = unittest.TestResult()
    try:
        test.run(result)
    except BaseException as error:
        return repr(error)
    finally:
        signal.alarm(0)
    if result.skipped:
        return f"skipped: {result.skipped[0][1]}"
    problems = [text for _, text in (*result.errors, *result.failures)]
    return "\n".join(problems)


# ------------------------------------------------------------------------------------ in place of PyTorch's tools


class Captures:
    """What `torch.testing._internal.jit_utils.JitTestCase` has more than a TestCase."""

    @staticmethod
    @contextlib.contextmanager
    def _captured(stream):
        lines, text = [""], io.StringIO()
        with contextlib.redirect_stderr(text) if stream == "stderr" else contextlib.redirect_stdout(text):
            yield lines
        lines[0] = text.getvalue()

    capture_stderr = functools.partialmethod(lambda self: self._captured("stderr"))
    capture_stdout = functools.partialmethod(lambda self: self._captured("stdout"))


class FileCheck:
    """As `torch.testing.FileCheck`: a list of demands that a text must meet in this order."""

    def __init__(self):
        self.demands = []

    def _demand(self, kind, text, *more):
        self.demands.append((kind, text, more))
        return self

    def __getattr__(self, name):
        if not name.startswith("check"):
            raise AttributeError(name)
        return functools.partial(self._demand, name)

    def run(self, text):
        text, position, forbidden = str(text), 0, []
        for kind, wanted, more in self.demands:
            if kind == "check_not":
                forbidden.append(wanted)
                continue
            start = position
            count = more[0] if kind == "check_count" else 1
            for _ in range(count):
                found = text.find(wanted, position)
                if kind == "check_regex":
                    match = re.compile(wanted).search(text, position)
                    found, wanted = (-1, wanted) if match is None else (match.start(), match.group())
                if found < 0:
                    raise RuntimeError(f'Expected to find "{wanted}" but did not find it in:\n{text}')
                position = found + len(wanted)
            for refused in forbidden:
                if refused in text[start:position]:
                    raise RuntimeError(f'Expected to not find "{refused}" but found it in:\n{text}')
            forbidden = []
        for refused in forbidden:
            if refused in text[position:]:
                raise RuntimeError(f'Expected to not find "{refused}" but found it in:\n{text}')


def unchanged(function=None, *args, **kwargs):
    """A decorator, with or without arguments, that changes nothing."""
    return function if callable(function) and not isinstance(function, type) else lambda function: function


def instantiated(real, generic_test_class, scope, except_for=None, only_for=None, **kwargs):
    """`instantiate_device_type_tests` for the CPU alone."""
    if "cpu" in (only_for or "cpu") and "cpu" not in (except_for or ""):
        real(generic_test_class, scope, only_for=("cpu",), **kwargs)
    else:
        scope.pop(generic_test_class.__name__, None)


def mask_not_all_zeros(shape):
    """A random mask that is true somewhere."""
    import torch

    mask = torch.randn(shape) > 0
    return mask if mask.any() else mask_not_all_zeros(shape)


NAMES = {
    "find_library_location": lambda name: Path(name),
    "mask_not_all_zeros": mask_not_all_zeros,
    **dict.fromkeys(("TEST_NUMPY",), True),
}

# Modules that are loaded from the installed PyTorch.
INSTALLED = (
    "torch._utils_internal",
    "torch.utils._import_utils",
    "torch.testing._comparison",
    *(
        f"torch.testing._internal.{name}"
        for name in ("common_utils", "common_device_type", "common_dtype", "common_cuda", "common_nn")
    ),
)


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `torch.testing._internal` and what is in it: modules in which every name is found. What is neither in the installed file
    nor above is a decorator, an empty list of operators, or, in capitals, something that is not there."""

    def __init__(self, installed):
        self.installed = installed

    def find_spec(self, name, path=None, target=None):
        if name.startswith("torch.testing._internal") or name in INSTALLED:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        if spec.name.startswith("torch.testing._internal."):
            module.__getattr__ = lambda name: _named(name)
        return module

    def exec_module(self, module):
        if module.__name__ in INSTALLED:
            fill(module, self.installed.parent / f"{module.__name__.replace('.', '/')}.py")
        if module.__name__.endswith("common_utils"):
            module.ScriptDict, module.ScriptList = (
                type("ScriptDict", (), {}),
                type("ScriptList", (), {}),
            )  # of `isinstance` alone
            simplify(module.TestCase)
            parts = {
                "JitTestCase": type("JitTestCase", (Captures, module.TestCase), {}),
                **ranks.names(module.TestCase),
            }
            NAMES.update(parts, TestCase=module.TestCase)


def simplify(test_case):
    """Without what watches over the compilers' and the sparse tensors' settings."""
    seed = sys.modules[test_case.__module__].set_rng_seed
    test_case.run, test_case.tearDown = unittest.TestCase.run, unittest.TestCase.tearDown
    test_case.setUp = lambda self: seed()


class Siblings(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the files beside a file of the suite, which import what may not be there as well."""

    def __init__(self, folder):
        self.folder = folder

    def find_spec(self, name, path=None, target=None):
        if name.startswith("test_") and (self.folder / f"{name}.py").exists():
            return importlib.machinery.ModuleSpec(name, self)
        return None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        fill(module, self.folder / f"{module.__name__}.py")


def _named(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return NAMES.get(name, [] if name.endswith("_db") else not name.isupper() and unchanged)


def use_stand_ins(torch, side):
    """What both sides need: no library of C++ tests, devices but for the CPU, or lists of operators."""
    if side == "readtorch":
        torch._C._get_privateuse1_backend_name = lambda: "privateuseone"  # one of the devices that the tools know
        sys.modules.pop("torch.testing._comparison", None)  # PyTorch's own judges: both sides are asked the same
        import torch._utils_internal
        import torch.testing._comparison
    from torch.testing._internal import (
        common_device_type,
        common_distributed,
        common_modules,
        common_optimizers,
        common_utils,
    )

    torch.ops.load_library = lambda path: None
    if side == "readtorch":
        torch.testing.FileCheck = FileCheck
    else:
        for name in ("MultiProcessTestCase", "DistributedTestBase"):
            setattr(common_distributed, name, ranks.multi_process_test_case(common_utils.TestCase))
    real = common_device_type.instantiate_device_type_tests
    common_device_type.instantiate_device_type_tests = functools.partial(instantiated, real)
    for module, name in ((common_device_type, "ops"), (common_modules, "modules"), (common_optimizers, "optims")):
        setattr(module, name, for_each_entry)


def for_each_entry(*args, **kwargs):
    """In place of `ops` and its like: the test is made for no entry."""

    def none(test):
        test.parametrize_fn = lambda test, generic_class, device_class: iter(())
        return test

    return none


# ------------------------------------------------------------------------------------------------------ both sides


def results_of(path, side):
    """What a child process says; an empty dict and its last words if it ends before."""
    command = [sys.executable, "-m", "tests.pytorch_suite", "--side", side, str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    found = [line for line in lines if line.startswith("RESULTS ")]
    if not found:
        print(f"{path.name} under {side} ended without results:\n{done.stderr[-3000:]}", file=sys.stderr)
        return {}
    return json.loads(found[-1].removeprefix("RESULTS "))


def compare(path, verbose):
    """(name of the file, how many tests pass there, of these pass here, of these are not made here)"""
    theirs, ours = results_of(path, "torch"), results_of(path, "readtorch")
    passing = [name for name, problem in theirs.items() if not problem]
    failing = [name for name in passing if ours.get(name, "not there")]
    if verbose:
        for name in failing:
            print(f"--- {name}\n{ours.get(name, 'not there')}")
    return path.name, len(passing), len(passing) - len(failing), len([name for name in failing if name not in ours])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument(
        "--side", choices=("torch", "readtorch"), help="run one file on one side: what the child processes do"
    )
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    files = [file.resolve() for file in options.files]
    if options.side:
        results = run_file(files[0], options.side)
        print(f"\nRESULTS {json.dumps(results)}")
        sys.stdout.flush()
        os._exit(0)  # threads and processes of the tests may still be there
    rows = [compare(file, options.verbose) for file in files]
    width = max(len(row[0]) for row in rows)
    print(f"{'file':{width}}  passes there  passes here  not there")
    for name, there, here, missing in rows:
        share = f"{here / there:8.1%}" if there else ""
        print(f"{name:{width}}  {there:12}  {here:11}  {missing:9} {share}")


if __name__ == "__main__":
    main()
