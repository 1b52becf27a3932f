"""The interpreter of a `vmap`: it runs operators on whole batches.

In PyTorch: `aten/src/ATen/functorch/VmapInterpreter.cpp`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.c10.dispatch_key import BACKENDS, BATCHED, GRAD_WRAPPER, VMAP_MODE

from .interpreter import Interpreter, RandomnessType, TransformType
from .tensor_wrapper import without_dead

SEEN = BATCHED | BACKENDS  # what decides what vmap does with a call; autograd is the business of other levels

# Operators that vmap looks at though no argument is batched: those that draw random numbers. See batch_rules_randomness.py.
interposed = set()


class VmapInterpreter(Interpreter):
    """batch_size: how many examples. randomness: a RandomnessType."""

    __slots__ = ("batch_size", "randomness")
    kind = TransformType.Vmap

    def __init__(self, batch_size, randomness=RandomnessType.Error):
        super().__init__()
        self.batch_size = batch_size
        self.randomness = randomness

    def process(self, operator, keys, arguments):
        if keys & GRAD_WRAPPER:
            alive = without_dead(arguments)
            if alive is not arguments:
                return operator.call(*alive)
        if keys & BATCHED or operator in interposed:
            return operator.table[keys & SEEN | VMAP_MODE](*arguments)
        return self.send_below(operator.call, arguments)
