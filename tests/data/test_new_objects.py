"""Every dataset, sampler and loader, made with its defaults and with one argument changed: the same attributes, the same refusals."""

import pytest
import torch

import readtorch.utils.data
from tests.new_objects import arguments_of, new, subclassed, variations

KNOWN = {
    "data_source": [1, 2, 3],
    "sampler": [1, 2, 3],
    "indices": [0, 2],
    "weights": [0.5, 1.0],
    "dataset": [5, 6, 7],
    "datasets": [[5, 6], [7]],
    "drop_last": True,
    "generator": None,
}
NAMES = [
    "BatchSampler",
    "ConcatDataset",
    "DataLoader",
    "DistributedSampler",
    "RandomSampler",
    "SequentialSampler",
    "Subset",
]
NAMES += ["SubsetRandomSampler", "WeightedRandomSampler", "ChainDataset", "StackDataset", "TensorDataset"]


@pytest.mark.parametrize("name", NAMES)
def test_a_new_object(name):
    theirs = getattr(torch.utils.data, name)
    given = arguments_of(theirs, KNOWN)
    if name == "DistributedSampler":
        given |= {"num_replicas": 2, "rank": 1}
    for changed in variations(theirs):
        expected, ours = (new(lambda T=T: getattr(T.utils.data, name)(**given | changed)) for T in (torch, readtorch))
        assert ours == expected, changed


@pytest.mark.parametrize("name", NAMES)
def test_a_new_class(name):
    assert subclassed(getattr(readtorch.utils.data, name)) == subclassed(getattr(torch.utils.data, name))
