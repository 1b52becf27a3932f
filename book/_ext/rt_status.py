"""What a page's numbers were made with: versions, date and seconds at its foot, and a table of all pages."""

from __future__ import annotations

import platform
import re
from datetime import datetime
from html import escape
from pathlib import Path

from rt_cache import version_of

PAGE = "status"
TITLE = "How the pages were executed"
# Name on the page, distribution. The kernels run in the environment that builds, and outputs made with other
# versions are not reused (rt_cache), so these are the versions that executed.
VERSIONS = [("readtorch", "readtorch"), ("PyTorch", "torch"), ("NumPy", "numpy"), ("Numba", "numba")]


def versions() -> list[str]:
    return [f"{name} {version_of(package)}" for name, package in VERSIONS] + [f"Python {platform.python_version()}"]


# -- what is known of a page's execution ---------------------------------------------------------------

CODE_CELL = re.compile(r"^`{3,}\{code-cell\}", re.M)


def cells_of(env, name: str) -> int:
    """Cells with nothing to show are not in the built page: they are counted in its source."""
    return len(CODE_CELL.findall(Path(env.doc2path(name)).read_text(encoding="utf8")))


def executed(env, name: str) -> dict | None:
    return getattr(env, "nb_metadata", {}).get(name, {}).get("exec_data")


def date_of(run: dict) -> str:
    return datetime.fromtimestamp(run["mtime"]).strftime("%Y-%m-%d")


def seconds_of(run: dict) -> str:
    return "" if run["runtime"] is None else f"{run['runtime']:.1f}"


# -- showing ------------------------------------------------------------------------------------------


def tell_foot(app, pagename, templatename, context, doctree):
    context["rt_status_page"] = context["pathto"](PAGE)
    if run := executed(app.env, pagename):
        seconds = f" in {seconds_of(run)} s" if seconds_of(run) else ""
        context["rt_executed"] = f"Executed on {date_of(run)}{seconds} with {', '.join(versions())}."


ABOUT = """\
<section id="how-the-pages-were-executed">
<h1>{title}</h1>
<p>Every number, picture and error message in the book was made by the page it stands on, when it was last executed.
A page is executed anew when a cell of it, the package, PyTorch or another library it runs on has changed; otherwise what it
gave is kept. All pages ran with {versions}. The times are of the machine that built this site, with one thread.</p>
<div class="rt-status" tabindex="0" role="region" aria-label="Pages and their execution">
<table class="table">
<thead><tr><th scope="col">Page</th><th scope="col">Executed on</th><th scope="col">Seconds</th><th scope="col">Code cells</th>
<th scope="col">Outcome</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>
<p>{total}</p>
</section>
"""
ROW = '<tr><th scope="row"><a href="{link}">{title}</a></th><td>{date}</td><td>{seconds}</td><td>{cells}</td><td>{outcome}</td></tr>'


def status_page(app):
    names = [name for name in in_order(app.env) if executed(app.env, name)]
    runs = [executed(app.env, name) for name in names]
    total = (
        f"{len(names)} pages, {sum(cells_of(app.env, name) for name in names)} code cells, "
        f"{sum(run['runtime'] or 0 for run in runs):.0f} seconds."
    )
    body = ABOUT.format(
        title=TITLE, versions=", ".join(versions()), rows="\n".join(row(app, name) for name in names), total=total
    )
    return [(PAGE, {"title": TITLE, "pagetitle": TITLE, "body": body}, "page.html")]


def row(app, name: str) -> str:
    run = executed(app.env, name)
    return ROW.format(
        link=app.builder.get_relative_uri(PAGE, name),
        title=escape(app.env.titles[name].astext()),
        date=date_of(run),
        seconds=seconds_of(run),
        cells=cells_of(app.env, name),
        outcome="as expected" if run["succeeded"] else "failed",
    )


def in_order(env) -> list[str]:
    """The pages as the table of contents has them."""
    found = []

    def walk(name):
        found.append(name)
        for below in env.toctree_includes.get(name, []):
            walk(below)

    walk(env.config.root_doc)
    return found


def setup(app):
    app.connect("html-page-context", tell_foot)
    app.connect("html-collect-pages", status_page)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
