"""Atomic operations: read an element, write a function of it, and give the old value back, in one step."""

import numpy as np

from .arithmetic import wrapped


class Atomic:
    """cuda.atomic. Every method takes (array, index, …) and returns what was there before."""

    def __init__(self, language):
        self.language = language

    def add(self, array, index, value):
        return self._update(array, index, lambda old, value: old + value, value)

    def sub(self, array, index, value):
        return self._update(array, index, lambda old, value: old - value, value)

    def and_(self, array, index, value):
        return self._update(array, index, lambda old, value: old & value, value)

    def or_(self, array, index, value):
        return self._update(array, index, lambda old, value: old | value, value)

    def xor(self, array, index, value):
        return self._update(array, index, lambda old, value: old ^ value, value)

    def inc(self, array, index, value):
        """Count up to `value`, then start again at 0."""
        return self._update(array, index, lambda old, top: old + 1 if old < top else 0, value)

    def dec(self, array, index, value):
        """Count down to 0, then start again at `value`."""
        return self._update(array, index, lambda old, top: top if old == 0 or old > top else old - 1, value)

    def exch(self, array, index, value):
        return self._update(array, index, lambda old, value: value, value)

    def max(self, array, index, value):
        """The greater; a nan that is there stays, one that comes is dropped."""
        return self._update(array, index, lambda old, value: value if value > old else old, value)

    def min(self, array, index, value):
        return self._update(array, index, lambda old, value: value if value < old else old, value)

    def nanmax(self, array, index, value):
        """The greater of the numbers: a nan never wins."""
        return self._update(array, index, np.fmax, value)

    def nanmin(self, array, index, value):
        return self._update(array, index, np.fmin, value)

    def cas(self, array, index, old, value):
        """Write `value` if `old` is there. Who fails lets the others run: it will try again."""
        expected = wrapped(array.dtype, old)
        found = self._update(array, index, lambda there, value: value if there == expected else there, value)
        if found != expected:
            self.language.wait("pause")
        return found

    def compare_and_swap(self, array, old, value):
        return self._update(array, 0, lambda there, value: value if there == old else there, value)

    @staticmethod
    def _update(array, index, function, value):
        kind = array.dtype
        return array.update(index, lambda old: wrapped(kind, function(old, wrapped(kind, value))))
