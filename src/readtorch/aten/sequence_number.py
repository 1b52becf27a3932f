"""The number of the next node of the graph: what is made later has a higher one.

In PyTorch: `aten/src/ATen/SequenceNumber.h`. Explained in the chapter "Autograd".
"""

# In PyTorch: a counter for each thread. One for all costs less, and nodes of two threads have an order, too. A range, other than
# `itertools.count`, says how far it has come.
_END = 2**62
_numbers = iter(range(_END))
next_sequence_nr = _numbers.__next__


def peek_sequence_nr():
    """The number that the next node gets."""
    return _END - _numbers.__length_hint__()
