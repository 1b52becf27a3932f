"""What comes out of a network's layers while it is trained: mean, deviation and histogram, step by step.

Recorded by forward hooks, for the activation statistics of the chapter on normalization.
"""

from __future__ import annotations

import math

import numpy as np

MOST_RUNS = 4
MOST_LAYERS = 10
MOST_STEPS = 300
BINS = 30
SAMPLE = 1000  # so many numbers of a layer's output go into its histogram
OUTSIDE = 0.002  # the share of all numbers that may lie beyond each end of the histograms


def record_activations(runs, steps=60, layers=None) -> dict:
    """Train each network and look at what its layers put out -> JSON.

    runs: a dict or pairs of label and (module, train); `train(i)` makes the i-th training step, calls the module once,
    and may return the loss. layers: a class or a tuple of them, whose outputs are recorded; by default all modules that
    contain none. ValueError for more than can be drawn, or if no such layer was called.
    """
    pairs = list(runs.items() if hasattr(runs, "items") else runs)
    if not 1 <= len(pairs) <= MOST_RUNS:
        raise ValueError(f"{len(pairs)} runs; the activation statistics draw 1 to {MOST_RUNS}")
    if not 1 <= steps <= MOST_STEPS:
        raise ValueError(f"{steps} steps; the activation statistics draw 1 to {MOST_STEPS}")
    recorders = [_Recorder(label, *what, layers) for label, what in pairs]
    for recorder in recorders:
        recorder.run(steps)
    edges = edges_for([sample for recorder in recorders for of_step in recorder.samples for sample in of_step])
    return {
        "steps": steps,
        "edges": [round(float(edge), 6) for edge in edges],
        "runs": [recorder.described(edges) for recorder in recorders],
    }


class _Recorder:
    """One training. The lists have an entry for each step: an entry for each layer, in the order of their calls."""

    def __init__(self, label, module, train, layers):
        self.label, self.module, self.train = label, module, train
        self.names = {id(m): name or "net" for name, m in module.named_modules() if is_wanted(m, layers)}
        if not 1 <= len(self.names) <= MOST_LAYERS:
            raise ValueError(
                f"{len(self.names)} layers in {label!r}; the activation statistics draw 1 to {MOST_LAYERS}"
            )
        self.called = []  # names, in the order of the first step
        self.means, self.deviations, self.samples, self.losses = [], [], [], []

    def run(self, steps):
        handles = [m.register_forward_hook(self.look) for m in self.module.modules() if id(m) in self.names]
        try:
            for step in range(steps):
                for column in (self.means, self.deviations, self.samples):
                    column.append([])
                self.losses.append(plain(self.train(step)))
        finally:
            for handle in handles:
                handle.remove()
        if not self.called:
            raise ValueError(f"no layer of {self.label!r} was called")

    def look(self, module, args, output):
        values = np.asarray(output.detach().cpu().numpy(), dtype=np.float64).ravel()
        if len(self.means) == 1:
            self.called.append(self.names[id(module)])
        self.means[-1].append(plain(values.mean()))
        self.deviations[-1].append(plain(values.std()))
        finite = values[np.isfinite(values)]
        self.samples[-1].append(finite[:: max(1, len(finite) // SAMPLE)])

    def described(self, edges):
        histograms = [[shares(sample, edges) for sample in of_step] for of_step in self.samples]
        return {
            "label": self.label,
            "layers": self.called,
            "means": self.means,
            "deviations": self.deviations,
            "histograms": histograms,
            "losses": self.losses,
        }


def is_wanted(module, layers):
    if layers is not None:
        return isinstance(module, layers)
    return next(module.children(), None) is None


def plain(number):
    """A number for JSON, of four digits; None for one that is missing or not finite."""
    if number is None:
        return None
    number = number.item() if hasattr(number, "item") else number
    return float(f"{number:.4g}") if math.isfinite(number) else None


def edges_for(samples):
    """Ends of the histograms' bins: one scale for all."""
    values = np.concatenate(samples)
    if not len(values):
        return np.linspace(-1, 1, BINS + 1)
    low, high = np.quantile(values, [OUTSIDE, 1 - OUTSIDE])
    if low == high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, BINS + 1)


def shares(sample, edges):
    """How many of a thousand numbers are in each bin; what is beyond the ends is in the outermost ones."""
    counts, _ = np.histogram(np.clip(sample, edges[0], edges[-1]), edges)
    return [int(n) for n in np.rint(1000 * counts / max(1, len(sample)))]
