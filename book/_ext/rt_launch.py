"""Ways out of a page: to the repository, to a notebook on the reader's disk, to a machine that runs it.

Three addresses decide what is offered; a checkout without them gives a site without those buttons.

* The repository: `READTORCH_REPOSITORY` (empty: none), `repository: url` in _config.yml, GitHub's runner, or the remote
  that the checkout was cloned from. It gives edit and issue buttons, Binder and Colab, and lines that install.
* The site: `READTORCH_SITE`, `html_baseurl` in _config.yml, or what GitHub Pages would use for that
  repository when GitHub's runner builds. See rt_head.
* Notebooks: .github/workflows/book.yml pushes those of the built site to the branch `notebooks`, since Colab
  opens files of a repository and the chapters in `main` are Markdown.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

from rt_notebook import as_notebook, installing
from sphinx.util import logging

from readtorch.show import _links

LOG = logging.getLogger(__name__)
BRANCH = "main"
NOTEBOOKS = "notebooks"  # the branch of .ipynb files; cells are not committed to main
WHEELS = "_downloads"  # of the site


# -- addresses ----------------------------------------------------------------------------------------


def settle_addresses(app, config):
    options = config.html_theme_options
    repository = os.environ.get("READTORCH_REPOSITORY")
    if repository is None:
        repository = options.get("repository_url") or _links.repository() or ""
    config.rt_repository = repository.rstrip("/").removesuffix(".git")
    os.environ["READTORCH_REPOSITORY"] = config.rt_repository  # for the kernels: quotes of our source link to it
    if config.rt_repository:
        options.update(repository_url=config.rt_repository, repository_branch=BRANCH)
        options.update(use_repository_button=True, use_issues_button=True, use_edit_page_button=True)
    site = os.environ.get("READTORCH_SITE") or config.html_baseurl or _site_of_github_pages()
    config.html_baseurl = f"{site.rstrip('/')}/" if site else ""


def _site_of_github_pages() -> str:
    """Where GitHub Pages serves the repository whose runner this is."""
    if "GITHUB_REPOSITORY" not in os.environ:
        return ""
    owner, name = os.environ["GITHUB_REPOSITORY"].split("/")
    home = f"{owner.lower()}.github.io"
    return f"https://{home}/" if name.lower() == home else f"https://{home}/{name}/"


# -- the notebook to download, and the package that it needs ------------------------------------------


def make_wheel(app):
    """Put the package's wheel into the site. Kept under the package's hash: it takes some seconds."""
    app.config.rt_wheel = ""
    tool = Path(app.confdir) / "tools/wheel.py"
    if app.builder.format != "html" or os.environ.get("READTORCH_ONE_CHAPTER") or not tool.exists():
        return
    kept = Path(app.srcdir) / "_build" / "wheel" / app.config.rt_package_hash
    if not list(kept.glob("*.whl")):
        shutil.rmtree(kept.parent, ignore_errors=True)
        done = subprocess.run([sys.executable, tool, kept], capture_output=True, text=True)
        if done.returncode:
            LOG.info(
                "the site has no wheel for download: %s", (done.stderr.strip() or "no reason given").splitlines()[-1]
            )
            return
    [wheel] = kept.glob("*.whl")
    folder = Path(app.outdir) / WHEELS
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(wheel, folder)
    app.config.rt_wheel = f"{WHEELS}/{wheel.name}"


def add_buttons(app, pagename, templatename, context, doctree):
    """Write the chapter as .ipynb, put it first into the download menu, and offer machines that run it."""
    source = Path(app.env.doc2path(pagename)) if doctree is not None else None
    if source is None or source.suffix != ".md" or "kernelspec" not in app.env.metadata.get(pagename, {}):
        return
    target = Path(app.outdir) / "_sources" / f"{pagename}.ipynb"
    target.parent.mkdir(parents=True, exist_ok=True)
    site, wheel = app.config.html_baseurl, app.config.rt_wheel
    install = installing(app.config.rt_repository, wheel, site)
    target.write_text(as_notebook(source.read_text(encoding="utf8"), install, site, pagename), encoding="utf8")
    groups = context.get("header_buttons", [])
    for group in groups:
        if group.get("label") == "download-buttons":
            notebook = context["pathto"](f"_sources/{pagename}.ipynb", 1)
            group["buttons"].insert(0, _download(notebook, ".ipynb", "Download this chapter as a notebook", "notebook"))
            if wheel:
                tooltip = "Download the package that the notebook needs"
                group["buttons"].insert(1, _download(context["pathto"](wheel, 1), ".whl", tooltip, "package"))
    if machines := launchers(app.config.rt_repository, pagename):
        groups.insert(
            0,
            {
                "type": "group",
                "tooltip": "Run this chapter",
                "icon": "fas fa-rocket",
                "label": "launch-buttons",
                "buttons": machines,
            },
        )


def _download(url: str, text: str, tooltip: str, label: str) -> dict:
    return {
        "type": "link",
        "url": url,
        "text": text,
        "icon": "fas fa-code",
        "label": f"download-{label}-button",
        "tooltip": tooltip,
    }


# -- machines that run it -----------------------------------------------------------------------------


def launchers(repository: str, pagename: str) -> list[dict]:
    """Binder and Colab; both know only GitHub's repositories by a short name."""
    url = urlsplit(repository)
    if url.netloc != "github.com":
        return []
    name = url.path.strip("/")
    return [
        _launch("Binder", f"https://mybinder.org/v2/gh/{name}/{BRANCH}?urlpath=lab/tree/{pagename}.md"),
        _launch("Colab", f"https://colab.research.google.com/github/{name}/blob/{NOTEBOOKS}/{pagename}.ipynb"),
    ]


def _launch(where: str, url: str) -> dict:
    return {
        "type": "link",
        "url": url,
        "text": where,
        "icon": "fas fa-rocket",
        "label": f"launch-{where.lower()}-button",
        "tooltip": f"Run this chapter on {where}",
    }


def setup(app):
    app.add_config_value("rt_repository", "", "env")
    app.add_config_value("rt_wheel", "", "")
    app.connect("config-inited", settle_addresses)
    app.connect("builder-inited", make_wheel)
    app.connect("html-page-context", add_buttons, priority=600)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
