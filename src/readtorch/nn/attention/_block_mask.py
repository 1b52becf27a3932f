"""Which keys a query may see, as a function of four positions, and the blocks that such a function leaves.

In PyTorch: `torch/nn/attention/flex_attention.py`. Explained in the chapter "Attention".
"""

import inspect
import itertools
import math
import warnings

import readtorch
from readtorch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from readtorch._functorch.apis import vmap
from readtorch._tensor import Tensor

PLACE = "readtorch.nn.attention.flex_attention"  # where users find what is defined here
_DEFAULT_SPARSE_BLOCK_SIZE = 128
_LARGE_SPARSE_BLOCK_SIZE = 1 << 30  # one block is the whole mask


# --------------------------------------------------------------------------------------------- functions of positions


def _vmap_for_bhqkv(fn, prefix, suffix=()):
    """`fn` of one place (batch, head, query, key), for all places: it takes four vectors and returns (B, H, Q, KV).

    prefix, suffix: for each argument before and after the four, 0 if it has an element for each place, else None.
    """
    for place in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):
        fn = vmap(fn, in_dims=prefix + place + suffix)
    return fn


def noop_mask(batch, head, token_q, token_kv):
    """Every query sees every key."""
    return batch.new_ones(size=(), dtype=readtorch.bool, device=batch.device)


def _sliced_mask_mod_error(batch, head, token_q, token_kv):
    """In place of the function of a mask that was sliced: the blocks have moved, and it does not know. RuntimeError."""
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask. "
        "When you slice a BlockMask using [], the mask_mod attribute is reset. "
        "You must set it from the original BlockMask's mask_mod."
        "\n\nIncorrect usage:"
        "\n  base_mask = create_block_mask(my_mask_fn, ...)"
        "\n  sliced_mask = base_mask[:, :, block_idx]"
        "\n  sliced_mask.mask_mod = apply_offset(sliced_mask.mask_mod, offset)  # WRONG!"
        "\n\nCorrect usage:"
        "\n  base_mask = create_block_mask(my_mask_fn, ...)"
        "\n  sliced_mask = base_mask[:, :, block_idx]"
        "\n  sliced_mask.mask_mod = apply_offset(base_mask.mask_mod, offset)  # Use base_mask!"
    )


def or_masks(*mask_mods):
    """The mask that shows what any of these shows. RuntimeError if one is not a function."""
    _check_callable(mask_mods)

    def or_mask(b, h, q_idx, kv_idx):
        result = b.new_zeros((), dtype=readtorch.bool)
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result

    return or_mask


def and_masks(*mask_mods):
    """The mask that shows what all of these show. RuntimeError if one is not a function."""
    _check_callable(mask_mods)

    def and_mask(b, h, q_idx, kv_idx):
        result = b.new_ones((), dtype=readtorch.bool)
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result

    return and_mask


def _check_callable(mask_mods):
    if not all(map(callable, mask_mods)):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")


def _takes_a_score(fn):
    """Whether `fn` changes scores (5 arguments) or is a mask (4). AssertionError if it is neither."""
    if hasattr(fn, "__code__"):
        count = fn.__code__.co_argcount - len(getattr(fn, "__defaults__", None) or ())
    else:
        count = sum(p.default is inspect.Parameter.empty for p in inspect.signature(fn).parameters.values())
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return count == 5


def _device_or_default(device):
    return device if device is not None else readtorch.accelerator.current_accelerator() or "cpu"


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None):
    """What `mod_fn` lets through as a bool tensor (B, H, Q_LEN, KV_LEN).

    mod_fn: a mask of (batch, head, query, key), or a function of (score, batch, head, query, key), which hides what
    it makes -inf. B, H: None is 1. device: by default the accelerator's, if there is one.
    """
    device = _device_or_default(device)
    shape = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    places = [readtorch.arange(0, length, device=device) for length in shape]
    takes_a_score = _takes_a_score(mod_fn)
    with TransformGetItemToIndex():
        if not takes_a_score:
            return _vmap_for_bhqkv(mod_fn, prefix=())(*places)
        scores = _vmap_for_bhqkv(mod_fn, prefix=(0,))(readtorch.zeros(shape, device=device), *places)
        return readtorch.where(readtorch.isneginf(scores), False, True)


# ------------------------------------------------------------------------------------------------------ lists of blocks


def _dense_to_ordered(dense):
    """For each row of (…, R, C) how many elements are not 0, (…, R), and the columns, those first: (…, R, C)."""
    dense = dense.to(readtorch.int32)
    columns = readtorch.argsort(dense, dim=-1, descending=True, stable=True)
    return dense.sum(dim=-1).to(readtorch.int32), columns.to(readtorch.int32)


def _ordered_to_dense(num_blocks, indices, num_cols):
    """The opposite: (…, R, num_cols) with 1 where a column is listed."""
    listed = readtorch.arange(indices.shape[-1], device=indices.device) < num_blocks.unsqueeze(-1)
    dense = readtorch.zeros((*indices.shape[:-1], num_cols + 1), dtype=readtorch.int32, device=indices.device)
    # what lies behind the listed ones goes to one more column, which is cut off
    dense.scatter_(-1, readtorch.where(listed, indices, num_cols).long(), 1)
    return dense[..., :num_cols].contiguous()


def _transpose_ordered(num_blocks, indices):
    """The lists of the columns: which rows see a block of keys."""
    return _dense_to_ordered(_ordered_to_dense(num_blocks, indices, indices.shape[-1]).transpose(-2, -1))


def _cropped(num_blocks, indices, rows, cols):
    """The lists of the upper left corner. In PyTorch, as here: of the columns up to the new count, whatever their order."""
    indices = indices[:, :, :rows, :cols]
    num_blocks = num_blocks[:, :, :rows].clamp(max=cols)
    return readtorch.sum(indices < num_blocks[:, :, :, None], dim=-1).to(readtorch.int32), indices


def _blocks_of(mask, q_block, kv_block, separate_full_blocks):
    """(B, H, R, C): which blocks hold something, and which are full. None for these if they are not kept apart."""
    batch, heads, q_len, kv_len = mask.shape
    rows, cols = -(-q_len // q_block), -(-kv_len // kv_block)
    mask = readtorch.nn.functional.pad(mask, (0, cols * kv_block - kv_len, 0, rows * q_block - q_len))
    count = mask.view(batch, heads, rows, q_block, cols, kv_block).sum(dim=(3, 5))
    if not separate_full_blocks:
        return count > 0, None
    full = count == q_block * kv_block
    return (count > 0) & ~full, full


def _or_none(function, num_blocks, indices):
    return (None, None) if num_blocks is None else function(num_blocks, indices)


def create_block_mask(
    mask_mod,
    B,
    H,
    Q_LEN,
    KV_LEN,
    device=None,
    BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE,
    _compile=False,
    separate_full_blocks=True,
    compute_dq_write_order=False,
    dq_kv_order=True,
):
    """The BlockMask of a function of (batch, head, query, key) that says what may be seen.

    B, H: None if the mask is the same for all. device: by default the accelerator's, if there is one. BLOCK_SIZE: of
    queries and keys, or a pair. separate_full_blocks: whether blocks without a hidden place are listed apart.
    compute_dq_write_order, dq_kv_order: the order in which a GPU's blocks add to the gradient of the queries, see
    `_compute_dq_write_order_from_block_mask`.

    AssertionError if `mask_mod` takes another number of arguments; ValueError if dq_kv_order is no bool.
    """
    device = _device_or_default(device)
    if _takes_a_score(mask_mod):
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    if _compile:  # in PyTorch: also compiles this function
        warnings.warn(
            "_compile flag on create_block_mask was originally added to work around a torch.compile limitation. That "
            "limitation has since been addressed. So, to compile create_block_mask, we suggest doing "
            "torch.compile(create_block_mask). This still works for now, but will be removed in the future.",
            DeprecationWarning,
            stacklevel=2,
        )
    if not isinstance(dq_kv_order, bool):
        raise ValueError("dq_kv_order must be a bool when using create_block_mask")
    q_block, kv_block = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    if mask.dtype is not readtorch.bool:
        raise AssertionError(f"mask.dtype must be torch.bool, got {mask.dtype}")
    partial, full = _blocks_of(mask, q_block, kv_block, separate_full_blocks)
    block_mask = BlockMask.from_kv_blocks(
        *_dense_to_ordered(partial),
        *((None, None) if full is None else _dense_to_ordered(full)),
        BLOCK_SIZE=(q_block, kv_block),
        mask_mod=mask_mod,
        seq_lengths=(Q_LEN, KV_LEN),
    )
    if compute_dq_write_order:
        block_mask._set_dq_write_order(dq_kv_order)
    return block_mask


def _compute_dq_write_order_from_block_mask(block_mask, dq_kv_order=False):
    """For each block in the lists of the columns: how many blocks of its row add to the gradient of the queries before.

    dq_kv_order: whether the row's blocks come from the last to the first. Returns the numbers for the partial and for
    the full blocks, int32; these may be None. ValueError without lists of the columns.
    """
    if block_mask.q_num_blocks is None or block_mask.q_indices is None:
        raise ValueError("BlockMask must have q_num_blocks and q_indices to compute dq_write_order")
    lists = (block_mask.kv_indices, block_mask.q_indices, block_mask.full_kv_indices, block_mask.full_q_indices)
    batch, heads = readtorch.broadcast_shapes(*(t.shape[:2] for t in lists if t is not None))
    num_rows, num_cols = block_mask.kv_indices.shape[2], block_mask.q_indices.shape[2]
    dense = block_mask._dense(num_cols).expand(batch, heads, -1, -1)
    before = dense.cumsum(dim=-1) - dense
    if dq_kv_order:
        before = dense.sum(dim=-1, keepdim=True) - 1 - before

    def order(q_indices):
        b, h, n = (readtorch.arange(size, device=q_indices.device) for size in (batch, heads, q_indices.shape[2]))
        rows = q_indices.long().clamp(0, num_rows - 1)
        return before[b[:, None, None, None], h[:, None, None], rows, n[:, None]].to(readtorch.int32)

    full = block_mask.full_q_indices
    return order(block_mask.q_indices), None if full is None else order(full)


# ------------------------------------------------------------------------------------------------------------ BlockMask


class BlockMask:
    """A mask (B, H, Q, KV), known by blocks: for each row of blocks, the columns where something may be seen.

    kv_num_blocks, kv_indices: for each batch, head and row of blocks how many columns are listed, (B, H, R), and which,
        (B, H, R, C), int32; what stands behind the listed ones says nothing.
    full_kv_num_blocks, full_kv_indices: the same for blocks in which nothing is hidden, if these are kept apart.
    q_num_blocks, q_indices, full_q_num_blocks, full_q_indices: the same by columns, for backward.
    seq_lengths: (Q, KV). BLOCK_SIZE: of queries and keys. mask_mod: says what may be seen within the blocks.
    dq_write_order, …: see `_compute_dq_write_order_from_block_mask`.

    `create_block_mask` makes it of a function, `from_kv_blocks` of lists. RuntimeError for indices of fewer than two
    dimensions, AssertionError if one of a pair is missing.
    """

    __module__ = PLACE

    _TENSOR_ATTRS = [
        "kv_num_blocks",
        "kv_indices",
        "full_kv_num_blocks",
        "full_kv_indices",
        "q_num_blocks",
        "q_indices",
        "full_q_num_blocks",
        "full_q_indices",
        "dq_write_order",
        "dq_write_order_full",
        "dq_kv_order",
    ]

    def __init__(
        self,
        seq_lengths,
        kv_num_blocks,
        kv_indices,
        full_kv_num_blocks,
        full_kv_indices,
        q_num_blocks,
        q_indices,
        full_q_num_blocks,
        full_q_indices,
        BLOCK_SIZE=(_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod=noop_mask,
        *,
        dq_write_order=None,
        dq_write_order_full=None,
        dq_kv_order=None,
        dq_kv_order_spt=None,
    ):
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if kv_num_blocks is None:
            raise AssertionError("kv_num_blocks must be provided")
        _check_pair("full_kv", full_kv_num_blocks, full_kv_indices)
        _check_pair("full_q", full_q_num_blocks, full_q_indices)
        if dq_write_order_full is not None and dq_write_order is None:
            raise ValueError("dq_write_order_full requires dq_write_order")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.dq_write_order, self.dq_write_order_full = dq_write_order, dq_write_order_full
        self.dq_kv_order, self.dq_kv_order_spt = dq_kv_order, dq_kv_order_spt
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks,
        kv_indices,
        full_kv_num_blocks=None,
        full_kv_indices=None,
        BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod=None,
        seq_lengths=None,
        compute_q_blocks=True,
        *,
        dq_write_order=None,
        dq_write_order_full=None,
        dq_kv_order=None,
    ):
        """The mask of these lists; those of the columns are made of them unless `compute_q_blocks` is False.

        mask_mod: None hides nothing within a block. seq_lengths: None for as many as the blocks hold.
        dq_kv_order: a bool, or a tensor with the order; ValueError for anything else.
        """
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        _check_pair("full_kv", full_kv_num_blocks, full_kv_indices)
        by_columns = (None,) * 4
        if compute_q_blocks:
            full = _or_none(_transpose_ordered, full_kv_num_blocks, full_kv_indices)
            by_columns = (*_transpose_ordered(kv_num_blocks, kv_indices), *full)
        if isinstance(BLOCK_SIZE, int):
            BLOCK_SIZE = (BLOCK_SIZE, BLOCK_SIZE)
        if seq_lengths is None:
            seq_lengths = tuple(count * size for count, size in zip(kv_indices.shape[-2:], BLOCK_SIZE))
        if dq_kv_order is not None and not isinstance(dq_kv_order, (bool, Tensor)):
            raise ValueError("dq_kv_order must be a bool, Tensor, or None")
        return cls(
            seq_lengths,
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            *by_columns,
            BLOCK_SIZE=BLOCK_SIZE,
            mask_mod=mask_mod if mask_mod is not None else noop_mask,
            dq_write_order=dq_write_order,
            dq_write_order_full=dq_write_order_full,
            dq_kv_order=dq_kv_order if isinstance(dq_kv_order, Tensor) else None,
            dq_kv_order_spt=dq_kv_order if isinstance(dq_kv_order, bool) else None,
        )

    def as_tuple(self, flatten=True):
        """Everything, as `flex_attention` hands it on: 17 entries, or 15 with lengths and block sizes as pairs."""
        pair = tuple if flatten else lambda sizes: (sizes,)
        tensors = [getattr(self, name) for name in self._TENSOR_ATTRS]
        return (*pair(self.seq_lengths), *tensors, self.dq_kv_order_spt, *pair(self.BLOCK_SIZE), self.mask_mod)

    def to(self, device):
        """The same with every tensor on `device`."""
        moved = {name: getattr(self, name) for name in self._TENSOR_ATTRS}
        moved = {name: None if t is None else t.to(device) for name, t in moved.items()}
        return BlockMask(
            self.seq_lengths,
            **moved,
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,
            dq_kv_order_spt=self.dq_kv_order_spt,
        )

    # -- parts of it --------------------------------------------------------------------------------------------------

    def __getitem__(self, index):
        """The mask of some batches, heads and rows of blocks. An integer keeps its dimension, with size 1.

        `mask_mod` counts from the first block and does not fit any more: the result's raises an error.
        """
        self._refuse_tensor_order("Slicing")
        index = index if isinstance(index, tuple) else (index,)
        index = (*index, slice(None), slice(None), slice(None))[:3]
        index = tuple(map(_keeping_dimension, index, self.kv_num_blocks.shape[:3]))
        return self._with_lists(
            lambda num_blocks, indices: (num_blocks[index], indices[index]), self.seq_lengths, _sliced_mask_mod_error
        )

    def _adjust(self, new_q_len, new_kv_len):
        """The upper left corner of the mask, for shorter sequences."""
        self._refuse_tensor_order("Adjusting")
        rows, cols = (-(-new // size) for new, size in zip((new_q_len, new_kv_len), self.BLOCK_SIZE))
        return self._with_lists(
            lambda num_blocks, indices: _cropped(num_blocks, indices, rows, cols),
            (new_q_len, new_kv_len),
            self.mask_mod,
        )

    def _refuse_tensor_order(self, doing):
        if self.dq_kv_order is not None:
            raise NotImplementedError(
                f"{doing} BlockMask with tensor dq_kv_order is not supported yet. "
                "Construct a new BlockMask with matching precomputed dq_write_order metadata."
            )

    def _with_lists(self, function, seq_lengths, mask_mod):
        """Another mask, whose lists are what `function` makes of these."""
        result = BlockMask.from_kv_blocks(
            *function(self.kv_num_blocks, self.kv_indices),
            *_or_none(function, self.full_kv_num_blocks, self.full_kv_indices),
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=mask_mod,
            seq_lengths=seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )
        result.dq_kv_order_spt = self.dq_kv_order_spt
        if self.dq_write_order is not None:
            result._set_dq_write_order(self.dq_kv_order_spt)
        return result

    def _set_dq_write_order(self, dq_kv_order):
        self.dq_write_order, self.dq_write_order_full = _compute_dq_write_order_from_block_mask(self, dq_kv_order)
        self.dq_kv_order_spt = dq_kv_order

    # -- what it says -------------------------------------------------------------------------------------------------

    @property
    def shape(self):
        """(B, H, Q, KV)"""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self):
        """How many places the mask has, hidden or not."""
        return math.prod(self.shape)

    def sparsity(self):
        """How much is left out, in percent of the places: blocks count whole, also where they stand out over the end."""
        visited = self.kv_num_blocks.sum().item()
        if self.full_kv_num_blocks is not None:
            visited += self.full_kv_num_blocks.sum().item()
        return 100 * (1 - visited * math.prod(self.BLOCK_SIZE) / self.numel())

    def to_dense(self):
        """Which blocks are visited: int32 (B, H, R, C), of 0 and 1."""
        return self._dense(self.kv_indices.shape[-1])

    def _dense(self, num_cols):
        dense = _ordered_to_dense(self.kv_num_blocks, self.kv_indices, num_cols)
        if self.full_kv_num_blocks is None:
            return dense
        return dense | _ordered_to_dense(self.full_kv_num_blocks, self.full_kv_indices, num_cols)

    def to_string(self, grid_size=(20, 20), limit=4):
        """The blocks drawn: full and partial ones alike, an empty place for those left out.

        grid_size: at most so many rows and columns, else several blocks share a place, which is grey if some of them
        are left out. limit: for how many batches and heads.
        """
        dense = self.to_dense()
        max_rows, max_cols = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        drawings = []
        for index in itertools.product(*map(range, dense.shape[:-2])):
            if len(drawings) == limit:
                drawings += [
                    "...",
                    "To print out more, set BlockMask.to_string(limit=N)",
                    "You can also index (BlockMask[batch, head]) to choose a specific batch or head",
                ]
                break
            drawings.append(f"{index}\n{_drawn(dense[index], max_rows, max_cols)}")
        return "\n".join(drawings)

    def __str__(self):
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def __repr__(self):
        lists = {name: getattr(self, name) for name in self._TENSOR_ATTRS[:8]}
        lines = [f"{name}={None if t is None else t.shape}" for name, t in lists.items()]
        lines += [
            f"BLOCK_SIZE={self.BLOCK_SIZE}",
            f"shape={self.shape}",
            f"sparsity={self.sparsity():.2f}%",
            f"mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}",
        ]
        return "BlockMask(\n    " + ",\n    ".join(lines) + "\n)"


def _check_pair(name, num_blocks, indices):
    if (num_blocks is None) != (indices is None):
        raise AssertionError(f"{name}_num_blocks and {name}_indices must be both provided or omitted")


def _keeping_dimension(index, size):
    if not isinstance(index, int):
        return index
    return slice(index + size, index + size + 1) if -size <= index < 0 else slice(index, index + 1)


def _drawn(dense, max_rows, max_cols):
    """(R, C) of 0 and 1 as lines of text, two characters wide a column."""
    rows, cols = dense.shape
    row_step, col_step = max(1, -(-rows // max_rows)), max(1, -(-cols // max_cols))
    text = ""
    for r in range(0, rows, row_step):
        for c in range(0, cols, col_step):
            share = dense[r : r + row_step, c : c + col_step].float().mean().item()
            text += {0: " ", 1: "█"}.get(share, "░") * 2
        text += "\n"
    return text


for _function in (noop_mask, or_masks, and_masks, create_mask, create_block_mask):
    _function.__module__ = PLACE
