"""Every figure in JupyterLab: a notebook is run there, in a real browser, and a figure is worked by keyboard."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browsing import need

from .test_browser import FIGURES

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
# Lab draws only the cells that are in sight, unless it is told not to.
SETTINGS = {
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
}
OTHER_PLACES = re.compile(r"(?!https?://127\.0\.0\.1[:/]|data:|blob:|about:|wss?://127)")


def notebook(path):
    """A notebook that shows each figure in a cell of its own."""
    cells = ["from tests.viz import test_browser as figures", *(f"figures.{figure.__name__}()" for figure in FIGURES)]
    made = [
        {
            "cell_type": "code",
            "id": f"cell{n}",
            "metadata": {},
            "outputs": [],
            "execution_count": None,
            "source": source,
        }
        for n, source in enumerate(cells)
    ]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    path.write_text(
        json.dumps({"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}), encoding="utf8"
    )


@pytest.fixture
def lab(tmp_path):
    """The address of a JupyterLab in an empty folder that holds the notebook."""
    program = Path(sys.executable).with_name("jupyter-lab")
    need(program.exists(), "JupyterLab is not installed beside this Python: make setup")
    notebook(tmp_path / "figures.ipynb")
    overrides = tmp_path / "config" / "labconfig" / "default_setting_overrides.json"
    overrides.parent.mkdir(parents=True)
    overrides.write_text(json.dumps(SETTINGS), encoding="utf8")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "JUPYTER_CONFIG_PATH": str(tmp_path / "config"),
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
        "JUPYTERLAB_WORKSPACES_DIR": str(tmp_path),
        "JUPYTERLAB_SETTINGS_DIR": str(tmp_path),
        "IPYTHONDIR": str(tmp_path),
    }
    server = subprocess.Popen(
        [
            program,
            "--no-browser",
            "--allow-root",
            "--ServerApp.ip=127.0.0.1",
            "--ServerApp.port=0",
            "--IdentityProvider.token=",
            "--expose-app-in-browser",
            f"--ServerApp.root_dir={tmp_path}",
        ],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=tmp_path,
        start_new_session=True,
    )
    try:
        log = []
        for line in server.stderr:
            log.append(line)
            if found := re.search(r"(http://127\.0\.0\.1:\d+)/lab", line):
                break
        else:
            pytest.fail("JupyterLab did not start:\n" + "".join(log[-20:]))
        yield found[1]
    finally:
        os.killpg(server.pid, signal.SIGTERM)  # its kernels, too
        server.stderr.close()
        server.wait(timeout=30)


def test_every_figure_is_drawn_and_works(browser, lab):
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page, problems = context.new_page(), []
    page.on("pageerror", lambda error: problems.append(f"exception: {error}"))
    page.on("request", lambda request: OTHER_PLACES.match(request.url) and problems.append(request.url))
    page.goto(f"{lab}/lab/tree/figures.ipynb")
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
    page.wait_for_function(
        """() => jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'""", timeout=60_000
    )
    page.evaluate("() => jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait_for_function(
        "count => document.querySelectorAll('.jp-OutputArea .rt-w').length >= count", arg=len(FIGURES), timeout=120_000
    )
    assert (
        page.locator(".jp-OutputArea-output [data-mime-type='application/vnd.jupyter.stderr']").all_inner_texts() == []
    )
    figure = page.locator(".rt-w:has-text('A small graph')").first
    figure.locator(".rt-slider").focus()
    page.keyboard.press("ArrowRight")
    figure.locator(".rt-now", has_text="SumBackward0 runs").wait_for(timeout=5_000)
    assert problems == []
    context.close()
