"""A model that fits into no memory: fake tensors give shapes, strides, parameter counts and the memory that a step would take."""

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
        self.heads = heads

    def forward(self, x):
        batch, length, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-1, -2) / (d // self.heads) ** 0.5).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, d))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self, words, d, layers, heads):
        super().__init__()
        self.embed = nn.Embedding(words, d)
        self.blocks = nn.Sequential(*[Block(d, heads) for _ in range(layers)])
        self.head = nn.Linear(d, words, bias=False)

    def forward(self, tokens):
        return self.head(self.blocks(self.embed(tokens)))


class Largest(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.best = (0, "")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for t in tree_leaves(result):
            if isinstance(t, torch.Tensor):
                self.best = max(self.best, (t.untyped_storage().nbytes(), f"{func} {tuple(t.shape)}"))
        return result


with FakeTensorMode() as mode:
    model = Model(words=100_000, d=16_384, layers=3, heads=128)
    tokens = torch.randint(100_000, (512, 4096))
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{parameters:,} parameters, {parameters * 4 / 2**30:.0f} GiB")
    print(
        type(tokens).__name__,
        tokens.device,
        isinstance(model.head.weight, nn.Parameter),
        type(model.head.weight.data).__name__,
    )
    with Largest() as largest:
        logits = model(tokens)
    print(tuple(logits.shape), logits.stride(), logits.dtype, logits.device, logits.grad_fn.name())
    print(f"largest: {largest.best[0] / 2**40:.1f} TiB by {largest.best[1]}")
    with Largest() as largest:
        loss = nn.functional.cross_entropy(logits.view(-1, 100_000), tokens.view(-1))
        loss.backward()
    print(f"backward: {largest.best[0] / 2**40:.1f} TiB by {largest.best[1]}", tuple(loss.shape))
    print({tuple(p.grad.shape) == tuple(p.shape) for p in model.parameters()}, model.embed.weight.grad.stride())
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    optimizer.step()
    state = [t for entry in optimizer.state.values() for t in entry.values() if t.ndim]
    print(
        f"optimizer {sum(t.numel() for t in state) * 4 / 2**30:.0f} GiB in {len(state)} tensors",
        {type(t).__name__ for t in state},
    )

real = Model(words=50, d=16, layers=1, heads=4)
tokens = torch.randint(50, (2, 7))
exact = real(tokens)
with FakeTensorMode(allow_non_fake_inputs=True) as mode:
    fake = real(mode.from_tensor(tokens))
print("as the real one:", fake.shape == exact.shape, fake.stride() == exact.stride(), fake.dtype == exact.dtype)
print(
    isinstance(fake, FakeTensor), isinstance(exact, FakeTensor), isinstance(fake, torch.Tensor), fake.fake_mode is mode
)
