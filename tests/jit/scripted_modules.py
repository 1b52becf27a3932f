"""Modules to script: each is compiled by the reference and by readtorch from this one text (see
`both_libraries.py`).
"""

from typing import Dict, Final, List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.scale: float = 0.5

    def forward(self, x):
        y = torch.tanh(self.fc(x))
        return y * self.scale if y.mean() > 0 else y


class Attributes(nn.Module):
    __constants__ = ["sizes", "name"]
    depth: Final[int]
    table: Dict[str, int]

    def __init__(self):
        super().__init__()
        self.sizes = (2, 3)
        self.name = "a name"
        self.depth = 4
        self.table = {"a": 1}
        self.numbers = [1, 2, 3]
        self.flag = True
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("nothing", None)
        self.weight = nn.Parameter(torch.ones(3))
        self.bias = None

    def forward(self, x):
        self.count += 1
        total = x * self.depth + self.sizes[0]
        if self.flag and self.nothing is None and self.bias is None:
            total = total * self.weight
        for n in self.numbers:
            total = total + n
        return total + self.table["a"], self.count, self.name, len(self.sizes)


class Methods(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def helper(self, x, n: int):
        return self.again(x) * n

    def again(self, x):
        return torch.relu(self.fc(x))

    @torch.jit.export
    def exported(self, x, k: int = 2) -> Tensor:
        return self.helper(x, k)

    @torch.jit.unused
    def never(self, x):
        return x.no_such_thing()

    @staticmethod
    def static(x, n: int):
        return x + n

    def forward(self, x, use: bool = False):
        if use:
            return self.never(x)
        return self.helper(x, 3) + self.static(x, 1)


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3)])
        self.named = nn.ModuleDict({"first": nn.Linear(3, 3), "second": nn.ReLU()})
        self.seq = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.LayerNorm(4))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        for i, layer in enumerate(self.layers):
            x = x + layer(x) * i
        for name, module in self.named.items():
            if name == "first":
                x = module(x)
            else:
                x = module(x) + 1
        x = self.layers[0](x) + self.named["second"](x) + self.layers[-1](x)
        for module in self.named.values():
            x = module(x)
        return self.seq(x), len(self.layers)


class Inner(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.fc = nn.Linear(n, n)
        self.n = n

    def forward(self, x, mask: Optional[Tensor] = None):
        y = self.fc(x)
        if mask is not None:
            y = y * mask
        return y, self.n


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Inner(3)
        self.b = Inner(3)
        self.drop = nn.Dropout(0.5)
        self.missing = None

    def forward(self, x):
        y, n = self.a(x)
        z, m = self.b(y, x)
        if self.missing is not None:
            z = self.missing(z)
        return self.drop(z) + n * m


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 0
        self.history = torch.jit.Attribute([], List[Tensor])
        self.last = torch.jit.Attribute(None, Optional[Tensor])

    def forward(self, x):
        self.steps += 1
        self.history.append(x)
        previous = self.last
        if previous is not None:
            x = x + previous
        self.last = x
        return x, self.steps, len(self.history)


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, padding=1)
        self.bn = nn.BatchNorm2d(2)
        self.pool = nn.MaxPool2d(2)
        self.out = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 3), nn.Softmax(dim=1))

    def forward(self, x):
        x = self.pool(F.relu(self.bn(self.conv(x))))
        return self.out(x)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.lstm = nn.LSTM(4, 5, batch_first=True, num_layers=2)
        self.gru = nn.GRU(5, 3, batch_first=True)

    def forward(self, tokens):
        x, (h, c) = self.lstm(self.embedding(tokens))
        y, last = self.gru(x)
        return y, h, c, last


class Property(nn.Module):
    def __init__(self):
        super().__init__()
        self.value = 3

    @property
    def double(self) -> int:
        return self.value * 2

    def forward(self, x):
        return x * self.double


class WithLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x, target):
        y = self.fc(x)
        return self.loss(y, target) + F.mse_loss(y, y * 2) + F.cross_entropy(y, target, reduction="sum")


class Returns(nn.Module):
    def forward(self, xs: List[Tensor], d: Dict[str, Tensor]) -> Tuple[Tensor, Dict[str, Tensor]]:
        out = {}
        for k, v in d.items():
            out[k] = v * 2
        return torch.cat(xs), out


class Attention(nn.Module):
    def __init__(self, d: int = 4, heads: int = 2):
        super().__init__()
        self.d, self.heads = d, heads
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)

    def forward(self, x):
        n, length, _ = x.shape
        q, k, v = self.qkv(x).view(n, length, 3, self.heads, self.d // self.heads).permute(2, 0, 3, 1, 4).unbind()
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(n, length, self.d))


def cases():
    """(module, arguments)"""
    torch.manual_seed(0)
    x = torch.randn(4, 3)
    image = torch.randn(2, 1, 6, 6)
    tokens = torch.tensor([[1, 2, 3], [4, 5, 6]])
    return [
        (Net(), (x,)),
        (Attributes(), (x,)),
        (Methods(), (x,)),
        (Layers(), (x,)),
        (Outer().eval(), (x,)),
        (Stateful(), (x,)),
        (Convolutional(), (image,)),
        (Convolutional().eval(), (image,)),
        (Recurrent(), (tokens,)),
        (Property(), (x,)),
        (WithLoss(), (x, torch.tensor([0, 1, 2, 3]))),
        (Returns(), ([x, x], {"a": x})),
        (Attention(), (torch.randn(2, 3, 4),)),
        (nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1), nn.Sigmoid()), (x,)),
    ]
