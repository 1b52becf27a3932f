"""The two recursions of the CTC loss, one sample after the other.

Note [ Paths through a label sequence ]
Between the labels of a target stand blanks, and one at each end: l₁ l₂ becomes _ l₁ _ l₂ _, states 0, 1, 2 …
At each step of time a path stays in its state, or goes to the next, or passes over a blank between two different
labels. alpha[t, s] sums the probabilities of all paths that are in state s at time t, beta[t, s] of all that go
on from there to the end. All numbers are logarithms.

In PyTorch: the loops in `aten/src/ATen/native/LossCTC.cpp`.
A. Graves et al.: Connectionist temporal classification (2006).
"""

import math

import numpy as np

from readtorch.aten.cpu.compile import kernel, scalar


@scalar
def label_of(state, target, blank):
    return target[state // 2] if state % 2 else blank


@scalar
def may_skip(state, earlier, target):
    """Whether a path may pass over the blank between `earlier` and `state`, two states further."""
    return state % 2 == 1 and target[state // 2] != target[earlier // 2]


@scalar
def log_add(a, b, c):
    largest = max(a, max(b, c))
    if largest == -np.inf:
        return largest
    return math.log(math.exp(a - largest) + math.exp(b - largest) + math.exp(c - largest)) + largest


@kernel
def losses(log_probs, targets, input_lengths, target_lengths, blank, log_alpha, out, begin, end):
    """Samples begin..end: out = -log Σ of all paths. log_alpha (N, T, S) holds -inf and is filled.

    log_probs (T, N, C), targets (N, L), S = 2 L + 1.
    """
    for n in range(begin, end):
        length, states, target, alpha = input_lengths[n], 2 * target_lengths[n] + 1, targets[n], log_alpha[n]
        nothing = log_probs.dtype.type(-np.inf)
        if length == 0:
            out[n] = math.inf if states > 1 else -log_probs.dtype.type(0)
            continue
        alpha[0, 0] = log_probs[0, n, blank]
        if states > 1:
            alpha[0, 1] = log_probs[0, n, target[0]]
        for t in range(1, length):
            before = alpha[t - 1]
            for s in range(states):
                one = before[s - 1] if s > 0 else nothing
                two = before[s - 2] if s > 1 and may_skip(s, s - 2, target) else nothing
                alpha[t, s] = log_add(before[s], one, two) + log_probs[t, n, label_of(s, target, blank)]
        last = alpha[length - 1]
        out[n] = -log_add(last[states - 1], last[states - 2] if states > 1 else nothing, nothing)


@kernel
def gradients(
    grad, log_probs, targets, input_lengths, target_lengths, nll, log_alpha, blank, zero_infinity, out, begin, end
):
    """The gradient of `losses` in out (T, N, C), which holds zeros. beta needs the next moment only."""
    nothing = log_probs.dtype.type(-np.inf)
    beta = np.empty(log_alpha.shape[2], log_probs.dtype)
    for n in range(begin, end):
        if zero_infinity and nll[n] == np.inf:
            continue
        length, states, target = input_lengths[n], 2 * target_lengths[n] + 1, targets[n]
        for t in range(length - 1, -1, -1):
            through = out[t, n]  # log of what all paths through each label at t sum to
            through[:] = nothing
            for s in range(states):  # ascending: beta[s + 1] and beta[s + 2] still belong to the next moment
                label = label_of(s, target, blank)
                if t == length - 1:
                    ahead = nothing if s < states - 2 else log_probs.dtype.type(0)
                else:
                    one = beta[s + 1] if s + 1 < states else nothing
                    two = beta[s + 2] if s + 2 < states and may_skip(s + 2, s, target) else nothing
                    ahead = log_add(beta[s], one, two)
                beta[s] = ahead + log_probs[t, n, label]
                through[label] = log_add(through[label], log_alpha[n, t, s] + beta[s], nothing)
            for c in range(through.size):
                lp = log_probs[t, n, c]
                through[c] = (math.exp(lp) - math.exp(through[c] + nll[n] - lp)) * grad[n]
