"""The C++ and the stubs that PyTorch's own generators write for one entry of `native_functions.yaml`.

They are cut out of the files that `readtorch.show` makes with the generators of the installed wheel, found by the line that
registers them or by the comment that the generator leaves.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from readtorch.show import _generated, _links

BUILD, AUTOGRAD = "build/aten/src/ATen", "torch/csrc/autograd/generated"
LONGEST = 60  # lines of one piece; what is left out is counted
# piece -> the files whose registrations name its function
REGISTERED = {
    "cpu": [f"{BUILD}/RegisterCPU.cpp"],
    "meta": [f"{BUILD}/RegisterMeta.cpp"],
    "default": [f"{BUILD}/RegisterCompositeExplicitAutogradNonFunctional.cpp"],
    "composite": [f"{BUILD}/RegisterCompositeImplicitAutograd.cpp", f"{BUILD}/RegisterCompositeExplicitAutograd.cpp"],
    "autograd": [f"{AUTOGRAD}/VariableType.cpp"],
    "inplace": [f"{AUTOGRAD}/ADInplaceOrViewType.cpp"],
    "functionalize": [f"{BUILD}/RegisterFunctionalization.cpp"],
    "trace": [f"{AUTOGRAD}/TraceType.cpp"],
}


def pieces_of(schema: str) -> dict[str, list[tuple[str, str]]]:
    """Piece -> [(file, text)] of all that is generated for this schema, the text of an entry's `func`."""
    operator = schema.partition("(")[0]
    found = {"schema": _registration_line(schema), "call": _entry_points(operator), "cpp": _cpp_faces(schema)}
    for piece, paths in REGISTERED.items():
        found[piece] = [one for path in paths for one in _registered(path, operator)]
    name = operator.partition(".")[0]
    found["function"] = _binding(f"{AUTOGRAD}/python_torch_functions.cpp", name, schema)
    found["method"] = _binding(f"{AUTOGRAD}/python_variable_methods.cpp", name, schema)
    found["node"] = _node(found["autograd"])
    found["view"] = _view(found["inplace"])
    found["vmap"] = _plumbing(operator)
    found["pyi"] = _stub("_VariableFunctions.pyi", "def", name) + _stub("__init__.pyi", "    def", name)
    return {piece: [(file, _shortened(text)) for file, text in each] for piece, each in found.items() if each}


@cache
def _files(path: str) -> list[tuple[str, str]]:
    """(name, text) of the generated files of a path; headers of the wheel where the generators write a header."""
    return [(file.name, file.read_text(encoding="utf8")) for file in _generated.files(path)]


def _shortened(text: str) -> str:
    """Without what only debug builds compile, and not longer than a reader's patience."""
    debug = re.compile(r"^ *#ifndef NDEBUG\n(.*?)^ *#endif\n", re.M | re.S)
    text = debug.sub(lambda match: f"  // … {match[1].count(chr(10))} lines of checks for debug builds\n", text)
    lines = text.split("\n")
    if len(lines) > LONGEST:
        lines = [*lines[: LONGEST - 1], f"// … {len(lines) - LONGEST + 1} more lines"]
    return "\n".join(lines)


def _body(text: str, start: int) -> str:
    """From `start` to the brace that closes the first one."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return text[start : match.end()]
    raise ValueError("a brace is not closed")


def _definition(text: str, name: str) -> str | None:
    """The function of that name which stands at the beginning of a line."""
    found = re.search(
        rf"^(?:static |inline )?[\w:<>,&* ]+[ &*]{re.escape(name)}\([^;]*?\)\s*(?:const\s*)?\{{", text, re.M
    )
    return found and _body(text, found.start())


def _registered(path: str, operator: str) -> list[tuple[str, str]]:
    """The function that `m.impl("operator", TORCH_FN(function))` registers."""
    pattern = re.compile(rf'm\.impl\("{re.escape(operator)}",\s*TORCH_FN\((?:\w+::)?(\w+)\)')
    for file, text in _files(path):
        for function in pattern.findall(text):
            if "NestedTensor" not in function and (body := _definition(text, function)):
                return [(file, body)]
    return []


def _registration_line(schema: str) -> list[tuple[str, str]]:
    [(file, text)] = _files(f"{BUILD}/RegisterSchema.cpp")
    found = re.search(rf'^ *(m\.def\("{re.escape(schema)}".*\);)$', text, re.M)
    return [(file, found[1])] if found else []


def _entry_points(operator: str) -> list[tuple[str, str]]:
    name = operator.replace(".", "_")
    for file, text in _files(f"{BUILD}/Operators.cpp"):
        both = [_definition(text, f"{name}::{what}") for what in ("call", "redispatch")]
        if all(both):
            return [(file, "\n\n".join(both))]
    return []


def _cpp_faces(schema: str) -> list[tuple[str, str]]:
    found = []
    for header in ("Functions.h", "core/TensorBody.h"):
        text = (_generated.folder() / "aten" / header).read_text(encoding="utf8")
        comment = re.search(rf"^// aten::{re.escape(schema)}\ninline ", text, re.M)
        if comment:
            found.append((header, _body(text, comment.start())))
    return found


def _binding(path: str, name: str, schema: str) -> list[tuple[str, str]]:
    for file, text in _files(path):
        body = _definition(text, f"THPVariable_{name}")
        if body and f"// aten::{schema}\n" in body:
            return [(file, body)]
    return []


def _node(autograd: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The class and the `apply` of the node that the recording kernel makes."""
    made = re.search(r"make_intrusive<(\w+)>", autograd[0][1]) if autograd else None
    if made is None:
        return []
    header = (_generated.folder() / "autograd" / "Functions.h").read_text(encoding="utf8")
    declared = header.index(f"struct TORCH_API {made[1]} :")
    [(file, text)] = _files(f"{AUTOGRAD}/Functions.cpp")
    parts = [_definition(text, f"{made[1]}_apply_functional"), _definition(text, f"{made[1]}::apply")]
    declaration = _body(header, declared).replace("#endif\n", "", 1) + ";"
    return [("Functions.h", declaration), (file, "\n\n".join(filter(None, parts)))]


def _view(inplace: list[tuple[str, str]]) -> list[tuple[str, str]]:
    made = re.search(r"make_unique<[\w:]*?(\w+ViewFunc)>", inplace[0][1]) if inplace else None
    if made is None:
        return []
    [(file, text)] = _files(f"{AUTOGRAD}/ViewFuncs.cpp")
    body = _definition(text, f"{made[1]}::operator()")
    return [(file, body)] if body else []


def _plumbing(operator: str) -> list[tuple[str, str]]:
    [(file, text)] = _files(f"{BUILD}/VmapGeneratedPlumbing.h")
    body = _definition(text, f"{operator.replace('.', '_')}_generated_plumbing")
    return [(file, body)] if body else []


def _stub(file: str, start: str, name: str) -> list[tuple[str, str]]:
    """The lines of a stub file that begin with `start name(`, functions or methods."""
    lines = (Path(_links.torch_root()) / "_C" / file).read_text(encoding="utf8").split("\n")
    found = []
    for i, line in enumerate(lines):
        if line.startswith(f"{start} {name}("):
            first = i - 1 if lines[i - 1].strip() == "@overload" else i
            last = next(j for j in range(i, len(lines)) if lines[j].endswith((":", "...")))
            found.append("\n".join([*lines[first:last], f"{lines[last].removesuffix('...').rstrip()} ..."]))
    return [(file, "\n".join(found))] if found else []
