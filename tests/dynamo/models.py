"""Models: name -> a function that makes (the module, its arguments)."""

import readtorch as rt
from readtorch import nn
from readtorch.utils._pytree import tree_leaves

F = nn.functional


def images(c=3, n=8):
    return rt.rand(2, c, n, n)


class ResBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a = nn.Conv2d(c, c, 3, padding=1, bias=False)
        self.n = nn.BatchNorm2d(c)
        self.b = nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x):
        return F.relu(x + self.b(F.relu(self.n(self.a(x)), inplace=True)))


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Linear(8, 6)
        self.d = nn.Linear(3, 8)

    def forward(self, x):
        mu, lv = self.e(x).chunk(2, dim=-1)
        z = mu + rt.randn_like(mu) * (0.5 * lv).exp()
        return (self.d(z), (-0.5 * (1 + lv - mu.pow(2) - lv.exp())).sum())


class KV(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(8, 24)
        self.cache = None

    def forward(self, x):
        q, k, v = self.q(x).split(8, -1)
        if self.cache is not None:
            k = rt.cat([self.cache[0], k], 1)
            v = rt.cat([self.cache[1], v], 1)
        self.cache = (k.detach(), v.detach())
        return F.scaled_dot_product_attention(q, k, v)


class Block(nn.Module):
    """A block of a GPT, which gets the keys and values of the tokens before and returns them with its own."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, past):
        b, t, width = x.shape
        q, k, v = (part.view(b, t, self.heads, -1).transpose(1, 2) for part in self.qkv(self.first(x)).split(width, -1))
        if past is not None:
            k, v = rt.cat([past[0], k], 2), rt.cat([past[1], v], 2)
        found = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.out(found.transpose(1, 2).reshape(b, t, width))
        return x + self.mlp(self.second(x)), (k, v)


class GPT(nn.Module):
    """The logits of a prompt and of three tokens more, one at a time, each the likeliest after those before."""

    def __init__(self, words=11, width=8, places=9):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(places, width)
        self.blocks = nn.ModuleList([Block(width, 2) for _ in range(2)])
        self.norm = nn.LayerNorm(width)

    def step(self, tokens, past):
        start = 0 if past[0] is None else past[0][0].shape[2]
        x = self.words(tokens) + self.places(rt.arange(start, start + tokens.shape[1]))
        new = []
        for block, before in zip(self.blocks, past):
            x, cache = block(x, before)
            new.append(cache)
        return F.linear(self.norm(x[:, -1:]), self.words.weight), new

    def forward(self, prompt):
        logits, past = self.step(prompt, [None] * len(self.blocks))
        every = [logits]
        for _ in range(3):
            logits, past = self.step(logits.argmax(-1), past)
            every.append(logits)
        return rt.cat(every, 1)


class MoE(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Linear(4, 2)
        self.ex = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])

    def forward(self, x):
        w = self.g(x).softmax(-1)
        return sum((w[:, i : i + 1] * ex(x) for i, ex in enumerate(self.ex)))


class TiedLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(10, 6)
        self.r = nn.GRU(6, 6, batch_first=True)

    def forward(self, i):
        h, _ = self.r(self.e(i))
        return h @ self.e.weight.t()


class DictOut(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.ModuleDict({"a": nn.Linear(3, 2), "b": nn.Linear(3, 1)})

    def forward(self, x):
        return {k: m(x) for k, m in self.l.items()}


class WN(nn.Module):
    def __init__(self):
        super().__init__()
        self.v = nn.Parameter(rt.rand(3, 4))
        self.g = nn.Parameter(rt.rand(3, 1))

    @property
    def w(self):
        return self.g * self.v / self.v.norm(dim=1, keepdim=True)

    def forward(self, x):
        return F.linear(x, self.w)


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.ls = nn.ModuleList([nn.Linear(4 + 2 * i, 2) for i in range(3)])

    def forward(self, x):
        fs = [x]
        for l in self.ls:
            fs.append(rt.relu(l(rt.cat(fs, 1))))
        return (fs[-1], len(fs))


class EarlyExit(nn.Module):
    def __init__(self):
        super().__init__()
        self.ls = nn.ModuleList([nn.Linear(4, 4) for i in range(3)])

    def forward(self, x):
        for i, l in enumerate(self.ls):
            x = l(x)
            if x.abs().max() > 0.6:
                break
        return x * i


rows = lambda: (rt.rand(3, 4),)
MODELS = {
    "linear": lambda: (nn.Linear(4, 3), rows()),
    "mlp": lambda: (nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), rows()),
    **{
        a: lambda a=a: (getattr(nn, a)(), rows())
        for a in "ReLU LeakyReLU ELU SELU CELU GELU SiLU Mish Hardswish Hardsigmoid Softplus Tanhshrink LogSigmoid Softsign PReLU RReLU".split()
    },
    "softmax": lambda: (nn.Softmax(-1), rows()),
    "logsoftmax": lambda: (nn.LogSoftmax(-1), rows()),
    "conv1": lambda: (nn.Conv1d(3, 2, 3), (rt.rand(2, 3, 9),)),
    "convT": lambda: (nn.ConvTranspose2d(3, 2, 3), (images(),)),
    "res": lambda: (
        nn.Sequential(
            nn.Conv2d(3, 4, 3), ResBlock(4), ResBlock(4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
        ),
        (images(),),
    ),
    "bn": lambda: (nn.BatchNorm2d(3), (images(),)),
    "gn": lambda: (nn.GroupNorm(3, 3), (images(),)),
    "in": lambda: (nn.InstanceNorm2d(3, affine=True, track_running_stats=True), (images(),)),
    "ln": lambda: (nn.LayerNorm(4), rows()),
    "rms": lambda: (nn.RMSNorm(4), rows()),
    "lrn": lambda: (nn.LocalResponseNorm(2), (images(),)),
    "pool": lambda: (nn.Sequential(nn.MaxPool2d(2), nn.AvgPool2d(2)), (images(),)),
    "up": lambda: (nn.Upsample(scale_factor=2), (images(),)),
    "ps": lambda: (nn.PixelShuffle(2), (images(4),)),
    "drop": lambda: (nn.Dropout(0.4), rows()),
    "drop2": lambda: (nn.Dropout2d(0.4), (images(),)),
    "alpha": lambda: (nn.AlphaDropout(0.3), rows()),
    "emb": lambda: (nn.Embedding(9, 3, padding_idx=0), (rt.tensor([[1, 0, 3]]),)),
    "bag": lambda: (nn.EmbeddingBag(9, 3), (rt.tensor([[1, 2], [3, 4]]),)),
    "rnn": lambda: (nn.RNN(4, 3), (rt.rand(5, 2, 4),)),
    "lstm2": lambda: (nn.LSTM(4, 3, num_layers=2, bidirectional=True, dropout=0.2), (rt.rand(5, 2, 4),)),
    "gru": lambda: (nn.GRU(4, 3), (rt.rand(5, 2, 4),)),
    "lstmcell": lambda: (nn.LSTMCell(4, 3), rows()),
    "mha": lambda: (nn.MultiheadAttention(4, 2, batch_first=True), (rt.rand(2, 3, 4),) * 3),
    "enc": lambda: (
        nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, dropout=0.1, batch_first=True), 2),
        (rt.rand(2, 3, 4),),
    ),
    "tr": lambda: (nn.Transformer(4, 2, 1, 1, 8, dropout=0.0, batch_first=True), (rt.rand(2, 3, 4), rt.rand(2, 2, 4))),
    "vae": lambda: (VAE(), (rt.rand(2, 8),)),
    "kv": lambda: (KV(), (rt.rand(1, 1, 8),)),
    "gpt": lambda: (GPT(), (rt.tensor([[1, 2, 3]]),)),
    "moe": lambda: (MoE(), rows()),
    "lm": lambda: (TiedLM(), (rt.tensor([[1, 2, 3]]),)),
    "dict": lambda: (DictOut(), (rt.rand(2, 3),)),
    "wn": lambda: (WN(), rows()),
    "dense": lambda: (Dense(), rows()),
    "exit": lambda: (EarlyExit(), rows()),
    "bilinear": lambda: (nn.Bilinear(4, 4, 2), (rt.rand(3, 4), rt.rand(3, 4))),
    "spectral": lambda: (nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)), rows()),
    "wnorm": lambda: (nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), rows()),
    **{
        l: lambda l=l: (getattr(nn, l)(), (rt.rand(3, 4), rt.rand(3, 4)))
        for l in "MSELoss L1Loss SmoothL1Loss HuberLoss BCELoss BCEWithLogitsLoss KLDivLoss SoftMarginLoss".split()
    },
    "ce": lambda: (nn.CrossEntropyLoss(label_smoothing=0.1), (rt.rand(3, 4), rt.tensor([1, 2, 0]))),
    "nll": lambda: (nn.NLLLoss(), (rt.rand(3, 4), rt.tensor([1, 2, 0]))),
    "cos": lambda: (nn.CosineSimilarity(), (rt.rand(3, 4), rt.rand(3, 4))),
    "triplet": lambda: (nn.TripletMarginLoss(), (rt.rand(3, 4),) * 3),
    "ctc": lambda: (
        nn.CTCLoss(),
        (rt.rand(6, 2, 5).log_softmax(-1), rt.tensor([[1, 2], [3, 4]]), rt.tensor([6, 6]), rt.tensor([2, 2])),
    ),
}


def run_of(call, module, arguments, seed):
    """What a call returns, the gradients and the buffers."""
    rt.manual_seed(seed)
    inputs = [t.detach().clone().requires_grad_(t.is_floating_point()) for t in arguments]
    module.zero_grad()
    results = [t for t in tree_leaves(call(*inputs)) if isinstance(t, rt.Tensor)]
    losses = [t.float().sum() for t in results if t.requires_grad]
    if losses:
        sum(losses).backward()
    gradients = [t.grad for t in (*inputs, *module.parameters()) if t.grad is not None]
    return [t.detach().clone() for t in (*results, *gradients, *module.buffers())]
