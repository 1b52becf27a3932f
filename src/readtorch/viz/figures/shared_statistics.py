"""Which numbers of a batch share a mean and a deviation, by normalization (the chapter "Normalization").

In PyTorch: `torch/nn/modules/batchnorm.py`, `instancenorm.py` and `normalization.py`.
`tests/viz/test_shared_statistics.py` changes one number of a batch, in PyTorch, and looks which outputs change.
"""

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Integer
from readtorch.viz.picture import box, drawing, text

SAMPLES, CHANNELS, PLACES = SIZES = (3, 4, 3)
CELLS = SAMPLES * CHANNELS * PLACES
LAYERS = {
    "batch": "BatchNorm1d(4)",
    "instance": "InstanceNorm1d(4)",
    "group": "GroupNorm(groups, 4)",
    "layer": "LayerNorm([4, 3])",
    "last": "LayerNorm(3)",
    "rms": "RMSNorm([4, 3])",
}
WEIGHTS = {"batch": "(4)", "instance": "none", "group": "(4)", "layer": "(4, 3)", "last": "(3)", "rms": "(4, 3)"}


def statistic(layer, groups, cell):
    """The number of the mean (or mean square) that this cell of the batch goes into."""
    sample, channel = cell // (CHANNELS * PLACES), cell // PLACES % CHANNELS
    if layer == "batch":
        return channel
    if layer == "group":
        return sample * groups + channel * groups // CHANNELS
    return sample if layer in ("layer", "rms") else sample * CHANNELS + channel


def model(inputs):
    layer, groups = inputs["layer"], int(inputs["groups"])
    numbers = [statistic(layer, groups, cell) for cell in range(CELLS)]
    shared = [number == numbers[inputs["cell"]] for number in numbers]
    kept = "mean square" if layer == "rms" else "mean and variance"
    bias = "weight alone" if layer == "rms" else "weight and bias"
    return {
        "shared": shared,
        "facts": [
            ["statistics", f"{max(numbers) + 1}, each of {sum(shared)} numbers"],
            [bias, WEIGHTS[layer]],
            ["buffers", "running_mean (4), running_var (4), num_batches_tracked ()" if layer == "batch" else "none"],
        ],
        "say": f"{LAYERS[layer].replace('groups', str(groups))}: the number shares its {kept} with {sum(shared) - 1} others.",
    }


def picture(result, step):
    cells = [
        box(
            10 + 110 * (cell // 12) + 30 * (cell % PLACES),
            30 + 30 * (cell // PLACES % CHANNELS),
            28,
            28,
            "pale" if shared else "",
        )
        for cell, shared in enumerate(result["shared"])
    ]
    names = [text(f"sample {sample}", 10 + 110 * sample, 20) for sample in range(SAMPLES)]
    facts = [text(f"{name}: {words}", 10, 175 + 18 * i, "mono") for i, (name, words) in enumerate(result["facts"])]
    return drawing(560, 220, *names, *cells, *facts)


FIGURE = Figure(
    name="shared_statistics",
    title="Who shares a mean?",
    inputs=(
        Choice("layer", "layer", "batch", LAYERS),
        Choice("groups", "groups", "2", ["1", "2", "4"], only=("layer", "group")),
        Integer("cell", "number", 16, low=0, high=CELLS - 1, hidden=True),
    ),
    model=model,
    picture=picture,
    hint="Choose a number by a click or the arrow keys.",
)
