"""Written in the chapter "torch.optim": its cells are this file, put together by `tools/mini.py`."""

import math

import numpy as np


class AdamW:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999),
                 eps=1e-8, weight_decay=0.01):
        self.param_groups = [{
            "params": list(params), "lr": lr, "betas": betas,
            "eps": eps, "weight_decay": weight_decay}]
        self.state = {}  # by identity: a tensor's == compares numbers

    def zero_grad(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.meta.grad = None

    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.update(p, p.grad.read(), group)

    def update(self, p, g, group):
        state = self.state.setdefault(id(p), {"t": 0, "m": 0, "v": 0})
        lr, (beta1, beta2) = group["lr"], group["betas"]
        state["t"] = t = state["t"] + 1
        state["m"] = m = state["m"] + (1 - beta1) * (g - state["m"])
        state["v"] = v = beta2 * state["v"] + (1 - beta2) * g * g
        size = np.sqrt(v) / math.sqrt(1 - beta2**t) + group["eps"]
        kept = p.read() * (1 - lr * group["weight_decay"])
        p.write(kept - lr / (1 - beta1**t) * (m / size))
