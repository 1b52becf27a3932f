"""Chapters run side by side, as many at a time as there are processors, before Sphinx reads the first.

myst-nb runs a chapter when Sphinx reads it, and Sphinx reads one after the other, in one process, where rt_index
collects what the chapters mention. So what is to be read and is not in the cache runs before. Where myst-nb would run a
chapter it is given what came of that, and caches it as ever. Nothing is read meanwhile, for chapters measure times. A
chapter that fails beside another fails perhaps for that: it runs again by itself, where it always did, and that counts.
"""

from __future__ import annotations

import os
from multiprocessing.pool import ThreadPool
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.executors.utils import single_nb_execution
from myst_nb.core.execute import cache as myst_cache
from myst_nb.core.read import create_nb_reader
from sphinx.util.display import status_iterator

outcomes = {}  # a notebook's code -> what came of running it without an error


def run_chapters(app, env, docnames):
    """A listener for `env-before-read-docs`; docnames are those that are new or have changed."""
    config = env.mystnb_config
    cache = get_cache(config.execution_cache_path)
    chapters = [chapter for name in docnames if (chapter := chapter_of(env, name))]
    missing = [chapter for chapter in chapters if not is_cached(cache, chapter[1])]
    missing.sort(key=lambda chapter: -sum(map(len, code_of(chapter[1]))))  # one that takes long shall not begin last

    def run(chapter):  # in a thread: what computes is the kernel, a process
        path, notebook = chapter
        result = single_nb_execution(notebook, str(path.parent), config.execution_timeout, allow_errors=False)
        if result.err is None:
            outcomes[code_of(notebook)] = whole(result)
        return path.stem

    if missing:
        with ThreadPool(min(processors(), len(missing))) as pool:
            ran = pool.imap_unordered(run, missing)
            list(status_iterator(ran, "running chapters... ", "brown", len(missing), app.verbosity))


def processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def chapter_of(env, docname: str):
    """-> (path, notebook), the notebook as myst-nb will read it; None for a page without cells"""
    path = Path(env.doc2path(docname))
    text = path.read_text(encoding="utf8")
    reader = create_nb_reader(str(path), env.myst_config, env.mystnb_config, text)
    return reader and (path, reader.read(text))


def is_cached(cache, notebook) -> bool:
    try:
        return cache.match_cache_notebook(notebook) is not None
    except KeyError:
        return False


def code_of(notebook) -> tuple[str, ...]:
    return tuple(cell.source for cell in notebook.cells if cell.cell_type == "code")


def outcome_of(notebook, **how):
    """In place of single_nb_execution in myst-nb: what came of the run before, or of one now."""
    result = outcomes.pop(code_of(notebook), None)
    if result is None:
        return whole(single_nb_execution(notebook, **how))
    notebook.cells, notebook.metadata = result.nb.cells, result.nb.metadata
    return result


def whole(result):
    """The result, with what a cell printed in one piece.

    A kernel sends it in several, as time passes, and nb_merge_streams would begin a new line with each.
    """
    for cell in result.nb.cells:
        outputs, last = [], {}  # last: the streams since the last output of another kind
        for output in cell.get("outputs", ()):
            if output.output_type != "stream":
                last = {}
            elif output.name in last:
                last[output.name].text += output.text
                continue
            else:
                last[output.name] = output
            outputs.append(output)
        if "outputs" in cell:
            cell.outputs = outputs
    return result


def setup(app):
    myst_cache.single_nb_execution = outcome_of
    app.connect("env-before-read-docs", run_chapters)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
