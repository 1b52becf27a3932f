"""Datasets next to the reference."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import readtorch.utils.data
from tests.programs import same


def stream(T, *values):
    class Stream(T.utils.data.IterableDataset):
        def __iter__(self):
            return iter(values)

        def __len__(self):
            return len(values)

    return Stream()


def batched(T, values, lose=0):
    """A dataset that answers for a whole batch, and says when it is asked."""

    class Batched(T.utils.data.Dataset):
        def __getitem__(self, index):
            return values[index]

        def __getitems__(self, indices):
            return [f"{values[index]}!" for index in indices][lose:]

        def __len__(self):
            return len(values)

    return Batched()


def test_tensor_dataset():
    def program(T, show):
        D = T.utils.data
        dataset = D.TensorDataset(T.arange(6).view(3, 2), T.tensor([5, 6, 7]))
        show(len(dataset), dataset[1], dataset[-1], dataset[[0, 2]], dataset[1:], *dataset)
        show(list(vars(dataset)))
        show.error(lambda: dataset[3])
        show.error(lambda: D.TensorDataset(T.ones(2), T.ones(3)))
        show.error(lambda: len(D.TensorDataset()))

    same(program)


def test_stack_dataset():
    def program(T, show):
        D = T.utils.data
        pair, named = D.StackDataset("abc", [1, 2, 3]), D.StackDataset(letter="abc", number=[1, 2, 3])
        for stacked in (pair, named):
            show(len(stacked), stacked[1], stacked.__getitems__([2, 0]), stacked.__getitems__([]))
        show(D.StackDataset(batched(T, "xyz"), "abc").__getitems__([0, 2]))
        show(D.StackDataset(one=batched(T, "xyz"), two="abc").__getitems__([0, 2]))
        for bad in (D.StackDataset(batched(T, "xyz", lose=1)), D.StackDataset(one=batched(T, "xyz", lose=1))):
            show.error(lambda: bad.__getitems__([0, 1]))
        show.error(lambda: D.StackDataset())
        show.error(lambda: D.StackDataset("ab", x="ab"))
        show.error(lambda: D.StackDataset("ab", "abc"))
        show.error(lambda: D.StackDataset(x="ab", y="abc"))
        show.error(lambda: D.StackDataset(3))

    same(program)


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=4), st.integers(-14, 14))
def test_concat_dataset(parts, index):
    def program(T, show):
        D = T.utils.data
        show.error(lambda: show(len(D.ConcatDataset(parts)), D.ConcatDataset(parts).cumulative_sizes))
        show.error(lambda: show(D.ConcatDataset(iter(parts))[index]))

    same(program)


def test_sums_of_datasets():
    def program(T, show):
        D = T.utils.data
        one, two = D.TensorDataset(T.arange(3)), D.TensorDataset(T.arange(3) * 10)
        both = one + two
        show(type(both).__name__, len(both), *both)
        show.warnings(lambda: show(both.cummulative_sizes))
        chained = stream(T, 1, 2) + stream(T, 3)
        show(type(chained).__name__, len(chained), list(chained), list(chained))
        show.error(lambda: one + stream(T, 1))
        show.error(lambda: list(stream(T, 1) + one))
        show.error(lambda: len(stream(T, 1) + one))
        show(list(D.ChainDataset(iter([stream(T, 1), stream(T, 2)]))))

    same(program)


def test_subset():
    def program(T, show):
        D = T.utils.data
        subset = D.Subset("abcdef", [5, 0, 3])
        show(len(subset), subset[1], subset.__getitems__([2, 0]), list(subset), list(vars(subset)))
        show(D.Subset(batched(T, "abcdef"), [5, 0, 3]).__getitems__([0, 1]))
        show(D.Subset(D.TensorDataset(T.arange(9)), range(4, 9))[[0, 2]])
        show.error(lambda: subset[3])

        class OnlyOne(D.Subset):
            def __getitem__(self, idx):
                return super().__getitem__(idx) * 2

        class Both(OnlyOne):
            def __getitems__(self, indices):
                return [self[idx] for idx in indices]

        show.error(lambda: OnlyOne("abc", [0]))
        show(Both("abc", [2, 1]).__getitems__([0, 1]))

    same(program)


FRACTIONS = [[1.0], [0.5, 0.5], [0.3, 0.3, 0.4], [0.1] * 10, [0.99, 0.01], [0.0, 1.0], [1.5, -0.5], [0.6, 0.6]]


@pytest.mark.parametrize("lengths", [[3, 7], [10, 0], [4, 4], [0.5, 4], *FRACTIONS], ids=str)
@pytest.mark.parametrize("size", [1, 7, 10])
def test_random_split(size, lengths):
    def program(T, show):
        split = T.utils.data.random_split
        generator = T.Generator().manual_seed(11)
        for options in ({}, {"generator": generator}, {"generator": generator}):
            show.warnings(
                lambda: show.error(
                    lambda: show(*[(len(part), list(part)) for part in split(range(size), lengths, **options)])
                )
            )
        show(T.rand(1).item())

    same(program)


def test_base_classes():
    def program(T, show):
        D = T.utils.data
        show.error(lambda: D.Dataset()[0])
        show.error(lambda: len(D.Dataset()))
        show.error(lambda: D.IterableDataset())
        show.error(lambda: iter(D.Dataset()).__next__())
        for cls in (D.IterableDataset, D.ChainDataset, D.TensorDataset, D.Subset, D.StackDataset):
            show([base.__name__ for base in cls.__mro__])
        show(D.Dataset[int], D.IterableDataset[str], hasattr(D.Dataset, "__getitems__"))

    same(program)


def test_names_of_the_package():
    """All of the reference's except datapipes, whose development ended."""
    import torch.utils.data
    from torch.utils.data import datapipes

    left_out = {
        name
        for name in torch.utils.data.__all__
        if getattr(torch.utils.data, name).__module__.startswith(datapipes.__name__)
    }
    assert left_out == {
        "DFIterDataPipe",
        "DataChunk",
        "IterDataPipe",
        "MapDataPipe",
        "argument_validation",
        "functional_datapipe",
        "guaranteed_datapipes_determinism",
        "non_deterministic",
        "runtime_validation",
        "runtime_validation_disabled",
    }
    expected = [name for name in torch.utils.data.__all__ if name not in left_out]
    assert readtorch.utils.data.__all__ == expected
