r"""How far to go along a line: a step size t that satisfies the strong Wolfe conditions.

With f(t) the loss at x + t d and f′(t) its slope, t must make the loss small enough and the line flat enough:

    f(t) <= f(0) + c₁ t f′(0)   and   |f′(t)| <= c₂ |f′(0)|

First t grows until a good one lies between the last two (`_bracket`); then these two are moved towards each
other (`_zoom`). Where to try next is said by the cubic through two points and their slopes.

In PyTorch: `torch/optim/lbfgs.py`. J. Nocedal, S. Wright: Numerical optimization, algorithms 3.5 and 3.6.
"""
from typing import Any, NamedTuple

import readtorch


class Point(NamedTuple):
    """A place on the line: step size, loss, gradient, slope along the line."""

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
    if not d2_square >= 0:  # it has no least place
        return (low + high) / 2.0
    d2 = d2_square.sqrt()
    if x1 <= x2:
        t = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        t = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(t, low), high)
