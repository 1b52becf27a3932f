"""Runs programs in copies of one process that has imported the library: `python -m tests.lockstep.forked torch` reads paths, a line each,
and answers each with a line of JSON. Importing takes longer than most programs do.
"""

import importlib
import json
import os
import runpy
import sys
import tempfile
import traceback


def run(script, output, errors):
    """The program, as `python SCRIPT` would run it, with its output in files; 0, or 1 if it ended with an error."""
    for file, to in ((open(os.devnull), 0), (output, 1), (errors, 2)):
        os.dup2(file.fileno(), to)
    sys.argv = [script]
    sys.path.insert(0, os.path.dirname(script))
    try:
        runpy.run_path(script, run_name="__main__")
        return 0
    except BaseException:
        traceback.print_exc()
        return 1


def answer(script):
    """{"output": …, "errors": None or what a program that failed said} of one that ran in a copy of this process."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        child = os.fork()
        if not child:
            code = run(script, output, errors)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        failed = os.waitpid(child, 0)[1]
        output.seek(0)
        errors.seek(0)
        return {"output": output.read(), "errors": f"{errors.read()}\nstatus {failed}" if failed else None}


if __name__ == "__main__":
    if sys.argv[1] == "readtorch":
        from readtorch import _as_torch

        _as_torch.install()
    for module in ("torch", "torch.utils._python_dispatch", "torch._dynamo"):
        importlib.import_module(module)
    for line in sys.stdin:
        print(json.dumps(answer(line.strip())), flush=True)
