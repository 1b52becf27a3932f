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
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "exp": torch.exp,
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
    used = [name for name in INPUTS if any(name in partition_cut.names_in(tree) for _, tree in partition_cut.read(inputs["program"]))]
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
        aot, self.partitioners = (importlib.import_module(f"torch._functorch.{n}") for n in ("aot_autograd", "partitioners"))
        program, given = in_pytorch(inputs)
        self.static = [i for i, name in enumerate(given) if name != "x"]
        settings = {setting: inputs[name] for name, setting in BANS.items()} | {"activation_memory_budget": inputs["budget"]}
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


@pytest.mark.parametrize("seed", range(4))
def test_graphs_and_cuts_are_pytorchs(seed):
    """Nodes, their order, operands and sizes; what is kept, what is computed again, and what eager keeps."""
    for inputs, result in drawn(seed, 20):
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
