"""The figure of the graph: its model against PyTorch, line by line, node by node."""

import random
import re

import numpy
import pytest
import torch

from readtorch import viz
from readtorch.viz.figures import graph_explorer
from readtorch.viz.figures.graph_explorer import EXAMPLES, FIRST, LEAVES
from readtorch.viz.inputs import Refusal


def numbers(text):
    """What the model shows of an array, as numbers."""
    return [float(x) for x in re.findall(r"-?[0-9.]+", text)]


def equal(text, tensor):
    return numpy.allclose(numbers(text), tensor.detach().reshape(-1), rtol=1e-4, atol=1.1e-4)


def name_of(node):
    return node.name().removeprefix("torch::autograd::")


def reached(root):
    """The nodes from `root` on, each once."""
    found, stack = {}, [root]
    while stack:
        node = stack.pop()
        if node is not None and node not in found:
            found[node] = None
            stack += [one for one, _ in node.next_functions]
    return list(found)


class Watched:
    """A line that calls backward in PyTorch, and what its nodes got and gave, in their order."""

    def __init__(self, line, env, ran):
        self.ran, self.handles = ran, []
        root = eval(line.rpartition(".backward(")[0], env)
        if root.requires_grad and root.numel() == 1:
            edge = torch.autograd.graph.get_gradient_edge(root)
            for node in reached(edge.node):
                self.watch(node)
        keep = "retain_graph=True" in line
        try:
            root.backward(retain_graph=keep)
        finally:
            for handle in self.handles:
                handle.remove()

    def watch(self, node):
        def before(grads):
            self.ran.append([name_of(node), grads[0].clone(), None])

        def after(out, grads):
            if name_of(node) != "AccumulateGrad":
                self.ran[-1][2] = [None if one is None else one.clone() for one in out]

        self.handles += [node.register_prehook(before), node.register_hook(after)]


def in_pytorch(lines):
    """For each line: the error, or the nodes that ran, and the tensors after it."""
    env, seen = {"torch": torch}, []
    for line in lines:
        error, ran = "", []
        try:
            if ".backward(" in line:
                Watched(line, env, ran)
            else:
                exec(line, env)
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}"
        seen.append(
            (error, ran, {name: t.detach().clone() for name, t in tensors(env).items()}, versions(env), grads(env))
        )
        if error:
            break
    return seen, env


def tensors(env):
    return {name: t for name, t in env.items() if isinstance(t, torch.Tensor)}


def versions(env):
    return {name: t._version for name, t in tensors(env).items()}


def grads(env):
    return {
        name: t.grad.clone() for name, t in tensors(env).items() if t._base is None and t.is_leaf and t.grad is not None
    }


def compare(program):
    result = graph_explorer.model({"program": program})
    steps = result["steps"][1:]
    seen, env = in_pytorch(result["lines"])
    assert len(seen) == steps[-1]["line"] + 1, program
    for line, (error, ran, values, version, grad) in enumerate(seen):
        of_line = [(step, say) for step, say in zip(steps, result["say"][1:]) if step["line"] == line]
        last, said = of_line[-1]
        assert last["error"] == bool(error), (error, said)
        if error:
            assert said.removesuffix(" What follows is not run.").rstrip(".") == error.rstrip("."), program
        running = [s for s, _ in of_line if any(node["state"] == "running" for node in s["nodes"])]
        if error and running and running[-1] is last:
            pre = running.pop()  # the node that failed got its gradient
            index = next(i for i, node in enumerate(pre["nodes"]) if node["state"] == "running")
            assert ran.pop()[0] == result["nodes"][index]["name"], program
        assert len(running) == len(ran), program
        for step, (name, got, gave) in zip(running, ran):
            index, node = next((i, n) for i, n in enumerate(step["nodes"]) if n["state"] == "running")
            assert result["nodes"][index]["name"] == name, program
            assert equal(node["buffer"], got), program
            for text, tensor in zip(node["out"], gave or []):
                assert (text == "") == (tensor is None), program
                assert not text or equal(text, tensor), program
        assert {t["name"]: t["version"] for t in last["tensors"]} == version, program
        for t in last["tensors"]:
            assert equal(t["value"], values[t["name"]]), program
            assert (t["grad"] != "") == (t["name"] in grad), program
            assert not t["grad"] or equal(t["grad"], grad[t["name"]]), program
    return result, env


@pytest.mark.parametrize("program", EXAMPLES)
def test_the_examples_are_pytorch_s(program):
    compare(program)


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_are_pytorch_s(seed):
    source = random.Random(seed)
    failed = 0
    for _ in range(30):
        failed += compare(graph_explorer.sample(source)["program"])[0]["failed"]
    assert failed > 3


# ---- what the reader does to the graph


def cut_programs(program):
    """The programs with one edge less, each with the node and the number of the edge."""
    nodes = graph_explorer.model({"program": program})["nodes"]
    return [(node, k, cut) for node in nodes for k, cut in enumerate(node["cut"]) if cut]


@pytest.mark.parametrize("program", EXAMPLES)
def test_a_cut_edge_is_gone_in_pytorch_too(program):
    cuts = cut_programs(program)
    assert cuts
    for node, _, cut in cuts:
        result, _ = compare(cut)
        edges = lambda nodes: sum(to is not None for one in nodes for to in one["next"])
        assert edges(result["nodes"]) < edges(graph_explorer.model({"program": program})["nodes"]), (node, cut)


def test_a_cut_edge_can_be_joined_again():
    program = LEAVES + "h = (x * w).relu(); y = x.exp(); loss = (h * y + h).sum(); loss.backward()"
    joined = 0
    for _, _, cut in cut_programs(program):
        ghosts = [ghost for node in graph_explorer.model({"program": cut})["nodes"] for ghost in node["ghosts"]]
        for ghost in ghosts:
            assert (
                graph_explorer.model({"program": ghost["join"]})["say"]
                == graph_explorer.model({"program": program})["say"]
            )
        joined += len(ghosts)
    assert joined > 3


def test_plus_one_at_any_place():
    """Where `+= 1` is an error, where it changes the graph, and where nobody minds."""
    lines = (LEAVES + "h = x * w; y = h.exp(); loss = y.sum(); loss.backward()").split("; ")
    said = {}
    for at in range(2, len(lines)):
        for name in ("x", "h", "y"):
            if f"{name} = " in "; ".join(lines[:at]):
                changed = "; ".join([*lines[:at], f"{name} += 1", *lines[at:]])
                result, _ = compare(changed)
                said[name, at] = result["say"][-1] if result["failed"] else ""
    leaf = "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation. What follows is not run."
    assert {said["x", at] for at in (2, 3, 4, 5)} == {leaf}
    assert said["h", 3] == said["h", 4] == said["h", 5] == ""
    assert said["y", 4] == said["y", 5]
    assert "[torch.FloatTensor [3]], which is output 0 of Exp, is at version 1; expected version 0" in said["y", 4]


def test_the_weird_ones():
    """A view that was made before its base required grad, a write over what is read, a second release."""
    leaves = "x = torch.ones(4, requires_grad=True); w = torch.tensor(5.0, requires_grad=True); "
    compare(leaves + "h = x * 2; v = h[1:3]; v.mul_(w); h.sum().backward()")
    compare(LEAVES + "c = w.detach().clone(); v = c[:2]; c *= w; v *= 2")
    compare(LEAVES + "y = x * 2; y *= y; y.sum().backward()")
    compare(LEAVES + "y = x * 2; y += y[1:]")
    compare(LEAVES + "y = x.exp(); v = y[:2]; y += 1; z = v * 2; u = v.exp(); (z + u).sum().backward()")
    compare(LEAVES + "y = x * 2; v = y[:2]; v += 1; y.sum().backward(); y.sum().backward()")


@pytest.mark.parametrize(
    "program, said",
    [
        ("x = tensor([1.])", "Line 1, not known here: (. Allowed: "),
        ("x = torch.tensor([1, 2])", "Line 1: write a point"),
        ("x = torch.tensor([1., 2., 3., 4., 5., 6., 7.])", "Line 1: a tensor has at most 6 elements here."),
        ("x = torch.ones(7)", "Line 1: a tensor has at most 6 elements here."),
        ("x = torch.zeros(0)", "Line 1: a tensor has at least one element here."),
        ("x = torch.ones([2])", "Line 1, not known here: [. Allowed: "),
        ("x = torch.tensor([1.]); y = x.cos()", "Line 2, not known here: .cos(). "),
        ("x = torch.tensor([1.]); x.exp()", "Line 2 is not one that this figure follows. "),
        ("x = torch.tensor([1.]); y = 2", "Line 2: a number has no graph. "),
        ("x = torch.tensor([1.]); y = x[:]", "Line 2: [:] takes everything. "),
        ("x = torch.tensor([1.]); y = x[1:]", "Line 2: a tensor has at least one element here."),
        ("x = torch.tensor([1., 2.]); v = x[1:]; v.exp_()", "Line 3: .exp_() on a view is more than this figure follows."),
        ("x = torch.tensor([1.]); y = x.exp_() + 1", "Line 2: .exp_() stands at the end of a line of its own. "),
        ("x = torch.tensor([30.]); y = x.exp()", "A number grows beyond 1,000,000,000"),
        ("x = torch.tensor([1.]); y = x +", "Line 2, something is missing at the end. "),
        ("; ".join(["x = torch.tensor([1.])"] * 15), "A program has at most 14 lines."),
    ],
)  # fmt: skip
def test_a_refusal_says_what_is_allowed(program, said):
    with pytest.raises(Refusal) as refused:
        graph_explorer.model({"program": program})
    assert str(refused.value).startswith(said)


# ---- in a browser


@pytest.mark.browser
@pytest.mark.slow
def test_edges_and_lines_change_by_keyboard(visit, page_with):
    with visit(page_with(viz.figure("graph_explorer", step=-1))) as seen:
        page = seen.page
        figure = page.locator(".rt-fig")
        say = lambda: figure.locator(".rt-now").inner_text()
        program = lambda: figure.locator("[data-focus='input-program']").input_value()
        figure.locator(".rt-node[tabindex='0']").focus()
        for key in ("ArrowUp", "ArrowUp", "ArrowRight"):
            page.keyboard.press(key)
        assert figure.locator(".rt-dtitle").inner_text().startswith("ExpBackward0 (2)")
        figure.locator("[data-focus='cut-0']").focus()
        page.keyboard.press("Enter")
        assert "y = x.detach().exp();" in program() and "to w.grad. The queue is empty" in say()
        page.keyboard.press("Control+z")
        assert "detach" not in program()
        figure.locator("[data-focus='line-3']").focus()
        page.keyboard.press("Enter")
        figure.locator("[data-focus='tensor']").select_option("y")
        figure.locator("[data-focus='plus']").focus()
        page.keyboard.press("Enter")
        assert "y = x.exp(); y += 1; loss" in program()
        assert say().startswith("RuntimeError: one of the variables needed for gradient computation has been modified")
        figure.get_by_role("button", name="Undo").click()
        assert "+= 1" not in program()
        figure.locator(".rt-scissors").last.click()
        assert "y = x.detach().exp();" in program() and "to w.grad. The queue is empty" in say()
        figure.get_by_role("button", name="Reset").click()
        assert program() == FIRST
        page.keyboard.press(",")
        assert "Ready: " in say()
        assert seen.problems == []
