"""Small programs, one for each operator that can be exported: name -> (function of the library and the inputs, inputs)."""

import torch


def numbers(*shape):
    """Between -2 and 2, none at a place where functions jump."""
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return torch.rand(shape, generator=generator) * 4 - 2


def positive(*shape):
    return numbers(*shape).abs() + 0.1


def whole(*shape):
    """Whole numbers, some negative, none 0."""
    values = (numbers(*shape) * 5).long()
    return values + (values == 0).long()


X, Y, P = numbers(3, 4), numbers(3, 4) + 0.3, positive(3, 4)
N, M = whole(3, 4), whole(4)
B = X > 0
V = numbers(2, 3, 4)
IMAGE = numbers(2, 4, 6, 6)

ARITHMETIC = {
    "add": (lambda T, x, y: x + y, X, Y),
    "add of a number": (lambda T, x: x + 2, X),
    "add with alpha": (lambda T, x, y: T.add(x, y, alpha=3), X, Y),
    "add of integers and a float": (lambda T, x: x + 0.5, N),
    "add of types": (lambda T, x, y: x + y, X, N),
    "add of bools": (lambda T, x, y: x + y, B, ~B),
    "sub": (lambda T, x, y: x - y, X, Y),
    "rsub": (lambda T, x: 3 - x, X),
    "mul": (lambda T, x, y: x * y, X, Y),
    "mul by a bool": (lambda T, x, y: x * y, X, B),
    "div": (lambda T, x, y: x / y, X, Y),
    "div of integers": (lambda T, x, y: x / y, N, M),
    "div with floor": (lambda T, x, y: T.div(x, y, rounding_mode="floor"), X, Y),
    "div with trunc": (lambda T, x, y: T.div(x, y, rounding_mode="trunc"), X, Y),
    "div of integers with trunc": (lambda T, x, y: T.div(x, y, rounding_mode="trunc"), N, M),
    "floor_divide of integers": (lambda T, x, y: x // y, N, M),
    "remainder": (lambda T, x, y: x % y, X, Y),
    "remainder of integers": (lambda T, x, y: x % y, N, M),
    "fmod": (lambda T, x, y: T.fmod(x, y), X, Y),
    "pow": (lambda T, x: x**3, X),
    "pow of tensors": (lambda T, x, y: x**y, P, Y),
    "pow of a number": (lambda T, x: 2**x, X),
    "square": (lambda T, x: T.square(x), X),
    "addcmul": (lambda T, x, y, z: T.addcmul(x, y, z, value=2), X, Y, P),
    "addcdiv": (lambda T, x, y, z: T.addcdiv(x, y, z, value=2), X, Y, P),
    "lerp": (lambda T, x, y: T.lerp(x, y, 0.3), X, Y),
    "clamp": (lambda T, x: x.clamp(-1, 1), X),
    "clamp from below": (lambda T, x: x.clamp(min=0.5), X),
    "clamp of integers": (lambda T, x: x.clamp(-3, 3), N),
    "clamp_min and clamp_max": (lambda T, x: T.clamp_max(T.clamp_min(x, -1), 0.5), X),
    "logit": (lambda T, x: (T.logit(x), T.logit(x * 3, eps=0.1)), P / 3),
    "clamp by tensors": (lambda T, x, y: T.clamp(x, y, y + 1), X, Y),
    "maximum": (lambda T, x, y: T.maximum(x, y), X, Y),
    "minimum": (lambda T, x, y: T.minimum(x, y), X, Y),
    "atan2": (lambda T, x, y: T.atan2(x, y), X, Y),
    "cumsum": (lambda T, x: T.cumsum(x, 1), X),
    "cumsum of integers": (lambda T, x: T.cumsum(x, 0), N),
    "log1p": (lambda T, x: T.log1p(x), P),
    "expm1": (lambda T, x: T.expm1(x), X),
    "log2 and log10": (lambda T, x: (T.log2(x), T.log10(x)), P),
    "rsqrt": (lambda T, x: T.rsqrt(x), P),
    "trunc": (lambda T, x: T.trunc(x), X),
    "inverse sines": (lambda T, x: (T.asin(x / 2), T.acos(x / 2), T.atanh(x / 3)), X),
    "acosh": (lambda T, x: T.acosh(x + 1), P),
    "sqrt and log": (lambda T, x: (T.sqrt(x), T.log(x), T.reciprocal(x)), P),
    "sqrt of integers": (lambda T, x: T.sqrt(x), N.abs()),
    "in place": (lambda T, x: (x + 1).mul_(2).relu_(), X),
}
ARITHMETIC.update(
    {
        name: (lambda T, x, name=name: getattr(T, name)(x), X)
        for name in "abs neg exp erf sin cos tan atan sinh cosh asinh floor ceil round sign tanh sigmoid relu isnan isinf".split()
    }
)

COMPARISON = {
    **{name: (lambda T, x, y, name=name: getattr(T, name)(x, y), X, Y) for name in "eq ne lt le gt ge".split()},
    "gt of a number": (lambda T, x: x > 0.5, X),
    "gt of integers and a float": (lambda T, x: x > 0.5, N),
    "eq of bools": (lambda T, x: x == (x == x), B),
    "logic": (
        lambda T, x, y: (T.logical_and(x, y), T.logical_or(x, y), T.logical_xor(x, y), T.logical_not(x)),
        B,
        X > 1,
    ),
    "bitwise on integers": (lambda T, x, y: (T.bitwise_and(x, y), T.bitwise_or(x, y), T.bitwise_xor(x, y), ~x), N, M),
    "bitwise on bools": (lambda T, x, y: ((x & y) | ~x) ^ y, B, X > 1),
    "where": (lambda T, c, x, y: T.where(c, x, y), B, X, Y),
    "where with a number": (lambda T, c, x: T.where(c, x, 0.0), B, X),
    "masked_fill": (lambda T, x, c: x.masked_fill(c, float("-inf")), X, B),
    "masked_select": (lambda T, x, c: T.masked_select(x, c), X, B),
    "nonzero": (lambda T, x: T.nonzero(x), B),
}

PRODUCTS = {
    "matmul": (lambda T, x, y: x @ y, V, numbers(2, 4, 5)),
    "matmul with a vector": (lambda T, x, y: x @ y, V, numbers(4)),
    "mm": (lambda T, x, y: T.mm(x, y), X, numbers(4, 2)),
    "bmm": (lambda T, x, y: T.bmm(x, y), V, numbers(2, 4, 5)),
    "addmm": (lambda T, b, x, y: T.addmm(b, x, y, beta=0.5, alpha=2), numbers(2), X, numbers(4, 2)),
    "baddbmm": (lambda T, b, x, y: T.baddbmm(b, x, y, beta=0.5, alpha=2), numbers(2, 3, 5), V, numbers(2, 4, 5)),
    "vectors": (lambda T, a, x, y: (T.mv(a, x), T.dot(x, y), T.addmv(a[:, 0], a, x)), X, numbers(4), Y[0]),
    "outer": (lambda T, x, y: T.outer(x, y), numbers(3), numbers(4)),
    "einsum": (lambda T, x, y: T.einsum("bij,bkj->bik", x, y), V, numbers(2, 5, 4)),
    "attention": (
        lambda T, q, k, v: T.nn.functional.scaled_dot_product_attention(q, k, v),
        *[numbers(2, 2, n, 4) for n in (5, 6, 6)],
    ),
    "causal attention": (
        lambda T, q, k, v: T.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        *[numbers(2, 2, 5, 4)] * 3,
    ),
    "attention with a mask": (
        lambda T, q, k, m: T.nn.functional.scaled_dot_product_attention(q, k, k, attn_mask=m, scale=0.3),
        numbers(2, 2, 5, 4),
        numbers(2, 2, 6, 4),
        numbers(5, 6) > -1,
    ),
}

SHAPES = {
    "view": (lambda T, x: x.view(4, 3), X),
    "view of sizes": (lambda T, x: x.view(x.shape[0], -1), V),
    "reshape": (lambda T, x: x.t().reshape(2, 6), X),
    "flatten": (lambda T, x: x.flatten(1), IMAGE),
    "flatten in the middle": (lambda T, x: x.flatten(1, 2), IMAGE),
    "flatten of all": (lambda T, x: x.flatten(), V),
    "unflatten": (lambda T, x: x.unflatten(1, (2, 2)), IMAGE),
    "transpose": (lambda T, x: x.transpose(0, -1), V),
    "permute": (lambda T, x: x.permute(2, 0, 1), V),
    "t": (lambda T, x: x.t(), X),
    "mT": (lambda T, x: x.mT, V),
    "movedim": (lambda T, x: x.movedim(0, 2), V),
    "unsqueeze": (lambda T, x: x.unsqueeze(-1).unsqueeze(0), X),
    "squeeze": (lambda T, x: (x.squeeze(), x.squeeze(1), x.squeeze(0)), numbers(3, 1, 4)),
    "expand": (lambda T, x: x.expand(2, -1, 4), numbers(3, 1)),
    "expand_as": (lambda T, x, y: x.expand_as(y), numbers(4), X),
    "repeat": (lambda T, x: x.repeat(2, 1, 3), X),
    "repeat_interleave": (lambda T, x: x.repeat_interleave(2, dim=1), X),
    "cat": (lambda T, x, y: T.cat([x, y], 1), X, Y),
    "cat of types": (lambda T, x, y: T.cat([x, y]), X, N),
    "stack": (lambda T, x, y: T.stack([x, y], -1), X, Y),
    "split": (lambda T, x: T.split(x, 3, 1), X),
    "split in sizes": (lambda T, x: T.split(x, [1, 3], 1), X),
    "split_with_sizes": (lambda T, x: x.split_with_sizes([1, 3], 1), X),
    "chunk": (lambda T, x: x.chunk(3, 1), X),
    "unbind": (lambda T, x: x.unbind(1), V),
    "tile": (lambda T, x: (T.tile(x, (2,)), T.tile(x, (2, 1, 3))), X),
    "view_as": (lambda T, x, y: (x.view_as(y), x.reshape_as(y)), X, numbers(2, 6)),
    "broadcast_to": (lambda T, x: T.broadcast_to(x, (3, 4)), numbers(4)),
    "flip": (lambda T, x: x.flip(0, 2), V),
    "roll": (lambda T, x: T.roll(x, (1, -2), (0, 2)), V),
    "pixel_shuffle": (lambda T, x: T.pixel_shuffle(x, 2), IMAGE),
    "to": (lambda T, x: (x.to(T.int64), x.double(), x.bool()), X),
    "type_as": (lambda T, x, y: x.type_as(y), N, X),
    "clone and detach": (lambda T, x: x.clone().detach().contiguous() + 1, X),
    "numel": (lambda T, x: x / x.numel(), X),
    "size": (lambda T, x: x * x.size(1) + x.shape[0], X),
    "tril": (lambda T, x: (x.tril(), x.triu(1)), X),
    "tril of bools": (lambda T, x: x.tril(), B),
    "diagonal": (lambda T, x: (T.diagonal(x), T.diagonal(x, -1)), X),
}

INDEXING = {
    "select": (lambda T, x: x[1] + x[:, -1].sum(), X),
    "slices": (lambda T, x: x[1:, :-1, ::2], V),
    "narrow": (lambda T, x: x.narrow(1, 1, 2), X),
    "index_select": (lambda T, x, i: T.index_select(x, 1, i), X, torch.tensor([3, 0])),
    "gather": (lambda T, x, i: T.gather(x, 1, i), X, torch.tensor([[0, 1], [3, 2], [1, 1]])),
    "take": (lambda T, x, i: T.take(x, i), X, torch.tensor([[0, 11], [3, 2]])),
    "scatter": (lambda T, x, i, y: x.scatter(1, i, y), X, torch.tensor([[0, 1], [3, 2], [1, 0]]), numbers(3, 2)),
    "scatter of a number": (lambda T, x, i: x.scatter(1, i, 7.0), X, torch.tensor([[0, 1], [3, 2], [1, 0]])),
    "scatter_add": (
        lambda T, x, i, y: x.scatter_add(1, i, y),
        X,
        torch.tensor([[0, 0], [3, 2], [1, 1]]),
        numbers(3, 2),
    ),
    "index": (lambda T, x, i: x[i], X, torch.tensor([2, 0])),
    "index of two": (lambda T, x, i, j: x[i, j], X, torch.tensor([2, 0]), torch.tensor([[1], [3]])),
    "index in the middle": (lambda T, x, i, j: x[:, i, j], V, torch.tensor([2, 0]), torch.tensor([1, 3])),
    "index apart": (lambda T, x, i, j: x[i, :, j], V, torch.tensor([1, 0]), torch.tensor([1, 3])),
    "index by a mask": (lambda T, x, m: x[m], X, B),
    "index_put": (lambda T, x, i, y: x.index_put((i,), y), X, torch.tensor([2, 0]), numbers(2, 4)),
    "embedding": (lambda T, w, i: T.nn.functional.embedding(i, w), X, torch.tensor([[2, 0], [1, 1]])),
    "one_hot": (lambda T, i: T.nn.functional.one_hot(i, 5), torch.tensor([2, 0, 4])),
    "topk": (lambda T, x: T.topk(x, 2), X),
    "topk of the smallest": (lambda T, x: T.topk(x, 2, dim=0, largest=False), X),
    "sort": (lambda T, x: T.sort(x, 1, descending=True), X),
    "argsort": (lambda T, x: T.argsort(x, 0), X),
    "kthvalue": (lambda T, x: T.kthvalue(x, 2, 1), X),
}

REDUCTIONS = {
    "sum": (lambda T, x: (x.sum(), x.sum(1), x.sum((0, 1), keepdim=True)), V),
    "sum of bools": (lambda T, x: x.sum(), B),
    "sum with dtype": (lambda T, x: x.sum(dtype=T.float64), X),
    "mean": (lambda T, x: (x.mean(), x.mean(-1), x.mean((0, 2), keepdim=True)), V),
    "prod": (lambda T, x: (x.prod(), x.prod(1)), X),
    "max and min": (lambda T, x: (x.max(), x.min()), X),
    "max along a dimension": (lambda T, x: (*x.max(1), *x.min(0, keepdim=True)), X),
    "max of two": (lambda T, x, y: (T.max(x, y), T.min(x, y)), X, Y),
    "amax and amin": (lambda T, x: (x.amax(1), x.amin((0, 1), keepdim=True)), V),
    "argmax": (lambda T, x: (x.argmax(), x.argmax(1), x.argmin(0, keepdim=True)), X),
    "any and all": (lambda T, x: (x.any(), x.all(1), x.any(0, keepdim=True)), B),
    "var": (lambda T, x: (x.var(), x.var(1), x.var((0, 1), correction=0, keepdim=True)), V),
    "std": (lambda T, x: (x.std(), x.std(1, unbiased=False)), V),
    "var_mean": (lambda T, x: T.var_mean(x, 1), X),
    "std_mean": (lambda T, x: T.std_mean(x, 1), X),
    "norm": (lambda T, x: (x.norm(), x.norm(dim=1), x.norm(p=1, dim=0, keepdim=True), x.norm(p=3)), X),
    "vector_norm": (lambda T, x: (T.linalg.vector_norm(x), T.linalg.vector_norm(x, float("inf"), dim=1)), X),
    "logsumexp": (lambda T, x: T.logsumexp(x, 1), X),
    "softmax": (lambda T, x: (x.softmax(1), x.log_softmax(0)), X),
    "softmax with dtype": (lambda T, x: T.softmax(x, 1, dtype=T.float64), X),
    "cosine": (lambda T, x, y: T.nn.functional.normalize(x, dim=1) @ y.t(), X, Y),
}

FACTORIES = {
    "zeros of sizes": (lambda T, x: T.zeros(x.shape[0], 2) + x[:, :2], X),
    "like": (lambda T, x: (T.zeros_like(x) + T.ones_like(x)) * T.full_like(x, 2.5) + x, X),
    "new": (lambda T, x: x + x.new_zeros(4) + x.new_ones(3, 1) + x.new_full((4,), 2.0), X),
    "arange": (lambda T, x: x + T.arange(x.shape[1]) + T.arange(1, x.shape[1] + 1) + T.arange(0, 8, 2), X),
    "constants": (lambda T, x: x + T.linspace(0, 1, 4) + T.eye(3, 4) + T.tensor([1.0, 2.0, 3.0, 4.0]), X),
    "ones of sizes": (lambda T, x: T.ones(x.shape[0], 4) * x + T.zeros_like(T.empty_like(x)), X),
    "full": (lambda T, x: x + T.full((x.shape[0], 1), 3.5), X),
}

F = lambda T: T.nn.functional
IMAGES = {
    "pad": (lambda T, x: F(T).pad(x, (1, 2, 0, 1)), IMAGE),
    "pad with a value": (lambda T, x: F(T).pad(x, (1, 2), value=3.0), IMAGE),
    "pad by reflection": (lambda T, x: F(T).pad(x, (1, 2, 2, 1), mode="reflect"), IMAGE),
    "pad by repetition": (lambda T, x: F(T).pad(x, (1, 2, 2, 1), mode="replicate"), IMAGE),
    "nearest of one and three dimensions": (
        lambda T, x, y: (F(T).interpolate(x, scale_factor=2), F(T).interpolate(y, size=(3, 6, 4))),
        numbers(2, 4, 7),
        numbers(1, 2, 4, 4, 4),
    ),
    "linear and trilinear": (
        lambda T, x, y: (
            F(T).interpolate(x, size=5, mode="linear"),
            F(T).interpolate(y, scale_factor=2, mode="trilinear"),
        ),
        numbers(2, 4, 7),
        numbers(1, 2, 4, 4, 4),
    ),
    "nearest": (lambda T, x: F(T).interpolate(x, scale_factor=2), IMAGE),
    "nearest to a size": (lambda T, x: F(T).interpolate(x, size=(9, 4)), IMAGE),
    "bilinear": (lambda T, x: F(T).interpolate(x, scale_factor=2, mode="bilinear"), IMAGE),
    "bilinear to a size": (lambda T, x: F(T).interpolate(x, size=(9, 4), mode="bilinear"), IMAGE),
    "bilinear with corners": (
        lambda T, x: F(T).interpolate(x, size=(9, 11), mode="bilinear", align_corners=True),
        IMAGE,
    ),
    "bicubic": (lambda T, x: F(T).interpolate(x, size=(9, 11), mode="bicubic"), IMAGE),
    "grid_sample": (lambda T, x, g: F(T).grid_sample(x, g, align_corners=False), IMAGE, numbers(2, 3, 3, 2) / 2.5),
    "max_pool with indices": (lambda T, x: F(T).max_pool2d(x, 2, return_indices=True), IMAGE),
}

OPERATORS = {**ARITHMETIC, **COMPARISON, **PRODUCTS, **SHAPES, **INDEXING, **REDUCTIONS, **FACTORIES, **IMAGES}

SEQUENCE = numbers(2, 4, 7)
VOLUME = numbers(1, 2, 4, 4, 4)
LAYERS = {
    "Linear": (lambda nn: nn.Linear(4, 5), X),
    "Linear of more dimensions": (lambda nn: nn.Linear(4, 5), V),
    "Linear without bias": (lambda nn: nn.Linear(4, 5, bias=False), X),
    "Bilinear": (lambda nn: nn.Bilinear(4, 4, 5), X, Y),
    "Conv1d": (lambda nn: nn.Conv1d(4, 6, 3, stride=2, padding=1), SEQUENCE),
    "Conv2d with groups": (lambda nn: nn.Conv2d(4, 6, (3, 2), dilation=2, groups=2), IMAGE),
    "Conv2d same": (lambda nn: nn.Conv2d(4, 6, 4, padding="same"), IMAGE),
    "Conv2d of circles": (lambda nn: nn.Conv2d(4, 6, 3, padding=1, padding_mode="circular"), IMAGE),
    "Conv3d": (lambda nn: nn.Conv3d(2, 3, 2), VOLUME),
    "ConvTranspose1d": (lambda nn: nn.ConvTranspose1d(4, 3, 3, stride=2), SEQUENCE),
    "ConvTranspose2d": (lambda nn: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), IMAGE),
    "ConvTranspose3d": (lambda nn: nn.ConvTranspose3d(2, 3, 2, stride=2), VOLUME),
    "MaxPool1d": (lambda nn: nn.MaxPool1d(3, 2, 1), SEQUENCE),
    "MaxPool2d": (lambda nn: nn.MaxPool2d((3, 2), ceil_mode=True), IMAGE),
    "MaxPool3d": (lambda nn: nn.MaxPool3d(2), VOLUME),
    "AvgPool1d": (lambda nn: nn.AvgPool1d(3, 2, 1), SEQUENCE),
    "AvgPool2d": (lambda nn: nn.AvgPool2d(3, 2, 1, count_include_pad=False), IMAGE),
    "AvgPool3d": (lambda nn: nn.AvgPool3d(2), VOLUME),
    "AdaptiveAvgPool2d": (lambda nn: nn.AdaptiveAvgPool2d((3, 2)), IMAGE),
    "AdaptiveAvgPool1d": (lambda nn: nn.AdaptiveAvgPool1d(1), SEQUENCE),
    "AdaptiveMaxPool2d": (lambda nn: nn.AdaptiveMaxPool2d(2), IMAGE),
    "BatchNorm1d": (lambda nn: nn.BatchNorm1d(4), X),
    "BatchNorm2d without weights": (lambda nn: nn.BatchNorm2d(4, affine=False), IMAGE),
    "LayerNorm": (lambda nn: nn.LayerNorm((3, 4)), V),
    "LayerNorm without weights": (lambda nn: nn.LayerNorm(4, elementwise_affine=False), V),
    "GroupNorm": (lambda nn: nn.GroupNorm(2, 4), IMAGE),
    "InstanceNorm2d": (lambda nn: nn.InstanceNorm2d(4), IMAGE),
    "InstanceNorm2d with weights": (lambda nn: nn.InstanceNorm2d(4, affine=True), IMAGE),
    "RMSNorm": (lambda nn: nn.RMSNorm(4), V),
    "Embedding": (lambda nn: nn.Embedding(5, 3), torch.tensor([[0, 4], [2, 2]])),
    "Dropout": (lambda nn: nn.Dropout(), X),
    "EmbeddingBag": (lambda nn: nn.EmbeddingBag(5, 3), torch.tensor([[0, 4, 1], [2, 2, 3]])),
    "AlphaDropout": (lambda nn: nn.AlphaDropout(), X),
    "AdaptiveAvgPool3d": (lambda nn: nn.AdaptiveAvgPool3d((2, 1, 4)), VOLUME),
    "AdaptiveMaxPool1d": (lambda nn: nn.AdaptiveMaxPool1d(7), SEQUENCE),
    "GRUCell": (lambda nn: nn.GRUCell(4, 5), X),
    "RNNCell": (lambda nn: nn.RNNCell(4, 5), X),
    "TransformerEncoder": (
        lambda nn: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(4, 2, 8, norm_first=True), 2, enable_nested_tensor=False
        ),
        V,
    ),
    "Transformer": (lambda nn: nn.Transformer(4, 2, 1, 1, 8, batch_first=True), V, numbers(2, 5, 4)),
    "ReflectionPad2d": (lambda nn: nn.ReflectionPad2d(2), IMAGE),
    "ZeroPad2d": (lambda nn: nn.ZeroPad2d((1, 2, 3, 0)), IMAGE),
    "Flatten and Unflatten": (lambda nn: nn.Sequential(nn.Flatten(2), nn.Unflatten(2, (2, 18))), IMAGE),
    "PReLU": (lambda nn: nn.PReLU(4), IMAGE),
    "Upsample": (lambda nn: nn.Upsample(scale_factor=2, mode="bilinear"), IMAGE),
    "PixelShuffle": (lambda nn: nn.PixelShuffle(2), IMAGE),
    "LSTM": (lambda nn: nn.LSTM(4, 5), V),
    "LSTM of two layers": (lambda nn: nn.LSTM(4, 5, num_layers=2, batch_first=True), V),
    "LSTM of two directions": (lambda nn: nn.LSTM(4, 5, num_layers=2, bidirectional=True), V),
    "LSTM without biases": (lambda nn: nn.LSTM(4, 5, bias=False), V),
    "GRU": (lambda nn: nn.GRU(4, 5, batch_first=True), V),
    "GRU of two directions": (lambda nn: nn.GRU(4, 5, num_layers=2, bidirectional=True), V),
    "RNN": (lambda nn: nn.RNN(4, 5), V),
    "RNN with relu": (lambda nn: nn.RNN(4, 5, nonlinearity="relu", bidirectional=True), V),
    "LSTMCell": (lambda nn: nn.LSTMCell(4, 5), X),
    "MultiheadAttention": (lambda nn: nn.MultiheadAttention(4, 2, batch_first=True), *[V] * 3),
    "TransformerEncoderLayer": (lambda nn: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), V),
}
LAYERS.update(
    {
        name: (lambda nn, name=name: getattr(nn, name)(), X)
        for name in (
            "ReLU ReLU6 LeakyReLU ELU CELU SELU GELU SiLU Mish Hardswish Hardsigmoid Hardtanh Hardshrink Softshrink "
            "Tanhshrink LogSigmoid Softplus Softsign Sigmoid Tanh GLU Identity"
        ).split()
    }
)
LAYERS["GELU by tanh"] = (lambda nn: nn.GELU(approximate="tanh"), X)
LAYERS["Softplus with beta"] = (lambda nn: nn.Softplus(beta=2), X)
LAYERS["Threshold"] = (lambda nn: nn.Threshold(0.5, -3.0), X)
LAYERS["Softmax"] = (lambda nn: nn.Softmax(dim=1), X)
