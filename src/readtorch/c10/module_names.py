"""Which modules are ours, by their names: under `readtorch run` they have PyTorch's.

PyTorch has no such file: its modules have one name.
"""

import sys


def room_of(module):
    """ "nn.functional" for "readtorch.nn.functional", "" for "readtorch"; None for a module that is not ours.

    Under `readtorch run` the same rooms are called "torch.nn.functional" and "torch".
    """
    first, _, room = (module or "").partition(".")
    ours = first == "readtorch" or first == "torch" and sys.modules.get("torch") is sys.modules["readtorch"]
    return room if ours else None


def is_in(room, module):
    """Whether the name `module` names our `room` or a module within it."""
    return f"{room_of(module)}.".startswith(room + ".")
