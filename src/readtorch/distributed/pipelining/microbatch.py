"""A batch as pieces, and back. In PyTorch: `torch/distributed/pipelining/microbatch.py`, which can split along any dimension."""

import readtorch
from readtorch import Tensor


def split_args_kwargs_into_chunks(args, kwargs, chunks):
    """(list of args, list of kwargs): tensors split along their first dimension, other things repeated."""
    kwargs = kwargs or {}
    split_args = [_split(arg, chunks) for arg in args]
    split_kwargs = {key: _split(value, chunks) for key, value in kwargs.items()}
    return (
        [tuple(parts[i] for parts in split_args) for i in range(chunks)],
        [{key: parts[i] for key, parts in split_kwargs.items()} for i in range(chunks)],
    )


def _split(value, chunks):
    return split_tensor(value, chunks) if isinstance(value, Tensor) else [value] * chunks


def split_tensor(tensor, chunks):
    """`chunks` parts along the first dimension, as equal as possible."""
    if tensor.size(0) < chunks:
        raise RuntimeError(
            f"Tensor size on chunking dimension ({tensor.size(0)}) is smaller than the number of chunks ({chunks})."
        )
    return list(readtorch.tensor_split(tensor, chunks))


def merge_chunks(chunks):
    """The outputs of all pieces as those of the batch."""
    first = chunks[0]
    if isinstance(first, Tensor):
        return readtorch.cat(chunks)
    if isinstance(first, (list, tuple)):
        return type(first)(merge_chunks(list(parts)) for parts in zip(*chunks))
    if isinstance(first, dict):
        return {key: merge_chunks([chunk[key] for chunk in chunks]) for key in first}
    return first
