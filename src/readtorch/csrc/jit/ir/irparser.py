"""Reads a graph back from its text.

In PyTorch: `torch/csrc/jit/ir/irparser.cpp`. Ours also reads scopes, comments, classes, named tuples, tensors
and the graphs inside nodes, so that what is printed is always read back; only elements that were not printed
(`<Tensor>`) are lost, they become zeros.
"""

import ast
import re

import numpy as np

from readtorch.c10 import scalar_type
from readtorch.c10.device import device as Device
from readtorch.c10.tensor_impl import wrap
from readtorch.csrc.jit.frontend.schema_type_parser import TypeParser
from readtorch.csrc.jit.frontend.source_range import Source, SourceRange

from .graph import Graph
from .type import FloatType, TensorType

# ------------------------------------------------------------------------------------------------------------ constants


_NUMBER = re.compile(r"-?(?:inf|nan|\d+\.?\d*(?:e[+-]?\d+)?)")
_NAMED = {"True": True, "False": False, "None": None}
_ESCAPES = {"\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def read_literal(text, position):
    """The value that begins at `position`, and where it ends."""
    c = text[position]
    if c == '"':
        return _string(text, position)
    if c in "[(":
        values, end = _sequence(text, position + 1, "]" if c == "[" else ")")
        return (values if c == "[" else tuple(values)), end
    if c == "{":
        return _dict(text, position + 1)
    for name, value in _NAMED.items():
        if text.startswith(name, position):
            return value, position + len(name)
    if text.startswith("torch.device(", position):
        name, end = _string(text, position + len("torch.device("))
        return Device(name), end + 1
    if c == "<":  # <Tensor>, [<Tensors>], <Graph>: not printed, so not known
        return None, text.index(">", position) + 1
    return _number(text, position)


def _number(text, position):
    match = _NUMBER.match(text, position)
    if match is None:
        return _word(text, position)
    value, end = _plain(match[0]), match.end()
    imaginary = _NUMBER.match(text, end + (text[end : end + 1] == "+"))
    if imaginary and text[imaginary.end() : imaginary.end() + 1] == "j":
        return complex(value, float(imaginary[0])), imaginary.end() + 1
    return value, end


def _word(text, position):
    """An enum's value or an object: their text, which is all there is."""
    match = re.compile(r"[\w.]+(\(\w*\))?").match(text, position)
    if match is None:
        raise RuntimeError(f"Could not parse literal{text[position:]}")
    return match[0], match.end()


def _plain(text):
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _string(text, position):
    parts, i = bytearray(), position + 1
    while text[i] != '"':
        if text[i] != "\\":
            parts += text[i].encode()
            i += 1
        elif text[i + 1].isdigit():
            parts.append(int(text[i + 1 : i + 4], 8))
            i += 4
        else:
            parts += _ESCAPES[text[i + 1]].encode()
            i += 2
    return parts.decode(), i + 1


def _sequence(text, position, end):
    values = []
    while text[position] != end:
        if text[position] in ", ":
            position += 1
            continue
        value, position = read_literal(text, position)
        values.append(value)
    return values, position + 1


def _dict(text, position):
    found = {}
    while text[position] != "}":
        if text[position] in ", ":
            position += 1
            continue
        key, position = read_literal(text, position)
        value, position = read_literal(text, position + 2)
        found[key] = value
    return found, position + 1


# ---------------------------------------------------------------------------------------------------- tensors


def literal_tensor(text, position, type):
    """The tensor of type `type` whose text begins at `position`, and where it ends."""
    if text[position] == "{":
        end = text.index("}", position) + 1
        values = [_element(text[position + 1 : end - 1])]
    elif text.startswith("<Tensor>", position):
        values, end = None, position + len("<Tensor>")
    else:
        bracket = re.compile(r"\[ \w+Type\{[\d,]*\} \]").search(text, position)
        shown = re.sub(r"\([\d,.]+\) =|Columns \d+ to \d+", " ", text[position : bracket.start()])
        factor = re.search(r"(\S+) \*", shown)
        scale = float(factor[1]) if factor else 1
        words = re.sub(r"\S+ \*", " ", shown).split()
        values, end = [_element(word) * scale for word in words], bracket.end()
    return _tensor(values, type), end


def _element(word):
    """In PyTorch, and so here, a complex tensor with several elements shows their real parts only."""
    if word.startswith("("):
        real, _, imaginary = word.strip("()").partition(",")
        return complex(float(real), float(imaginary))
    return _plain(word)


def _tensor(values, type):
    dtype = type.dtype() or scalar_type.float32
    sizes = tuple(type.concrete_sizes() or ())
    if values is None or (len(values) != np.prod(sizes) and type.concrete_sizes() is not None):
        return wrap(np.zeros(sizes, dtype.numpy))
    shape = sizes if type.concrete_sizes() is not None else (len(values),)
    return wrap(np.array(values).reshape(shape).astype(dtype.numpy))


# --------------------------------------------------------------------------------------------------------------- graphs


_COMMENT = re.compile(r" # (?P<file>[^#\"]*):(?P<line>\d+):(?P<col>\d+)$")
_SCOPE = re.compile(r", scope: (?P<scope>\S+)$")
_NAME = re.compile(r"%([\w.]+)")
_KIND = re.compile(r"\s*(?:\^(?P<python>[\w.]+)(?:\[(?P<about>.*?)\])?\((?P<scalars>.*?)\)(?=\()|(?P<kind>\w+::\w+))")


def parse_ir(text, parse_tensor_constants=True):
    """The graph that `text` spells. Raises RuntimeError where the text is not a graph."""
    sections = re.split(r"^with (\w+::\w+_\d+) = ", text, flags=re.MULTILINE)
    classes = {}
    subgraphs = {name: _Parser(body, classes) for name, body in zip(sections[1::2], sections[2::2])}
    return _Parser(sections[0], classes).graph(subgraphs)


class _Parser:
    """Walks the lines of one graph; `%x` finds its Value in `values`."""

    def __init__(self, text, classes):
        joined = re.sub(r",\n +(?=%)", ", ", text.strip())  # one input a line
        self.lines = [line for line in joined.split("\n") if line.strip()]
        self.at = 0
        self.classes = classes
        self.values = {}

    def graph(self, subgraphs):
        self.result = graph = Graph()
        self.subgraphs = subgraphs
        header = self.lines[0]
        if not re.match(r"\w+\s*\(", header):
            raise RuntimeError(f"expected a graph here:\n{header}")
        self.block_inputs(header.partition("(")[2], graph.block())
        self.at = 1
        self.body(graph.block())
        last = self.lines[self.at].strip()
        if not last.startswith("return"):
            raise RuntimeError(f"expected return here:\n{last}")
        for name in _NAME.findall(last):
            graph.registerOutput(self.find(name))
        self.number()
        return graph

    def number(self):
        """Values without a name keep the number that was printed; the others get the next ones."""
        printed = [int(name) for name in self.values if name.isdigit()]
        fresh = max(printed, default=-1) + 1
        for name, value in self.values.items():
            if name.isdigit():
                value._unique = int(name)
            else:
                value._unique = fresh
                fresh += 1
        self.result._next_unique = fresh

    def find(self, name):
        if name not in self.values:
            raise RuntimeError(f"Cannot find a variable with name '{name}'")
        return self.values[name]

    def define(self, name, value, type):
        self.values[name] = value
        value.setType(type)
        if not name.isdigit():
            value.setDebugName(name)

    def typed_names(self, text, start, end):
        """(name, type or None) for each `%x : T` from `start` on, and where `end` was found."""
        found = []
        parser = TypeParser(text, start, self.classes)
        while not parser.take(end):
            parser.take(",")
            parser.expect("%")
            name = self.value_name(parser)
            found.append((name, parser.type() if parser.take(":") else None))
        return found, parser.position

    @staticmethod
    def value_name(parser):
        match = re.compile(r"[\w.]+").match(parser.text, parser.position)
        parser.position = match.end()
        return match[0]

    def block_inputs(self, text, block):
        for name, type in self.typed_names(text, 0, ")")[0]:
            self.define(name, block.addInput(), type or TensorType.get())

    def body(self, block):
        """Nodes, up to the line that ends the block."""
        while not self.lines[self.at].lstrip().startswith(("return", "->")):
            self.node(block)

    def node(self, block):
        line, range = _split_comment(self.lines[self.at])
        line, scope = _split_scope(line)
        outputs, position = self.node_outputs(line)
        match = _KIND.match(line, position)
        if match is None:
            raise RuntimeError(f"expected an operator here:\n{line}")
        kind, group = self.split_group(match["kind"] or "prim::PythonOp")
        node = self.result.create(kind, (), len(outputs)).setSourceRange(range)
        for name in scope:
            node.setScope(node.scope().push(name))
        position = match.end()
        if match["python"]:
            node.s_("name", match["python"]).ival_("scalar_args", _scalars(match["scalars"]))
            _traced_function(node, match["about"] or "")
        types = [type for _, type in outputs]
        if line[position] == "[":
            position = self.attributes(node, line, position + 1, types)
        if group is not None:
            inner = self.subgraphs[group]
            node.g_("Subgraph", inner.graph(self.subgraphs))
        for name in _NAME.findall(line[position:]):
            node.addInput(self.find(name))
        block.appendNode(node)
        self.name_outputs(node, outputs)
        self.at += 1
        while self.at < len(self.lines) and re.match(r"\s*block\d+\(", self.lines[self.at]):
            self.nested(node)

    def node_outputs(self, line):
        start = len(line) - len(line.lstrip())
        if line[start] not in "%=":
            return [], start
        return self.typed_names(line, start, "=")

    def split_group(self, kind):
        """`prim::fork_0` names the graph that follows under that name."""
        return (kind.rpartition("_")[0], kind) if kind in self.subgraphs else (kind, None)

    def name_outputs(self, node, outputs):
        for (name, type), value in zip(outputs, node.outputs()):
            self.define(name, value, type or self.schema_type(node, value))

    @staticmethod
    def schema_type(node, value):
        schema = node.maybeSchema()
        if schema is None or schema.is_varret:
            return TensorType.get()
        type = schema.returns[value.offset()].type
        return TensorType.get() if type.hasFreeVariables() else type

    def nested(self, node):
        block = node.addBlock()
        self.block_inputs(self.lines[self.at].partition("(")[2], block)
        self.at += 1
        self.body(block)
        for name in _NAME.findall(self.lines[self.at]):
            block.registerOutput(self.find(name))
        self.at += 1

    # ----------------------------------------------------------------------------------- attributes

    def attributes(self, node, line, position, types):
        while line[position] != "]":
            name, position = re.compile(r"[, ]*(\w+)=").match(line, position), None
            position = self.attribute(node, name[1], line, name.end(), types)
        return position + 1

    def attribute(self, node, name, line, position, types):
        type = types[0] if types else None
        if name in ("types", "type") or re.match(r"\[?(Tensor|int|float|bool|str|Dict|NoneType)\b", line[position:]):
            return self.type_attribute(node, name, line, position)
        if isinstance(type, TensorType) and node.kind() == "prim::Constant":
            value, end = literal_tensor(line, position, type)
            node.t_(name, value)
            return end
        value, end = read_literal(line, position)
        _set_literal(node, name, value, type)
        return end

    def type_attribute(self, node, name, line, position):
        parser = TypeParser(line, position, self.classes)
        if parser.take("["):
            node.tys_(name, parser.list_of(parser.type, "]"))
        else:
            node.ty_(name, parser.type())
        return parser.position


def _set_literal(node, name, value, type):
    """Write an attribute of the kind that its text and the node's type call for."""
    constant = node.kind() == "prim::Constant" and name == "value"
    if isinstance(value, bool) or isinstance(value, int):
        if constant and isinstance(type, FloatType):
            node.f_(name, float(value))
        else:
            node.i_(name, value)
    elif isinstance(value, float):
        node.f_(name, value)
    elif isinstance(value, complex):
        node.c_(name, value)
    elif isinstance(value, str):
        node.s_(name, value)
    elif isinstance(value, list) and not constant and value and isinstance(value[0], (int, float, str)):
        kind = {int: "is", float: "fs", str: "ss"}[value[0].__class__]
        node._attributes[name] = (kind, value)
    else:
        node.ival_(name, value)


def _split_comment(line):
    match = _COMMENT.search(line)
    if match is None:
        return line.rstrip(), None
    source = Source("", match["file"], int(match["line"]), int(match["col"]))
    return line[: match.start()].rstrip(), SourceRange(source)


def _split_scope(line):
    match = _SCOPE.search(line)
    return (line, []) if match is None else (line[: match.start()], match["scope"].split("/"))


def _scalars(text):
    try:
        return list(ast.literal_eval(f"[{text}]"))
    except (ValueError, SyntaxError):
        return [text]


def _traced_function(node, text):
    """The attributes of a call of an autograd Function, where a trace wrote it."""
    found = re.fullmatch(r'inplace=(\d), module="(.*)"', text)
    if found:
        node.i_("inplace", int(found[1])).s_("module", found[2])
