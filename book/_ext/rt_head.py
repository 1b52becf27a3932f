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
    if base := app.config.html_baseurl:
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
STATIC = Path(__file__).parents[1] / "_static"

# Note [ Where a lost reader is ]
# A host shows 404.html in place of pages at any depth, and from there no relative link leads anywhere. So the page says
# in <base> where the site begins: at the path of its address where that is known, else at `/`. Both may be wrong: a file
# can be opened from a disk, and a site be served below any folder. So a script looks. Under its own name the page lies
# where the site begins; elsewhere the folders above the address are asked, the nearest first, whether they have the
# book's style sheet. (Some hosts answer every question with a page, this one, and say that all is well: a page is no
# style sheet.)
WHERE = """
(function () {
  const base = document.querySelector("base");
  const above = (path) => path.slice(0, path.lastIndexOf("/") + 1);
  try {
    const mode = localStorage.getItem("mode"); // what the other pages' button has chosen
    if (mode === "light" || mode === "dark") document.documentElement.style.colorScheme = mode;
  } catch {} // a file may have no storage
  if (location.pathname.endsWith("/404.html") || location.protocol === "file:") {
    base.href = above(location.pathname);
    return;
  }
  const roots = [new URL(base.href).pathname];
  for (let path = above(location.pathname); path; path = above(path.slice(0, -1))) roots.push(path);
  (async () => {
    for (const root of roots) {
      const answer = await fetch(root + "_static/readtorch.css", { method: "HEAD" }).catch(() => null);
      if (answer && answer.ok && /css/.test(answer.headers.get("content-type"))) {
        base.href = root;
        return;
      }
    }
  })();
})();
"""


def lost_page(app):
    root = urlsplit(app.config.html_baseurl).path or "/"
    icon = (STATIC / "favicon.svg").read_text(encoding="utf8")
    return [(LOST_PAGE, {"rt_root": root, "rt_icon": icon, "rt_where": WHERE}, "404.html")]


# -- for machines that read all pages -----------------------------------------------------------------


def write_sitemap(app, exception):
    if exception or app.builder.name != "html" or not app.config.html_baseurl:
        return
    places = (
        f"<url><loc>{escape(app.config.html_baseurl)}{name}.html</loc></url>" for name in sorted(app.env.found_docs)
    )
    urls = "\n".join(places)
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{urls}\n</urlset>\n'
    (Path(app.outdir) / "sitemap.xml").write_text(text, encoding="utf8")
    robots = f"User-agent: *\nAllow: /\nSitemap: {app.config.html_baseurl}sitemap.xml\n"
    (Path(app.outdir) / "robots.txt").write_text(robots, encoding="utf8")


def setup(app):
    app.connect("html-page-context", describe_page, priority=600)
    app.connect("html-collect-pages", lost_page)
    app.connect("build-finished", write_sitemap)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
