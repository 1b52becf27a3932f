"""A PTX module: directives, variables, functions."""

import dataclasses
import re

SIZE = {
    **dict.fromkeys(("b8", "u8", "s8"), 1),
    **dict.fromkeys(("b16", "u16", "s16", "f16", "bf16"), 2),
    **dict.fromkeys(("b32", "u32", "s32", "f32", "f16x2", "bf16x2", "tf32"), 4),
    **dict.fromkeys(("b64", "u64", "s64", "f64"), 8),
    "b128": 16,
}
TYPES = SIZE.keys() | {"pred"}
FLOATS = ("f32", "f64", "f16", "bf16")


class Unsupported(Exception):
    """PTX that is not translated."""


@dataclasses.dataclass
class Kernel:
    """What the driver has to know of a kernel beside its code."""

    name: str
    sizes: list = dataclasses.field(default_factory=list)  # of the parameters, in bytes
    meets: bool = False  # it has barriers or shuffles
    shared: int = 0  # bytes of static shared memory
    local: int = 0


def identifier(name):
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def aligned(at, alignment):
    return -(-at // alignment) * alignment


def alignment_in(text, otherwise):
    found = re.search(r"\.align\s+(\d+)", text)
    return int(found[1]) if found else otherwise


class Module:
    def __init__(self, text):
        text = re.sub(r"/\*.*?\*/", " ", text.strip("\0 \n\t"), flags=re.S)
        self.text = re.sub(r"//[^\n]*", "", text)
        self.data = {}  # variable -> its name in C
        self.shared = {}  # static shared variable -> offset
        self.shared_size = 0
        self.dynamic = set()  # names of dynamic shared memory
        self.declarations, self.kernels, self.functions = [], [], []

    def read(self):
        place = 0
        while place < len(self.text.rstrip()):
            place = self.read_one(re.compile(r"\s*").match(self.text, place).end())
        return self

    def read_one(self, place):
        """A directive, function or variable; where the next one begins."""
        if line := re.compile(r"\.(version|target|address_size|file|loc|section)\b[^\n]*").match(self.text, place):
            return line.end()
        head = re.compile(r"[^;{]*").match(self.text, place)
        is_function = re.search(r"\.(entry|func)\b", head[0])
        if self.text[head.end()] == ";":
            if not is_function:
                self.add_variable(head[0])
            return head.end() + 1
        end = self.closing_brace(head.end())
        if is_function:
            self.add_function(head[0], self.text[head.end() + 1 : end])
            return end + 1
        end = self.text.index(";", end)
        self.add_variable(self.text[place:end])
        return end + 1

    def closing_brace(self, start):
        depth = 0
        for brace in re.compile(r"[{}]").finditer(self.text, start):
            depth += 1 if brace[0] == "{" else -1
            if depth == 0:
                return brace.start()
        raise Unsupported("braces that do not close")

    def add_variable(self, text):
        form = r"(?P<before>(?:\.\w+\s+(?:\d+\s+)?)*?)\.(?P<type>[bsuf]\d+|bf16)\s+(?P<name>[\w$%]+)\s*(?P<sizes>(?:\[\d*\])*)"
        found = re.match(form + r"\s*(?:=\s*(?P<values>.*))?$", text.strip(), re.S)
        if not found:
            if ".pragma" in text:
                return
            raise Unsupported(f"variable {text[:80]}")
        size, count = SIZE[found["type"]], 1
        for length in re.findall(r"\[(\d*)\]", found["sizes"]):
            count *= int(length or 0)
        alignment = alignment_in(found["before"], size)
        if ".shared" not in found["before"]:
            self.add_data(found["name"], size, max(count, 1), max(alignment, 16), found["values"])
        elif ".extern" in found["before"] or not count:
            self.dynamic.add(found["name"])
        else:
            self.shared[found["name"]] = aligned(self.shared_size, alignment)
            self.shared_size = self.shared[found["name"]] + size * count

    def add_data(self, name, size, count, alignment, values):
        self.data[name] = f"V_{identifier(name)}"
        numbers = re.findall(r"0[fF][0-9A-Fa-f]{8}|0[dD][0-9A-Fa-f]{16}|0x[0-9A-Fa-f]+|-?\d+", values or "")
        start = " = {" + ", ".join(map(in_c, numbers)) + "}" if numbers else ""
        self.declarations.append(
            f"static u{8 * size} V_{identifier(name)}[{count}] __attribute__((aligned({alignment}))){start};"
        )

    def add_function(self, head, body):
        from .function import Function

        if "__assertfail" in head:
            return
        form = r"\.(?P<kind>entry|func)\s*(\((?P<result>[^)]*)\))?\s*(?P<name>[\w$]+)\s*(\((?P<parameters>.*?)\))?"
        found = re.search(form, head, re.S)
        is_entry = found["kind"] == "entry"
        function = Function(self, found["name"], found["parameters"] or "", found["result"] or "", is_entry)
        function.translate(body)
        (self.kernels if is_entry else self.functions).append(function)


def in_c(number):
    """A number of PTX, as C writes it: floating point is given by its bits."""
    if number[:2] in ("0f", "0F"):
        return f"0x{number[2:]}u"
    if number[:2] in ("0d", "0D"):
        return f"0x{number[2:]}ull"
    return number if number.startswith("-") else f"{number}ull"


def translate(text):
    """(kernels, C) of a module."""
    module = Module(text).read()
    static = aligned(module.shared_size, 16)
    code = ['#include "ptx_runtime.h"', f"#define SHARED_STATIC {static}", *module.declarations]
    code += [function.code for function in module.functions + module.kernels]
    meets = any(function.kernel.meets for function in module.functions)
    for function in module.kernels:
        function.kernel.meets |= meets
        function.kernel.shared = module.shared_size
    return [function.kernel for function in module.kernels], "\n".join(code) + "\n"
