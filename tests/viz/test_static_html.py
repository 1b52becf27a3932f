"""What a figure's text/html carries, and that importing the package does not import the figures."""

import json
import os
import re
import subprocess
import sys

import pytest
import torch

from readtorch import viz
from readtorch.viz._base import STATIC, script_json


def tree():
    return viz.module_tree(torch.nn.Linear(2, 2))


def run_python(code):
    """A fresh interpreter that finds the same packages as this one."""
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def test_importing_the_package_imports_no_figure():
    code = "import sys, readtorch, readtorch.viz; print({'anywidget', 'torch'} & set(sys.modules))"
    assert run_python(code).stdout.strip() == "set()"


def test_without_anywidget_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['anywidget'] = None\n"
        "from readtorch import viz\n"
        "import torch\n"
        "viz.module_tree(torch.nn.Linear(2, 2))"
    )
    assert 'pip install "readtorch[viz]"' in run_python(code).stderr.splitlines()[-1]


def test_the_html_carries_state_front_end_and_a_sentence_without_javascript():
    html = tree().static_html()
    state = json.loads(re.search(r'class="rt-state">(.*?)</script>', html)[1])
    assert state["data"]["root"]["type"] == "Linear" and state["selected"] == ""
    assert "needs JavaScript" in html and "<!--rt-assets-->" in html and "<!--/rt-assets-->" in html
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", html)


def test_the_repr_offers_html_beside_the_widget():
    data, _ = tree()._repr_mimebundle_()
    assert {"text/html", "application/vnd.jupyter.widget-view+json"} <= set(data)


def test_no_text_can_leave_its_script_element():
    assert "</script" not in script_json({"a": "</script><b>"})
    assert json.loads(script_json("</script>\u2028")) == "</script>\u2028"


FRONT_ENDS = sorted({file.name for file in STATIC.glob("[!_]*.js")} - {"mount.js"})
HELPERS = {"allocator.js": ["_history.js", "_memory_chart.js", "_memory_rows.js"], "accesses.js": ["_cells.js"]}


@pytest.mark.parametrize("name", FRONT_ENDS)
def test_front_ends_become_classic_scripts(name):
    """What rt_static asks of a module: one `export default {…};` and no import."""
    text = "".join((STATIC / part).read_text() for part in ["_common.js", *HELPERS.get(name, []), name])
    assert len(re.findall(r"^export default \{[^;]*\};$", text, re.MULTILINE)) == 1
    assert len(re.findall(r"^\s*(?:import|export)\b", text, re.MULTILINE)) == 1
