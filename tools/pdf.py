"""python tools/pdf.py SITE BOOK.pdf: the built site as one printable book, with contents, page numbers and links (make pdf).

Chromium prints each page of the site by itself, pypdf joins what it printed. A link between two pages, which is a link to a file
when each is printed, becomes a jump inside the book. What only looks things up on a screen (the API reference, the object index)
stays outside: links to it lead to the published site where its address is known, and are plain text otherwise.
"""

import html
import io
import os
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import yaml
from playwright.sync_api import sync_playwright
from pypdf import PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    DecodedStreamObject,
    DictionaryObject,
    Fit,
    FloatObject,
    NameObject,
    NullObject,
    TextStringObject,
)

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tests.browsing import MOUNTED, QUIET, chromium  # noqa: E402

ON_A_SCREEN = {"book/api_reference", "book/object_index"}
PAPER = {
    "format": "A4",
    "scale": 0.8,
    "print_background": True,
    "margin": {"top": "16mm", "bottom": "20mm", "left": "18mm", "right": "18mm"},
}
# Chromium keeps the places that a link of the same page leads to, so each place that is wanted is linked, invisibly.
KEEP_PLACES = """names => document.body.insertAdjacentHTML('beforeend',
    `<div hidden>${names.map(name => `<a href="#${encodeURIComponent(name)}"></a>`).join('')}</div>`)"""


@dataclass
class Chapter:
    part: str | None
    file: Path  # of the site
    title: str
    sections: list = field(default_factory=list)  # (level, text, anchor) of its headings
    links: list = field(default_factory=list)
    address: str | None = None  # on the published site
    pdf: PdfReader = None
    first: int = 0  # its first page, from 0


# ---- reading the site ----


def listed(toc, site):
    """(caption of its part, name, title with its number or None) of each chapter, in order."""
    toc = yaml.safe_load(toc.read_text(encoding="utf8"))
    yield None, toc["root"], None
    for part in toc.get("parts", [toc]):
        for chapter in part.get("chapters", ()):
            if chapter["file"] not in ON_A_SCREEN and (site / f"{chapter['file']}.html").exists():
                yield part.get("caption"), chapter["file"], chapter.get("title")


class Reading(HTMLParser):
    """The title, headings with their anchors, and links of one page."""

    HEADINGS = {"h1": 1, "h2": 2, "h3": 3}

    def __init__(self, file):
        super().__init__()
        self.sections, self.links, self.address, self.title = [], [], None, ""
        self._anchor, self._heading, self._skip = None, None, 0
        self.feed(file.read_text(encoding="utf8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "section":
            self._anchor = attributes.get("id")
        elif tag in self.HEADINGS and self._anchor:
            self._heading = []
        elif tag == "a":
            self._skip += "headerlink" in (attributes.get("class") or "")
            if attributes.get("href"):
                self.links.append(attributes["href"])
        elif tag == "link" and attributes.get("rel") == "canonical":
            self.address = attributes["href"]

    def handle_data(self, data):
        if self._heading is not None and not self._skip:
            self._heading.append(data)

    def handle_endtag(self, tag):
        if tag == "a":
            self._skip = 0
        elif tag in self.HEADINGS and self._heading is not None:
            text = " ".join("".join(self._heading).split())
            self.sections.append((self.HEADINGS[tag], text, self._anchor))
            self._anchor = self._heading = None


def chapters_of(site, toc):
    found = []
    for part, name, title in listed(toc, site):
        file = site / f"{name}.html"
        page = Reading(file)
        (_, heading, _), *sections = page.sections
        found.append(Chapter(part, file, title or heading, sections, page.links, page.address))
    return found


def wanted_places(chapters):
    """Of each file: the anchors that a link of the book leads to, and those of its sections."""
    wanted = {chapter.file: {anchor for _, _, anchor in chapter.sections} for chapter in chapters}
    for chapter in chapters:
        for link in chapter.links:
            path, anchor = urldefrag(link)
            if path and anchor and "://" not in path:
                wanted.get((chapter.file.parent / unquote(path)).resolve(), set()).add(unquote(anchor))
    return wanted


# ---- printing ----


def print_chapters(browser, chapters):
    wanted = wanted_places(chapters)
    page = browser.new_page()
    for chapter in chapters:
        page.goto(chapter.file.as_uri())
        page.wait_for_function(MOUNTED, timeout=30_000)
        page.evaluate(KEEP_PLACES, sorted(wanted[chapter.file]))
        chapter.pdf = PdfReader(io.BytesIO(page.pdf(**PAPER)))
        print(f"{len(chapter.pdf.pages):5} pages  {chapter.title}", flush=True)
    page.close()


def print_contents(browser, chapters, offset):
    """The title and the table of contents, with the pages' numbers if `offset` pages come before the first chapter."""
    rows, part = [], None
    for chapter in chapters:
        if chapter.part != part:
            part = chapter.part
            rows.append(f"<h2>{html.escape(part)}</h2>")
        number = chapter.first + offset + 1
        rows.append(f'<p><a href="{chapter.file.as_uri()}">{html.escape(chapter.title)}</a><i></i><b>{number}</b></p>')
    page = browser.new_page()
    page.set_content(CONTENTS.format(title=html.escape(chapters[0].title), rows="\n".join(rows)))
    printed = PdfReader(io.BytesIO(page.pdf(**PAPER)))
    page.close()
    return printed


CONTENTS = """<!doctype html><meta charset="utf8"><title>{title}</title>
<style>
body {{ font: 17px/1.5 Georgia, "DejaVu Serif", serif; margin: 0 }}
h1 {{ font-size: 44px; font-weight: normal; margin: 0 0 40px }}
h2 {{ font-size: 15px; text-transform: uppercase; letter-spacing: .06em; margin: 22px 0 4px; break-after: avoid }}
p {{ display: flex; margin: 0; gap: 8px; break-inside: avoid }}
p a {{ color: inherit; text-decoration: none }}
p i {{ flex: 1; border-bottom: 1px dotted #888; margin-bottom: 7px }}
p b {{ font-weight: normal; font-variant-numeric: tabular-nums }}
</style>
<h1>{title}</h1>
{rows}"""


# ---- joining ----


def join(contents, chapters):
    writer = PdfWriter()
    for printed in (contents, *(chapter.pdf for chapter in chapters)):
        writer.append(printed, import_outline=False)
    places = {chapter.file: places_of(chapter) for chapter in chapters}
    files = [None] * len(contents.pages)
    for chapter in chapters:
        files += [chapter] * len(chapter.pdf.pages)
    font = writer._add_object(
        DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Font"),
                NameObject("/Subtype"): NameObject("/Type1"),
                NameObject("/BaseFont"): NameObject("/Helvetica"),
            }
        )
    )
    for number, (page, chapter) in enumerate(zip(writer.pages, files), 1):
        turn_links(writer, page, chapter, places)
        if chapter is not None:
            write_number(writer, page, font, str(number))
    add_outline(writer, chapters, places)
    # each chapter brought its own names of places and its own copy of every font
    for name in ("/Dests", "/Names"):
        writer._root_object.pop(name, None)
    writer.compress_identical_objects()
    writer.add_metadata({"/Title": chapters[0].title, "/Creator": "readtorch"})
    return writer


def places_of(chapter):
    """{anchor: (page of the book, height on it)}; "" is the chapter's beginning."""
    found = {"": (chapter.first, None)}
    for name, target in chapter.pdf.named_destinations.items():
        page = chapter.pdf.get_destination_page_number(target)
        found[unquote(name.removeprefix("/"))] = (chapter.first + page, float(target.top))
    return found


def turn_links(writer, page, chapter, places):
    """Links to pages of the book become jumps; links to other files of the site, addresses or nothing."""
    kept = ArrayObject()
    for reference in page.get("/Annots", ()):
        link = reference.get_object()
        if link.get("/Subtype") == "/Link" and not turned(writer, link, chapter, places):
            continue
        kept.append(reference)
    if "/Annots" in page:
        page[NameObject("/Annots")] = kept


def turned(writer, link, chapter, places):
    """Whether the link leads somewhere, now that it is one of the book."""
    if "/Dest" in link:
        file, anchor = chapter.file, unquote(link["/Dest"].removeprefix("/"))
    elif (address := link.get("/A", {}).get("/URI", "")).startswith("file:"):
        path, anchor = urldefrag(address)
        file, anchor = Path(unquote(path.removeprefix("file://"))), unquote(anchor)
    else:
        return True
    if file not in places:
        outside = chapter and published(chapter, file, anchor)
        if outside:
            link["/A"].get_object()[NameObject("/URI")] = TextStringObject(outside)
        return bool(outside)
    number, top = places[file].get(anchor) or places[file][""]
    link.pop("/A", None)
    link[NameObject("/Dest")] = ArrayObject(
        [
            writer.pages[number].indirect_reference,
            NameObject("/XYZ"),
            NullObject(),
            NullObject() if top is None else FloatObject(top),
            NullObject(),
        ]
    )
    return True


def published(chapter, file, anchor):
    """The address of another file of the site, by that of the chapter; None if the site has none."""
    if not chapter.address:
        return None
    base = chapter.address.removesuffix("/".join(chapter.file.parts[-2:]))
    site = chapter.file.parents[1]
    return f"{base}{file.relative_to(site)}{'#' + anchor if anchor else ''}" if file.is_relative_to(site) else None


def write_number(writer, page, font, number):
    """The page's number, in the middle of the lower margin."""
    page["/Resources"].get_object().setdefault(NameObject("/Font"), DictionaryObject()).get_object()[
        NameObject("/PageNumber")
    ] = font
    x = float(page.mediabox.width) / 2 - 2.5 * len(number)
    before, after = DecodedStreamObject(), DecodedStreamObject()
    before.set_data(b"q\n")  # Chromium's own coordinates end where ours begin
    after.set_data(f"\nQ BT /PageNumber 9 Tf {x:.1f} 26 Td ({number}) Tj ET".encode())
    drawn = page["/Contents"]
    drawn = list(drawn) if isinstance(drawn, ArrayObject) else [page.raw_get("/Contents")]
    page[NameObject("/Contents")] = ArrayObject([writer._add_object(before), *drawn, writer._add_object(after)])


def add_outline(writer, chapters, places):
    """Parts, chapters and their sections, each below the nearest heading of a higher level."""
    part, above = None, {}

    def add(level, title, number, top=None):
        parent = next((above[n] for n in range(level - 1, -1, -1) if above.get(n)), None)
        fit = Fit.fit() if top is None else Fit.xyz(top=top)
        above[level] = writer.add_outline_item(title=title, page_number=number, parent=parent, fit=fit, is_open=False)
        for lower in range(level + 1, 4):
            above.pop(lower, None)

    for chapter in chapters:
        if chapter.part != part:
            part = chapter.part
            add(0, part, chapter.first)
        add(1, chapter.title, chapter.first)
        for level, text, anchor in chapter.sections:
            add(level, text, *places[chapter.file].get(anchor, (chapter.first,)))


def write_book(browser, chapters, out):
    """Prints the chapters into the file `out` and returns how many pages it has."""
    print_chapters(browser, chapters)
    at = 0
    for chapter in chapters:
        chapter.first = at
        at += len(chapter.pdf.pages)
    before = len(print_contents(browser, chapters, 0).pages)
    contents = print_contents(browser, chapters, before)
    for chapter in chapters:
        chapter.first += before
    join(contents, chapters).write(out)
    return before + at


def main(site, out):
    program = chromium()
    if not program:
        raise SystemExit("no Chromium on this machine: install one, or name it in the environment variable CHROMIUM")
    chapters = chapters_of(Path(site).resolve(), ROOT / "_toc.yml")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=QUIET)
        pages = write_book(browser, chapters, out)
        browser.close()
    print(f"{out}: {pages} pages, {os.path.getsize(out) / 1e6:.0f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
