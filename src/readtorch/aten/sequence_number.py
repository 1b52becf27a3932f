"""The number of the next node of the graph: what is made later has a higher one.

In PyTorch: `aten/src/ATen/SequenceNumber.h`. Explained in the chapter "Autograd".
"""

import itertools

# In PyTorch: a counter for each thread. One for all costs less, and nodes of two threads have an order, too.
next_sequence_nr = itertools.count().__next__


def peek_sequence_nr():
    """The number that the next node gets."""
    return int(repr(next_sequence_nr.__self__)[len("count(") : -1])
