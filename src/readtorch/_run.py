"""The command `readtorch`: runs programs written for PyTorch, shows checkpoints and operators.

`readtorch run SCRIPT [ARGS…]` runs a script with `torch` resolved to readtorch: see `readtorch/_as_torch.py`.
PyTorch has no such file.
"""

import argparse
import os
import pickle
import platform
import runpy
import sys


def run(script, arguments):
    """Run the file `script` as `__main__` with `arguments` in sys.argv."""
    from . import _as_torch

    _as_torch.install()
    path = os.path.abspath(script)  # as Python itself sets `__file__`
    sys.argv = [path, *arguments]
    sys.path.insert(0, os.path.dirname(path))
    try:
        runpy.run_path(path, run_name="__main__")
    except AttributeError as error:
        _as_torch.tell_of_missing(error)
        raise


# What reading a file can raise that is no checkpoint, or a damaged one.
UNREADABLE = (OSError, EOFError, ValueError, RuntimeError, ImportError, pickle.UnpicklingError)


def inspect(parser, path):
    """Print what is in a checkpoint; a file that cannot be read ends the program with its error."""
    from ._inspect import lines_about

    try:
        print(*lines_about(path), sep="\n")
    except UNREADABLE as error:
        parser.exit(1, f"readtorch inspect: {path}: {error}\n")


def versions():
    """One line: what a report of an error should name."""
    from importlib.metadata import version

    from .version import __version__, readtorch

    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "scipy"))
    return (
        f"readtorch {readtorch} for programs of PyTorch {__version__}, Python {platform.python_version()}, {libraries}, "
        f"{platform.platform()}"
    )


def list_operators(parser, part):
    """Print the schemas whose names have `part` in them. The reader may be gone before the end: `… | head`."""
    from . import ops

    found = [line for line in ops.listing() if part in line[0].partition("(")[0]]
    if not found:
        parser.exit(1, f"readtorch ops: no operator has '{part}' in its name\n")
    try:
        for schema, keys in found:
            print(f"{schema}  [{', '.join(keys)}]")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end


def main(argv=None):
    parser = argparse.ArgumentParser(prog="readtorch", description="PyTorch from the inside, made to be read.")
    parser.add_argument("--version", action="store_true", help="show the versions of readtorch and what it runs on")
    commands = parser.add_subparsers(dest="command", metavar="command")
    run_parser = commands.add_parser("run", help="run a PyTorch script with `torch` resolved to readtorch")
    run_parser.add_argument("script", help="a Python file that imports torch")
    run_parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script finds in sys.argv")
    ops_parser = commands.add_parser("ops", help="list operators with their schemas and keys")
    ops_parser.add_argument("part", nargs="?", default="", help="only those with this in their name")
    inspect_parser = commands.add_parser("inspect", help="show what is in a checkpoint, without loading it")
    inspect_parser.add_argument("file", help="what torch.save wrote, or a .safetensors file")
    options = parser.parse_args(argv)
    if options.version:
        print(versions())
    elif options.command == "run":
        if not os.path.isfile(options.script):
            parser.error(f"no such file: {options.script}")
        run(options.script, options.arguments)
    elif options.command == "inspect":
        inspect(parser, options.file)
    elif options.command == "ops":
        list_operators(parser, options.part)
    else:
        parser.print_help()
        return 2
    return 0
