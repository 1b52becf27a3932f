"""What one optimizer step launches and moves on a GPU, in three implementations (the chapter "torch.optim").

Kernels are counted as PyTorch cuts lists into launches, from the tables of its header; bytes, as each line reads its tensors
and writes its result once. Times are these numbers with the reader's microseconds a launch and bytes a second.
In PyTorch: `aten/src/ATen/native/cuda/MultiTensorApply.cuh`, `torch/optim/adam.py`, `sgd.py`.
`tests/viz/test_step_costs.py` counts PyTorch's own operators.
"""

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Integer, Number
from readtorch.viz.picture import drawing, tag, text

CHUNK = 65536
# tensors for depth 1, 2, …; the same where each tensor brings a number; blocks
LIMITS = {
    "12": ([110, 64, 48, 36, 30], [96, 64, 48, 36, 30], 320),
    "13": ([770, 448, 336, 252, 210], [672, 448, 336, 252, 210], 2240),
}
# the lines of a formula: (name, depth, whether each tensor brings a number, tensors read and written)
MEANS = [("lerp_", 2, False, 3), ("mul_", 1, False, 2), ("addcmul_", 3, False, 3)]
UPDATE = [("sqrt", 2, False, 2), ("div", 1, True, 2), ("add_", 1, False, 2), ("addcdiv_", 3, True, 4)]
DECAY = [("mul_", 1, False, 2)]
LINES = {
    "SGD": [("add_", 2, False, 3)],
    "momentum": [("mul_", 1, False, 2), ("add_", 2, False, 3), ("add_", 2, False, 3)],
    "Adam": MEANS + UPDATE,
    "AdamW": DECAY + MEANS + UPDATE,
    "AMSGrad": DECAY + MEANS + [("maximum", 2, False, 3)] + UPDATE,
}
FUSED = {
    "SGD": (2, 3),
    "momentum": (3, 5),
    "Adam": (4, 7),
    "AdamW": (4, 7),
    "AMSGrad": (5, 9),
}  # depth, tensors read and written
COUNTED = ("Adam", "AdamW", "AMSGrad")  # have a count of steps, and intermediate results
WORDS = {"SGD": "SGD", "momentum": "SGD, momentum", "Adam": "Adam", "AdamW": "AdamW", "AMSGrad": "AdamW, amsgrad=True"}


def launches(tensors, numbers, depth, own, version):
    """Kernels for a list of so many tensors, each of so many numbers."""
    plain, with_number, max_blocks = LIMITS[version]
    max_tensors = (with_number if own else plain)[depth - 1]
    chunks = -(-numbers // CHUNK)
    kernels = in_table = blocks = 0
    for _ in range(tensors):
        in_table += 1
        for chunk in range(chunks):
            blocks += 1
            is_last = chunk == chunks - 1
            if blocks == max_blocks or (is_last and in_table == max_tensors):
                kernels, blocks = kernels + 1, 0
                in_table = 0 if is_last else 1
    return kernels + (blocks > 0)


def model(inputs):
    kind, tensors, numbers, version = inputs["optimizer"], inputs["tensors"], inputs["numbers"], inputs["version"]
    lines, (depth, fused_passes), counted = LINES[kind], FUSED[kind], kind in COUNTED
    passes = sum(line[3] for line in lines)
    found = {}
    for _, lists, own, _ in lines:
        found[lists, own] = found.get((lists, own)) or launches(tensors, numbers, lists, own, version)
    one_kernel = launches(tensors, numbers, depth, False, version)
    if counted:
        one_kernel += launches(tensors, 1, 1, False, version)
    total = 4 * tensors * numbers
    rows = [
        row("loop", len(lines) * tensors, passes * total, 2 * 4 * numbers * counted, inputs),
        row("foreach", sum(found[lists, own] for _, lists, own, _ in lines), passes * total, total * counted, inputs),
        row("fused", one_kernel, fused_passes * total, 0, inputs),
    ]
    parts = [f"{one['way']} {one['kernels']:,}, {one['waits']}" for one in rows]
    say = f"{WORDS[kind]}, {tensors:,} × {numbers:,} numbers. Kernels launched, and what takes longer: {'; '.join(parts)}."
    return {"rows": rows, "most": max(max(one["launching"], one["moving"]) for one in rows), "say": say}


def row(way, kernels, moved, kept, inputs):
    """moved, kept: bytes. launching, moving: microseconds."""
    launching, moving = kernels * inputs["launch"], moved / (inputs["speed"] * 1e6)
    waits = "launching" if launching > moving else "moving bytes"
    return {
        "way": way,
        "kernels": kernels,
        "moved": moved,
        "kept": kept,
        "launching": launching,
        "moving": moving,
        "waits": waits,
    }


def picture(result, step):
    parts = []
    for i, one in enumerate(result["rows"]):
        y = 20 + 60 * i
        parts.append(text(f"{one['way']}: {one['kernels']:,} kernels", 10, y))
        for j, (time, look) in enumerate([(one["launching"], "gold"), (one["moving"], "pale")]):
            parts.append(
                tag("rect", x=10, y=y + 8 + 16 * j, width=f"{380 * time / result['most']:.1f}", height=12, class_=look)
            )
    return drawing(400, 190, *parts)


FIGURE = Figure(
    name="step_costs",
    title="One step, three times",
    inputs=(
        Choice("optimizer", "optimizer", "AdamW", options=WORDS),
        Choice("version", "built for", "13", options={"12": "CUDA 12", "13": "CUDA 13"}),
        Integer("tensors", "parameters", 148, low=1, high=1000),
        Integer("numbers", "numbers in each", 840_000, low=1, high=10_000_000, step=10_000),
        Number("launch", "µs a launch", 5, low=0.1, high=100, step=0.5),
        Number("speed", "TB/s of memory", 2, low=0.01, high=10, step=0.5),
    ),
    model=model,
    picture=picture,
    hint="The longer bar of a row is about the time of the step.",
)  # fmt: skip
