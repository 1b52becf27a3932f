"""In PyTorch: `torch/utils/_thunk.py`."""


class Thunk:
    """What is worked out when it is first asked for."""

    def __init__(self, function):
        self.function, self.result = function, None

    def force(self):
        if self.function is not None:
            self.result, self.function = self.function(), None
        return self.result
