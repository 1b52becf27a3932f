"""The site around the chapters: an honest cache, notebooks to download, and repairs of the stock theme."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import readtorch
from readtorch.show import _links

HERE = Path(__file__).parent

# What recorded outputs depend on besides the cells themselves and our package.
LIBRARIES = ["torch", "numpy", "numba", "ml_dtypes", "matplotlib", "anywidget", "ipywidgets"]
# ... and, for the page of results, on what it shows.
RESULTS = ["tests/conformance/results.json", "tests/conformance/page.py"]
KEPT_CACHES = 3

# Kernels inherit these: steady timings, and no fight between thread pools on a small machine.
ONE_THREAD = ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"]


# -- executed pages are kept, but not longer than they are true -------------------------------------


def key_cache(app, config):
    """jupyter-cache looks at the code cells only; outputs also depend on the package that the cells import."""
    package = Path(next(iter(readtorch.__path__)))
    root = HERE.parents[1]
    shown = [(root / name).read_text(encoding="utf8") for name in RESULTS if (root / name).exists()]
    config.rt_package_hash = _hash_of([package], [f"{name}=={_version(name)}" for name in LIBRARIES] + shown)
    config.rt_machinery_hash = _hash_of([HERE, *(Path(app.confdir) / p for p in config.html_static_path)])
    caches = Path(app.srcdir) / "_build" / ".jupyter_cache"
    config.nb_execution_cache_path = str(caches / config.rt_package_hash)
    _prune(caches, keep=config.rt_package_hash)


def _hash_of(folders, words=()) -> str:
    digest = hashlib.sha256("\n".join(words).encode())
    for folder in folders:
        for file in sorted(f for f in folder.rglob("*") if f.is_file() and "__pycache__" not in f.parts):
            digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def _version(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _prune(caches: Path, keep: str) -> None:
    if caches.is_dir():
        others = sorted((c for c in caches.iterdir() if c.name != keep), key=lambda c: c.stat().st_mtime)
        for old in others[: -KEPT_CACHES + 1]:
            shutil.rmtree(old, ignore_errors=True)


# -- where the checkout is published ----------------------------------------------------------------


def name_repository(app, config):
    """Buttons that lead to the repository, when this checkout has one on the web."""
    url = _links.repository()
    shown = {"repository_url": url, "use_repository_button": True, "use_issues_button": True} if url else {}
    config.html_theme_options.update(shown)


# -- notebooks to download --------------------------------------------------------------------------


def add_download(app, pagename, templatename, context, doctree):
    """Write the chapter as .ipynb and put it first into the page's download menu."""
    source = Path(app.env.doc2path(pagename)) if doctree is not None else None
    if source is None or source.suffix != ".md" or "kernelspec" not in app.env.metadata.get(pagename, {}):
        return
    target = Path(app.outdir) / "_sources" / f"{pagename}.ipynb"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(as_notebook(source.read_text(encoding="utf8")), encoding="utf8")
    button = {
        "type": "link",
        "url": context["pathto"](f"_sources/{pagename}.ipynb", 1),
        "text": ".ipynb",
        "icon": "fas fa-code",
        "label": "download-notebook-button",
        "tooltip": "Download this chapter as a notebook",
    }
    for group in context.get("header_buttons", []):
        if group.get("label") == "download-buttons":
            group["buttons"].insert(0, button)


def as_notebook(text: str) -> str:
    import jupytext

    notebook = jupytext.reads(text, fmt="md:myst")
    notebook.metadata.pop("jupytext", None)
    for n, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{n}"  # jupytext's are random; the same page should give the same file
    return jupytext.writes(notebook, fmt="ipynb")


# -- repairs ------------------------------------------------------------------------------------------

THEBE = ("THEBE_JS_URL", "sphinx-thebe")


def drop_thebe(app, pagename, templatename, context, doctree):
    """sphinx-thebe is always on in Jupyter Book 1: it names another host, and its script, added twice, throws."""
    for kind in ("script_files", "css_files"):
        if files := context.get(kind):
            files[:] = [f for f in files if not any(word in _told_by(f) for word in THEBE)]


def _told_by(file) -> str:
    return f"{getattr(file, 'filename', '')} {getattr(file, 'attributes', {}).get('body', '')}"


REWRITES = [
    # the text that is seen (Search, Ctrl, K) must be part of the accessible name
    (re.compile(r'(<button class="btn search-button-field[^>]*?) title="Search" aria-label="Search"'), r"\1"),
    # the icons in the colour-mode button have titles that differ from its name
    (re.compile(r'(<i class="theme-switch [^>]*?)\s+title="[^"]*"></i>'), r'\1 aria-hidden="true"></i>'),
    # a folded cell's summary has a text already
    (re.compile(r'<summary aria-label="Toggle hidden content">'), "<summary>"),
    # an aside within the main text is no landmark; each footnote has its own role
    (re.compile(r'<aside class="footnote-list brackets">'), '<aside class="footnote-list brackets" role="none">'),
    # the site's name stands outside of every landmark
    (
        re.compile(r'<div class="sidebar-primary-items__start sidebar-primary__section">'),
        '<div class="sidebar-primary-items__start sidebar-primary__section" role="navigation" aria-label="Site">',
    ),
]


def rewrite_pages(app, exception):
    if exception or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        if "_static" not in page.relative_to(app.outdir).parts:
            old = page.read_text(encoding="utf8")
            new = repair(old)
            if new != old:
                page.write_text(new, encoding="utf8")


def repair(text: str) -> str:
    for pattern, replacement in REWRITES:
        text = pattern.sub(replacement, text)
    return text


def one_chapter_alone(app, config):
    """`make chapter`: links to chapters that are not built this time are not mistakes."""
    if os.environ.get("READTORCH_ONE_CHAPTER"):
        config.suppress_warnings = [*config.suppress_warnings, "myst.xref_missing"]


def setup(app):
    for name in ONE_THREAD:
        os.environ.setdefault(name, "1")
    os.environ["READTORCH_QUIET"] = "1"  # a line on stderr fails the build, and compiling kernels may take a while
    app.add_config_value("rt_package_hash", "", "env")
    app.add_config_value("rt_machinery_hash", "", "env")
    app.connect("config-inited", key_cache)
    app.connect("config-inited", name_repository)
    app.connect("config-inited", one_chapter_alone)
    app.connect("html-page-context", add_download, priority=600)
    app.connect("html-page-context", drop_thebe, priority=950)
    app.connect("build-finished", rewrite_pages, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
