"""Written in the chapter "The tensor as an object": its cells are this file, put together by `tools/mini.py`."""

import weakref


class Counted:
    """An object that lives as long as somebody holds it."""

    def __init__(self):
        self.strong = 0
        self.alive = True
        self._slot = lambda: None  # finds the wrapper, uncounted
        self._kept = None  # holds the wrapper, counted

    def retain(self):
        self.strong += 1
        if self.strong == 2:
            self._kept = self._slot()

    def release(self):
        self.strong -= 1
        if self.strong == 1:
            self._kept = None
        elif self.strong == 0:
            self.alive = False


class Wrapper:
    """What Python sees of a Counted, which it holds."""

    def __init__(self, impl):
        self.impl = impl
        impl._slot = weakref.ref(self)
        impl.retain()
        if impl.strong > 1:
            impl._kept = self

    def __del__(self):
        self.impl.release()


def wrap(impl):
    """The wrapper that there is, or a new one."""
    return impl._slot() or Wrapper(impl)
