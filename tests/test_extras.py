"""`pip install readtorch` without extras: what needs one says which, and nothing else needs one."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# What an entry point needs: None, or an extra of pyproject.toml.
NEEDS = {
    "numpy_and_training": None,
    "data_loader": None,
    "jit_script": None,
    "compile": None,
    "is_available": None,
    "simulated_device": None,
    "onnx_export": "onnx",
    "kernel_simulator": "simulator",
    "show_source": "show",
    "show_module": "show",
    "summary_writer": "tensorboard",
    "summary_image": "tensorboard",
    "mpi": "mpi",
    "safetensors_load": "safetensors",
    "inspect_of_a_safetensors_file": "safetensors",
    "viz": "viz",
    "viz_plot": "viz",
}


@pytest.fixture(scope="module")
def found():
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.without_extras"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", NEEDS)
def test_an_entry_point_says_which_extra_it_needs(name, found):
    if NEEDS[name] is None:
        assert found[name] is True
    else:
        assert found[name].startswith("ModuleNotFoundError")
        assert re.search(rf"pip install [\"']readtorch\[{NEEDS[name]}\][\"']", found[name])


def test_pytorchs_own_words_where_it_has_some(found):
    assert found["load_of_a_safetensors_file"].endswith("Please install safetensors with: pip install safetensors")
    assert found.keys() == NEEDS.keys() | {"load_of_a_safetensors_file"}


def test_the_extras_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(filter(None, NEEDS.values())) <= extras.keys()
    assert extras["gpu"] == ["readtorch[cu13]"]
    for name in ("cu12", "cu13"):  # bare numba-cuda brings no compiler
        assert f"numba-cuda[{name}]" in "".join(extras[name])
