"""Written in the chapter "Process groups, DDP and SyncBatchNorm": its cells are this file, put together by `tools/mini.py`."""

import queue
import threading

import numpy as np


class Rank:
    """One of n programs, with a line to each of the others."""

    def __init__(self, rank, size, lines):
        self.rank, self.size, self.lines = rank, size, lines
        self.left = (rank - 1) % size
        self.right = (rank + 1) % size
        self.sent = 0  # bytes

    def send(self, array, to):
        self.sent += array.nbytes
        self.lines[self.rank, to].put(array.copy())

    def recv(self, source):
        return self.lines[source, self.rank].get(timeout=60)

    def reduce_scatter(self, parts):
        """The sum of every rank's part number `rank`."""
        parts = list(parts)
        for step in range(1, self.size):
            self.send(parts[self.rank - step], self.right)
            growing = self.rank - step - 1
            parts[growing] = parts[growing] + self.recv(self.left)
        return parts[self.rank]

    def all_gather(self, part):
        """The parts of all ranks, in their order."""
        parts = [part] * self.size
        for step in range(self.size - 1):
            self.send(parts[self.rank - step], self.right)
            parts[self.rank - step - 1] = self.recv(self.left)
        return parts

    def all_reduce(self, array):
        """The sum of all ranks' arrays: one after the other."""
        parts = np.array_split(array.reshape(-1), self.size)
        whole = self.all_gather(self.reduce_scatter(parts))
        return np.concatenate(whole).reshape(array.shape)


def run_ranks(size, program):
    """program(rank) on `size` threads; what each returns."""
    lines = {(a, b): queue.Queue()
             for a in range(size) for b in range(size)}
    found, errors = [None] * size, []

    def run(number):
        try:
            found[number] = program(Rank(number, size, lines))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,))
               for number in range(size)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]
    return found
