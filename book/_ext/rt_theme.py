"""The theme's style sheet without the rules for what the site does not have.

pydata-sphinx-theme brings all of Bootstrap, 397 KB that every page waits for before it is drawn. A rule can only match if
each class that its selector asks for is written in a page or in a script; the others are left out.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import tinycss2
from rt_site import built_pages

WHOLE, USED = "styles/pydata-sphinx-theme.css", "styles/pydata-used.css"  # under _static
LINK = re.compile(re.escape(WHOLE) + r'\?digest=\w+(?=")')
CLASS_ATTRIBUTE = re.compile(r'\bclass="([^"]*)"')
SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
WORD = re.compile(r"[\w-]+")
HOLDS_RULES = {"media", "supports", "layer"}  # of the at-rules


def link_what_is_used(app, exception):
    if exception or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    texts = {page: page.read_text(encoding="utf8") for page in built_pages(app)}
    scripts = (script.read_text(encoding="utf8") for script in static.rglob("*.js"))
    sheet = used_rules((static / WHOLE).read_text(encoding="utf8"), classes_in(texts.values(), scripts))
    (static / USED).write_text(sheet, encoding="utf8")
    digest = hashlib.sha256(sheet.encode()).hexdigest()[:20]
    for page, text in texts.items():
        if LINK.search(text):
            page.write_text(LINK.sub(f"{USED}?digest={digest}", text), encoding="utf8")


def classes_in(pages, scripts) -> set[str]:
    """The classes of elements, and every word of a script: it may be a class that it sets."""
    found, scripts = set(), list(scripts)
    for page in pages:
        scripts += SCRIPT.findall(page)
        for classes in CLASS_ATTRIBUTE.findall(page):
            found.update(classes.split())
    for script in scripts:
        found.update(WORD.findall(script))
    return found


def used_rules(sheet: str, classes: set[str]) -> str:
    """The sheet without the selectors that ask for a class that is none of these, and without rules that are left with none."""
    return "".join(_kept(tinycss2.parse_stylesheet(sheet, skip_comments=False, skip_whitespace=True), classes))


def _kept(rules, classes):
    for rule in rules:
        if rule.type == "qualified-rule":
            selectors = [one for one in _selectors(rule.prelude) if _can_match(one, classes)]
            if selectors:
                heads = ",".join(tinycss2.serialize(one).strip() for one in selectors)
                yield f"{heads}{{{tinycss2.serialize(rule.content)}}}"
        elif rule.type == "at-rule" and rule.content is not None and rule.lower_at_keyword in HOLDS_RULES:
            inner = tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True)
            if kept := "".join(_kept(inner, classes)):
                yield f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude)}{{{kept}}}"
        elif rule.type != "comment" or rule.value.startswith("!"):  # "/*!" says whose the sheet is, and its license
            yield rule.serialize()


def _selectors(prelude) -> list[list]:
    """The parts of `a, b c, :is(d, e)` between commas; what stands in brackets belongs to one part."""
    parts = [[]]
    for token in prelude:
        if token == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _can_match(selector, classes) -> bool:
    """Classes within `:not(…)` or `:is(…)` are asked of nobody: there they are one possibility, or must be absent."""
    pairs = zip(selector, selector[1:])
    return all(name.value in classes for dot, name in pairs if dot == "." and name.type == "ident")


def setup(app):
    app.connect("build-finished", link_what_is_used, priority=910)  # behind rt_site, which rewrites pages, too
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
