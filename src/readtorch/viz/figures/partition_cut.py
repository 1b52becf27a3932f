"""A short program, its joint graph, and the minimum cut through it (the chapter "AOTAutograd").

The model is the real thing: `readtorch._functorch` traces the program on fake tensors and its partitioner cuts the graph. What
stands in `static/models/partition_cut.js` follows both; `tests/viz/test_partition_cut.py` compares the cuts with PyTorch's.

In PyTorch: `torch/_functorch/partitioners.py`.
"""

import contextlib
import math
import operator

import readtorch
from readtorch._functorch import config, partitioners
from readtorch._functorch._aot_autograd.schemas import AOTConfig
from readtorch._functorch.aot_autograd import create_aot_dispatcher_function
from readtorch._functorch.compile_utils import get_aten_target
from readtorch._subclasses import FakeTensorMode
from readtorch._tensor import Tensor
from readtorch.c10.tensor_impl import storage_impl
from readtorch.fx import Node
from readtorch.viz.figure_kit import Figure
from readtorch.viz.graph_layout import layered_layout
from readtorch.viz.inputs import Expression, Integer, Number, Refusal, Switch, Text
from readtorch.viz.line_programs import Language, is_number, names_in
from readtorch.viz.picture import box, drawing, tag, text
from readtorch.viz.wording import counted, size_text

FIRST = "h = x @ w + b; a = gelu(h) * sigmoid(h); y = layer_norm(a @ v + x)"
EXAMPLES = (
    "h = x @ w; a = gelu(h); y = a * x + softmax(h)",
    "h = gelu(x @ w + b); a = exp(h) * 2; s = a / sum(a); y = s @ v + x",
    "y = tanh(sigmoid(exp(x)) * x)",
    "h = layer_norm(x + dropout(relu(x @ w) @ v)); y = gelu(h @ w)",
    "a = relu(x @ w); c = relu(a @ w); d = relu(c @ w); y = d * a",
)
INPUTS = ("x", "w", "v", "b")
LARGEST, MOST_OPERATORS, ELEMENT = 4096, 16, 4  # of a size; of a program; bytes
FUNCTIONS = (
    "relu",
    "gelu",
    "silu",
    "sigmoid",
    "tanh",
    "exp",
    "sin",
    "cos",
    "softmax",
    "layer_norm",
    "sum",
    "dropout",
    "t",
    "view",
)
SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "@": operator.matmul}
ALLOWED = (
    "Allowed: name = …, with x, w, v, b, your names, numbers, + - * / @, parentheses, relu(…), gelu(…), silu(…), sigmoid(…), "
    "tanh(…), exp(…), sin(…), cos(…), softmax(…), layer_norm(…), sum(…), dropout(…), t(…), view(…, 8, -1), where B and W are "
    "the sizes. The last line is what is returned."
)
BANS = {
    "apart": "ban_recompute_used_far_apart",
    "materialized": "ban_recompute_materialized_backward",
    "allowlist": "ban_recompute_not_in_allowlist",
    "reductions": "ban_recompute_reductions",
}
FAR = 999  # steps from the backward: no way leads there

LANGUAGE = Language(
    {name: 2 if name == "view" else 0 for name in FUNCTIONS}, (*INPUTS, "B", "W"), MOST_OPERATORS, ALLOWED
)

# ---- running it


class Run:
    """The program on tensors. sizes: {"B": …, "W": …}"""

    def __init__(self, lines, sizes):
        self.lines, self.sizes = lines, sizes

    def __call__(self, known):
        known, made = dict(known), False
        for name, tree in self.lines:
            known[name] = result = self.value(tree, known)
            made = isinstance(tree, tuple) and tree[0] not in ("t", "view")
        if is_number(result):
            raise Refusal("The last line is a number: there is nothing to compute a gradient of.")
        if not made:
            raise Refusal(
                "The last line returns an input or a view: AOTAutograd makes these outside the graph. End with an operator."
            )
        return result

    def value(self, tree, known):
        if is_number(tree):
            return tree
        if isinstance(tree, str):
            return known[tree] if tree in known else LANGUAGE.unknown(tree)
        kind, *parts = tree
        if kind == "view":
            return self.view(self.tensor(parts[0], known), [self.size(part) for part in parts[1:]])
        if kind in SIGNS:
            return binary(kind, *(self.value(part, known) for part in parts))
        return unary(kind, self.tensor(parts[0], known))

    def tensor(self, tree, known):
        found = self.value(tree, known)
        if is_number(found):
            raise Refusal(f"{number_text(found)} is a number, and a tensor is wanted.")
        return found

    def size(self, tree):
        size = self.sizes.get(tree, tree) if isinstance(tree, str | int) else None
        if not isinstance(size, int) or size < 2 and size != -1:
            raise Refusal("view(…, n, m): a size is B, W, -1, or a whole number from 2.")
        return size

    def view(self, x, sizes):
        count, wanted = math.prod(x.shape), math.prod(size for size in sizes if size != -1)
        whole = count % wanted == 0 and count // wanted > 1 if sizes.count(-1) == 1 else count == wanted
        if not whole or sizes == [-1, -1]:
            raise Refusal(
                f"{shape_text(x.shape)} has {count:,} elements: no view of it has the sizes {shape_text(sizes)}."
            )
        try:
            return x.view(*sizes)
        except RuntimeError as error:
            raise Refusal(f"RuntimeError: {error}") from None


def binary(sign, a, b):
    words = [number_text(one) if is_number(one) else shape_text(one.shape) for one in (a, b)]
    if is_number(a) and is_number(b):
        raise Refusal(f"{words[0]} {sign} {words[1]}: Python computes this before any tensor sees it.")
    if is_number(a) and sign == "/" or sign == "@" and (is_number(a) or is_number(b)):
        raise Refusal(f"{words[0]} {sign} {words[1]}: write a tensor on both sides of {sign}.")
    if sign == "@":
        if not (len(a.shape) == len(b.shape) == 2 and 1 not in (*a.shape, *b.shape)):
            raise Refusal(f"{words[0]} @ {words[1]}: this figure multiplies matrices whose sizes are 2 or more.")
        if a.shape[1] != b.shape[0]:
            raise Refusal(f"{words[0]} @ {words[1]}: the columns of the one are not the rows of the other.")
    elif not (is_number(a) or is_number(b)) and not broadcasts(a.shape, b.shape):
        raise Refusal(f"{words[0]} {sign} {words[1]}: these sizes do not broadcast.")
    return SIGNS[sign](a, b)


def broadcasts(a, b):
    return all(n == m or 1 in (n, m) for n, m in zip(reversed(a), reversed(b)))


def unary(kind, x):
    F = readtorch.nn.functional
    if kind == "t" and len(x.shape) != 2:
        raise Refusal(f"t({shape_text(x.shape)}): this figure turns matrices alone.")
    return {
        "neg": operator.neg,
        "softmax": lambda x: readtorch.softmax(x, -1),
        "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
        "sum": lambda x: x.sum(-1, keepdim=True),
        "dropout": lambda x: F.dropout(x, 0.5),
        "gelu": F.gelu,
        "silu": F.silu,
    }.get(kind, getattr(readtorch, kind, None))(x)


def number_text(value):
    return repr(value)


def shape_text(shape):
    return f"[{', '.join(map(str, shape))}]"


def trace(lines, sizes):
    """(The joint graph, the names of its inputs)."""
    used = set().union(*(names_in(tree) for _, tree in lines))
    names = [name for name in INPUTS if name in used]
    shapes = {"x": (sizes["B"], sizes["W"]), "w": (sizes["W"],) * 2, "v": (sizes["W"],) * 2, "b": (sizes["W"],)}
    run, joints = Run(lines, sizes), []

    def keep(joint, inputs, *, num_fwd_outputs):
        joints.append(joint)
        return partitioners.default_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs)

    with FakeTensorMode():
        given = [readtorch.empty(shapes[name], requires_grad=True) for name in names]
    nothing = lambda graph_module, inputs: graph_module
    compiler = AOTConfig(nothing, None, None, keep, {}, False)
    create_aot_dispatcher_function(lambda *args: [run(zip(names, args))], given, compiler)
    return joints[0], names


# ---- the cut


@contextlib.contextmanager
def exchanged(module, **values):
    """The module with other values, for a while."""
    before = {name: getattr(module, name) for name in values}
    try:
        for name, value in values.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


class Cut:
    """A joint graph as the partitioner cuts it, and why. solved: (options, not banned for the budget, banned) of each cut tried."""

    def __init__(self, joint, static, inputs):
        self.solved, solve = [], partitioners.solve_min_cut

        def watched(graph, info, options, dont_ban=frozenset()):
            saved, banned = solve(graph, info, options, dont_ban)
            self.solved.append((options, dont_ban, banned))
            self.info = info
            return saved, banned

        settings = {setting: inputs[name] for name, setting in BANS.items()}
        with (
            exchanged(config, activation_memory_budget=inputs["budget"], **settings),
            exchanged(partitioners, solve_min_cut=watched),
        ):
            self.parts = partitioners.min_cut_rematerialization_partition(
                joint, None, num_fwd_outputs=1, static_lifetime_input_indices=static
            )
            options = partitioners.MinCutOptions.of_config()
        if not self.solved:
            self.info, self.solved = partitioners.classify_nodes(joint, static, 1), [(options, frozenset(), {})]
        self.options, self.allowed, self.banned = self.solved[-1]
        self.problem = partitioners._MinCut(self.info, self.options, self.allowed)
        self.nodes = [node for node in joint.graph.nodes if node.op != "output"]
        self.saved, self.forward, self.backward = (
            saved_by(self.parts),
            *({n.name for n in computed_in(part)} for part in self.parts),
        )

    def ban(self, node):
        """Why this result is not computed again in the backward, or "" if it may be."""
        if node.op == "placeholder" or node not in self.banned:
            return ""
        return self.problem.why_not_again(node) or "used far apart"

    def cost(self, node):
        cost = self.problem.cost_of_saving(node)
        return None if cost == math.inf else cost

    def state(self, node):
        if node.name in self.saved:
            return "saved"
        if node.op == "placeholder":
            return "tangent" if partitioners._is_tangent(node) else "input"
        first, second = node.name in self.forward, node.name in self.backward
        return "again" if first and second else "forward" if first else "backward" if second else "unused"


def saved_by(parts):
    """The nodes that the forward returns for the backward, by their names."""
    (output,) = parts[0].graph.find_nodes(op="output")
    return {node.name: node for node in output.args[0][1:]}


def computed_in(part):
    """The operators that lead to an output. FX keeps one that draws random numbers even where nothing needs it."""
    (output,) = part.graph.find_nodes(op="output")
    found, pending = set(), [output]
    while pending:
        for node in pending.pop().all_input_nodes:
            if node not in found:
                found.add(node)
                pending.append(node)
    return [node for node in part.graph.nodes if node in found and node.op == "call_function"]


# ---- memory: what is kept, and what moves

ALIASES = {"t", "view", "expand", "detach", "_unsafe_view"}


def kind_of(node):
    """The operator's name, "" for an input."""
    if node.op != "call_function":
        return ""
    return "getitem" if node.target is operator.getitem else get_aten_target(node).__name__


def bytes_of(node):
    return partitioners._size_of(node)


def storage_of(node):
    return id(storage_impl(node.meta["val"]))


def kept(parts, parameters):
    """(How many values, how many bytes). Each storage counts once, and parameters, which are there anyway, do not."""
    sizes = {}
    for node in saved_by(parts).values():
        if storage_of(node) not in parameters:
            sizes[storage_of(node)] = max(sizes.get(storage_of(node), 0), bytes_of(node))
    return len(sizes), sum(sizes.values())


def source_of(node):
    """The node that has written what this one shows."""
    while kind_of(node) in ALIASES:
        node = node.args[0]
    return node


def maker_of(node):
    """Of a part of a tuple: the operator that makes the tuple."""
    return node.args[0] if kind_of(node) == "getitem" else node


def traffic(part, fused):
    """Bytes that the kernels of a part read and write. fused: operators that the partitioner calls fusible share a kernel."""
    body = [node for node in computed_in(part) if kind_of(node) not in ("getitem", *ALIASES)]
    kernels = {node: {node} for node in body}
    uses = [(node, operand) for node in body for operand in dict.fromkeys(map(source_of, node.all_input_nodes))]
    for node, operand in uses:
        maker = maker_of(operand)
        if fused and maker in kernels and partitioners.is_fusible(maker, node):
            together = kernels[maker] | kernels[node]
            kernels.update(dict.fromkeys(together, together))
    across = [(node, operand) for node, operand in uses if kernels.get(maker_of(operand)) is not kernels[node]]
    (output,) = part.graph.find_nodes(op="output")
    needed = {source_of(node) for node in output.all_input_nodes} | {operand for _, operand in across}
    read = {(id(kernels[node]), operand) for node, operand in across}
    return sum(bytes_of(operand) for _, operand in read) + sum(bytes_of(n) for n in needed if maker_of(n) in kernels)


def row(title, parts, parameters, fused):
    count, size = kept(parts, parameters)
    forward, backward = (traffic(part, fused) for part in parts)
    return {"title": title, "count": count, "kept": size, "forward": forward, "backward": backward}


# ---- what there is to see


def argument(value):
    if isinstance(value, Node):
        return value.name
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(argument, value))}]"
    return str(value)


def drawn(node, cut, eager, names, parameters):
    value = node.meta["val"]
    is_tensor = isinstance(value, Tensor)
    inputs = dict(zip(cut.info.inputs, names))
    return {
        "name": node.name,
        "target": kind_of(node) or inputs.get(node, "gradient"),
        "args": [argument(a) for a in node.args],
        "inputs": [n.name for n in node.all_input_nodes],
        "shape": list(value.shape) if is_tensor else None,
        "bytes": bytes_of(node),
        "half": node.meta["partitioner_tag"].removeprefix("is_") if "partitioner_tag" in node.meta else "backward",
        "state": cut.state(node),
        "eager": node.name in eager,
        "parameter": is_tensor and storage_of(node) in parameters,
        "cost": cut.cost(node),
        "distance": min(cut.info.distance[node], FAR),
        "ban": cut.ban(node),
    }


def told(rows, nodes, merged, budget):
    eager, cut = rows[0], rows[-1]
    again = sum(node["state"] == "again" and node["target"] not in ("getitem", *ALIASES) for node in nodes)
    said = f"Eager keeps {counted(eager['count'], 'value')} for the backward, {size_text(eager['kept'])}. "
    said += f"The cut keeps {counted(cut['count'], 'value')}, {size_text(cut['kept'])}, "
    said += f"and the backward computes {counted(again, 'operator')} again."
    if merged:
        said += f" {counted(merged, 'node')} computed what another computes, and {'is' if merged == 1 else 'are'} merged with it."
    if budget == 0:
        said += " With a budget of 0 only inputs are kept."
    if any(node["target"] == "native_dropout" and node["state"] == "again" for node in nodes):
        said += " A dropout that is computed again draws another mask: these gradients are not those of the result."
    return said


def model(inputs):
    joint, names = trace(LANGUAGE.read(inputs["program"]), {"B": inputs["batch"], "W": inputs["width"]})
    primals = [node for node in joint.graph.find_nodes(op="placeholder") if not partitioners._is_tangent(node)]
    static = [i for i, name in enumerate(names) if name != "x"]
    parameters = {storage_of(primals[i]) for i in static}
    count = len(joint.graph.nodes)
    default = partitioners.default_partition(joint, None, num_fwd_outputs=1)
    cut = Cut(joint, static, inputs)
    nodes = [drawn(node, cut, saved_by(default), names, parameters) for node in cut.nodes]
    rows = [
        row("eager", default, parameters, fused=False),
        row("what eager keeps, fused", default, parameters, fused=True),
        row("the cut, fused", cut.parts, parameters, fused=True),
    ]
    merged = count - 1 - len(nodes)  # but the output
    return {"nodes": nodes, "rows": rows, "say": told(rows, nodes, merged, inputs["budget"])}


def links(nodes):
    """Pairs of numbers of nodes: edges, and what keeps the backward below the forward."""
    places = {node["name"]: i for i, node in enumerate(nodes)}
    edges = [(places[name], i) for i, node in enumerate(nodes) for name in node["inputs"]]
    first = places["tangents_1"]
    half = lambda i: nodes[i]["half"]
    ends = {i for i in range(len(nodes)) if half(i) == "forward"} - {a for a, b in edges if half(b) == "forward"}
    starts = {i for i in range(len(nodes)) if half(i) == "backward"} - {b for a, b in edges if half(a) == "backward"}
    return edges, [*((i, first) for i in sorted(ends)), *((first, i) for i in sorted(starts - {first}))]


def picture(result, step):
    nodes = result["nodes"]
    edges, order = links(nodes)
    layout = layered_layout([(node["name"],) for node in nodes], edges + order)
    shades = {"saved": "pick", "again": "gold", "forward": "pale", "input": "pale"}
    parts = [
        tag("path", d="M" + " L".join(f"{x},{y}" for x, y in path), class_="bare")
        for path in layout.paths[: len(edges)]
    ]
    for node, (x, y, width, height, _) in zip(nodes, layout.boxes):
        shade = "pale" if node["parameter"] and node["state"] == "saved" else shades.get(node["state"], "plain")
        parts.append(box(x - width / 2, y - height / 2, width, height, shade, node["name"]))
    parts.append(text("blue: kept for the backward; dashed: computed again there", 8, layout.height + 14, "dim"))
    return drawing(layout.width, layout.height + 24, *parts)


# ---- random programs


def random_tree(random, names, depth=0):
    kind = random.random()
    if depth > 2 or kind < 0.2:
        return random.choice(names)
    inner = random_tree(random, names, depth + 1)
    if kind < 0.55:
        other = random.choice(["2", "0.5", "b", "b", *[random_tree(random, names, depth + 1)] * 5])
        return random.choice(
            [f"({inner} {random.choice('++--**/')} {other})", f"({inner} * {other})", f"({other} + {inner})"]
        )
    if kind < 0.7:
        return f"({inner} @ {random.choice('wwwv')})"
    if kind < 0.78:
        whole = f"view(view({inner}, W, B), B, W)"
        return random.choice(
            [
                f"view({inner}, W, B)",
                f"view({inner}, -1, 2)",
                whole,
                f"(t({inner}) @ x)",
                f"(x @ t({inner}))",
                f"-{inner}",
            ]
        )
    return f"{random.choice(FUNCTIONS[:11])}({inner})"


def sample(random):
    """A program of a few lines, most of which can be run."""
    names, lines = ["x", "x"], []
    for _ in range(random.randint(0, 4)):
        name = random.choice("acdh")
        lines.append(f"{name} = {random_tree(random, names)}")
        names += [name, name]
    batch, width = (random.choice([2, 6, 64, 100, 1024, 4096]) for _ in range(2))
    program = "; ".join([*lines, f"y = {random_tree(random, names)} {random.choice('+*')} {random.choice(names)}"])
    budget = random.choice([1.0, 1.0, 0.0, 0.5, round(random.random(), 2)])
    return {"program": program, "batch": batch, "width": width, "budget": budget} | {
        ban: random.random() < 0.7 for ban in BANS
    }


FIGURE = Figure(
    name="partition_cut",
    title="A joint graph, and the cut through it",
    inputs=(
        Expression("program", "program", FIRST, longest=300, examples=EXAMPLES),
        Integer("batch", "batch B", 512, low=2, high=LARGEST),
        Integer("width", "width W", 256, low=2, high=LARGEST),
        Number("budget", "memory budget", 1.0, low=0, high=1, step=0.05, slider=True),
        Switch(
            "apart",
            "ban: used far apart",
            True,
            hint="ban_recompute_used_far_apart: do not compute again what is used early and late",
        ),
        Switch(
            "materialized",
            "ban: materialized backward",
            True,
            hint="ban_recompute_materialized_backward: do not compute again what an operator of the backward reads from memory",
        ),
        Switch(
            "allowlist",
            "ban: not in allowlist",
            True,
            hint="ban_recompute_not_in_allowlist: compute again only operators that are on the list of cheap ones",
        ),
        Switch(
            "reductions",
            "ban: reductions",
            True,
            hint="ban_recompute_reductions: do not compute again what is less than a quarter of its operands",
        ),
        Text("node", "node", "", longest=40, hidden=True),
    ),
    model=model,
    picture=picture,
    hint="Fused: operators that the partitioner calls fusible share a kernel. w, v and b are parameters: the cut saves them for nothing, and they do not count as kept.",
    helpers=("_layered", "models/line_programs", "models/partition_cut_trace"),
    sample=sample,
)
