"""Written in the chapter "Schedulers and SWA": its cells are this file, put together by `tools/mini.py`."""

import math
from bisect import bisect_right


class Scheduler:
    def __init__(self, optimizer):
        self.optimizer = optimizer
        groups = optimizer.param_groups
        for group in groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [group["initial_lr"] for group in groups]
        self.last_epoch = -1
        self.begin()

    def begin(self):
        """From epoch -1 to 0: the first rates are written."""
        self.is_initial = True
        self.step()
        self.is_initial = False

    def step(self):
        self.last_epoch += 1
        t = self.last_epoch
        before = 1 if self.is_initial else self.factor(t - 1)
        for group, base_lr in self.pairs():
            if before:
                group["lr"] *= self.factor(t) / before
            else:  # nothing times any ratio is nothing
                group["lr"] = base_lr * self.factor(t)

    def jump(self, epoch):
        self.last_epoch = epoch
        for group, base_lr in self.pairs():
            group["lr"] = base_lr * self.factor(epoch)

    def pairs(self):
        return zip(self.optimizer.param_groups, self.base_lrs)

    def state_dict(self):
        return {name: value for name, value in vars(self).items()
                if name != "optimizer"}

    def load_state_dict(self, state_dict):
        vars(self).update(state_dict)


class ExponentialLR(Scheduler):
    def __init__(self, optimizer, gamma):
        self.gamma = gamma
        super().__init__(optimizer)

    def factor(self, t):
        return self.gamma**t


class LinearLR(Scheduler):
    def __init__(self, optimizer, start, end, total):
        self.start, self.end, self.total = start, end, total
        super().__init__(optimizer)

    def factor(self, t):
        rise = self.end - self.start
        return self.start + rise * min(t, self.total) / self.total


class CosineAnnealingLR(Scheduler):
    def __init__(self, optimizer, T_max):
        self.T_max = T_max
        super().__init__(optimizer)

    def factor(self, t):
        return (1 + math.cos(math.pi * t / self.T_max)) / 2


class SequentialLR:
    def __init__(self, optimizer, schedulers, milestones):
        self.schedulers, self.milestones = schedulers, milestones
        self.last_epoch = 0
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for scheduler in schedulers:
            scheduler.last_epoch -= 1
        schedulers[0].begin()

    def step(self):
        self.last_epoch += 1
        i = bisect_right(self.milestones, self.last_epoch)
        if self.last_epoch in self.milestones:
            self.schedulers[i].jump(0)
        else:
            self.schedulers[i].step()
