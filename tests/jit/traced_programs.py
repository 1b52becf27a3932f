"""Functions and modules to trace: each is written once, for the reference and for readtorch.

A function takes the library first. Operators, views, in-place writes, sizes, lists, tuples, constants, nested
modules.
"""

import numpy as np


def rand(*shape, seed=0):
    return np.random.RandomState(seed + sum(shape)).randn(*shape).astype(np.float32)


X, Y, V, S = rand(2, 3), rand(2, 3, seed=9), rand(3), rand(4, 4)
IMAGE = rand(1, 3, 8, 8)


def poly(torch, x):
    return torch.relu(x) * 2 + x.sigmoid()


def arithmetic(torch, x, y):
    return (x + y, x - y, x * y, x / y, -x, x + 1, x * 2.5, 1 - x, 3 / (x * x + 1), x % 2, x // 2, x**2, 2**x, abs(x))


def comparisons(torch, x, y):
    return x > 0, x >= y, x == y, x != 1, x < 0.5, x <= y, ~(x > 0), (x > 0) & (y > 0), (x > 0) | (y > 0)


def reductions(torch, x):
    return (
        x.sum(),
        x.sum(0),
        x.mean(1),
        x.mean(),
        x.max(),
        x.min(),
        x.std(0),
        x.var(1),
        x.prod(),
        x.norm(),
        x.argmax(1),
        x.cumsum(0),
        x.logsumexp(1),
        (x > 0).any(),
        (x > 0).all(),
    )


def pairs(torch, x):
    values, indices = x.max(1)
    return values, indices, x.topk(2, 1), x.sort(0), x.min(0)


def views(torch, x):
    return (
        x.t(),
        x.view(-1),
        x.reshape(3, 2),
        x.permute(1, 0),
        x.transpose(0, 1),
        x.unsqueeze(0),
        x[None].squeeze(0),
        x.flatten(),
        x.expand(4, 2, 3),
        x.T,
        x.unflatten(1, (3, 1)),
    )


def slices(torch, x):
    return x[0], x[:, 1], x[1:, ::2], x[..., 0], x[None], x[-1, 2], x[0:1], x[:, :2]


def indexing(torch, x):
    return x[x > 0], x[torch.tensor([0, 1]), torch.tensor([1, 2])]


def writes(torch, x):
    y = x.clone()
    y += 1
    y.mul_(2)
    y[:, 0] = 5
    y[0] = x[1]
    y[y > 4] = 0
    return y


def write_through_view(torch, x):
    y = x * 1
    row = y[0]
    row.add_(10)
    return y, row


def write_slices(torch, x):
    out = torch.zeros_like(x)
    out[:, 1:] = x[:, :-1]
    out[0, 0] = 7
    return out


def sizes(torch, x):
    b, n = x.shape
    return x.view(b * n), x.reshape(x.size(0), -1, 1), x.expand(4, *x.shape), torch.zeros(b, n), x / x.numel()


def size_arithmetic(torch, x):
    n = x.size(1)
    return x.narrow(1, 0, n // 2 + 1), x.view(x.size(0), n), torch.arange(n), torch.full((x.shape[0],), 1.5)


def unchanged_shape(torch, x):
    return x.view(x.shape), x.reshape(x.size()), torch.ones(x.shape)


def joined(torch, x, y):
    return torch.cat([x, y]), torch.stack([x, y], 1), torch.cat((x, y), dim=1), torch.hstack([x, y])


def taken_apart(torch, x):
    a, b = x.split(1)
    c, d, e = x.unbind(1)
    first, second = x.chunk(2)
    return a + b, c * d * e, first - second


def matmuls(torch, x, y):
    return (
        x @ y.t(),
        torch.mm(x, y.t()),
        torch.matmul(x, y.t()),
        torch.bmm(x[None], y.t()[None]),
        torch.addmm(x[:, :2], x, y.t()),
        torch.einsum("ij,kj->ik", x, y),
        torch.outer(x[0], y[0]),
    )


def where(torch, x):
    return (
        torch.where(x > 0, x, -x),
        x.masked_fill(x > 0, 1.0),
        x.clamp(min=0),
        x.clamp(-0.5, 0.5),
        torch.where(x > 0, x, 0.0),
    )


def factories(torch, x):
    return (
        torch.zeros_like(x) + x,
        torch.ones(2, 3) * x,
        torch.arange(3) + x,
        torch.eye(3) @ x.t(),
        x.new_zeros(2),
        torch.full_like(x, 2.0),
        torch.linspace(0, 1, 3) + x,
    )


def casts(torch, x):
    return (
        x.to(torch.float64),
        x.double(),
        x.int(),
        x.to(torch.int64),
        x.type_as(x.double()),
        x.bool(),
        x.half().float(),
        x.to("cpu"),
    )


def pointwise(torch, x):
    y = x.abs() + 1
    return (
        x.exp(),
        y.log(),
        y.sqrt(),
        x.sin(),
        x.cos(),
        x.tanh(),
        x.sigmoid(),
        y.rsqrt(),
        x.floor(),
        x.round(),
        x.sign(),
        y.log1p(),
        x.erf(),
        y.reciprocal(),
        x.square(),
        torch.maximum(x, y),
        torch.pow(y, 0.5),
        torch.atan2(x, y),
    )


def activations(torch, x):
    F = torch.nn.functional
    return (
        F.relu(x),
        F.gelu(x),
        F.silu(x),
        F.leaky_relu(x),
        F.elu(x),
        F.softplus(x),
        F.hardtanh(x),
        F.softmax(x, -1),
        F.log_softmax(x, 1),
        F.hardswish(x),
        F.mish(x),
        F.relu6(x),
        F.selu(x),
        F.logsigmoid(x),
        F.celu(x),
        F.glu(x[:, :2]),
    )


def losses(torch, x, y):
    F = torch.nn.functional
    return (
        F.cross_entropy(x, torch.tensor([0, 2])),
        F.nll_loss(x, torch.tensor([1, 0])),
        F.binary_cross_entropy_with_logits(x, y.sigmoid()),
        F.kl_div(x, y.softmax(1), reduction="batchmean"),
    )


def layers_by_hand(torch, x, v):
    F = torch.nn.functional
    return (
        F.linear(x, v[None]),
        F.layer_norm(x, (3,), v, v),
        F.dropout(x, 0.5, False),
        F.normalize(x),
        F.pad(x, (1, 1)),
        F.one_hot(torch.tensor([0, 2]), 3),
    )


def images(torch, image):
    F = torch.nn.functional
    return (
        F.max_pool2d(image, 2),
        F.avg_pool2d(image, 2),
        F.adaptive_avg_pool2d(image, 1),
        F.interpolate(image, scale_factor=2.0),
        F.interpolate(image, size=(4, 4), mode="bilinear", align_corners=False),
    )


def shapes_of_images(torch, image):
    b, c, h, w = image.shape
    patches = image.view(b, c, h // 2, 2, w // 2, 2).permute(0, 2, 4, 1, 3, 5)
    return patches.reshape(b, (h // 2) * (w // 2), c * 4)


def loop_unrolled(torch, x):
    total = torch.zeros_like(x)
    for i in range(3):
        total = total + x * i
    return total


def branch_taken(torch, x):
    if x.dim() == 2:
        return x * 2
    return x


def a_tuple(torch, pair):
    return pair[0] + pair[1], (pair[0], pair[1] * 2)


def a_dict(torch, d):
    return d["a"] * d["b"]


def a_list(torch, xs):
    return xs[0] - xs[1]


def same_twice(torch, x, y):
    return x + y


def closure_constant(torch, x):
    c = torch.tensor([1.0, 2.0, 3.0])
    return x * c + c.sum()


def detached(torch, x):
    return x.detach() + x.data * 2


def no_grad(torch, x):
    with torch.no_grad():
        y = x * 2
    return y + x


def out_of_order(torch, x, y):
    a = x.exp()
    b = y.exp()
    return b + a, a


def gathers(torch, x):
    i = torch.tensor([[0, 2], [1, 0]])
    return (
        x.gather(1, i),
        torch.index_select(x, 1, torch.tensor([0, 2])),
        x.index_add(1, torch.tensor([0]), x[:, :1]),
        x.scatter(1, i, 1.0),
        torch.take(x, torch.tensor([0, 4])),
    )


def repeats(torch, x):
    return x.repeat(2, 1), x.flip(0), x.roll(1, 0), x.tril(), x.triu(1)


def alphas(torch, x, y):
    return (torch.add(x, y, alpha=2), torch.sub(x, y, alpha=3), x.addcmul(x, y, value=0.5), torch.lerp(x, y, 0.3))


def linear_algebra(torch, x):
    a = x @ x.t() + torch.eye(2) * 5
    return (
        torch.linalg.norm(a),
        torch.linalg.inv(a),
        torch.det(a),
        torch.linalg.svdvals(a),
        torch.cholesky_solve(x, a),
        torch.tensordot(x, x.t(), dims=1),
        torch.cdist(x, x),
        torch.kron(x, x),
    )


def order_statistics(torch, x):
    return (
        x.cumprod(0),
        x.sort(-1)[0],
        x.kthvalue(1),
        x.median(),
        x.quantile(0.5),
        torch.bincount(torch.tensor([1, 2])),
        x.amax(0),
        x.amin((0, 1)),
        torch.var_mean(x, 0),
        x.count_nonzero(),
        x.max(0).values,
        x.histc(4),
    )


def selections(torch, x):
    return (
        x.masked_select(x > 0),
        x.nonzero(),
        x.index_fill(0, torch.tensor([0]), 1.0),
        x.diagonal(),
        torch.diag(x[0]),
        x.unfold(1, 2, 1),
        x.as_strided((2, 2), (1, 1)),
        x.narrow(0, 0, 1),
        x.tile(2),
        x.movedim(0, 1),
        x.swapaxes(0, 1),
        x.ravel(),
    )


def in_place_chain(torch, x):
    y = x.clone()
    return (y.copy_(y * 2), y.fill_(3), y.zero_(), y.clamp_(0, 1), y.exp_(), y.sub_(1), y.div_(2), y.pow_(2), y.neg_())


def like_another(torch, x):
    return (
        x.new_ones(2),
        x.new_tensor([1.0]),
        x.view_as(x),
        x.reshape_as(x),
        x.expand_as(x),
        x.contiguous(),
        x.isnan(),
        x.nan_to_num(),
        x.sum(dtype=torch.float64),
        torch.true_divide(x, 2),
        torch.fmod(x, 2),
        torch.hypot(x, x),
    )


def attention(torch, x):
    F = torch.nn.functional
    q = x[None]
    return (
        F.scaled_dot_product_attention(q, q, q),
        F.embedding(torch.tensor([1]), x),
        F.cosine_similarity(x, x),
        F.pairwise_distance(x, x + 1),
    )


FUNCTIONS = [
    (poly, [X]),
    (arithmetic, [X, Y]),
    (comparisons, [X, Y]),
    (reductions, [X]),
    (pairs, [X]),
    (views, [X]),
    (slices, [X]),
    (indexing, [X]),
    (writes, [X]),
    (write_through_view, [X]),
    (write_slices, [X]),
    (sizes, [X]),
    (size_arithmetic, [X]),
    (unchanged_shape, [X]),
    (joined, [X, Y]),
    (taken_apart, [X]),
    (matmuls, [X, Y]),
    (where, [X]),
    (factories, [X]),
    (casts, [X]),
    (pointwise, [X]),
    (activations, [X]),
    (losses, [X, Y]),
    (layers_by_hand, [X, V]),
    (images, [IMAGE]),
    (shapes_of_images, [IMAGE]),
    (loop_unrolled, [X]),
    (branch_taken, [X]),
    (a_tuple, [(X, Y)]),
    (a_dict, [{"a": X, "b": Y}]),
    (a_list, [[X, Y]]),
    (same_twice, [X, X]),
    (closure_constant, [X]),
    (detached, [X]),
    (no_grad, [X]),
    (out_of_order, [X, Y]),
    (gathers, [X]),
    (repeats, [X]),
    (alphas, [X, Y]),
    (linear_algebra, [X]),
    (order_statistics, [X]),
    (selections, [X]),
    (in_place_chain, [X]),
    (like_another, [X]),
    (attention, [X]),
]


# ---------------------------------------------------------------------------------------------------- modules


def modules(torch):
    """name -> (maker of a module, inputs)"""
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 2)

        def forward(self, x):
            y = torch.tanh(self.fc(x))
            return y * 0.5 if y.mean() > 0 else y

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
            self.register_buffer("k", torch.ones(3) * 2)

        def forward(self, x):
            return x + self.b(torch.relu(self.a(x))) * self.k, self.a.weight.sum()

    class CalledTwice(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = Residual()
            self.m = nn.Sequential(nn.Linear(3, 3), nn.GELU(), nn.Dropout(0.1))

        def forward(self, x):
            a, b = self.n(x)
            c, d = self.n(a)
            return self.m(c) + b + d

    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
            self.embedding = nn.Embedding(5, 3)

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x + self.embedding(torch.tensor([1, 2]))

    class ReachesInside(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Net()

        def forward(self, x):
            return self.inner(x) + self.inner.fc(x) + self.inner.fc.weight.mean()

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(4, 12), nn.Linear(4, 4)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = self.qkv(x).split(4, dim=2)
            q, k, v = [z.view(b, t, 2, 2).transpose(1, 2) for z in (q, k, v)]
            weights = ((q @ k.transpose(-2, -1)) * 0.7).softmax(-1)
            return self.out((weights @ v).transpose(1, 2).contiguous().view(b, t, c))

    convolutions = [
        nn.Conv2d(3, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 5),
    ]
    sequence = rand(2, 3, 4)
    return {
        "Net": (Net(), [X]),
        "Residual": (Residual(), [X]),
        "CalledTwice": (CalledTwice(), [X]),
        "Loop": (Loop(), [X]),
        "ReachesInside": (ReachesInside(), [X]),
        "Attention": (Attention(), [sequence]),
        "convolutions": (nn.Sequential(*convolutions), [IMAGE]),
        "GRU": (nn.GRU(3, 4, batch_first=True), [rand(2, 5, 3)]),
        "LayerNorm": (nn.LayerNorm(3), [X]),
        "GroupNorm": (nn.GroupNorm(1, 3), [IMAGE]),
        "activations": (nn.Sequential(nn.Softmax(-1), nn.LeakyReLU(), nn.ELU(), nn.PReLU(), nn.Hardswish()), [X]),
        "ConvTranspose2d": (nn.ConvTranspose2d(3, 2, 3), [IMAGE]),
        "images": (nn.Sequential(nn.Upsample(scale_factor=2), nn.AdaptiveAvgPool2d(1), nn.PixelShuffle(1)), [IMAGE]),
        "Bilinear": (nn.Bilinear(3, 3, 2), [X, Y]),
        "Conv1d": (nn.Sequential(nn.Conv1d(3, 4, 3), nn.AvgPool1d(2)), [sequence]),
    }
