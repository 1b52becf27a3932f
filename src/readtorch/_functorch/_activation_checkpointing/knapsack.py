"""Which results to save if there is room for some: the knapsack problem. In PyTorch:
`torch/_functorch/_activation_checkpointing/knapsack.py`.

Each takes what results need (memory, as shares of the room for all), what it costs to compute them again (runtime) and how much room there
is, and returns (the runtime that is saved, numbers of results to save, numbers of those to compute again).
"""

import numpy as np

SCALE = 10_000  # memory is counted in ten-thousandths


def greedy_knapsack(memory, runtime, max_memory):
    """The results first whose recomputation costs most for the memory that they need."""
    by_worth = sorted(range(len(memory)), key=lambda i: runtime[i] / memory[i], reverse=True)
    saved, recomputed, used, gained = [], [], 0.0, 0.0
    for i in by_worth:
        if used + memory[i] <= max_memory:
            used, gained = used + memory[i], gained + runtime[i]
            saved.append(i)
        else:
            recomputed.append(i)
    return gained, saved, recomputed


def dp_knapsack(memory, runtime, max_memory):
    """The best choice: best[i, m] is the most runtime that the first i results save in m units of memory."""
    sizes = [round(m * SCALE) for m in memory]
    room = round(max_memory * SCALE)
    best = np.zeros((len(sizes) + 1, room + 1), np.float32)
    for i, (size, gain) in enumerate(zip(sizes, np.float32(runtime)), 1):
        best[i] = best[i - 1]
        if size == 0:
            best[i] += gain
        elif size <= room:
            np.maximum(best[i - 1, size:], best[i - 1, :-size] + gain, out=best[i, size:])
    saved, recomputed, left = [], [], room
    for i in range(len(sizes), 0, -1):
        if best[i, left] != best[i - 1, left]:
            saved.append(i - 1)
            left -= sizes[i - 1]
        else:
            recomputed.append(i - 1)
    return float(best[-1, room]), saved[::-1], recomputed
