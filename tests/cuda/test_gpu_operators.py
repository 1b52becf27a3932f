"""Operators on a real GPU, called as PyTorch's own list of samples says, against PyTorch on the CPU."""

import pytest
import torch

from tests.conformance import catalog, runner
from tests.reference import tensors_on

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]


def missing_kernel(finding):
    """An operator that says that it has no CUDA kernel does what it should."""
    return "from the 'CUDA' backend" in finding.reason


# Two devices draw other numbers from one seed; samples of factories name the CPU; a device's max_pool1d is a view, the CPU's is not.
# Samples of `to` copy to the host with non_blocking=True, and look at the numbers without waiting.
RANDOM = (
    "multinomial",
    "rand_like",
    "randn",
    "normal",
    "bernoulli",
    "nn.functional.dropout",
    "nn.functional.dropout2d",
)
FACTORIES = ("zeros", "ones", "full", "eye", "arange", "linspace", "empty")
OTHER_ON_DEVICES = (*RANDOM, *FACTORIES, "nn.functional.scaled_dot_product_attention", "nn.functional.max_pool1d", "to")


@pytest.mark.parametrize(
    "name", [n for n in catalog.passing_names() if n in catalog.core_names() and n not in OTHER_ON_DEVICES]
)
def test_operators(name):
    with tensors_on("cuda"):
        report = runner.run_op(name, [torch.float32], limit=None, errors=False)
    failures = [f for f in report.failures if not missing_kernel(f)]
    assert not failures, failures[:2]
    if report.failures:
        pytest.skip(report.failures[0].reason)
