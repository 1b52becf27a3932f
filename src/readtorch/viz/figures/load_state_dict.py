"""What `load_state_dict` makes of names and shapes (the chapter "state_dict, save and load").

The model is always Sequential(Linear(4, 3), ReLU(), Linear(3, 2)); the reader writes the checkpoint, a name and a
shape in a line. What is copied follows from name and shape alone; what is said, in PyTorch's words, does too.
"""

from __future__ import annotations

import re

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Refusal, Switch, Text
from readtorch.viz.picture import box, drawing, text

OWN = {"0.weight": [3, 4], "0.bias": [3], "2.weight": [2, 3], "2.bias": [2]}
CHILDREN = ("0", "1", "2")
CHECKPOINTS = {
    "head": "0.weight 3 4\n0.bias 3\n2.weight 5 3\n2.bias 5",
    "same": "0.weight 3 4\n0.bias 3\n2.weight 2 3\n2.bias 2",
    "compiled": "_orig_mod.0.weight 3 4\n_orig_mod.0.bias 3\n_orig_mod.2.weight 2 3\n_orig_mod.2.bias 2",
    "renamed": "first.weight 3 4\nfirst.bias 3\n2.weight 2 3\n2.bias 2",
    "longer": "0.weight 3 4\n0.bias 3\n2.weight 2 3\n2.bias 2\n4.weight 1 2\n4.bias 1",
    "one": "0.weight 3 4\n0.bias 3\n2.weight 1 3\n2.bias 1",
    "body": "0.weight 3 4\n0.bias 3",
}
NAMES = {
    "head": "with another head",
    "same": "of the same model",
    "compiled": "of the model, compiled",
    "renamed": "with a layer renamed",
    "longer": "with a layer more",
    "one": "with one output, which would broadcast",
    "body": "without the head",
    "own": "your own",
}
MOST_NAMES, LONGEST = 12, 600
LINE = re.compile(r"""["']?([A-Za-z0-9_.-]+)["']?[ \t]*:?[ \t]*(?:torch\.Size)?[(\[]*([0-9, \t]*)[)\]]*,?""")


def read_checkpoint(written):
    """{name: shape} of the lines. Raises Refusal."""
    found = {}
    for line in re.split(r"[;\n]", written):
        line = line.strip(" \t\r")
        if not line:
            continue
        match = LINE.fullmatch(line)
        sizes = re.findall("[0-9]+", match[2]) if match else []
        if not match or len(sizes) > 5 or any(len(size) > 4 for size in sizes):
            raise Refusal(f"A line is a name and its sizes, such as 0.weight 3 4. Not understood: {line[:40]}")
        found[match[1]] = [int(size) for size in sizes]
    if len(found) > MOST_NAMES:
        raise Refusal(f"There is room for {MOST_NAMES} names.")
    return found


def is_unexpected(rest, children, own):
    """Whether a module has nothing of this name, the prefix taken off: neither a tensor nor a child."""
    first, dot, _ = rest.partition(".")
    return first not in children if dot else first not in own


def unexpected_names(saved):
    """In the order in which the modules find them: the root first, which looks at the first part alone."""
    found = []
    for prefix, children in [("", CHILDREN), *((f"{child}.", ()) for child in CHILDREN)]:
        own = [name.removeprefix(prefix) for name in OWN if name.startswith(prefix)] if prefix else []
        rests = [name.removeprefix(prefix) for name in saved if name.startswith(prefix)]
        rests.sort(key=lambda rest: rest != "_extra_state")  # which is asked for before all others
        found += [prefix + rest for rest in rests if is_unexpected(rest, children, own)]
    return found


def size_words(shape):
    return f"torch.Size([{', '.join(map(str, shape))}])"


def quoted_names(names):
    return ", ".join(f'"{name}"' for name in names)


def list_words(names):
    return "[" + ", ".join(f"'{name}'" for name in names) + "]"


def verdict(name, saved):
    if name not in OWN:
        return "unexpected"
    if name not in saved:
        return "missing"
    return "copied" if saved[name] == OWN[name] else "shape"


def report(saved, strict):
    """The lines of the error; none where load_state_dict returns."""
    missing, unexpected = [name for name in OWN if name not in saved], unexpected_names(saved)
    lines = [f"Missing key(s) in state_dict: {quoted_names(missing)}."] if strict and missing else []
    lines += [f"Unexpected key(s) in state_dict: {quoted_names(unexpected)}."] if strict and unexpected else []
    lines += [
        f"size mismatch for {name}: copying a param with shape {size_words(saved[name])} from checkpoint, "
        f"the shape in current model is {size_words(shape)}."
        for name, shape in OWN.items()
        if name in saved and saved[name] != shape
    ]
    if lines:
        return ["RuntimeError: Error(s) in loading state_dict for Sequential:", *lines], True
    if not missing and not unexpected:
        return ["<All keys matched successfully>"], False
    return [f"_IncompatibleKeys(missing_keys={list_words(missing)}, unexpected_keys={list_words(unexpected)})"], False


def model(inputs):
    written = inputs["written"] if inputs["checkpoint"] == "own" else CHECKPOINTS[inputs["checkpoint"]]
    saved = read_checkpoint(written)
    names = [*OWN, *(name for name in saved if name not in OWN)]
    rows = [
        {"name": name, "own": OWN.get(name), "saved": saved.get(name), "verdict": verdict(name, saved)}
        for name in names
    ]
    lines, raised = report(saved, inputs["strict"])
    copied = sum(row["verdict"] == "copied" for row in rows)
    count = f"{copied} of the model's {len(OWN)} tensors"
    are = "is" if copied == 1 else "are"
    say = f"An error is raised, and {count} {are} loaded." if raised else f"No error: {count} {are} loaded."
    return {"written": written, "rows": rows, "lines": lines, "raised": raised, "say": say}


def shape_words(shape):
    return "none" if shape is None else f"[{', '.join(map(str, shape))}]"


def picture(result, step):
    """The names, what either side has, and what happens."""
    parts = [text(words, x, 16, "dim") for words, x in (("name", 10), ("model", 230), ("checkpoint", 330), ("", 440))]
    kinds = {"copied": "pale", "shape": "gold", "missing": "free", "unexpected": "free"}
    for row, one in enumerate(result["rows"]):
        y = 24 + 24 * row
        parts.append(box(6, y, 210, 20, "plain", one["name"]))
        parts += [
            box(226, y, 94, 20, "plain", shape_words(one["own"])),
            box(326, y, 94, 20, "plain", shape_words(one["saved"])),
        ]
        parts.append(box(430, y, 110, 20, kinds[one["verdict"]], one["verdict"]))
    return drawing(550, 34 + 24 * len(result["rows"]), *parts)


def sample(random):
    """Checkpoints of random lines: names of the model, changed ones, and shapes of both kinds."""
    names = [
        *OWN,
        *OWN,
        "0",
        "0.",
        "1.x",
        "2.weight.x",
        "module.0.weight",
        "_extra_state",
        "2._extra_state",
        "5.bias",
        "x-y",
    ]
    lines = []
    for _ in range(random.randrange(7)):
        name = random.choice(names)
        shape = (
            OWN[name]
            if name in OWN and random.random() < 0.7
            else [random.randrange(5) for _ in range(random.randrange(4))]
        )
        form = random.choice(["{} {}", "{}: {}", '"{}": [{}],', "{} torch.Size([{}])", " {} ({})", "{}={}"])
        lines.append(form.format(name, ", ".join(map(str, shape))))
    written = random.choice(["\n", "; "]).join(lines)
    return {"checkpoint": random.choice(["own"] * 6 + list(NAMES)), "written": written}


FIGURE = Figure(
    name="load_state_dict",
    title="load_state_dict, name by name",
    inputs=(
        Choice("checkpoint", "checkpoint", "head", options=NAMES),
        Switch("strict", "strict", True),
        Text("written", "names", "0.weight 3 4", longest=LONGEST, hidden=True, undone=True, only=("checkpoint", "own")),
    ),
    model=model,
    picture=picture,
    sample=sample,
)
