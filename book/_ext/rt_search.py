"""A search that knows code names: `__setattr__`, `torch.nn.Module`, `c10::Storage`, and any beginning of them.

Sphinx's own index cuts names at dots, stems what is left, and knows pages only; what surrounds a hit it
fetches, which browsers refuse to pages opened as files. Here every *section* is indexed, every term of the
glossary and every entry of the API reference; dotted names stay whole. Excerpts come from one script a page
(`_static/search/…js`), loaded when a result is shown. The reader's half is `book/_static/search.js`.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from itertools import pairwise, takewhile
from pathlib import Path

import numpy as np
from docutils import nodes
from sphinx import addnodes
from sphinx.search.en import english_stopwords

FOLDER = "search"  # under _static
NAME = re.compile(r"[^\W\d]\w*(?:(?:\.|::)\w+)*")  # torch.nn.Module, c10::Storage, __setattr__; search.js has it too
UNSEEN = re.compile(r"<(script|style|summary)\b.*?</\1>|<!--.*?-->", re.S)
PARTS = (nodes.section, nodes.definition_list_item, addnodes.desc)
TITLES = (nodes.title, nodes.term, addnodes.desc_signature)  # of these parts
QUOTED = re.compile(r'<div class="rt-caption">.*?<code class="rt-name">(.*?)</code>')  # by a panel of readtorch.show
APART = re.compile(r"</?(?:p|div|pre|li|td|th|br|label|h\d)\b[^<>]*>")  # what ends a word, as a <span> does not
TAG = re.compile(r"<[^<>]+>")

ONCE, OFTEN, QUOTED_HERE = range(3)  # how much a section has to do with a word
OFTEN_IS = 3


# -- what a section says ------------------------------------------------------------------------------


def sections_of(doctree) -> list[dict]:
    """Every part: its title, its anchor, its own text without that of parts within it, what it quotes."""
    found = []
    for n, part in enumerate(doctree.findall(is_part)):
        text, quoted = [], []
        _read(part, text, quoted)
        title = title_of(part)
        anchor = (part if isinstance(part, nodes.section) else title)["ids"][0]
        found.append(
            {
                "title": anchor if isinstance(part, addnodes.desc) else title.astext(),  # there it is the name in full
                "anchor": anchor if n else "",
                "text": re.sub(r"\s+", " ", " ".join(text)).strip(),
                "quoted": quoted,
            }
        )
    return found


def is_part(node) -> bool:
    """A section, a term of the glossary, an entry of the API reference."""
    return isinstance(node, PARTS) and title_of(node) is not None


def title_of(part):
    """None for what sphinx-exercise wraps the text of an exercise in, and for lists that are no glossary."""
    in_glossary = isinstance(part.parent and part.parent.parent, addnodes.glossary)
    if isinstance(part, nodes.definition_list_item) and not in_glossary:
        return None
    return next((child for child in part.children if isinstance(child, TITLES)), None)


def _read(node, text: list[str], quoted: list[str]) -> None:
    for child in node.children:
        own_title = isinstance(child, nodes.title | nodes.term) and is_part(node)
        places = "rt-places" in getattr(child, "attributes", {}).get("classes", ())  # files are in the index of objects
        if own_title or places or isinstance(child, nodes.comment) or is_part(child):
            continue
        if isinstance(child, nodes.raw):
            if "html" in child.get("format", "").split():
                quoted += map(html.unescape, QUOTED.findall(child.astext()))
                text.append(html.unescape(TAG.sub("", APART.sub(" ", UNSEEN.sub(" ", child.astext())))))
        elif isinstance(child, nodes.TextElement | nodes.Text):
            text.append(child.astext())
        else:
            _read(child, text, quoted)


def words_of(section: dict) -> dict[str, int]:
    """The words of a section, each with how much the section has to do with it."""
    counts = Counter(map(normal, NAME.findall(section["text"])))
    weights = {word: OFTEN if count >= OFTEN_IS else ONCE for word, count in counts.items()}
    for name in section["quoted"]:
        weights.update((normal(word), QUOTED_HERE) for word in NAME.findall(name))
    return {word: weight for word, weight in weights.items() if len(word) > 1 and word not in english_stopwords}


def normal(name: str) -> str:
    return name.replace("::", ".").lower()


# -- from pages to the index --------------------------------------------------------------------------


def keep_page(app, pagename, templatename, context, doctree):
    """Put the page's sections aside: the next build reads only the pages that changed."""
    if doctree is not None:
        kept = _kept(app, pagename)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(sections_of(doctree)), encoding="utf8")


def _kept(app, pagename: str) -> Path:
    return Path(app.doctreedir) / "rt_search" / f"{pagename}.json"


def write_index(app, exception):
    if exception or app.builder.name != "html":
        return
    folder = Path(app.outdir) / "_static" / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    names = [name for name in sorted(app.env.found_docs) if _kept(app, name).exists()]
    pages = {name: json.loads(_kept(app, name).read_text(encoding="utf8")) for name in names}
    (folder / "index.js").write_text(f"rtSearch.index({_json(index_of(pages))});\n", encoding="utf8")
    for n, sections in enumerate(pages.values()):
        texts = [section["text"] for section in sections]
        (folder / f"{n}.js").write_text(f"rtSearch.texts({n}, {_json(texts)});\n", encoding="utf8")


def index_of(pages: dict[str, list[dict]]) -> dict:
    """Sections as [page, title, anchor], the anchor only if it is not the title; for every word the sections that
    have it, as 4 * section + weight. See Note [ A search loads the words of the whole book ].
    """
    sections, words = [], {}
    for n, page in enumerate(pages.values()):
        for section in page:
            for word, weight in words_of(section).items():
                words.setdefault(word, []).append(4 * len(sections) + weight)
            title, anchor = section["title"], section["anchor"]
            sections.append([n, title] if title == anchor else [n, title, anchor])
    return {"pages": list(pages), "sections": sections, "words": packed(words)}


def packed(words: dict[str, list[int]]) -> str:
    """Note [ A search loads the words of the whole book ]

    That is tens of thousands of words and ten times as many numbers, so both are written in short, as "0add 7,1c;3ition 9":
    a word is how many letters it shares with the word before it, one digit, and the rest; a number is how much more it is
    than the one before it. Digits are those of base 36. `unpack` in search.js reads it.
    """
    entries, before = [], ""
    for word, places in sorted(words.items()):
        steps = ",".join(base_36(b - a) for a, b in pairwise([0, *places]))
        shared = shared_letters(before, word)
        entries.append(f"{base_36(shared)}{word[shared:]} {steps}")
        before = word
    return ";".join(entries)


def shared_letters(before: str, word: str) -> int:
    """How many letters two words begin with alike, at most 35. A letter that is two of JavaScript's characters ends it."""
    alike = takewhile(lambda pair: pair[0] == pair[1] <= "\uffff", zip(before, word))
    return min(35, sum(1 for _ in alike))


def base_36(number: int) -> str:
    return np.base_repr(number, 36).lower()


def _json(value) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# -- in place of Sphinx's own -------------------------------------------------------------------------


def replace_stock_search(app):
    if app.builder.name == "html":
        app.builder.search = False


def search_page(app):
    return [("search", {"title": "Search"}, "search.html")]


def say_that_there_is_a_search_page(app, pagename, templatename, context, doctree):
    stock = context["hasdoc"]
    context["hasdoc"] = lambda name: name == "search" or stock(name)


def setup(app):
    app.connect("builder-inited", replace_stock_search)
    app.connect("html-collect-pages", search_page)
    app.connect("html-page-context", say_that_there_is_a_search_page)
    app.connect("html-page-context", keep_page)
    app.connect("build-finished", write_index)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
