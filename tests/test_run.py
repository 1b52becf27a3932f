"""`readtorch run`: PyTorch scripts on readtorch; the front door; the listing of operators."""

import os
import subprocess
import sys
import textwrap

import pytest

import readtorch
from readtorch import ops
from readtorch.aten.dispatcher import registry


def run_script(tmp_path, text, *arguments):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(text))
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "readtorch", "run", os.path.relpath(script), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_torch_and_its_submodules_are_readtorchs(tmp_path):
    done = run_script(
        tmp_path,
        """
        import os, sys
        import torch
        import torch.nn.functional as F
        from torch import nn, optim
        from torch.autograd import Function
        import readtorch
        assert torch is readtorch and F is readtorch.nn.functional and nn is readtorch.nn
        assert F.__name__ == F.__spec__.name == "torch.nn.functional"
        assert os.path.isabs(__file__) and os.path.isabs((lambda: 0).__code__.co_filename)
        print(__name__, sys.argv[1:], F.relu(torch.tensor([-1.0, 2.0])))
    """,
        "a",
        "-b",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "__main__ ['a', '-b'] tensor([0., 2.])\n"


@pytest.mark.parametrize(
    "line, message",
    [
        ("torch.nothing_here", "readtorch has no 'torch.nothing_here'"),
        ("torch.nn.functional.nothing_here", "readtorch has no 'torch.nn.functional.nothing_here'"),
        ("import torch.nothing_here", "readtorch has no module 'torch.nothing_here'"),
        ("from torch import nothing_here", "readtorch has no 'torch.nothing_here'"),
    ],
)
def test_a_missing_name_is_reported_in_full(tmp_path, line, message):
    done = run_script(tmp_path, f"import torch\n{line}")
    assert done.returncode == 1
    assert message in done.stderr.splitlines()[-1]


def test_errors_and_exit_codes_come_through(tmp_path):
    assert run_script(tmp_path, "import torch, sys; sys.exit(3)").returncode == 3
    done = subprocess.run(
        [sys.executable, "-m", "readtorch", "run", str(tmp_path / "absent.py")], capture_output=True, text=True
    )
    assert done.returncode == 2 and "no such file" in done.stderr


def command(*arguments):
    return subprocess.run([sys.executable, "-m", "readtorch", *arguments], capture_output=True, text=True)


def test_the_command_line():
    done = command("ops", "conv2d")
    assert done.returncode == 0 and done.stdout.count("\n") > 1
    assert all("conv2d" in line.partition("(")[0] and line.endswith("]") for line in done.stdout.splitlines())
    done = command("ops", "no_such_thing")
    assert done.returncode == 1 and done.stderr == "readtorch ops: no operator has 'no_such_thing' in its name\n"
    done = command("--version")
    assert done.returncode == 0 and done.stdout.startswith(
        f"readtorch {readtorch.version.readtorch} for programs of PyTorch {readtorch.__version__}, Python 3."
    )
    done = command()
    assert done.returncode == 2 and all(name in done.stdout for name in ("run", "ops", "inspect"))


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe of the shell's")
def test_a_listing_may_be_cut_off():
    done = subprocess.run(f"{sys.executable} -m readtorch ops | head -1", shell=True, capture_output=True, text=True)
    assert done.stdout.startswith("aten::") and done.stderr == ""


def test_the_listing_names_every_operator_with_its_keys():
    listing = dict(ops.listing())
    assert "Autograd" in listing["aten::mul.Tensor(Tensor self, Tensor other) -> Tensor"]
    assert len(listing) > 500
    assert ops.aten.mul.Tensor(readtorch.ones(2), readtorch.ones(2)).tolist() == [1.0, 1.0]
    assert "Tensor" in ops.aten.mul.overloads()
    with pytest.raises(AttributeError, match="nothing"):
        ops.aten.nothing
    with pytest.raises(RuntimeError, match="missing value for argument 'other'"):
        ops.aten.mul.Tensor(readtorch.ones(2))


# The out= forms of factories take the options that PyTorch reads from `out`; three results have other names there.
FACTORY_OPTIONS = {"dtype", "layout", "device", "pin_memory"}
NAMED_OTHERWISE = {"aten::max.dim_max", "aten::min.dim_min", "aten::linalg_eigh.eigvals"}


def argument_names(schema):
    return [a.name.rstrip("_") for a in schema.arguments]


def test_every_schema_is_one_of_pytorchs():
    """What is declared here is declared there: same name, overload and arguments."""
    import torch

    theirs = {f"{s.name}.{s.overload_name}".rstrip("."): argument_names(s) for s in torch._C._jit_get_all_schemas()}
    absent, different = [], []
    for name, operator in registry.items():
        ours = argument_names(operator.schema)
        if name.partition("_out")[1] or name.endswith(".out"):
            ours = [n for n in ours if n not in FACTORY_OPTIONS] if FACTORY_OPTIONS <= set(ours) else ours
        if name not in theirs:
            absent.append(name)
        elif ours != theirs[name] and name not in NAMED_OTHERWISE and not FACTORY_OPTIONS & set(theirs[name]):
            different.append(name)
    assert not different
    assert len(absent) < 0.01 * len(registry), absent
