"""Random programs in TorchScript: what Python computes, the graph computes, after every pass and after print
and parse.

    python -m tests.jit.programs            5,000 of them
    python -m tests.jit.programs 1234       the program of one seed, shown

A program has variables of every type from its first line, so that any statement can be written anywhere; it
ends, and anywhere may end early, by returning all of them.
"""

import io
import random
import sys
import textwrap
import warnings

import readtorch as rt
import readtorch.jit
from readtorch.csrc.jit.ir import parse_ir
from readtorch.csrc.jit.passes.canonicalize import Canonicalize
from readtorch.csrc.jit.passes.inliner import Inline, inlined
from readtorch.csrc.jit.runtime.code_impl import Code
from readtorch.csrc.jit.runtime.graph_executor import GraphExecutor
from readtorch.csrc.jit.runtime.interpreter import run
from tests.jit.both_libraries import module_from_text
from tests.jit.test_scripted_graphs import PASSES

COUNT = 5000
HEADER = """
from typing import Dict, List, Optional, Tuple
import readtorch as torch
import readtorch.jit
from readtorch import Tensor

def helper(n: int, x: Tensor) -> Tuple[int, Tensor]:
    if n > 3:
        return n - 3, x * 2
    return n + 1, x - 1

"""
SIGNATURE = """def program(x: Tensor, y: Tensor, n: int, m: int, f: float, g: float, b: bool, s: str,
            xs: List[int], d: Dict[str, int],
            t: Tuple[int, float], o: Optional[int]):
"""
RESULT = "(x, y, n, m, f, g, b, s, xs, d, t)"
NAMES = {"Tensor": ["x", "y"], "int": ["n", "m"], "float": ["f", "g"], "bool": ["b"], "str": ["s"]}


class Generator:
    """Writes one program. Numbers are kept small: ints are wide in Python and not in PyTorch."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.counter = 0

    def source(self):
        body = self.block(self.pick([1, 2, 2, 3]), loops=0)
        return HEADER + SIGNATURE + textwrap.indent(body + f"return {RESULT}\n", "    ")

    def pick(self, options):
        return self.random.choice(options)

    def fresh(self):
        self.counter += 1
        return f"v{self.counter}"

    # -------------------------------------------------------------------------------------------- expressions

    def int(self, depth=2):
        if depth == 0 or self.random.random() < 0.3:
            return self.pick(
                ["n", "m", str(self.random.randint(-3, 9)), "len(xs)", "t[0]", "len(s)", "int(f)", "len(d)"]
            )
        a, b = self.int(depth - 1), self.int(depth - 1)
        return self.pick(
            [
                f"({a} + {b})",
                f"({a} - {b})",
                f"({a} * {b}) % 97",
                f"({a} // {self.random.randint(1, 5)})",
                f"({a} % {self.random.randint(1, 7)})",
                f"max({a}, {b})",
                f"min({a}, {b})",
                f"abs({a})",
                f"({a} if {self.bool(depth - 1)} else {b})",
                f"sum([{a}, {b}])",
                f"(-{a})",
                f"int({self.bool(depth - 1)})",
            ]
        )

    def float(self, depth=2):
        if depth == 0 or self.random.random() < 0.3:
            return self.pick(["f", "g", f"{self.random.randint(-8, 8) / 4}", "t[1]", "float(n)"])
        a, b = self.float(depth - 1), self.float(depth - 1)
        return self.pick(
            [
                f"({a} + {b})",
                f"({a} - {b})",
                f"({a} * 0.5)",
                f"({a} / {self.random.randint(1, 4)})",
                f"max({a}, {b})",
                f"abs({a})",
                f"({a} if {self.bool(depth - 1)} else {b})",
                f"float({self.int(depth - 1)})",
            ]
        )

    def bool(self, depth=2):
        if depth == 0 or self.random.random() < 0.2:
            return self.pick(["b", "True", "False", "n > m", "f < g", "o is None", '"a" in d', "n in xs", 's == "ab"'])
        a, b = self.bool(depth - 1), self.bool(depth - 1)
        n, m = self.int(depth - 1), self.int(depth - 1)
        return self.pick(
            [
                f"({a} and {b})",
                f"({a} or {b})",
                f"(not {a})",
                f"({n} {self.pick(['<', '<=', '==', '!=', '>'])} {m})",
                f"({self.float(depth - 1)} > {self.float(depth - 1)})",
                f"(0 < {n} < {m})",
                f"bool({self.tensor(depth - 1)}.sum() > 0)",
            ]
        )

    def tensor(self, depth=2):
        if depth == 0 or self.random.random() < 0.3:
            return self.pick(["x", "y", "torch.ones(3)", "torch.tensor([1.0, -2.0, 0.5])"])
        a, b = self.tensor(depth - 1), self.tensor(depth - 1)
        return self.pick(
            [
                f"({a} + {b})",
                f"({a} - {b})",
                f"({a} * 0.5)",
                f"torch.relu({a})",
                f"{a}.tanh()",
                f"({a} + {self.int(0)})",
                f"(2 - {a})",
                f"torch.where({a} > 0, {a}, {b})",
                f"{a}.clamp(-5.0, 5.0)",
                f"({a} if {self.bool(depth - 1)} else {b})",
                f"{a}[torch.tensor([2, 0, 1])]",
                f"torch.cat([{a}[:1], {b}[1:]])",
                f"({a} * {a}[1])",
                f"(torch.stack([{a}, {b}]).sum(0) / 2)",
            ]
        )

    def str(self, depth=2):
        if depth == 0:
            return self.pick(["s", '"ab"', "'c'"])
        return self.pick(
            [
                f"(s + {self.str(0)})[:6]",
                'f"{n}{m}"',
                f"str({self.int(0)})",
                "s.upper()",
                f"s.replace('a', {self.str(0)})[:8]",
                "s[1:]",
                '"{}-{}".format(n, b)',
                f"('t' if {self.bool(1)} else 'e')",
            ]
        )

    def list(self):
        return self.pick(
            [
                f"[{self.int(1)}, {self.int(1)}]",
                "xs + [n]",
                f"[i * {self.int(0)} for i in range(3)]",
                "[i + 1 for i in xs][:4]",
                "xs[1:]",
                "sorted(xs)",
                "list(range(n % 4))",
                "[k + v for k, v in zip(xs, [1, 2, 3])]",
            ]
        )

    # --------------------------------------------------------------------------------------------- statements

    def block(self, depth, loops):
        return "".join(self.statement(depth, loops) for _ in range(self.random.randint(1, 4)))

    def inner(self, depth, loops):
        return textwrap.indent(self.block(depth - 1, loops), "    ")

    def statement(self, depth, loops):
        kinds = [self.assignment] * 6 + [self.container, self.in_place, self.unpacking, self.optional, self.call]
        if depth:
            kinds += [self.if_, self.if_, self.for_, self.while_, self.over_list]
        if loops:
            kinds += [self.leave_loop]
        if self.random.random() < 0.06:
            return self.early_return()
        return self.pick(kinds)(depth, loops)

    def assignment(self, depth, loops):
        kind = self.pick(list(NAMES))
        return f"{self.pick(NAMES[kind])} = {self.any(kind)}\n"

    def any(self, kind):
        return {"Tensor": self.tensor, "int": self.int, "float": self.float, "bool": self.bool, "str": self.str}[kind]()

    def container(self, depth, loops):
        key = self.pick(['"a"', '"b"', "s"])
        return self.pick(
            [
                f"xs = {self.list()}\n",
                f"xs.append({self.int(1)})\n",
                f"if len(xs) > 1:\n    xs[1] = {self.int(1)}\n",
                "if len(xs) > 4:\n    n += xs.pop()\n",
                f"d[{key}] = {self.int(1)}\n",
                "n = d.get('a', 5)\n",
                f"t = ({self.int(1)}, {self.float(1)})\n",
                "xs.reverse()\n",
                "if 'b' in d:\n    del d['b']\n",
                f"xs = xs[:5]\nn += {self.int(0)}\n",
            ]
        )

    def in_place(self, depth, loops):
        return self.pick(
            [
                f"n += {self.int(1)}\nn = n % 50\n",
                f"m -= {self.int(1)}\nm = m % 50\n",
                f"f *= 0.5\nf += {self.float(1)}\n",
                "y = y + 0\ny += x\ny.mul_(0.5)\n",
                f"x = x.clone()\nx[0] = {self.float(1)}\n",
                "y = y.clone()\ny[1:] = x[:2]\n",
                "x = x.clone()\nx[x > 1] = 0.25\n",
                "y = y.clone()\nv0 = y[1:]\nv0 -= 1\n",
            ]
        )

    def unpacking(self, depth, loops):
        a = self.fresh()
        return self.pick(
            [
                "n, m = m, n\n",
                f"n, f = t\n{a} = (n, (f, b))\nf = {a}[1][0] + 0.5\n",
                f"{a} = x, y\ny, x = {a}\n",
                f"t = (n, g)\n{a}, g = t\nm = {a} % 13\n",
                "n = m = len(xs)\n",
            ]
        )

    def optional(self, depth, loops):
        a = self.fresh()
        return self.pick(
            [
                f"if o is not None:\n    n = (o + n) % 40\nelse:\n    m = {self.int(1)}\n",
                f"{a}: Optional[int] = None\nif b:\n    {a} = n\nif {a} is not None:\n    m = {a} + 1\n",
                "n = o if o is not None else m\n",
            ]
        )

    def call(self, depth, loops):
        return self.pick(["n, x = helper(m, x)\n", "m = helper(n, y)[0]\n"])

    def if_(self, depth, loops):
        text = f"if {self.bool()}:\n{self.inner(depth, loops)}"
        if self.random.random() < 0.3:
            text += f"elif {self.bool()}:\n{self.inner(depth, loops)}"
        return text + (f"else:\n{self.inner(depth, loops)}" if self.random.random() < 0.6 else "")

    def for_(self, depth, loops):
        i = self.fresh()
        bounds = self.pick([f"{self.random.randint(0, 4)}", f"{self.int(1)} % 4", "1, 6, 2", "4, 0, -1", "n % 3, 4"])
        return f"for {i} in range({bounds}):\n    n = (n + {i}) % 30\n{self.inner(depth, loops + 1)}"

    def over_list(self, depth, loops):
        i, j = self.fresh(), self.fresh()
        head = self.pick(
            [
                f"for {i} in xs[:4]:\n    m = (m + {i}) % 31\n",
                f"for {i}, {j} in enumerate(xs[:4]):\n    n = ({i} + {j}) % 29\n",
                f"for {i}, {j} in zip(xs[:3], [4, 5, 6]):\n    m = ({i} * {j}) % 23\n",
                f"for {i} in [x, y]:\n    y = {i} * 0.5\n",
                f"for {i} in (1.5, 2.5):\n    f = f * 0.5 + {i}\n",
            ]
        )
        unrolled = "(1.5" in head
        return head + (textwrap.indent(self.assignment(0, 0), "    ") if unrolled else self.inner(depth, loops + 1))

    def while_(self, depth, loops):
        i = self.fresh()
        return (
            f"{i} = 0\nwhile {i} < {self.random.randint(1, 4)} and {self.bool(1)}:\n    {i} += 1\n"
            f"{self.inner(depth, loops + 1)}"
        )

    def leave_loop(self, depth, loops):
        return f"if {self.bool(1)}:\n    {self.pick(['break', 'continue'])}\n"

    def early_return(self):
        return f"if {self.bool(1)}:\n    return {RESULT}\n"


# --------------------------------------------------------------------------------------------------- checking


def arguments():
    return [
        rt.tensor([0.5, -1.0, 2.0]),
        rt.tensor([1.5, 0.25, -0.75]),
        4,
        7,
        1.5,
        -0.5,
        True,
        "abc",
        [3, 1, 2],
        {"a": 1, "b": 2},
        (2, 0.5),
        3,
    ]


def plain(value):
    if isinstance(value, rt.Tensor):
        return [plain(v) for v in value.tolist()]
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def outcome(function):
    """What a call returns, or that it raised."""
    given = arguments()
    try:
        with rt.no_grad():
            result = function(*given)
    except Exception:
        return "raised"
    return plain(result)


def of_graph(graph):
    def call(*values):
        (result,) = run(Code(graph, "program"), list(values))
        return result

    return outcome(call)


def check(seed):
    """Raises AssertionError if one of the program's forms computes something else than Python."""
    module = module_from_text(Generator(seed).source(), f"program_{seed}")
    expected = outcome(module.program)
    scripted = readtorch.jit.script(module.program)
    assert outcome(scripted) == expected, f"seed {seed}: scripted"
    graph = scripted.graph
    graph.lint()
    for rewrite in [Inline, *PASSES]:
        copy = graph.copy()
        rewrite(copy)
        copy.lint()
        assert of_graph(copy) == expected, f"seed {seed}: {rewrite.__name__}"
    assert of_graph(Canonicalize(graph)) == expected, f"seed {seed}: Canonicalize"
    every = inlined(graph)
    assert of_graph(parse_ir(str(every))) == expected, f"seed {seed}: printed and parsed"
    for rewrite in PASSES:
        rewrite(every)
    every.lint()
    assert of_graph(every) == expected, f"seed {seed}: all passes"
    assert outcome(lambda *a: GraphExecutor(graph, "program").run(list(a))[0]) == expected, f"seed {seed}: executor"
    buffer = io.BytesIO()
    readtorch.jit.save(scripted, buffer)
    buffer.seek(0)
    assert outcome(readtorch.jit.load(buffer)) == expected, f"seed {seed}: saved and loaded"
    return expected != "raised"


def main():
    warnings.simplefilter("ignore")
    if len(sys.argv) > 1:
        print(Generator(int(sys.argv[1])).source())
        print(check(int(sys.argv[1])))
        return
    returned, failed = 0, []
    for seed in range(COUNT):
        try:
            returned += check(seed)
        except Exception as error:
            failed.append(seed)
            print(f"seed {seed}: {type(error).__name__}: {str(error)[-300:]}")
    print(f"{COUNT} programs, {returned} of them return, {len(failed)} differ {failed[:20]}")


if __name__ == "__main__":
    main()
