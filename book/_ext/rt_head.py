"""What a page tells machines about itself, and the pages that readers meet by mistake.

Descriptions always; addresses (canonical, the picture of a shared link, the sitemap) only where the site's
own is known, since they have to be absolute. See rt_launch for where it comes from.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

from docutils import nodes

COVER = "_static/cover.png"
LONGEST = 160  # characters of a description that search engines show


def describe_page(app, pagename, templatename, context, doctree):
    text = description_of(doctree) if doctree is not None else ""
    title = re.sub(r"<[^>]+>", "", context.get("title") or app.config.html_title)  # escaped already
    tags = [("name", "description", escape(text))] if text else []
    tags += [("property", "og:type", "article" if doctree is not None else "website"), ("property", "og:title", title)]
    tags += [("property", "og:site_name", escape(app.config.html_title))]
    tags += [("property", "og:description", escape(text))] if text else []
    if pagename == LOST_PAGE:
        context["pageurl"] = None  # it has no address of its own
        tags += [("name", "robots", "noindex")]
    elif base := app.config.html_baseurl:
        tags += [("property", "og:url", f"{base}{pagename}.html"), ("property", "og:image", f"{base}{COVER}")]
        tags += [("name", "twitter:card", "summary_large_image")]
    lines = "".join(f'\n    <meta {kind}="{name}" content="{text}" />' for kind, name, text in tags)
    context["metatags"] = context.get("metatags", "") + lines


def description_of(doctree) -> str:
    """The page's first paragraph, cut at a word."""
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        return text if len(text) <= LONGEST else text[: text.rindex(" ", 0, LONGEST - 1)].rstrip(",;:") + " …"
    return ""


# -- a page for addresses that lead nowhere -----------------------------------------------------------

LOST_PAGE = "404"
LOST = """\
<section id="not-found">
<h1>This page does not exist</h1>
<p>The address may have changed, or it was mistyped. These lead on:</p>
<ul>
<li><a href="{front}">the front page</a>, with all chapters;</li>
<li><a href="{search}">the search</a>, which knows words and the names that stand in code.</li>
</ul>
</section>
"""


def lost_page(app):
    to = lambda page: app.builder.get_relative_uri(LOST_PAGE, page)  # noqa: E731
    body = LOST.format(front=to(app.config.root_doc), search=to("search"))
    return [(LOST_PAGE, {"title": "Page not found", "pagetitle": "Page not found", "body": body}, "page.html")]


def root_links_of_lost_page(app, exception):
    """A host shows 404.html in place of pages at any depth: its links start from the site's root.

    A file that is opened has no such root; with an unknown address the root is taken to be `/`.
    """
    page = Path(app.outdir) / f"{LOST_PAGE}.html"
    if not exception and app.builder.name == "html" and page.exists():
        root = urlsplit(app.config.html_baseurl).path or "/"
        page.write_text(rooted(page.read_text(encoding="utf8"), root), encoding="utf8")


LINK = re.compile(r'((?:href|src|action|data-content_root)=")(?!#|/|\w+:)(?:\./)?([^"]*")')


def rooted(text: str, root: str) -> str:
    return LINK.sub(rf"\g<1>{root}\g<2>", text)


# -- for machines that read all pages -----------------------------------------------------------------


def write_sitemap(app, exception):
    if exception or app.builder.name != "html" or not app.config.html_baseurl:
        return
    places = (f"<url><loc>{escape(app.config.html_baseurl)}{name}.html</loc></url>" for name in sorted(app.env.found_docs))
    urls = "\n".join(places)
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{urls}\n</urlset>\n'
    (Path(app.outdir) / "sitemap.xml").write_text(text, encoding="utf8")
    robots = f"User-agent: *\nAllow: /\nSitemap: {app.config.html_baseurl}sitemap.xml\n"
    (Path(app.outdir) / "robots.txt").write_text(robots, encoding="utf8")


def setup(app):
    app.connect("html-page-context", describe_page, priority=600)
    app.connect("html-collect-pages", lost_page)
    app.connect("build-finished", root_links_of_lost_page, priority=950)
    app.connect("build-finished", write_sitemap)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
