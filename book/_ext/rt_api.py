"""The API reference: what a room offers, with docstrings, places in both sources, and the chapter to read.

    ```{api} readtorch.optim
    ```

lists the public names of a module. `:kind: operators` lists the operators whose Python functions stand there
instead: they are declared by schemas and have no body to describe. Docstrings are plain text: backquotes
hold code, indented lines stand as they are, files of PyTorch's and titles of chapters become links.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import warnings
from functools import cache
from html import escape
from pathlib import Path

import rt_places
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

from readtorch.aten.native_function import packets
from readtorch.show import _citations, _links

LONGEST_DEFAULT = 60  # letters of a default value in a signature


class Api(SphinxDirective):
    required_arguments = 1
    option_spec = {
        "kind": lambda kind: directives.choice(kind, ("objects", "operators")),
        "only": directives.unchanged,
        "without": directives.unchanged,
    }

    def run(self):
        name = self.arguments[0]
        self.room = named(name)
        self.env.note_dependency(__file__)
        if self.options.get("kind") == "operators":
            return self._operators(name)
        made = [
            self._entry(f"{name}.{public}", thing)
            for public, thing in public_names(self.room, name)
            if self._wanted(public)
        ]
        return [*self._about(name), *made, *self._constants(name)]

    def _wanted(self, public: str) -> bool:
        only, without = (set(self.options.get(option, "").split()) for option in ("only", "without"))
        return public not in without and (not only or public in only)

    def _about(self, name: str) -> list[nodes.Node]:
        """What the room's own docstring says, and where the room is."""
        if self.options.get("only"):
            return []
        return [*described(own_docstring(self.room), self), places(name, self.room, self)]

    # -- objects ------------------------------------------------------------------------------------

    def _entry(self, name: str, thing) -> addnodes.desc:
        kind = "class" if inspect.isclass(thing) else "function"
        entry, content = self._desc(kind, name, signature(thing))
        content += described(own_docstring(thing), self)
        content += places(name, thing, self)
        if inspect.isclass(thing) and thing.__name__ == name.rpartition(".")[2]:
            content += [self._method(f"{name}.{method}", function) for method, function in methods(thing)]
        return entry

    def _method(self, name: str, function) -> addnodes.desc:
        entry, content = self._desc("method", name, signature(function))
        content += described(own_docstring(function), self)
        return entry

    def _desc(self, kind: str, name: str, signature: str):
        """An empty entry, known to the search and to links by its full name."""
        owner, _, short = name.rpartition(".")
        shown = addnodes.desc_signature("", "", ids=[name], module=owner, fullname=short, classes=["rt-signature"])
        shown += addnodes.desc_annotation("", "class ") if kind == "class" else []
        shown += addnodes.desc_addname("", "" if kind == "method" else f"{owner}.")
        shown += addnodes.desc_name("", short)
        shown += nodes.inline("", signature, classes=["rt-parameters"])
        self.env.get_domain("py").note_object(name, kind, name, location=shown)
        content = addnodes.desc_content()
        return addnodes.desc(
            "", shown, content, domain="py", objtype=kind, desctype=kind, no_index=True, classes=["py", kind]
        ), content

    def _constants(self, name: str) -> list[nodes.Node]:
        if not inspect.ismodule(self.room) or self.options.get("only"):
            return []
        constants = [
            public for public, thing in offered(self.room) if not describable(thing) and not inspect.ismodule(thing)
        ]
        if not constants:
            return []
        line = nodes.paragraph("", "Values: ")
        for number, constant in enumerate(constants):
            line += [nodes.Text(", " if number else ""), nodes.literal("", constant)]
        return [line]

    # -- operators ----------------------------------------------------------------------------------

    def _operators(self, name: str) -> list[nodes.Node]:
        module = {"readtorch": "torch", "readtorch.nn.functional": "nn"}.get(name, name.rpartition(".")[2])
        listed = sorted(
            (public, packet)
            for (where, public), packet in packets.items()
            if where == module
            and packet.overloads
            and not public.startswith("_")
            and generated(getattr(self.room, public, None))
        )
        return [self._operator(f"{name}.{public}", packet) for public, packet in listed]

    def _operator(self, name: str, packet) -> addnodes.desc:
        entry, content = self._desc("function", name, "(…)")
        entry["classes"].append("rt-operator")
        schemas = "<br>".join(
            f"<code>{escape(str(o.schema))}</code>" for o in packet.overloads if o not in packet.hidden
        )
        content += nodes.raw(
            "", f'<p class="rt-schemas">{schemas}</p>', format="html"
        )  # a literal node has a span a word
        content += described(about(getattr(self.room, packet.name, None)), self)
        line = nodes.paragraph(classes=["rt-places"])
        first = packet.overloads[0]
        line += link("PyTorch: ", rt_places.entry(first.schema.name), self)
        line += link("readtorch: ", rt_places.kernel(first), self)
        content += line
        return entry


# -- what is public -----------------------------------------------------------------------------------


def named(name: str):
    """A module, or a class that is a room of its own."""
    owner, _, last = name.rpartition(".")
    return importlib.import_module(name) if last.islower() else getattr(importlib.import_module(owner), last)


def offered(room) -> list[tuple[str, object]]:
    names = getattr(room, "__all__", None) or [name for name in vars(room) if not name.startswith("_")]
    return sorted(
        ((name, getattr(room, name)) for name in names if hasattr(room, name)),
        key=lambda pair: (pair[0].lower(), pair[0]),
    )


def public_names(room, name: str) -> list[tuple[str, object]]:
    """The classes and functions that a room offers, those that are operators apart."""
    if inspect.isclass(room):
        own = {public: thing for kind in reversed(room.__mro__[:-1]) for public, thing in methods(kind)}
        return sorted((public, thing) for public, thing in own.items() if about(thing))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # distributed.reduce_op warns whatever it is asked for
        return [(public, thing) for public, thing in offered(room) if describable(thing) and not generated(thing)]


def describable(thing) -> bool:
    told = getattr(thing, "__module__", None) or ""
    return (inspect.isclass(thing) or inspect.isroutine(thing) or hasattr(thing, "py_func")) and not told.startswith(
        ("typing", "builtins", "collections", "numpy", "enum")
    )


def generated(thing) -> bool:
    """Whether this is the face of an operator: made from its schema, or written for it."""
    return inspect.isfunction(thing) and thing in faces()


@cache
def faces() -> set:
    """Every function that an operator's packet made, or that was written for one."""
    import readtorch

    owners = {where: importlib.import_module(f"readtorch.{where}") for where in ("linalg", "fft", "special")}
    owners |= {"torch": readtorch, "nn": readtorch.nn.functional}
    named = ((where, getattr(owners[where], public, None)) for where, public in packets if where in owners)
    # what nn.functional writes by hand calls the operator of that name, and is described as a function
    return {thing for where, thing in named if inspect.isfunction(thing) and not (where == "nn" and about(thing))}


def methods(kind: type) -> list[tuple[str, object]]:
    """What a class defines itself and says something about."""
    return [
        (name, thing)
        for name, thing in sorted(vars(kind).items())
        if not name.startswith("_") and not inspect.isclass(thing) and own_docstring(thing)
    ]


def own_docstring(thing) -> str:
    """Not the one of a base class."""
    if inspect.isclass(thing):
        text = vars(thing).get("__doc__")
        return inspect.cleandoc(text) if text and not text.startswith(f"{thing.__name__}(") else ""
    thing = thing.__func__ if isinstance(thing, staticmethod | classmethod) else thing
    text = getattr(thing, "__doc__", None)
    told = callable(thing) or isinstance(thing, property) or inspect.ismodule(thing)
    return inspect.cleandoc(text) if isinstance(text, str) and told else ""


def about(thing) -> str:
    """A docstring, unless it only lists an operator's schemas."""
    text = own_docstring(thing)
    return "" if text.startswith(("`aten::", "The operator `")) else text


def signature(thing) -> str:
    if isinstance(thing, property):
        return ""
    thing = thing.__func__ if isinstance(thing, staticmethod | classmethod) else thing
    try:
        told = inspect.signature(thing)
    except (TypeError, ValueError):
        return "(…)"
    parameters = [
        p.replace(default=_Shown(p.default)) if p.default is not p.empty else p for p in told.parameters.values()
    ]
    parameters = [p.replace(annotation=p.empty) for p in parameters if p.name not in ("self", "cls")]
    return re.sub(r"\s+", " ", str(inspect.Signature(parameters, __validate_parameters__=False)))


class _Shown:
    """A default value, as a reader would write it."""

    def __init__(self, value):
        text = getattr(value, "__name__", None) if callable(value) else repr(value)
        self.text = text if text and " at 0x" not in text and len(text) < LONGEST_DEFAULT else "…"

    def __repr__(self):
        return self.text


# -- where it is --------------------------------------------------------------------------------------


def places(name: str, thing, directive) -> nodes.paragraph:
    """In PyTorch, here, and in the book."""
    line = nodes.paragraph(classes=["rt-places"])
    line += link("PyTorch: ", rt_places.theirs(re.sub(r"^readtorch\b", "torch", name)), directive)
    line += link("readtorch: ", rt_places.of(thing) or rt_places.of_code(thing), directive)
    cited = next(filter(None, map(_citations.titles, docstrings_around(name, thing))), [])
    for title in cited[:1]:
        if reference := chapter(title, directive):
            line += nodes.inline("", "", nodes.Text("chapter: "), reference)
    return line


def docstrings_around(name: str, thing):
    """A thing's own docstring, then those of the modules around it, then those of the rooms that offer it."""
    yield own_docstring(thing)
    written = getattr(inspect.getmodule(rt_places._locate._unwrap(thing)), "__name__", "")
    for start in (written, name.rpartition(".")[0]):
        parts = start.split(".")
        for end in range(len(parts), 1, -1):
            module = sys.modules.get(".".join(parts[:end]))
            yield getattr(module, "__doc__", None) or ""


def link(label: str, place, directive) -> list[nodes.Node]:
    if place is None:
        return []
    shown = nodes.reference("", place.text, refuri=place.url, internal=False) if place.url else nodes.Text(place.text)
    return [nodes.inline("", "", nodes.Text(label), shown)]


def chapter(title: str, directive) -> nodes.Node | None:
    """A link to the chapter of that title; to nothing when a chapter is built alone."""
    docname = chapters(Path(directive.env.srcdir) / "book").get(title)
    if docname is None or f"book/{docname}" not in directive.env.found_docs:
        return None
    pending = addnodes.pending_xref(
        "",
        reftype="doc",
        refdomain="std",
        refexplicit=True,
        reftarget=f"/book/{docname}",
        refwarn=False,
        refdoc=directive.env.docname,
    )
    pending += nodes.inline("", title, classes=["std", "std-doc"])
    return pending


@cache
def chapters(folder: Path) -> dict[str, str]:
    return _citations.chapters(folder)


# -- docstrings ---------------------------------------------------------------------------------------

ARGUMENT = re.compile(r"\*{0,2}\w[\w.]*(?:, \*{0,2}\w[\w.]*)*(?: \([^()]*\))?: |Raises? |Returns? ")
COLUMNS = re.compile(r"\S {3,}\S")
ITEM = re.compile(r"[*-] ")
INLINE = re.compile(r"(``?)(?P<code>[^`]+?)\1|(?P<title>\"[^\"]+\")")


def described(text: str, directive) -> list[nodes.Node]:
    """A docstring as paragraphs, lists and blocks."""
    return [
        block for part in re.split(r"\n\s*\n", text) if part.strip() for block in _part(part.strip("\n"), directive)
    ]


def _part(part: str, directive) -> list[nodes.Node]:
    lines = part.split("\n")
    if all(line.startswith((" ", "\t")) for line in lines) or any(COLUMNS.search(line) for line in lines):
        return [nodes.literal_block("", inspect.cleandoc("\n" + part), language="pycon" if ">>>" in part else "text")]
    if ITEM.match(lines[0]):
        items = _gathered(lines, ITEM.match)
        return [
            nodes.bullet_list(
                "", *(nodes.list_item("", _paragraph(ITEM.sub("", item, count=1), directive)) for item in items)
            )
        ]
    return [_paragraph(item, directive) for item in _gathered(lines, ARGUMENT.match)]


def _gathered(lines: list[str], begins) -> list[str]:
    """Lines joined, with a new beginning where one `begins`."""
    items: list[str] = []
    for line in lines:
        if not items or begins(line):
            items.append(line.strip())
        else:
            items[-1] += f" {line.strip()}"
    return items


def _paragraph(text: str, directive) -> nodes.paragraph:
    paragraph, end = nodes.paragraph(), 0
    for match in INLINE.finditer(text):
        paragraph += nodes.Text(text[end : match.start()])
        paragraph += _code(match["code"]) if match["code"] else _title(match["title"], directive)
        end = match.end()
    paragraph += nodes.Text(text[end:])
    return paragraph


def _code(code: str) -> nodes.Node:
    literal = nodes.literal("", code)
    if not _citations.FILE.fullmatch(f"`{code}`") or "{" in code or "*" in code:
        return literal
    url = f"{_links.PYTORCH}/blob/{_links.torch_tag()}/{code}"
    return nodes.reference("", "", literal, refuri=url, internal=False)


def _title(quoted: str, directive) -> list[nodes.Node]:
    found = chapter(_citations.plain(quoted[1:-1]), directive)
    return [nodes.Text('"'), found, nodes.Text('"')] if found else [nodes.Text(quoted)]


def setup(app):
    app.add_directive("api", Api)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
