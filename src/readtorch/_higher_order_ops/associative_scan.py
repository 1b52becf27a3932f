"""Running results of an associative operation, such as running sums, in a logarithmic number of steps.

In PyTorch: `torch/_higher_order_ops/associative_scan.py`.

Note [ A scan by halves ]

Neighbours are combined in pairs, all pairs at once, and the half that results is scanned in the same way: that gives each second
result. Each of the others is the result before it combined with one element, all of them at once again. So n elements need about
2 log2(n) calls of the operation, where one after the other would need n - 1.

Guy E. Blelloch, "Prefix Sums and Their Applications" (1990).
"""

import readtorch
from readtorch import Tensor, vmap
from readtorch.c10.wrap_dim import wrap_dim
from readtorch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

__all__ = ["associative_scan"]


def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    """ys with ys[0] = xs[0] and ys[i] = combine_fn(ys[i-1], xs[i]) along `dim`; with `reverse`, from the end.

    xs: a tensor, or tensors in nested containers; `combine_fn` takes two such and gives one, without the dimension `dim`, and must
    be associative. combine_mode: "generic"; "pointwise" is for tensors on a GPU. Gradients flow through all calls. ValueError
    for other modes, tensors on the CPU in mode "pointwise", and an empty dimension.
    """
    leaves, spec = tree_flatten(xs)
    if leaves and isinstance(leaves[0], Tensor):
        dim = wrap_dim(dim, leaves[0].dim())
    _check_input(combine_fn, leaves, dim, reverse, combine_mode)
    leaves = [leaf.movedim(dim, 0) for leaf in leaves]
    if reverse:
        leaves = [leaf.flip(0) for leaf in leaves]
    batched = vmap(combine_fn)

    def combine(left, right):
        combined = tree_leaves(batched(tree_unflatten(left, spec), tree_unflatten(right, spec)))
        if len(combined) != len(leaves):
            raise AssertionError(f"combine_fn must return {len(leaves)} tensors, but got {len(combined)}")
        return combined

    results = _scan(combine, leaves)
    if reverse:
        results = [result.flip(0) for result in results]
    return tree_unflatten([result.movedim(0, dim) for result in results], spec)


def _scan(combine, elements):
    """The results along dimension 0. See Note [ A scan by halves ]."""
    count = elements[0].shape[0]
    if count < 2:
        return elements
    odd = _scan(combine, combine([e[:-1:2] for e in elements], [e[1::2] for e in elements]))
    before = [result[: (count - 1) // 2] for result in odd]
    even = [e[:1] for e in elements]
    if count > 2:
        later = combine(before, [e[2::2] for e in elements])
        even = [readtorch.cat(pair) for pair in zip(even, later)]
    return [_interleave(*pair) for pair in zip(even, odd)]


def _interleave(even, odd):
    """even[0], odd[0], even[1], odd[1] …; `even` may be one longer."""
    count = odd.shape[0]
    return readtorch.cat([readtorch.stack([even[:count], odd], 1).flatten(0, 1), even[count:]])


def _check_input(combine_fn, leaves, dim, reverse, combine_mode):
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise ValueError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    if combine_mode == "pointwise" and not all(leaf.device.type == "cuda" for leaf in leaves):
        raise ValueError("For combine_mode='pointwise', all input tensors need to be on CUDA or XPU")
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    if not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise ValueError("xs leaves must be a Tensor")
    if any(leaf.is_sparse for leaf in leaves):
        raise ValueError("xs leaves must dense Tensors, consider using `to_dense()`")
    if any(leaf.dim() <= dim or leaf.shape[dim] == 0 for leaf in leaves):
        raise ValueError("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")
