"""Random programs of operators, to be run on plain tensors, on DTensors and on PyTorch's DTensors.

A program is a mesh, tensors with placements, and steps: (name of an operator, indices of its operands, numbers). `python -m
tests.distributed.dtensor_programs --count 300` runs many and says what differs.

Run with --gradients: seeds 5000 to 5329, 1,980 steps of which 28 are refused as PyTorch refuses them; none differs.
Run with --against-torch: seeds 7000 to 7249; 17 differ, where PyTorch's result would be wrong or is an error: extrema and norms of
shards of which one is empty, booleans counted as a sum, a second cut behind the mask of a lookup, attention of parts of a sequence.
"""

import argparse
import random
import warnings

import numpy as np

MESHES = [(2,), (4,), (8,), (2, 2), (2, 4), (4, 2)]


def axis(rng, x):
    return {"dim": rng.randrange(x.ndim)} if x.ndim else None


def axis_and_keep(rng, x):
    return {"dim": rng.randrange(x.ndim), "keepdim": rng.random() < 0.5} if x.ndim else None


def nothing(rng, *xs):
    return {}


def same_shapes(rng, *xs):
    return {} if len({tuple(x.shape) for x in xs}) == 1 else None


def broadcastable(rng, x, y):
    pairs = zip(reversed(x.shape), reversed(y.shape), strict=False)
    return {} if all(a == b or 1 in (a, b) for a, b in pairs) else None


def matrices(rng, x, y):
    return {} if x.ndim == y.ndim == 2 and x.shape[1] == y.shape[0] else None


def batches(rng, x, y):
    fits = x.ndim == y.ndim == 3 and x.shape[0] == y.shape[0] and x.shape[2] == y.shape[1]
    return {} if fits else None


def any_product(rng, x, y):
    fits = x.ndim >= 1 and y.ndim == 2 and x.shape[-1] == y.shape[0]
    return {} if fits else None


def a_view(rng, x):
    """Two neighbours made one, or one made two."""
    shape = list(x.shape)
    if len(shape) >= 2 and rng.random() < 0.5:
        i = rng.randrange(len(shape) - 1)
        shape[i : i + 2] = [shape[i] * shape[i + 1]]
        return {"shape": shape}
    even = [i for i, n in enumerate(shape) if n % 2 == 0 and n > 2]
    if not even:
        return None
    i = rng.choice(even)
    parts = [2, shape[i] // 2]
    rng.shuffle(parts)
    shape[i : i + 1] = parts
    return {"shape": shape}


def permutation(rng, x):
    dims = list(range(x.ndim))
    rng.shuffle(dims)
    return {"dims": dims}


def part(rng, x):
    if not x.ndim:
        return None
    dim = rng.randrange(x.ndim)
    n = x.shape[dim]
    start = rng.randrange(n)
    return {"dim": dim, "start": start, "end": rng.randrange(start, n) + 1, "step": rng.choice([1, 1, 2])}


def one_index(rng, x):
    if not x.ndim:
        return None
    dim = rng.randrange(x.ndim)
    return {"dim": dim, "index": rng.randrange(x.shape[dim])}


def some_indices(rng, x):
    if not x.ndim:
        return None
    dim = rng.randrange(x.ndim)
    return {"dim": dim, "indices": [rng.randrange(x.shape[dim]) for _ in range(rng.choice([3, 4, 8]))]}


def last_dims(rng, x):
    return {"shape": list(x.shape[-rng.choice([1, min(2, x.ndim)]) :])} if x.ndim else None


OPS = {
    # name: (operands, numbers that fit, or None, function of (torch, call, operands, numbers))
    **{
        name: (1, nothing, lambda t, c, x, name=name: getattr(t, name)(x))
        for name in "neg abs exp tanh sigmoid sin cos relu sign floor square sqrt_abs rsqrt_abs log_abs silu gelu".split()
        if "_" not in name and name not in ("silu", "gelu")
    },
    "log of abs": (1, nothing, lambda t, c, x: (x.abs() + 1).log()),
    "gelu": (1, nothing, lambda t, c, x: t.nn.functional.gelu(x)),
    "silu": (1, nothing, lambda t, c, x: t.nn.functional.silu(x)),
    "leaky relu": (1, nothing, lambda t, c, x: t.nn.functional.leaky_relu(x, 0.1)),
    "clamp": (1, nothing, lambda t, c, x: x.clamp(-1, 1)),
    "times 3": (1, nothing, lambda t, c, x: x * 3),
    "plus 1": (1, nothing, lambda t, c, x: x + 1),
    "divided by 4": (1, nothing, lambda t, c, x: x / 4),
    "2 minus": (1, nothing, lambda t, c, x: 2 - x),
    "pow": (1, nothing, lambda t, c, x: x**2),
    "add": (2, broadcastable, lambda t, c, x, y: x + y),
    "sub": (2, broadcastable, lambda t, c, x, y: x - y),
    "mul": (2, broadcastable, lambda t, c, x, y: x * y),
    "div": (2, broadcastable, lambda t, c, x, y: x / (y.abs() + 1)),
    "maximum": (2, broadcastable, lambda t, c, x, y: t.maximum(x, y)),
    "where": (2, same_shapes, lambda t, c, x, y: t.where(x > y, x, y)),
    "masked fill": (1, nothing, lambda t, c, x: x.masked_fill(x > 0, 0.5)),
    "lerp": (2, same_shapes, lambda t, c, x, y: t.lerp(x, y, 0.3)),
    "addcmul": (2, same_shapes, lambda t, c, x, y: t.addcmul(x, y, x, value=0.5)),
    "sum of all": (1, nothing, lambda t, c, x: x.sum()),
    "mean of all": (1, nothing, lambda t, c, x: x.mean()),
    "max of all": (1, nothing, lambda t, c, x: x.max()),
    "sum": (1, axis_and_keep, lambda t, c, x, dim, keepdim: x.sum(dim, keepdim)),
    "mean": (1, axis_and_keep, lambda t, c, x, dim, keepdim: x.mean(dim, keepdim)),
    "amax": (1, axis_and_keep, lambda t, c, x, dim, keepdim: x.amax(dim, keepdim)),
    "amin": (1, axis_and_keep, lambda t, c, x, dim, keepdim: x.amin(dim, keepdim)),
    "prod": (1, axis_and_keep, lambda t, c, x, dim, keepdim: (x / (x.abs() + 1)).prod(dim, keepdim)),
    "var": (1, axis_and_keep, lambda t, c, x, dim, keepdim: x.var(dim, correction=0, keepdim=keepdim)),
    "logsumexp": (1, axis_and_keep, lambda t, c, x, dim, keepdim: t.logsumexp(x, dim, keepdim)),
    "norm": (1, axis_and_keep, lambda t, c, x, dim, keepdim: t.linalg.vector_norm(x, 2, dim, keepdim)),
    "norm of all": (1, nothing, lambda t, c, x: t.linalg.vector_norm(x)),
    "largest norm": (1, nothing, lambda t, c, x: t.linalg.vector_norm(x, float("inf"))),
    "max along": (1, axis_and_keep, lambda t, c, x, dim, keepdim: x.max(dim, keepdim)[0]),
    "cumsum": (1, axis, lambda t, c, x, dim: x.cumsum(dim)),
    "sort": (1, axis, lambda t, c, x, dim: x.sort(dim)[0]),
    "topk": (1, axis, lambda t, c, x, dim: x.topk(1, dim)[0]),
    "any above": (1, axis_and_keep, lambda t, c, x, dim, keepdim: (x > 0).any(dim, keepdim).to(t.float64)),
    "argmax": (1, axis_and_keep, lambda t, c, x, dim, keepdim: x.argmax(dim, keepdim).to(t.float64)),
    "softmax": (1, axis, lambda t, c, x, dim: t.softmax(x, dim)),
    "log softmax": (1, axis, lambda t, c, x, dim: t.log_softmax(x, dim)),
    "layer norm": (1, last_dims, lambda t, c, x, shape: t.nn.functional.layer_norm(x, shape)),
    "mm": (2, matrices, lambda t, c, x, y: t.mm(x, y)),
    "bmm": (2, batches, lambda t, c, x, y: t.bmm(x, y)),
    "matmul": (2, any_product, lambda t, c, x, y: t.matmul(x, y)),
    "linear": (2, any_product, lambda t, c, x, y: t.nn.functional.linear(x, y.t())),
    "gram": (1, lambda rng, x: {} if x.ndim == 2 else None, lambda t, c, x: x @ x.t()),
    "t": (1, lambda rng, x: {} if x.ndim == 2 else None, lambda t, c, x: x.t()),
    "transpose": (1, lambda rng, x: {} if x.ndim > 1 else None, lambda t, c, x: x.transpose(0, -1)),
    "permute": (1, permutation, lambda t, c, x, dims: x.permute(dims)),
    "view": (1, a_view, lambda t, c, x, shape: x.contiguous().view(shape)),
    "reshape": (1, a_view, lambda t, c, x, shape: x.reshape(shape)),
    "unsqueeze": (1, axis, lambda t, c, x, dim: x.unsqueeze(dim)),
    "squeeze": (1, nothing, lambda t, c, x: x.squeeze()),
    "expand": (1, nothing, lambda t, c, x: x.unsqueeze(0).expand(2, *x.shape)),
    "repeat": (1, nothing, lambda t, c, x: x.repeat(*[1] * (x.ndim - 1), 2) if x.ndim else x.repeat(2)),
    "slice": (1, part, lambda t, c, x, dim, start, end, step: x[(slice(None),) * dim + (slice(start, end, step),)]),
    "select": (1, one_index, lambda t, c, x, dim, index: x.select(dim, index)),
    "split": (1, axis, lambda t, c, x, dim: x.split(2, dim)[0]),
    "chunk": (1, axis, lambda t, c, x, dim: x.chunk(2, dim)[-1]),
    "unbind": (1, axis, lambda t, c, x, dim: x.unbind(dim)[0]),
    "cat": (2, same_shapes, lambda t, c, x, y: t.cat([x, y], 0) if x.ndim else x + y),
    "stack": (2, same_shapes, lambda t, c, x, y: t.stack([x, y], 0)),
    "flip": (1, axis, lambda t, c, x, dim: x.flip(dim)),
    "roll": (1, axis, lambda t, c, x, dim: x.roll(1, dim)),
    "pad": (1, lambda rng, x: {} if x.ndim else None, lambda t, c, x: t.nn.functional.pad(x, (1, 2))),
    "tril": (1, lambda rng, x: {} if x.ndim > 1 else None, lambda t, c, x: x.tril()),
    "index select": (1, some_indices, lambda t, c, x, dim, indices: x.index_select(dim, c.indices(indices))),
    "index": (1, some_indices, lambda t, c, x, dim, indices: x[(slice(None),) * dim + (c.indices(indices),)]),
    "embedding": (
        1,
        lambda rng, x: {"indices": [rng.randrange(x.shape[0]) for _ in range(4)]} if x.ndim == 2 else None,
        lambda t, c, x, indices: t.nn.functional.embedding(c.indices(indices), x),
    ),
    "gather": (
        1,
        lambda rng, x: {"dim": rng.randrange(x.ndim)} if x.ndim else None,
        lambda t, c, x, dim: x.gather(dim, x.argmax(dim, keepdim=True)),
    ),
    "clone": (1, nothing, lambda t, c, x: x.clone()),
    "contiguous": (1, nothing, lambda t, c, x: x.contiguous()),
    "to int and back": (1, nothing, lambda t, c, x: x.floor().to(t.int64).to(t.float64)),
    "zeros like": (1, nothing, lambda t, c, x: t.zeros_like(x) + x),
    "full like": (1, nothing, lambda t, c, x: t.full_like(x, 2.0) * x),
    "new zeros": (1, nothing, lambda t, c, x: x.new_zeros(x.shape) + x),
    "add in place": (2, same_shapes, lambda t, c, x, y: x.clone().add_(y)),
    "mul in place": (1, nothing, lambda t, c, x: x.clone().mul_(2)),
    "nll": (
        1,
        lambda rng, x: {"indices": [rng.randrange(x.shape[1]) for _ in range(x.shape[0])]} if x.ndim == 2 else None,
        lambda t, c, x, indices: t.nn.functional.nll_loss(x, c.indices(indices), reduction="sum"),
    ),
    "attention": (
        1,
        lambda rng, x: {} if x.ndim == 4 else None,
        lambda t, c, x: t.nn.functional.scaled_dot_product_attention(x, x, x),
    ),
}

SHAPES = [(8, 16), (16, 8), (8, 8), (4, 8, 8), (16,), (5, 7), (7, 8), (2, 4, 8, 8), (8, 1), (3, 16)]


class Plain:
    """Runs on plain tensors."""

    def __init__(self, t):
        self.t = t

    def tensor(self, array, placements):
        return self.t.tensor(array)

    def indices(self, values):
        return self.t.tensor(values)


class Distributed(Plain):
    """Runs on DTensors of a mesh."""

    def __init__(self, t, api, mesh_shape):
        super().__init__(t)
        self.api = api
        self.mesh = t.distributed.init_device_mesh("cpu", mesh_shape)

    def placement(self, text):
        if text == "R":
            return self.api.Replicate()
        return self.api.Partial() if text == "P" else self.api.Shard(int(text))

    def tensor(self, array, placements):
        """`P`: multiples that are it together."""
        whole = self.t.tensor(array)
        cuts = [self.api.Replicate() if p == "P" else self.placement(p) for p in placements]
        made = self.api.distribute_tensor(whole, self.mesh, cuts, src_data_rank=None)
        if "P" not in placements:
            return made
        local, coordinate = made.to_local(), self.mesh.get_coordinate()
        for dim, (p, i) in enumerate(zip(placements, coordinate, strict=True)):
            n = self.mesh.size(dim)
            local = local * (1 if p != "P" else i + 1 if i < n - 1 else 1 - n * (n - 1) // 2)
        placements = [self.placement(p) for p in placements]
        return self.api.DTensor.from_local(local, self.mesh, placements, shape=whole.shape, stride=whole.stride())

    def indices(self, values):
        everywhere = [self.api.Replicate()] * self.mesh.ndim
        return self.api.distribute_tensor(self.t.tensor(values), self.mesh, everywhere, src_data_rank=None)


def make_program(seed, t, steps=6):
    """A program whose steps all fit, tried on plain tensors of `t`."""
    rng = random.Random(seed)
    mesh = rng.choice(MESHES)
    inputs = []
    for _ in range(3):
        shape = rng.choice(SHAPES)
        kinds = ["R", "P", *map(str, range(len(shape)))]
        inputs.append((seed * 10 + len(inputs), shape, [rng.choice(kinds) for _ in mesh]))
    tensors, done, plain = [t.tensor(array(i)) for i in inputs], [], Plain(t)
    while len(done) < steps:
        name = rng.choice(list(OPS))
        count, numbers, function = OPS[name]
        operands = [rng.randrange(len(tensors)) for _ in range(count)]
        given = numbers(rng, *(tensors[i] for i in operands))
        if given is None:
            continue
        result = function(t, plain, *(tensors[i] for i in operands), **given)
        if 0 < result.numel() <= 4096 and bool(result.isfinite().all()):
            tensors.append(result)
            done.append((name, operands, given))
    return mesh, inputs, done


def array(described):
    seed, shape, _ = described
    return np.random.default_rng(seed).standard_normal(shape)


def run(program, world, gradients=False):
    """All tensors of a program; an exception in place of what was refused and of what needs it."""
    _, inputs, steps = program
    tensors = [world.tensor(array(i), i[2]) for i in inputs]
    if gradients:
        tensors = [x.detach().requires_grad_() for x in tensors]
    for name, operands, given in steps:
        xs = [tensors[i] for i in operands]
        refused = next((x for x in xs if isinstance(x, Exception)), None)
        try:
            tensors.append(refused or OPS[name][2](world.t, world, *xs, **given))
        except Exception as error:
            if not allowed(error):
                error.add_note(f"{name} {given}")
                print("failed", name, given, repr(error)[:400], flush=True)
            tensors.append(error)
    return tensors


def differences(program, gradients=False):
    """[(step, what is wrong)] on this rank of the group, and how many steps were refused; a refusal is no difference."""
    import readtorch
    from readtorch.distributed import tensor as api

    expected = run(program, Plain(readtorch), gradients)
    got = run(program, Distributed(readtorch, api, program[0]), gradients)
    wrong, refused = [], 0
    if gradients:
        wrong += wrong_gradients(expected, got, len(program[1]))
    for i, (a, b) in enumerate(zip(expected, got, strict=True)):
        if isinstance(b, Exception):
            refused += 1
            if not allowed(b):
                wrong.append((i, repr(b)))
            continue
        whole = b.full_tensor()
        if whole.shape != a.shape or not readtorch.allclose(whole, a, rtol=1e-9, atol=1e-9):
            wrong.append((i, f"{b.placements}: not the same"))
        local, _ = api._utils.compute_local_shape_and_global_offset(b.shape, b.device_mesh, b.placements)
        if tuple(b.to_local().shape) != local:
            wrong.append((i, f"{b.placements}: local {tuple(b.to_local().shape)}, not {local}"))
    return wrong, refused


def wrong_gradients(expected, got, inputs):
    """[(input, what is wrong)], of the gradients of the sum of all that a program has computed."""
    import readtorch

    for tensors in (expected, got):
        pairs = zip(tensors, got, strict=True)
        parts = [x for x, y in pairs if not isinstance(y, Exception) and x.requires_grad and not x.is_leaf]
        try:
            sum((x * x).sum() for x in parts).backward() if parts else None
        except RuntimeError as error:
            if allowed(error):
                return []
            raise
    wrong = []
    for i, (a, b) in enumerate(zip(expected[:inputs], got[:inputs], strict=True)):
        if a.grad is None or b.grad is None:
            if (a.grad is None) != (b.grad is None):
                wrong.append((i, "no gradient"))
        elif not readtorch.allclose(b.grad.full_tensor(), a.grad, rtol=1e-7, atol=1e-7):
            wrong.append((i, f"gradient {b.grad.placements}: not the same"))
    return wrong


def allowed(error):
    """What PyTorch refuses, too: views that would need messages."""
    words = ("redistribut", "in-place operations that require placement changes")
    return isinstance(error, RuntimeError) and any(word in str(error) for word in words)


def placements(program, t, api):
    """What becomes of the placements, or the type of the refusal."""
    results = run(program, Distributed(t, api, program[0]))
    return [type(x).__name__ if isinstance(x, Exception) else str(x.placements) for x in results], results


def main():
    import readtorch
    from readtorch.distributed import run_threads

    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--against-torch", action="store_true")
    parser.add_argument("--gradients", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    bad = refused = steps = 0
    for seed in range(options.first, options.first + options.count):
        program = make_program(seed, readtorch)
        world = int(np.prod(program[0]))
        if options.against_torch:
            bad += report_placements(seed, program, world)
            continue
        try:
            wrong, no = run_threads(lambda rank, program=program: differences(program, options.gradients), world)[-1]
        except Exception as error:  # ranks that went different ways
            wrong, no = [repr(error)[:300]], 0
        refused, steps = refused + no, steps + len(program[2])
        if wrong:
            bad += 1
            print(seed, program, wrong, sep="\n  ", flush=True)
    print(f"{options.count} programs, {steps} steps, {refused} refused as PyTorch refuses, {bad} programs differ")


def report_placements(seed, program, world):
    import torch
    import torch.distributed.tensor as theirs
    from torch.testing._internal.distributed.fake_pg import FakeStore

    import readtorch
    from readtorch.distributed import run_threads
    from readtorch.distributed import tensor as api

    ours, our_results = run_threads(lambda rank: placements(program, readtorch, api), world)[0]
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=world)
    try:
        expected, results = placements(program, torch, theirs)
    finally:
        torch.distributed.destroy_process_group()
    inputs = len(program[1])
    for i, (a, b) in enumerate(zip(ours, expected, strict=True)):
        if a != b:
            step = program[2][i - inputs]
            of = [expected[j] for j in step[1]], [tuple(getattr(our_results[j], "shape", ())) for j in step[1]]
            print(seed, program[0], step, of, "ours", a, "theirs", b, flush=True)
            for x in (our_results[i], results[i]):
                if isinstance(x, Exception):
                    print("    ", repr(x)[:300])
            return 1
    return 0


if __name__ == "__main__":
    main()
