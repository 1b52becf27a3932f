import pytest
import torch


@pytest.fixture(autouse=True)
def validation_is_on():
    """In PyTorch, too: `torch.compile` switches it off for the whole process."""
    previous = torch.distributions.Distribution._validate_args
    torch.distributions.Distribution.set_default_validate_args(True)
    yield
    torch.distributions.Distribution.set_default_validate_args(previous)
