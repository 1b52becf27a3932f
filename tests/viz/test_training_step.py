"""The figure of one training step computes what PyTorch computes, and its chapter's numbers are PyTorch's."""

import random
import re
from pathlib import Path

import pytest
import torch

from readtorch.viz.figures import training_step as figure

CHAPTER = Path(__file__).resolve().parents[2] / "book/one_training_step.md"


def loop(inputs):
    """The chapter's program with the figure's inputs, in float64: a record of each turn."""
    layer = torch.nn.Linear(4, 2, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(figure.WEIGHT, dtype=torch.float64))
        layer.bias.copy_(torch.tensor(figure.BIAS, dtype=torch.float64))
    x = torch.tensor([figure.numbers(inputs[f"sample{i}"]) for i in (1, 2, 3)], dtype=torch.float64)
    labels = torch.tensor([int(inputs[f"label{i}"]) for i in (1, 2, 3)])
    optimizer = torch.optim.SGD(layer.parameters(), lr=inputs["rate"])
    for _ in range(figure.TURNS + 1):
        if inputs["zero"]:
            optimizer.zero_grad()
        weight = layer.weight.detach().clone()
        z = layer(x)
        p = z.softmax(dim=1) if inputs["softmax"] else z
        logq = p.log_softmax(dim=1)
        for kept in (z, p, logq):
            kept.retain_grad()
        loss = torch.nn.functional.nll_loss(logq, labels)
        version = layer.weight._version
        loss.backward()
        optimizer.step()
        yield {"z": z, "p": p, "logq": logq, "loss": loss, "weight": weight, "toZ": z.grad, "toP": p.grad,
               "toLogq": logq.grad, "right": (p.argmax(dim=1) == labels).sum(), "moved": layer.weight._version - version,
               "grad": [layer.weight.grad.clone(), layer.bias.grad.clone()],
               "after": [layer.weight.detach().clone(), layer.bias.detach().clone()]}  # fmt: skip


def close(mine, its):
    if isinstance(its, list):
        return all(map(close, mine, its))
    return torch.allclose(torch.tensor(mine, dtype=torch.float64), its.detach().double(), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_every_station_has_pytorchs_numbers(seed):
    rng = random.Random(seed)
    inputs = figure.FIGURE.random_inputs(rng)
    inputs |= {f"sample{i}": ", ".join(str(round(rng.uniform(-1.5, 1.5), 2)) for _ in range(4)) for i in (1, 2, 3)}
    inputs |= {"rate": rng.choice([0, 0.1, 1])}
    for turn, theirs in enumerate(loop(inputs)):
        if turn not in (0, 1, 7, figure.TURNS):
            continue
        mine = figure.model(inputs | {"turn": turn})
        assert theirs.pop("moved") == 1
        for name, value in theirs.items():
            assert close(mine[name], value), (turn, name)
        assert close(mine["losses"][turn], theirs["loss"])


def test_the_engine_runs_the_nodes_in_the_order_that_the_figure_names():
    torch.manual_seed(7)
    layer, ran = torch.nn.Linear(4, 2), []
    loss = torch.nn.functional.cross_entropy(layer(torch.randn(3, 4)).softmax(dim=1), torch.tensor([1, 0, 1]))
    nodes, waiting = set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in nodes:
            nodes.add(node)
            node.register_prehook(lambda grads, name=node.name(): ran.append(name))
            waiting += [before for before, _ in node.next_functions]
    loss.backward()
    said = figure.FIGURE.result()["say"][8]
    named = re.findall(r"\w+Backward0", said)
    assert [name for name in ran if name.endswith("Backward0")] == named
    assert sum("AccumulateGrad" in name for name in ran) == 2 and "AccumulateGrad" in said


def test_a_station_has_the_number_of_its_step():
    """The chapter's links and its table count as the figure does: zero_grad is 0."""
    table = re.findall(r"^\| (\d+) `([^`]+)`", CHAPTER.read_text(encoding="utf8"), re.M)
    assert [int(number) for number, _ in table] == list(range(len(figure.STATIONS)))
    assert len(figure.FIGURE.result()["say"]) == len(figure.STATIONS)
    for number, name in table:
        assert (
            figure.STATIONS[int(number)].split("::")[-1] in name or name.split("::")[-1] in figure.STATIONS[int(number)]
        )


def test_what_zero_grad_finds():
    """None in the first iteration, later the gradients of the one before."""
    assert figure.FIGURE.result(zero=False)["found"] is None
    before, now = (figure.FIGURE.result(zero=False, turn=turn) for turn in (6, 7))
    assert now["found"] == before["grad"]


@pytest.mark.parametrize("words", ["", "1 2 3", "1 2 3 4 5", "1, 2, x, 4", "nan 1 2 3", "1 2 3 11", "1e9 0 0 0"])
def test_what_is_no_sample_is_refused(words):
    with pytest.raises(figure.Refusal, match="four numbers"):
        figure.FIGURE.result(sample2=words)


def test_the_losses_that_mini_has_to_reach():
    """Those that the chapter asserts, of the program at its top; the figure starts there, too."""
    torch.manual_seed(7)
    net = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Softmax(dim=1))
    x, target = torch.randn(3, 4), torch.tensor([1, 0, 1])
    optimizer, losses = torch.optim.SGD(net.parameters(), lr=1.0), []
    for _ in range(11):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    asserted = re.findall(r"assert wanted\S+ == (.+)", CHAPTER.read_text(encoding="utf8"))
    wanted = re.findall(r"[\d.]+", " ".join(asserted))
    assert wanted == [f"{losses[i]:.5f}" for i in (0, 1, 10)]
    assert figure.FIGURE.result()["losses"][:11] == pytest.approx(losses, abs=1e-4)
