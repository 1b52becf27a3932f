"""The figure of the cut: joint graphs, and what is kept and computed again, beside PyTorch's; and the model in JavaScript."""

import gc
import importlib
import random
import warnings
import weakref

import pytest
import torch

from readtorch import viz
from readtorch.viz.figures import partition_cut
from readtorch.viz.figures.partition_cut import BANS, EXAMPLES, FIGURE, FIRST, INPUTS
from readtorch.viz.inputs import Refusal
from tests.viz.test_figures import equal, outcome, scripts

assert scripts  # a fixture
warnings.filterwarnings("ignore", message=".*boxed arguments.*")

F = torch.nn.functional
WORDS = {
    "relu": torch.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "exp": torch.exp,
    "sin": torch.sin,
    "cos": torch.cos,
    "softmax": lambda h: torch.softmax(h, -1),
    "layer_norm": lambda h: F.layer_norm(h, h.shape[-1:]),
    "sum": lambda h: h.sum(-1, keepdim=True),
    "dropout": lambda h: F.dropout(h, 0.5),
    "t": torch.t,
    "view": lambda h, *sizes: h.view(*sizes),
}
SMALL = (2, 6, 24, 64)


def drawn(seed, count):
    """Inputs that have a result, with sizes for which PyTorch runs at once."""
    source = random.Random(seed)
    while count:
        inputs = FIGURE.random_inputs(source) | {"batch": source.choice(SMALL), "width": source.choice(SMALL)}
        try:
            result = partition_cut.model(inputs)
        except Refusal:
            continue
        count -= 1
        yield inputs, result


def in_pytorch(inputs):
    """(The program as a function, its arguments by name)."""
    lines = inputs["program"].split(";")
    used = [
        name
        for name in INPUTS
        if any(name in partition_cut.names_in(tree) for _, tree in partition_cut.LANGUAGE.read(inputs["program"]))
    ]
    B, W = inputs["batch"], inputs["width"]
    shapes = {"x": (B, W), "w": (W, W), "v": (W, W), "b": (W,)}
    torch.manual_seed(0)
    given = {name: torch.rand(shapes[name]).add_(0.5).requires_grad_() for name in used}

    def program(*args):
        known = WORDS | {"B": B, "W": W} | dict(zip(used, args))
        exec("\n".join(line.strip(" ") for line in lines), known)
        return known[lines[-1].split("=")[0].strip(" ")]

    return program, given


class TheirCut:
    """PyTorch's joint graph of a program, and the parts that its partitioners make of it."""

    def __init__(self, inputs):
        aot, self.partitioners = (
            importlib.import_module(f"torch._functorch.{n}") for n in ("aot_autograd", "partitioners")
        )
        program, given = in_pytorch(inputs)
        self.static = [i for i, name in enumerate(given) if name != "x"]
        settings = {setting: inputs[name] for name, setting in BANS.items()} | {
            "activation_memory_budget": inputs["budget"]
        }
        compiler = lambda graph_module, args: aot.make_boxed_func(graph_module.forward)
        with torch._functorch.config.patch(**settings):
            aot.aot_function(program, compiler, compiler, self.partition)(*given.values())

    def partition(self, joint, inputs, **options):
        self.default = self.partitioners.default_partition(joint, inputs, **options)
        static = {"static_lifetime_input_indices": self.static}
        self.parts = self.partitioners.min_cut_rematerialization_partition(joint, inputs, **options | static)
        self.nodes = [node for node in joint.graph.nodes if node.op != "output"]
        return self.parts


def computed(part):
    return {node.name for node in partition_cut.computed_in(part)}


def kept_bytes(part, static):
    """Bytes of what the forward returns for the backward, each storage once, without parameters."""
    (output,) = part.graph.find_nodes(op="output")
    parameters = [node for i, node in enumerate(part.graph.find_nodes(op="placeholder")) if i in static]
    key = lambda node: node.meta["val"].untyped_storage()._cdata
    free = set(map(key, parameters))
    return sum({key(n): n.meta["val"].nbytes for n in output.args[0][1:] if key(n) not in free}.values())


@pytest.mark.parametrize("seed", range(3))
def test_graphs_and_cuts_are_pytorchs(seed):
    """Nodes, their order, operands and sizes; what is kept, what is computed again, and what eager keeps."""
    for inputs, result in drawn(seed, 16):
        nodes = result["nodes"]
        if any(n["target"] == "native_dropout" and not any(n["name"] in m["inputs"] for m in nodes) for n in nodes):
            continue  # a dropout that nothing uses: PyTorch's default_partition fails, "Expected native_dropout to be a tensor"
        theirs = TheirCut(inputs)
        assert [n["name"] for n in nodes] == [n.name for n in theirs.nodes], inputs
        assert [n["inputs"] for n in nodes] == [[i.name for i in n.all_input_nodes] for n in theirs.nodes], inputs
        shapes = [list(n.meta["val"].shape) if isinstance(n.meta["val"], torch.Tensor) else None for n in theirs.nodes]
        assert [n["shape"] for n in nodes] == shapes, inputs
        named = lambda state: {n["name"] for n in nodes if n["state"] == state}
        forward, backward = map(computed, theirs.parts)
        assert named("saved") == set(partition_cut.saved_by(theirs.parts)), inputs
        eager = set(partition_cut.saved_by(theirs.default))
        assert {n["name"] for n in nodes if n["eager"]} == eager & {n["name"] for n in nodes}, inputs
        assert named("again") == forward & backward - named("saved"), inputs
        assert result["rows"][-1]["kept"] == kept_bytes(theirs.parts[0], theirs.static), inputs
        assert result["rows"][0]["kept"] == kept_bytes(theirs.default[0], theirs.static), inputs


class Kept:
    """A tensor that autograd keeps, for as long as its graph lives."""

    alive = weakref.WeakSet()

    def __init__(self, tensor):
        self.tensor = tensor.detach()  # a result would keep its node, and the node this
        self.alive.add(self)


def test_eager_keeps_as_much_as_is_said():
    count = 0
    for inputs, result in drawn(7, 40):
        if "dropout" in inputs["program"]:  # on CPUs eager draws and multiplies; it has no native_dropout
            continue
        program, given = in_pytorch(inputs)
        with torch.autograd.graph.saved_tensors_hooks(Kept, lambda kept: kept.tensor):
            made = program(*given.values())
        gc.collect()  # what a line made that nothing uses is gone
        storages = {kept.tensor.untyped_storage().data_ptr(): kept.tensor.nbytes for kept in Kept.alive}
        parameters = {t.untyped_storage().data_ptr() for name, t in given.items() if name != "x"}
        assert made.requires_grad
        assert result["rows"][0]["kept"] == sum(n for key, n in storages.items() if key not in parameters), inputs
        count += 1
    assert count > 20


@pytest.mark.parametrize("budget", [1.0, 0.5, 0.0])
def test_a_dropout_that_is_computed_again_draws_another_mask(budget):
    """So it is in PyTorch: where the result has been dropped, the gradient is not zero."""
    inputs = FIGURE.read({"program": "y = exp(dropout(x))", "batch": 64, "width": 64, "budget": budget})
    program, given = in_pytorch(inputs)
    aot, partitioners = (importlib.import_module(f"torch._functorch.{n}") for n in ("aot_autograd", "partitioners"))
    compiler = lambda graph_module, args: aot.make_boxed_func(graph_module.forward)
    with torch._functorch.config.patch(activation_memory_budget=budget):
        compiled = aot.aot_function(program, compiler, compiler, partitioners.min_cut_rematerialization_partition)
        result = compiled(*given.values())
        result.sum().backward()
    same = ((result != 1) == (given["x"].grad != 0)).all().item()
    assert same == ("another mask" not in partition_cut.model(inputs)["say"]) == (budget == 1.0)


@pytest.mark.browser
@pytest.mark.slow
def test_both_models_cut_alike(scripts):
    """Beside the common test of all figures: more programs, and each example with each ban lifted and each budget."""
    source = random.Random(32)
    inputs = [FIGURE.random_inputs(source) for _ in range(500)]
    for program in (FIRST, *EXAMPLES):
        inputs += [FIGURE.read({"program": program, ban: False}) for ban in BANS]
        inputs += [FIGURE.read({"program": program, "budget": tenth / 10}) for tenth in range(11)]
    ours = [outcome(FIGURE.model, one) for one in inputs]
    esm = str(viz.figure("partition_cut")._esm)
    for one, mine, theirs in zip(inputs, ours, scripts.run(esm, "model", inputs), strict=True):
        assert equal(mine, theirs), one
    assert sum("value" in one for one in ours) > 250


@pytest.mark.parametrize(
    "program, said",
    [
        ("", "Something is missing at the end of a line. Allowed: name = …"),
        ("y = x @", "Something is missing at the end of a line."),
        ("y = (x", "Something is missing at the end of a line."),
        ("x = w", "x is no name for a result here."),
        ("relu(x @ w) @ v", "A line gives its result a name: y = relu…"),
        ("B = x", "B is no name for a result here."),
        ("2 = x", "2 is no name for a result here."),
        ("y = x; z = y + q", "Not known here: q."),
        ("y = log(x)", "Not known here: log."),
        ("y = x ** 2", "Not known here: *."),
        ("y = x[0]", "Not known here: [0]."),
        ("y = x y", "Not known here: y."),
        ("y = x + 1234567", "1234567: a number has at most five digits here."),
        ("y = 2", "The last line is a number"),
        ("y = 2 + 3", "2 + 3: Python computes this before any tensor sees it."),
        ("y = 2.50 / x", "2.5 / [6, 4]: write a tensor on both sides of /."),
        ("y = relu(-2)", "-2 is a number, and a tensor is wanted."),
        ("y = x", "The last line returns an input or a view"),
        ("h = exp(x); y = t(h)", "The last line returns an input or a view"),
        ("y = x @ x", "[6, 4] @ [6, 4]: the columns of the one are not the rows of the other."),
        ("y = x @ b", "[6, 4] @ [4]: this figure multiplies matrices whose sizes are 2 or more."),
        ("y = t(sum(x)) @ x", "[1, 6] @ [6, 4]: this figure multiplies matrices"),
        ("y = x + t(x)", "[6, 4] + [4, 6]: these sizes do not broadcast."),
        ("y = exp(t(b))", "t([4]): this figure turns matrices alone."),
        ("y = exp(view(x, 5, -1))", "[6, 4] has 24 elements: no view of it has the sizes [5, -1]."),
        ("y = exp(view(x, -1, -1))", "[6, 4] has 24 elements: no view of it has the sizes [-1, -1]."),
        ("y = exp(view(x, 1, 24))", "view(…, n, m): a size is B, W, -1, or a whole number from 2."),
        ("y = exp(view(x, 2.0, 12))", "view(…, n, m): a size is B, W, -1, or a whole number from 2."),
        ("y = exp(view(t(x), B, W))", "RuntimeError: view size is not compatible with input tensor's size and stride"),
        ("y = " + " + ".join(["x"] * 18), "At most 16 operators, please."),
    ],
)
def test_a_refusal_says_why(program, said):
    with pytest.raises(Refusal) as refused:
        FIGURE.result(program=program, batch=6, width=4)
    assert str(refused.value).startswith(said)


def test_what_is_said_of_the_first_program():
    """A mask is one byte each; a parameter counts nothing; half of the budget lets the backward compute the norm again."""
    first = FIGURE.result()
    assert first["say"].startswith(
        "Eager keeps 8 values for the backward, 3 MiB. The cut keeps 7 values, 2.5 MiB, and the backward"
    )
    states = {node["name"]: node["state"] for node in FIGURE.result(budget=0.5)["nodes"]}
    assert states["native_layer_norm"] == "again" and states["mm"] == "saved" and states["mm_1"] == "forward"
    dropped = {node["name"]: node["bytes"] for node in FIGURE.result(program="y = dropout(x) + b")["nodes"]}
    assert dropped["getitem"] == 4 * dropped["getitem_1"] == 4 * 512 * 256
    for budget in range(11):
        kept = FIGURE.result(budget=budget / 10)["rows"][-1]["kept"]
        assert kept <= first["rows"][-1]["kept"]
    assert kept == first["rows"][-1]["kept"]


@pytest.mark.parametrize(
    "ban, program, others",
    [
        ("apart", "d = relu(b + x); y = ((d * x) @ w + d) * x", {}),
        ("materialized", FIRST, {}),
        ("allowlist", EXAMPLES[0], {"materialized": False}),
        ("reductions", EXAMPLES[1], {}),
    ],
)
def test_each_ban_changes_some_cut(ban, program, others):
    def kept(**lifted):
        nodes = FIGURE.result(program=program, **others, **lifted)["nodes"]
        return {node["name"] for node in nodes if node["state"] == "saved"}

    assert kept() != kept(**{ban: False})


# ---- in a browser


@pytest.mark.browser
@pytest.mark.slow
def test_budget_bans_and_nodes_by_keyboard(visit, page_with):
    with visit(page_with(viz.figure("partition_cut")), width=390) as seen:
        page = seen.page
        figure = page.locator(".rt-fig")
        press = page.keyboard.press
        say = lambda: figure.locator(".rt-now").inner_text()
        title = lambda: figure.locator(".rt-dtitle").inner_text()
        detail = lambda: figure.locator(".rt-detail").inner_text()
        figure.locator(".rt-node[tabindex='0']").focus()
        assert title() == "x (primals_1)" and "no: it is an input" in detail()
        press("ArrowDown")
        assert title() == "mm" and "not in the allowlist of cheap operators" in detail()
        press("ArrowDown")
        assert title() == "add" and "yes: that is cheaper than to keep it" in detail()
        press("ArrowUp")
        press("ArrowRight")
        assert title() == "mm"  # it stands alone in its layer
        figure.get_by_label("kept, for each budget").focus()
        for _ in range(10):
            press("ArrowLeft")
        assert (
            figure.get_by_role("textbox", name="memory budget").input_value() == "0.5"
            and "computes 5 operators again" in say()
        )
        press("Home")
        assert say().endswith("With a budget of 0 only inputs are kept.")
        press("End")
        assert say().startswith("Eager keeps 8 values") and "2.5 MiB" in say()
        figure.get_by_label("ban: materialized backward").focus()
        press("Space")
        assert "The cut keeps 5 values, 1.5 MiB, and the backward computes 4 operators again." in say()
        press("Control+z")
        assert "2.5 MiB" in say()
        program = figure.get_by_label("program", exact=True)
        program.fill("h = exp(x); y = h * h")
        program.press("Enter")
        assert figure.locator(".rt-node").count() == 9 and figure.locator(".rt-node.rt-n-run").count() == 1
        program.fill("h = log(x)")
        program.press("Enter")
        assert figure.locator(".rt-refusal").inner_text().startswith("Not known here: log.")
        assert seen.problems == []


@pytest.mark.browser
@pytest.mark.slow
def test_the_node_under_the_mouse_is_explained_and_the_graph_stays_where_it_is(visit, page_with):
    with visit(page_with(viz.figure("partition_cut"))) as seen:
        figure = seen.page.locator(".rt-fig")
        box = figure.locator(".rt-graphbox")
        detail = figure.locator(".rt-detail")
        figure.locator("[data-focus='node-sigmoid']").hover()
        assert "it is materialized in the backward" in detail.inner_text()
        figure.locator(".rt-title").hover()
        assert detail.inner_text().startswith("Point at a node")
        figure.locator("[data-focus='node-getitem_1']").click()
        box.evaluate("box => box.scrollTop = 300")
        seen.page.wait_for_timeout(200)
        slider = figure.locator(".rt-inslider")
        slider.focus()
        seen.page.keyboard.press("ArrowLeft")
        seen.page.wait_for_timeout(200)
        assert box.evaluate("box => box.scrollTop") == 300
        assert figure.locator(".rt-sel desc").text_content() == "kept for the backward"
        assert seen.problems == []
