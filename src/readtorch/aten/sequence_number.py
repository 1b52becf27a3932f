"""The number of the next node of the graph: what is made later has a higher one.

In PyTorch: `aten/src/ATen/SequenceNumber.h`. Explained in the chapter "Autograd".
"""

import itertools

# In PyTorch: a counter for each thread. One for all costs less, and nodes of two threads have an order, too.
_counter = itertools.count()
next_sequence_nr = _counter.__next__


def peek_sequence_nr():
    """The number that the next node gets."""
    return int(repr(_counter)[6:-1])  # "count(7)"
