"""torchdiffeq: an ODE by three solvers and its adjoint; with torchinfo a summary, lion_pytorch a step, ema_pytorch averages"""

import torch
from ema_pytorch import EMA
from lion_pytorch import Lion
from report import report
from torchdiffeq import odeint, odeint_adjoint
from torchinfo import summary

torch.manual_seed(0)


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))

    def forward(self, t, y):
        return self.net(y) * (1 + t)


field = Field().double()
start, times = torch.tensor([[1.0, 0.5]], dtype=torch.float64), torch.linspace(0, 1, 4).double()
for method in ("dopri5", "rk4", "euler"):
    report(method, odeint(field, start, times, method=method))
odeint_adjoint(field, start, times).square().sum().backward()
report("adjoint's gradients", [p.grad for p in field.parameters()])

net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 2))
found = summary(net, (1, 3, 8, 8), verbose=0)
report("summary", [found.total_params, found.trainable_params, found.total_mult_adds, len(str(found).splitlines())])
ema = EMA(net, beta=0.9, update_after_step=1, update_every=1)
optimizer = Lion(net.parameters(), lr=1e-2, weight_decay=1e-2)
for _ in range(4):
    optimizer.zero_grad()
    net(torch.randn(5, 3, 8, 8)).square().mean().backward()
    optimizer.step()
    ema.update()
report("after Lion", [p.detach() for p in net.parameters()])
report("averages", ema(torch.ones(1, 3, 8, 8)))
