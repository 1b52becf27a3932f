r"""L-BFGS. In PyTorch: `torch/optim/lbfgs.py`. See the chapter "torch.optim".

Newton's step d = -H g needs the inverse Hessian H. L-BFGS never has it: the last steps s = Δθ and the changes
y = Δg that they made say what H does to a vector (`_two_loops`). Then θ ← θ + t d, with t = lr or
from a search along the line.

    q ← -g
    for the pairs (s, y), newest first:   a ← (s·q) / (y·s),   q ← q - a y
    d ← (y·s) / (y·y) q                                        with the newest pair, a first guess of H
    for the pairs (s, y), oldest first:   b ← (y·d) / (y·s),   d ← d + (a - b) s

J. Nocedal: Updating quasi-Newton matrices with limited storage (1980); J. Nocedal, S. Wright: Numerical
optimization, algorithms 7.4 (the two loops), 3.5 and 3.6 (the line search).
"""

from typing import Any, NamedTuple

import readtorch

from .optimizer import Optimizer, _check_settings, _to_scalar

__all__ = ["LBFGS"]

# What one call of `step` leaves to the next, besides the counts.
_MEMORY = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")


class LBFGS(Optimizer):
    """Many steps in one `step(closure)`, each of which evaluates the closure. One group of parameters only.

    max_iter, max_eval: steps and evaluations in one call (max_eval 1.25 max_iter by default).
    line_search_fn: None or "strong_wolfe".
    """

    def __init__(
        self,
        params,
        lr=1,
        max_iter=20,
        max_eval=None,
        tolerance_grad=1e-7,
        tolerance_change=1e-9,
        history_size=100,
        line_search_fn=None,
    ) -> None:
        _check_settings(lr=lr)
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        defaults = dict(
            lr=lr,
            max_iter=max_iter,
            max_eval=max_eval,
            tolerance_grad=tolerance_grad,
            tolerance_change=tolerance_change,
            history_size=history_size,
            line_search_fn=line_search_fn,
        )
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]
        self._numel_cache = None

    @readtorch.no_grad()
    def step(self, closure):
        """closure: clears the gradients, computes the loss and its gradients, returns the loss."""
        groups = len(self.param_groups)
        assert groups == 1, f"Expected exactly one param_group, but got {groups}"
        group = self.param_groups[0]
        closure = readtorch.enable_grad()(closure)
        state = self.state[self._params[0]]  # one state for all parameters, kept with the first
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        orig_loss = closure()
        state["func_evals"] += 1
        flat_grad = self._gather_flat_grad()
        if not flat_grad.abs().max() <= group["tolerance_grad"]:
            memory = {name: state.get(name) for name in _MEMORY}
            self._iterate(group, state, memory, closure, float(orig_loss), flat_grad)
            state.update(memory)
        return orig_loss

    def _iterate(self, group, state, memory, closure, loss, flat_grad):
        """Steps until one of the limits is reached."""
        evaluations = 1
        for n_iter in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            d = memory["d"] = _new_direction(group, state, memory, flat_grad)
            t = memory["t"] = _first_step_size(group, state, flat_grad)
            memory["prev_flat_grad"], memory["prev_loss"] = flat_grad.clone(), loss
            slope = flat_grad.dot(d)
            if slope > -group["tolerance_change"]:
                break
            last = n_iter == group["max_iter"]
            if group["line_search_fn"] is not None:
                left = group["max_eval"] - evaluations
                loss, flat_grad, t, count = self._search(group, closure, t, d, loss, flat_grad, slope, left)
                memory["t"] = t
            else:
                self._add_grad(t, d)
                count = 0
                if not last:  # else nobody would use them
                    loss, flat_grad, count = float(closure()), self._gather_flat_grad(), 1
            evaluations += count
            state["func_evals"] += count
            if last or evaluations >= group["max_eval"] or _converged(group, memory, loss, flat_grad):
                break

    def _search(self, group, closure, t, d, loss, flat_grad, slope, left):
        """Go along d as far as the line search says, with at most `left` evaluations."""
        if group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        start = self._clone_param()

        def evaluate(x, t, d):
            return self._directional_evaluate(closure, x, t, d)

        found = _strong_wolfe(evaluate, start, t, d, loss, flat_grad, slope, max_ls=left)
        self._add_grad(found[2], d)
        return found

    # All parameters as one vector. Complex numbers count as pairs of real ones.

    def _numel(self):
        if self._numel_cache is None:
            self._numel_cache = sum(2 * p.numel() if p.is_complex() else p.numel() for p in self._params)
        return self._numel_cache

    def _gather_flat_grad(self):
        return readtorch.cat([_flat_grad(p) for p in self._params], 0)

    def _add_grad(self, step_size, update) -> None:
        """θ ← θ + step_size · update"""
        offset = 0
        for p in self._params:
            p = readtorch.view_as_real(p) if p.is_complex() else p
            numel = p.numel()
            p.add_(update[offset : offset + numel].view_as(p), alpha=step_size)
            offset += numel

    def _clone_param(self):
        return [p.clone(memory_format=readtorch.contiguous_format) for p in self._params]

    def _set_param(self, params_data) -> None:
        for p, pdata in zip(self._params, params_data):
            p.copy_(pdata)

    def _directional_evaluate(self, closure, x, t, d):
        """Loss and gradient at x + t d. The parameters are at x before and after."""
        self._add_grad(t, d)
        loss = float(closure())
        flat_grad = self._gather_flat_grad()
        self._set_param(x)
        return loss, flat_grad


def _flat_grad(p):
    if p.grad is None:
        view = p.new(p.numel()).zero_()
    elif p.grad.is_sparse:
        view = p.grad.to_dense().view(-1)
    else:
        view = p.grad.view(-1)
    return readtorch.view_as_real(view).view(-1) if view.is_complex() else view


def _new_direction(group, state, memory, flat_grad):
    """-H g, after the pair of the last step has joined the history."""
    if state["n_iter"] == 1:
        memory.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
        return flat_grad.neg()
    y = flat_grad.sub(memory["prev_flat_grad"])
    s = memory["d"].mul(memory["t"])
    ys = y.dot(s)
    if ys > 1e-10:  # H stays positive definite
        for name, entry in ("old_dirs", y), ("old_stps", s), ("ro", 1.0 / ys):
            if len(memory[name]) == group["history_size"]:
                memory[name].pop(0)
            memory[name].append(entry)
        memory["H_diag"] = ys / y.dot(y)
    al = state.setdefault("al", [None] * group["history_size"])
    return _two_loops(flat_grad, memory["old_dirs"], memory["old_stps"], memory["ro"], memory["H_diag"], al)


def _two_loops(flat_grad, old_dirs, old_stps, ro, H_diag, al):
    """The formula of the module. old_dirs: y; old_stps: s; ro: 1 / (y·s); al: takes the numbers a."""
    q = flat_grad.neg()
    for i in reversed(range(len(old_dirs))):
        al[i] = old_stps[i].dot(q) * ro[i]
        q.add_(old_dirs[i], alpha=-al[i])
    d = readtorch.mul(q, H_diag)
    for i in range(len(old_dirs)):
        be_i = old_dirs[i].dot(d) * ro[i]
        d.add_(old_stps[i], alpha=al[i] - be_i)
    return d


def _first_step_size(group, state, flat_grad):
    lr = _to_scalar(group["lr"])
    if state["n_iter"] == 1:  # nothing is known about the curvature yet
        return min(1.0, 1.0 / flat_grad.abs().sum()) * lr
    return lr


def _converged(group, memory, loss, flat_grad):
    small = group["tolerance_change"]
    return (
        flat_grad.abs().max() <= group["tolerance_grad"]
        or memory["d"].mul(memory["t"]).abs().max() <= small
        or abs(loss - memory["prev_loss"]) < small
    )


# Note [ Line search ]
#
# How far to go along a line: a step size t that satisfies the strong Wolfe conditions. With f(t) the loss at x + t d and
# f′(t) its slope, t must make the loss small enough and the line flat enough:
#
#     f(t) <= f(0) + c₁ t f′(0)   and   |f′(t)| <= c₂ |f′(0)|
#
# First t grows until a good one lies between the last two (`_bracket`); then these two are moved towards each other
# (`_zoom`). Where to try next is said by the cubic through two points and their slopes.


class Point(NamedTuple):
    """A point on the line: step size, loss, gradient, slope along the line."""

    t: Any
    f: float
    g: Any
    slope: Any


class Line:
    """The loss along x + t d; counts how often it was evaluated."""

    def __init__(self, obj_func, x, d):
        self.obj_func, self.x, self.d = obj_func, x, d
        self.evaluations = 0

    def __call__(self, t):
        f, g = self.obj_func(self.x, t, self.d)
        self.evaluations += 1
        return Point(t, f, g.clone(memory_format=readtorch.contiguous_format), g.dot(self.d))


def _strong_wolfe(obj_func, x, t, d, f, g, gtd, c1=1e-4, c2=0.9, tolerance_change=1e-9, max_ls=25):
    """Loss, gradient and step size t, and how many evaluations of `obj_func(x, t, d)` it took to find it.

    f, g, gtd: loss, gradient and slope at x; t: where to begin; max_ls: how often to move on.
    """
    line = Line(obj_func, x, d)
    start = Point(0, f, g.clone(memory_format=readtorch.contiguous_format), gtd)

    def too_high(point):
        return point.f > f + c1 * point.t * gtd

    def flat(point):
        return abs(point.slope) <= -c2 * gtd

    bracket, moves = _bracket(line, start, line(t), too_high, flat, max_ls)
    if len(bracket) == 1:
        best = bracket[0]
    else:
        least = tolerance_change / d.abs().max()  # nearer points than this are the same
        best = _zoom(line, bracket, moves, too_high, flat, max_ls, least)
    return best.f, best.g, best.t, line.evaluations


def _bracket(line, start, new, too_high, flat, max_ls):
    """[a good point] or [two points with good ones between them], and how many moves it took."""
    prev = start
    for moves in range(max_ls):
        if too_high(new) or (moves > 1 and new.f >= prev.f):
            return [prev, new], moves
        if flat(new):
            return [new], moves
        if new.slope >= 0:
            return [prev, new], moves
        bounds = new.t + 0.01 * (new.t - prev.t), new.t * 10
        t = _cubic_interpolate(prev.t, prev.f, prev.slope, new.t, new.f, new.slope, bounds)
        prev, new = new, line(t)
    return [start, new], max_ls


def _zoom(line, bracket, moves, too_high, flat, max_ls, least):
    """The best point found when one is good, the bracket is tiny, or the moves are used up."""
    low = _lower(bracket)
    hesitated = False
    while moves < max_ls and not abs(bracket[1].t - bracket[0].t) < least:
        (t0, f0, _, slope0), (t1, f1, _, slope1) = bracket
        t = _cubic_interpolate(t0, f0, slope0, t1, f1, slope1)
        t, hesitated = _away_from_ends(t, min(t0, t1), max(t0, t1), hesitated)
        new = line(t)
        moves += 1
        if too_high(new) or new.f >= bracket[low].f:
            bracket[1 - low] = new
            low = _lower(bracket)
            continue
        good = flat(new)
        if not good and new.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
            bracket[1 - low] = bracket[low]  # the line rises towards the other end: it is behind
        bracket[low] = new
        if good:
            break
    return bracket[low]


def _lower(bracket):
    """Which of the two points has the smaller loss."""
    return 0 if bracket[0].f <= bracket[1].f else 1


def _away_from_ends(t, low, high, hesitated):
    """A t near an end makes the bracket hardly smaller: allowed once, the next time t is moved inside."""
    margin = 0.1 * (high - low)
    if not min(high - t, t - low) < margin:
        return t, False
    if not (hesitated or t >= high or t <= low):
        return t, True
    return (high - margin if abs(t - high) < abs(t - low) else low + margin), False


def _cubic_interpolate(x1, f1, g1, x2, f2, g2, bounds=None):
    """Where the cubic with values f and slopes g at x1 and x2 is least, within the bounds or x1 and x2."""
    low, high = bounds if bounds is not None else ((x1, x2) if x1 <= x2 else (x2, x1))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    d2_square = d1**2 - g1 * g2
    if not d2_square >= 0:  # it has no minimum
        return (low + high) / 2.0
    d2 = d2_square.sqrt()
    if x1 <= x2:
        t = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        t = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(t, low), high)
