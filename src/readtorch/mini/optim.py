"""Written in the chapter "torch.optim": its cells are this file, put together by `tools/mini.py`."""

import math

import numpy as np


class Optimizer:
    """Groups of parameters, and what is remembered of each."""

    def __init__(self, params, **defaults):
        self.defaults, self.state = defaults, {}
        self.param_groups, self.step_pre_hooks = [], []
        params = list(params)
        if not params:
            raise ValueError("optimizer got an empty parameter "
                             "list")
        grouped = isinstance(params[0], dict)
        for group in params if grouped else [{"params": params}]:
            self.add_param_group(group)

    def add_param_group(self, group):
        params = list(group["params"])
        if any(p.grad_fn for p in params):
            raise ValueError("can't optimize a non-leaf Tensor")
        if any(p in self.params() for p in params):
            raise ValueError("some parameters appear in more "
                             "than one parameter group")
        filled = {**self.defaults, **group, "params": params}
        self.param_groups.append(filled)

    def params(self):
        return [p for group in self.param_groups
                for p in group["params"]]

    def zero_grad(self):
        for p in self.params():
            p.meta.grad = None

    def step(self):
        for hook in self.step_pre_hooks:
            hook(self)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    state = self.state.setdefault(p, {})
                    old, g = p.read(), p.grad.read()
                    p.write(self.update(old, g, state, group))

    def state_dict(self):
        place = {p: i for i, p in enumerate(self.params())}
        groups = [{**g, "params": [place[p] for p in g["params"]]}
                  for g in self.param_groups]
        state = {place[p]: s for p, s in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, saved):
        theirs, ours = saved["param_groups"], self.param_groups
        if sizes_of(theirs) != sizes_of(ours):
            raise ValueError("loaded state dict has groups of "
                             "other sizes")
        places = [i for group in theirs for i in group["params"]]
        self.state = {p: fit(saved["state"][i], p.dtype)
                      for i, p in zip(places, self.params())
                      if i in saved["state"]}
        self.param_groups = [
            {**their, "params": our["params"]}
            for their, our in zip(theirs, ours)]


class SGD(Optimizer):
    def __init__(self, params, lr=1e-3, momentum=0,
                 weight_decay=0):
        super().__init__(params, lr=lr, momentum=momentum,
                         weight_decay=weight_decay)

    def update(self, p, g, state, group):
        g = g + group["weight_decay"] * p
        if group["momentum"]:
            b = state.get("momentum_buffer")
            b = g if b is None else group["momentum"] * b + g
            state["momentum_buffer"] = g = b
        return p - group["lr"] * g


class AdamW(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999),
                 eps=1e-8, weight_decay=0.01):
        super().__init__(params, lr=lr, betas=betas, eps=eps,
                         weight_decay=weight_decay)

    def update(self, p, g, state, group):
        lr, (beta1, beta2) = group["lr"], group["betas"]
        state["step"] = t = state.get("step", 0) + 1
        m, v = state.get("exp_avg", 0), state.get("exp_avg_sq", 0)
        state["exp_avg"] = m = m + (1 - beta1) * (g - m)
        state["exp_avg_sq"] = v = beta2 * v + (1 - beta2) * g * g
        root = np.sqrt(v) / math.sqrt(1 - beta2**t)
        kept = p * (1 - lr * group["weight_decay"])
        step_size = lr / (1 - beta1**t)
        return kept - step_size * (m / (root + group["eps"]))


def sizes_of(groups):
    return [len(group["params"]) for group in groups]


def fit(state, dtype):
    """In the parameter's dtype, but for the count of steps."""
    return {key: float(value) if key == "step"
            else np.asarray(value, dtype)
            for key, value in state.items()}
