r"""L-BFGS. In PyTorch: `torch/optim/lbfgs.py`. See the chapter "torch.optim".

Newton's step d = -H g needs the inverse Hessian H. L-BFGS never has it: the last steps s = Δθ and the changes
y = Δg that they made say what H does to a vector (`_two_loops`). Then θ ← θ + t d, with t = lr or
from a search along the line.

    q ← -g
    for the pairs (s, y), newest first:   a ← (s·q) / (y·s),   q ← q - a y
    d ← (y·s) / (y·y) q                                        with the newest pair, a first guess of H
    for the pairs (s, y), oldest first:   b ← (y·d) / (y·s),   d ← d + (a - b) s

J. Nocedal: Updating quasi-Newton matrices with limited storage (1980); J. Nocedal, S. Wright: Numerical
optimization, algorithms 7.4 (the two loops), 3.5 and 3.6 (line search: `line_search.py`).
"""
import readtorch
from readtorch.optim._common import _check_lr, _to_scalar
from readtorch.optim.line_search import _cubic_interpolate, _strong_wolfe  # noqa: F401
from readtorch.optim.optimizer import Optimizer

__all__ = ["LBFGS"]

# What one call of `step` leaves to the next, besides the counts.
_MEMORY = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")


class LBFGS(Optimizer):
    """Many steps in one `step(closure)`, each of which evaluates the closure. One group of parameters only.

    max_iter, max_eval: steps and evaluations in one call (max_eval 1.25 max_iter by default).
    line_search_fn: None or "strong_wolfe".
    """

    def __init__(
        self, params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9,
        history_size=100, line_search_fn=None,
    ) -> None:
        _check_lr(lr)
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        defaults = {
            "lr": lr, "max_iter": max_iter, "max_eval": max_eval, "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
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
