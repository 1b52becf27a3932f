"""Which kernels one operator call reaches, one after another, in PyTorch and here (the chapter "One operator call").

In PyTorch: `computeDispatchKeySet` (`aten/src/ATen/core/dispatch/DispatchKeyExtractor.h`), `OperatorEntry::lookup`, and the kernels
that call the operator again. `tests/viz/test_dispatch_calculator.py` compares the hops with those that recording kernels see.

Note [ A key set with few keys ]
As in `c10/core/DispatchKeySet.h` a set has two parts: bits of backends, and above them bits of functionalities. `Dense`, `Sparse` and
`Autograd` are one bit each, and mean a key together with the highest backend: AutogradCPU is Autograd and CPU. Taking a key away
takes its functionality and leaves the backend. Left out are the keys that none of the figure's switches sets.
"""

import json
from functools import cache
from pathlib import Path

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Refusal, Switch, Text
from readtorch.viz.picture import box, drawing, text

TABLES_FILE = Path(__file__).parents[1] / "static/models/dispatch_tables.js"

BACKENDS = ["CPU", "CUDA", "Meta"]
FUNCTIONALITIES = [
    "Dense", "Sparse", "BackendSelect", "Python", "Conjugate", "Negative", "ADInplaceOrView", "Autograd", "Tracer",
    "AutocastCPU", "AutocastCUDA", "PythonTLSSnapshot",
]  # fmt: skip
BITS = {name: 1 << bit for bit, name in enumerate(BACKENDS + FUNCTIONALITIES)}
ALL_BACKENDS = BITS["CPU"] | BITS["CUDA"] | BITS["Meta"]
PREFIX = {"Dense": "", "Sparse": "Sparse", "Autograd": "Autograd"}
ALIASES = [
    "Autograd", "CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional",
]  # fmt: skip
TENSORS = {"cpu": ("CPU", "Dense"), "sparse": ("CPU", "Sparse"), "meta": ("Meta", "Dense"), "cuda": ("CUDA", "Dense")}
KINDS = {
    "K": "own kernel", "A": "Autograd alias", "D": "default kernel", "M": "composite", "B": "fallback", "F": "fallthrough", "-": "no entry",
}  # fmt: skip


@cache
def tables():
    """What tools/dispatch_tables.py has written."""
    text = TABLES_FILE.read_text(encoding="utf8")
    return json.loads(text[text.index("{") : text.rindex("}") + 1])


# ---- sets


def key_set(*names):
    """A set of keys, given by their names. `AutogradCPU` is two bits."""
    keys = 0
    for name in names:
        keys |= BITS.get(name, 0) if name not in BACKENDS else 0
        for functionality, prefix in PREFIX.items():
            for backend in BACKENDS:
                if name == prefix + backend:
                    keys |= BITS[functionality] | BITS[backend]
    return keys


def after(key):
    """All bits below a functionality's."""
    return BITS[key] - 1


def without(keys, others):
    """Taking away concerns functionalities alone."""
    return keys & ~(others & ~ALL_BACKENDS)


def backend_of(keys):
    """The highest backend of a set, or nothing."""
    for backend in reversed(BACKENDS):
        if keys & BITS[backend]:
            return backend
    return ""


def key_of(functionality, backend):
    return PREFIX[functionality] + backend if functionality in PREFIX and backend else functionality


def highest(keys):
    """The key whose kernel runs."""
    for functionality in reversed(FUNCTIONALITIES):
        if keys & BITS[functionality]:
            return key_of(functionality, backend_of(keys))
    return "Undefined"


def names(keys):
    """The keys of a set, the highest first."""
    found = [f for f in reversed(FUNCTIONALITIES) if keys & BITS[f]]
    return [
        key_of(f, b) for f in found for b in (reversed(BACKENDS) if f in PREFIX else [""]) if not b or keys & BITS[b]
    ]


# ---- tables


def row_of(side, operator):
    """An operator's row: {key: [kind, place]}"""
    known = tables()
    if operator not in known[side]:
        return None
    entries = {}
    for key, entry in zip(known["keys"], known[side][operator].split(" "), strict=True):
        entries[key] = [entry[0], known["places"][int(entry[1:])] if len(entry) > 1 else ""]
    return entries


def entry_of(row, key):
    return row.get(key, ["-", ""])


def mask_of(row, keys):
    """The operator's mask: what is not a fallthrough on the highest backend of these keys."""
    mask = ALL_BACKENDS
    for functionality in FUNCTIONALITIES:
        if entry_of(row, key_of(functionality, backend_of(keys)))[0] != "F":
            mask |= BITS[functionality]
    return mask


# ---- the call


def is_factory(operator):
    return "x" not in tables()["calls"][operator] and "v" not in tables()["calls"][operator]


def tensor_keys(inputs):
    """What the operands carry. A factory has none."""
    if is_factory(inputs["op"]):
        return 0
    backend, layout = TENSORS[inputs["tensor"]]
    keys = BITS[backend] | BITS[layout]
    if not inputs["inference_tensor"]:
        keys |= BITS["ADInplaceOrView"] | BITS["Autograd"]
    if backend != "Meta":
        keys |= BITS[f"Autocast{backend}"]
    return keys | (BITS["Conjugate"] if inputs["conj"] else 0) | (BITS["Negative"] if inputs["neg"] else 0)


def carried_keys(side, inputs):
    """Keys of the operands. For a factory readtorch's call puts those of `device` in their place."""
    if side == "readtorch" and is_factory(inputs["op"]):
        backend, layout = TENSORS[inputs["tensor"]]
        return BITS[backend] | BITS[layout]
    return tensor_keys(inputs)


def thread_sets(inputs):
    """What the thread adds, and what it takes away."""
    include, exclude = key_set("BackendSelect", "ADInplaceOrView"), key_set("AutocastCPU", "AutocastCUDA")
    if inputs["inference_mode"]:
        include, exclude = without(include, BITS["ADInplaceOrView"]), exclude | BITS["Autograd"]
    if inputs["mode"]:
        include |= key_set("Python", "PythonTLSSnapshot")
    if inputs["tracing"]:
        include |= BITS["Tracer"]
    if inputs["autocast"]:
        exclude = without(exclude, key_set("AutocastCUDA" if inputs["tensor"] == "cuda" else "AutocastCPU"))
    return include | read_keys(inputs["included"], True), exclude | read_keys(inputs["excluded"], False)


def read_keys(written, adding):
    """Keys that the reader names. Raises Refusal."""
    keys = 0
    for name in written.replace(",", " ").split():
        if name in ALIASES:
            raise Refusal(f"{name} is an alias for several keys and no bit of a set. AutogradCPU is one.")
        if not key_set(name) or name in PREFIX:
            raise Refusal(f"{name} is none of this figure's keys, such as AutogradCPU, ADInplaceOrView, Conjugate.")
        if adding and name in ("Python", "PythonTLSSnapshot"):
            raise Refusal(f"{name} comes with a mode, and without one is an error: switch the dispatch mode on.")
        keys |= key_set(name)
    return keys


def set_left(side, inputs):
    """What is left of all keys after the thread's sets and the operator's mask: the set of the call."""
    keys = without(carried_keys(side, inputs) | thread_sets(inputs)[0], thread_sets(inputs)[1])
    return keys & mask_of(row_of(side, inputs["op"]), keys)


def walk(side, inputs):
    """The hops of a call: [{key, kind, place, keys, how, does}], the last of which ends it."""
    row = row_of(side, inputs["op"])
    if row is None:
        return []
    carried, (include, exclude) = carried_keys(side, inputs), thread_sets(inputs)

    def call():
        keys = without(carried | include, exclude)
        return keys & mask_of(row, keys)

    keys, how, hops = call(), "call", []
    while keys is not None and len(hops) < 20:
        key = highest(keys)
        kind, place = entry_of(row, key)
        if side == "readtorch" and goes_on_at_once(inputs, kind, key, keys):
            keys &= after("Autograd")
            continue
        if side == "readtorch" and key == "BackendSelect":  # the backend is known already
            keys &= after(key)
            continue
        if side == "readtorch" and kind == "-" and key in BITS and key not in BACKENDS:
            keys &= after(key)
            continue
        hop = {"key": key, "kind": KINDS[kind], "place": place, "keys": names(keys), "how": how}
        hops.append(hop)
        how = "redispatch"
        if kind == "-":
            hop["does"], keys = missing(inputs, key), None
        elif kind in "DM" or key in BACKENDS or key == "Undefined" or key.startswith("Sparse"):
            hop["does"], keys = ends(side, inputs, kind, key, place), None
        elif key.startswith("Autocast"):
            hop["does"] = (
                "It casts the operands where the operator's policy says so, takes its key away for this thread, and calls the operator from the top."
            )
            how, exclude = "call", exclude | BITS[key]
            keys = call()
        elif key == "Python":
            hop["does"] = (
                "It calls the mode. A mode that runs func(*args) calls the operator from the top, without itself and without any key above Python."
            )
            how, include = "call", key_set("BackendSelect", "ADInplaceOrView")
            exclude |= ~after("Python") & ~BITS["Python"]
            keys = call()
        elif key.startswith("Autograd"):
            hop["does"], goes_on = autograd(inputs)
            keys = keys & after("Autograd") if goes_on else None
        elif key == "BackendSelect":
            backend, layout = TENSORS[inputs["tensor"]]
            keys = BITS[backend] | BITS[layout]
            hop["does"] = (
                f"It makes the key set anew, from device, layout and dtype of the new tensor: {key_of(layout, backend)} alone."
            )
        else:
            hop["does"] = DOES[key] if key != "ADInplaceOrView" else in_place_or_view(inputs)
            keys &= after(key)
    return hops


def goes_on_at_once(inputs, kind, key, keys):
    """Notes [ Hops that do nothing ] and [ Fused kernels of compositions ] of readtorch's operator_entry.py."""
    if not key.startswith("Autograd") or records(inputs):
        return False
    seen = keys & (BITS["Python"] | BITS["Conjugate"] | BITS["Negative"])
    return kind == "A" or kind == "M" and inputs["op"] in tables()["fused"] and not seen


DOES = {
    "PythonTLSSnapshot": "It writes down the thread's sets as they are now, for the mode, and goes on below its key.",
    "Tracer": "It writes the call into the graph that is being traced, and goes on below its key.",
    "Negative": "It replaces operands that have the bit by copies in which the sign is computed, and goes on below its key.",
    "Conjugate": "It replaces operands that have the bit by copies in which the conjugate is computed, and goes on below its key.",
}


def is_in_place(operator):
    return operator.split(".")[0].endswith("_")


def records(inputs):
    return inputs["requires_grad"] and not inputs["no_grad"] and not is_factory(inputs["op"])


def autograd(inputs):
    """What the generated kernel does, and whether it goes on."""
    if records(inputs) and inputs["op"].endswith(".out"):
        return "An operand requires grad, and a result that is given cannot have a history: RuntimeError.", False
    if records(inputs):
        return (
            "An operand requires grad: it notes what backward() will need, around the call that goes on below Autograd.",
            True,
        )
    why = (
        "Under no_grad it notes nothing"
        if inputs["requires_grad"] and inputs["no_grad"]
        else "It finds no operand that requires grad"
    )
    return f"{why}, and goes on below Autograd.", True


# Structured operators whose out= form has another overload name than `out`.
OUT_FORMS = {"pow.Tensor_Scalar": "Tensor_Scalar_out", "eq.Tensor": "Tensor_out", "sum.dim_IntList": "IntList_out"}


def out_form(operator):
    """The operator that the default kernel of a structured operator calls."""
    return f"{operator.split('.')[0].removesuffix('_')}.{OUT_FORMS.get(operator, 'out')}"


def in_place_or_view(inputs):
    written = is_in_place(inputs["op"]) or inputs["op"].endswith(".out")
    if written and inputs["inference_tensor"] and not inputs["inference_mode"]:
        return "It calls the kernel below its key, which writes; then it raises RuntimeError, for an inference tensor has no version counter."
    if not written and inputs["inference_tensor"]:
        return "It calls the kernel below its key; of an inference tensor it notes nothing."
    after_it = "counts the write in the version counter" if written else "notes of which tensor the result is a view"
    return f"It calls the kernel below its key, and then {after_it}."


def missing(inputs, key):
    name = f"aten::{inputs['op']}"
    if key == "Undefined":
        return f"{name} has no entry for an empty set: the error says that there were no tensor arguments."
    return f"NotImplementedError: Could not run '{name}' with arguments from the '{key}' backend."


def ends(side, inputs, kind, key, place):
    """What the last kernel does."""
    if "NonFunctional" in place:
        out = out_form(inputs["op"])
        fails = {
            "CUDA": f" In this build {out} has no entry at CUDA: NotImplementedError, could not run 'aten::{out}'.",
            "Undefined": f" {out} has no entry at Undefined: NotImplementedError, there were no tensor arguments.",
        }
        return (
            "It serves every backend without a kernel of its own: it works out the result's sizes and calls the out= form, from the top."
            + fails.get(key, "")
        )
    if side == "readtorch" and kind == "M" and not key.startswith("Autograd") and inputs["op"] in tables()["fused"]:
        return "It does the work of all parts at once, where nobody would see them."
    inner = tables()["inner"].get(inputs["op"], []) if side == "torch" else []
    if kind in "DM":
        calls = " and ".join(inner) if len(inner) < 3 else ", ".join(inner[:-1]) + " and " + inner[-1]
        what = "It is composite" if kind == "M" else "It serves every backend without a kernel of its own"
        return (
            f"{what}: it calls {calls}, from the top." if inner else f"{what}: it calls other operators, from the top."
        )
    return "It works out the result's sizes and strides, and nothing else." if key == "Meta" else "It computes."


def model(inputs):
    if inputs["tensor"] == "sparse" and (inputs["conj"] or inputs["neg"]):
        raise Refusal(
            "Of a sparse tensor conj() computes the numbers at once, and _neg_view refuses: neither key can be set."
        )
    operator = inputs["op"]
    carried, (include, exclude) = tensor_keys(inputs), thread_sets(inputs)
    row = row_of("torch", operator)
    all_keys = without(carried | include, exclude)
    left = all_keys & mask_of(row, all_keys)
    through = names(all_keys & ~mask_of(row, all_keys) | all_keys & ALL_BACKENDS)
    hops, ours = walk("torch", inputs), walk("readtorch", inputs)
    return {
        "carried": names(carried),
        "included": names(include),
        "taken": taken_away(carried, include, exclude),
        "through": through,
        "left": names(left),
        "rows": shown_rows(inputs, carried, include, exclude, left, through, hops, ours),
        "hops": hops,
        "ours": ours,
        "known": row_of("readtorch", operator) is not None,
        "say": [first_sentence(operator, carried, include, exclude, through, left), *map(hop_sentence, hops)],
    }


def taken_away(carried, include, exclude):
    return names((carried | include) & (exclude | ALL_BACKENDS))


def listed(found):
    return ", ".join(found) if found else "nothing"


def first_sentence(operator, carried, include, exclude, through, left):
    taken = taken_away(carried, include, exclude)
    skipped = f" {operator} falls through at {listed(through)}." if through else ""
    operands = f"The operands carry {listed(names(carried))}" if carried else "There is no operand"
    return (
        f"{operands}; the thread adds {listed(names(include))} and takes away {listed(taken)}.{skipped} "
        f"Left: {listed(names(left))}."
    )


def hop_sentence(hop):
    where = f" ({hop['place']})" if hop["place"] else ""
    return f"{hop['key']}, {hop['kind']}{where}. {hop['does']}"


def shown_rows(inputs, carried, include, exclude, left, through, hops, ours):
    """A line for each key that may matter, the highest first."""
    backend, layout = TENSORS[inputs["tensor"]]
    keys = (
        ["PythonTLSSnapshot"] + ([f"Autocast{backend}"] if backend != "Meta" else []) + ["Tracer", f"Autograd{backend}"]
    )
    keys += [
        "ADInplaceOrView",
        "Negative",
        "Conjugate",
        "Python",
        "BackendSelect",
        key_of(layout, backend),
        "Undefined",
    ]
    visited = [hop["key"] for hop in hops + ours]
    keys += dict.fromkeys(key for key in visited if key not in keys)
    rows = []
    for key in keys:
        bit = bit_of(key)
        rows.append({
            "key": key,
            "carried": bool(carried & bit),
            "included": bool(include & bit),
            "excluded": bool(exclude & bit),
            "skipped": key in through,
            "left": bool(left & bit),
            "torch": side_of("torch", inputs, key, hops),
            "ours": side_of("readtorch", inputs, key, ours),
        })  # fmt: skip
    return [row for row in rows if row["key"] != "Undefined" or "Undefined" in visited]


def bit_of(key):
    """The functionality of a key."""
    return key_set(key) & ~ALL_BACKENDS


def side_of(side, inputs, key, hops):
    row = row_of(side, inputs["op"])
    return {
        "entry": KINDS[entry_of(row, key)[0]] if row else "",
        "hops": [number + 1 for number, hop in enumerate(hops) if hop["key"] == key],
    }


def picture(result, step):
    parts = [text("key", 10, 18, "dim"), text("carried, added, taken", 160, 18, "dim"), text("PyTorch", 320, 18, "dim")]
    now = result["hops"][step - 1]["key"] if step else ""
    for line, row in enumerate(result["rows"]):
        y = 28 + 24 * line
        marks = [
            mark
            for mark, fact in (("x", "carried"), ("+", "included"), ("−", "excluded"), ("skipped", "skipped"))
            if row[fact]
        ]
        numbers = ", ".join(map(str, row["torch"]["hops"]))
        colour = "pick" if row["key"] == now else "pale" if row["left"] else "free"
        parts += [box(10, y, 140, 20, colour, row["key"]), text(" ".join(marks), 160, y + 15, "mono")]
        parts += [text(f"{row['torch']['entry']}{': hop ' + numbers if numbers else ''}", 320, y + 15, "mono")]
    return drawing(560, 36 + 24 * len(result["rows"]), *parts)


def sample(random):
    some = random.choice(
        [
            "",
            "",
            "AutogradCPU",
            "ADInplaceOrView",
            "Conjugate, Negative",
            "CPU",
            "Tracer AutocastCPU",
            "Autograd",
            "Python",
            "x",
        ]
    )
    other = random.choice(
        [
            "",
            "",
            "AutogradCPU",
            "ADInplaceOrView",
            "Conjugate, Negative",
            "CUDA",
            "Tracer AutocastCPU",
            "SparseCPU",
            "Python",
        ]
    )
    off = ["conj", "neg"] if random.random() < 0.5 else []
    return {"excluded": some, "included": other} | {name: False for name in off}


FIGURE = Figure(
    name="dispatch_calculator",
    title="From key sets to kernels",
    inputs=(
        Choice("op", "operator", "add.Tensor", options=list(tables()["calls"])),
        Choice("tensor", "operands", "cpu", options={"cpu": "dense, on the CPU", "sparse": "sparse, on the CPU", "meta": "on meta", "cuda": "dense, on CUDA"}),
        Switch("requires_grad", "requires_grad (no leaf)", False, hint="results of others: at Autograd a leaf that requires grad refuses to be written in place"),
        Switch("inference_tensor", "inference tensor", False, hint="operands that were made under inference_mode"),
        Switch("conj", "conj bit", False),
        Switch("neg", "neg bit", False),
        Switch("no_grad", "no_grad", False),
        Switch("inference_mode", "inference_mode", False),
        Switch("mode", "dispatch mode", False, hint="a TorchDispatchMode that runs func(*args, **kwargs)"),
        Switch("autocast", "autocast", False, hint="for the operands' device"),
        Switch("tracing", "tracing", False, hint="torch.jit.trace is under way"),
        Text("included", "add", "", longest=60, hint="keys for the thread's include set", examples=("Conjugate", "AutocastCPU", "CUDA")),
        Text("excluded", "take away", "", longest=60, hint="keys for the thread's exclude set", examples=("ADInplaceOrView", "AutogradCPU", "CPU")),
    ),
    model=model,
    picture=picture,
    helpers=("models/dispatch_tables",),
    sample=sample,
)  # fmt: skip
