"""Small networks trained on a device whose memory only kernels and copies may touch: `python -m
tests.cuda.networks NAME` prints what came of it there and on the CPU as JSON.

A process of its own, as an element that the host reads by itself ends it with a segmentation fault: Note [
Two kinds of simulated devices ].
"""

import faulthandler
import json
import sys

import readtorch as rt
from readtorch import cuda, nn
from readtorch.nn import functional as F
from tests.training import models


class ResidualBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.conv2, self.norm2 = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.shortcut, self.head = nn.Conv2d(3, 4, 1), nn.Linear(4, 3)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        y = F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))
        return self.head(F.adaptive_avg_pool2d(F.max_pool2d(y, 2), 1).flatten(1))


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm, self.head = (nn.Embedding(7, 4), nn.LSTM(4, 5, batch_first=True), nn.Linear(5, 7))

    def forward(self, x):
        return self.head(self.lstm(self.embedding(x))[0])


def texts(length):
    return rt.randint(0, 7, (2, length)), rt.randint(0, 7, (2, length))


NETWORKS = {
    "mlp": (
        lambda: nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3)),
        lambda: (rt.randn(4, 6), rt.tensor([0, 1, 2, 1])),
    ),
    "cnn": (ResidualBlock, lambda: (rt.randn(2, 3, 6, 6), rt.tensor([0, 2]))),
    "lstm": (Reader, lambda: texts(3)),
    "gpt": (lambda: models.gpt(rt, layers=1, d=8, heads=2, context=4, vocabulary=7), lambda: texts(4)),
}
OPTIMIZERS = {
    "mlp": lambda p: rt.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "cnn": lambda p: rt.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3),
    "lstm": lambda p: rt.optim.Adam(p, lr=1e-2),
    "gpt": lambda p: rt.optim.AdamW(p, lr=1e-2),
}


def trained(name, place):
    """The loss, and the sums of the squares of the parameters after the step that followed from it."""
    build, make_batch = NETWORKS[name]
    rt.manual_seed(0)
    model = build().to(place)
    x, target = [t.to(place) for t in make_batch()]
    optimizer = OPTIMIZERS[name](model.parameters())
    scores = model(x)
    loss = F.cross_entropy(scores.reshape(-1, scores.shape[-1]), target.reshape(-1))
    loss.backward()
    optimizer.step()
    assert all(p.device.type == p.grad.device.type == place for p in model.parameters())
    return [loss.item(), *[p.detach().cpu().square().sum().item() for p in model.parameters()]]


if __name__ == "__main__":
    faulthandler.enable()
    cuda.simulate(1, "64MiB", kernels=True, locked=True)
    print(json.dumps({place: trained(sys.argv[1], place) for place in ("cpu", "cuda")}))
