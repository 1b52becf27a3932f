"""One training step with the reader's own three samples, station by station (the chapter "One training step, end to end").

PyTorch has no such file. The arithmetic is that of `linear`, `softmax`, `cross_entropy`, their derivatives and SGD, in float64.
"""

from __future__ import annotations

import math

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import NUMBER, Choice, Integer, Number, Refusal, Switch, Text
from readtorch.viz.picture import box, drawing, text

TURNS = 50  # of the loop, after the first one
BOUND = 10  # of a feature
# What torch.manual_seed(7); torch.nn.Linear(4, 2) starts from.
WEIGHT = [[0.03492254, -0.30119681, 0.15921170, 0.15689027], [-0.26723844, -0.07493860, -0.29291397, 0.12973636]]
BIAS = [-0.13468385, 0.35126835]
STATIONS = (
    "Optimizer.zero_grad", "Module.__call__", "THPVariable_linear", "native::linear", "VariableType::addmm", "wrapper_CPU_addmm",
    "cross_entropy_loss", "Tensor.backward", "Engine::evaluate_function", "SoftmaxBackward0::apply", "AccumulateGrad",
    "SGD.step", "ADInplaceOrView::add_",
)  # fmt: skip


# ---- the arithmetic, on lists of lists


def numbers(words: str) -> list[float]:
    """The four features that a text means. Raises Refusal."""
    parts = words.replace(",", " ").split()
    if len(parts) != 4 or not all(NUMBER.fullmatch(part) and abs(float(part)) <= BOUND for part in parts):
        raise Refusal(f"A sample is four numbers from -{BOUND} to {BOUND}, such as 0.5, -1, 2, 0.")
    return [float(part) for part in parts]


def log_softmax(row: list[float]) -> list[float]:
    largest = max(row)
    total = sum(math.exp(value - largest) for value in row)
    return [value - largest - math.log(total) for value in row]


def softmax_backward(grad: list[float], result: list[float]) -> list[float]:
    dot = sum(g * p for g, p in zip(grad, result, strict=True))
    return [p * (g - dot) for g, p in zip(grad, result, strict=True)]


def linear(x, weight, bias) -> list[list[float]]:
    return [
        [sum(a * w for a, w in zip(row, ws, strict=True)) + b for ws, b in zip(weight, bias, strict=True)] for row in x
    ]


def forward(x, labels, weight, bias, softmax: bool) -> dict:
    """What stations 1 to 6 compute."""
    z = linear(x, weight, bias)
    p = [[math.exp(value) for value in log_softmax(row)] for row in z] if softmax else z
    logq = [log_softmax(row) for row in p]
    loss = -sum(row[label] for row, label in zip(logq, labels, strict=True)) / 3 + 0
    right = sum((row[1] > row[0]) == (label == 1) for row, label in zip(p, labels, strict=True))
    return {"z": z, "p": p, "logq": logq, "loss": loss, "right": right}


def backward(x, labels, passed: dict, softmax: bool) -> dict:
    """The gradients, as stations 7 to 10 compute them."""
    picked = [[-1 / 3 if column == label else 0 for column in (0, 1)] for label in labels]
    to_p = [
        [g - math.exp(q) * sum(grads) for g, q in zip(grads, row, strict=True)]
        for grads, row in zip(picked, passed["logq"], strict=True)
    ]
    to_z = [softmax_backward(g, p) for g, p in zip(to_p, passed["p"], strict=True)] if softmax else to_p
    to_weight = [[sum(to_z[i][c] * x[i][f] for i in range(3)) for f in range(4)] for c in (0, 1)]
    to_bias = [sum(row[c] for row in to_z) for c in (0, 1)]
    return {"toLogq": picked, "toP": to_p, "toZ": to_z, "toWeight": to_weight, "toBias": to_bias}


def plus(one: list, other: list, factor: float = 1) -> list:
    """one + factor * other, for vectors and matrices."""
    if isinstance(one, list):
        return [plus(a, b, factor) for a, b in zip(one, other, strict=True)]
    return one + factor * other


# ---- the loop


def model(inputs: dict) -> dict:
    """All turns of the loop, and everything that was computed in the chosen one."""
    x = [numbers(inputs[f"sample{i}"]) for i in (1, 2, 3)]
    labels = [int(inputs[f"label{i}"]) for i in (1, 2, 3)]
    softmax, rate = inputs["softmax"], inputs["rate"]
    weight, bias, grad = WEIGHT, BIAS, None
    losses, chosen = [], {}
    for turn in range(TURNS + 1):
        passed = forward(x, labels, weight, bias, softmax)
        grads = backward(x, labels, passed, softmax)
        arrived = [grads["toWeight"], grads["toBias"]]
        adds = grad is not None and not inputs["zero"]
        found = grad
        grad = plus(grad, arrived) if adds else arrived
        after = plus([weight, bias], grad, -rate)
        losses.append(passed["loss"])
        if turn == inputs["turn"]:
            chosen = {"x": x, "labels": labels, "weight": weight, "bias": bias, **passed, **grads}
            chosen |= {"found": found, "grad": grad, "after": after, "adds": adds, "version": turn + 1}
        weight, bias = after
    result = {
        **chosen,
        "turn": inputs["turn"],
        "softmax": softmax,
        "zero": inputs["zero"],
        "rate": rate,
        "losses": losses,
    }
    return {**result, "say": sentences(result)}


def sentences(r: dict) -> list[str]:
    """What happens at each station."""
    four = lambda row: ", ".join(f"{value:.4f}" for value in row)
    name = "SoftmaxBackward0" if r["softmax"] else "LogSoftmaxBackward0"
    forward_ends = (
        f"The softmax in forward makes {four(r['p'][0])} of them."
        if r["softmax"]
        else "forward returns them as they are."
    )
    return [
        "Optimizer.zero_grad sets both gradients to None; it writes no zeros." if r["zero"]
        else "Nobody calls zero_grad: the gradients stay as they are.",
        f"Module.__call__ passes three samples to forward, in iteration {r['turn']} of the loop.",
        "The binding unpacks three tensors: input of 3 by 4, weight of 2 by 4, bias of 2.",
        "linear asks for addmm of bias, x and the transposed weight, a view of 4 by 2.",
        "AddmmBackward0 keeps x for the gradient of the weight. It does not keep the weight, for x needs no gradient.",
        f"The kernel computes the scores; those of sample 1 are {four(r['z'][0])}. {forward_ends}",
        f"log_softmax, then each sample's class is picked: the loss is {r['loss']:.4f}, with {r['right']} of 3 right.",
        "The walk begins with the derivative of the loss by itself, which is 1.",
        "The engine runs NllLossBackward0, LogSoftmaxBackward0, "
        + ("SoftmaxBackward0, " if r["softmax"] else "")
        + "AddmmBackward0 and TBackward0, and an AccumulateGrad for bias and weight.",
        f"{name} turns the gradient of its result into that of its input, the scores.",
        "AccumulateGrad adds to the gradients that are there." if r["adds"]
        else "AccumulateGrad finds no gradient there and stores what arrives.",
        f"SGD asks for add_ of each gradient with alpha = {0 - r['rate']:.4f}.",
        f"The weight is overwritten in place, and its version goes from {r['version']} to {r['version'] + 1}.",
    ]  # fmt: skip


# ---- still, and random


def picture(result: dict, step: int) -> str:
    """The stations, one below the other, and the loss."""
    parts = []
    for i, name in enumerate(STATIONS):
        x, y = 10 + 250 * (i // 7), 34 * (i % 7) + 10
        parts.append(box(x, y, 230, 26, "pick" if i == step else "pale", f"{i}  {name}"))
    words = f"loss {result['loss']:.4f} in iteration {result['turn']}, {result['losses'][-1]:.4f} in iteration {TURNS}"
    return drawing(500, 274, *parts, text(words, 10, 266))


def sample(random) -> dict:
    """Samples that can be told apart or not, and now and then one that is refused."""
    drawn = {"rate": random.choice([0, 0.1, 0.5, 1])}
    for i in (1, 2, 3):
        four = ", ".join(str(round(random.uniform(-1.5, 1.5), 2)) for _ in range(4))
        drawn[f"sample{i}"] = random.choice([four] * 36 + ["1 2 3", "1, 2, 3, x", "1 2 3 11", "-.5 1e-1, +0, 1."])
    return drawn


FIGURE = Figure(
    name="training_step",
    title="One step with your three samples",
    inputs=(
        Text("sample1", "sample 1", "0.4457 -0.7068 -1.5750 -0.6318"),
        Choice("label1", "class", "1", options=["0", "1"]),
        Text("sample2", "sample 2", "0.0212 -0.3602 0.5662 0.2142"),
        Choice("label2", "class", "0", options=["0", "1"]),
        Text("sample3", "sample 3", "0.4963 0.1196 0.0938 -0.1334"),
        Choice("label3", "class", "1", options=["0", "1"]),
        Number("rate", "learning rate", 1.0, low=0, high=10),
        Integer("turn", "iteration", 0, low=0, high=TURNS, slider=True),
        Switch("softmax", "softmax in forward", True),
        Switch("zero", "zero_grad", True),
    ),
    model=model,
    picture=picture,
    sample=sample,
)
