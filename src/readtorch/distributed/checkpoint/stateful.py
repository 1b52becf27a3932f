"""Objects that a checkpoint can hold by their state. In PyTorch: `torch/distributed/checkpoint/stateful.py`."""

from typing import Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """What has `state_dict()` and `load_state_dict(state_dict)`: `save` asks for the state, `load` gives it back."""

    def state_dict(self): ...

    def load_state_dict(self, state_dict): ...


StatefulT = TypeVar("StatefulT", bound=Stateful)
