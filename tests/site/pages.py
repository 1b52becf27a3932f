"""Reading built pages: which there are, what they link to, what they load."""

from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml

ROOT = Path(__file__).resolve().parents[2]
LINKING = {"a": "href", "link": "href", "img": "src", "script": "src", "iframe": "src", "source": "src"}

POINTS = {"canonical", "index", "next", "prev", "search"}  # <link>s that name other pages


def listed(toc: Path) -> list[str]:
    """The pages of a table of contents, as paths of a built site."""
    found = []

    def walk(part):
        if isinstance(part, list):
            for item in part:
                walk(item)
        elif isinstance(part, dict):
            found.extend(f"{part[key]}.html" for key in ("root", "file") if key in part)
            for value in part.values():
                walk(value)

    walk(yaml.safe_load(toc.read_text(encoding="utf8")))
    return found


def built(site: Path) -> list[str]:
    pages = (page.relative_to(site) for page in site.rglob("*.html"))
    return sorted(page.as_posix() for page in pages if page.parts[0] not in ("_static", "reports"))


class Page(HTMLParser):
    def __init__(self, file: Path):
        super().__init__()
        self.links, self.loads, self.anchors = [], [], set()
        self.figures = Counter()
        self.feed(file.read_text(encoding="utf8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.update(filter(None, (attributes.get("id"), tag == "a" and attributes.get("name"))))
        if figure := attributes.get("data-rt-name"):  # what an address may move: see mount.js
            self.figures[figure] += 1
            self.anchors.add(f"fig={figure}" if self.figures[figure] == 1 else f"fig={figure}-{self.figures[figure]}")
        target = attributes.get(LINKING.get(tag))
        if target:
            loaded = tag != "a" and not (tag == "link" and POINTS.intersection((attributes.get("rel") or "").split()))
            (self.loads if loaded else self.links).append(target)


def dead_links(site: Path) -> list[str]:
    """Links and files inside the site that lead nowhere."""
    pages = {name: Page(site / name) for name in built(site)}
    dead = []
    for name, page in pages.items():
        for link in {*page.links, *page.loads}:
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            path, base = unquote(url.path), (site / name).parent
            target = (base / path).resolve() if path else (site / name).resolve()
            if not target.is_file():
                dead.append(f"{name}: {link}")
            elif url.fragment and target.suffix == ".html":
                anchors = pages[target.relative_to(site.resolve()).as_posix()].anchors
                fragment = url.fragment.partition("&")[0] if url.fragment.startswith("fig=") else url.fragment
                if unquote(fragment) not in anchors:
                    dead.append(f"{name}: {link} (no such anchor)")
    return sorted(dead)


def foreign_loads(site: Path) -> list[str]:
    """What a page would load from another host."""
    return [f"{name}: {load}" for name in built(site) for load in Page(site / name).loads if urlsplit(load).netloc]
