"""`linearize`: a function's value, and its derivative there as a program that holds what the value's computation left behind.

Note [ A tape of tangents ]
Under forward mode a function computes values and tangents side by side. The values do not depend on the tangents, so where the point
is fixed they are constants, and what is left is linear. `linearize` runs the function once with a dispatch mode that writes down every
operator call, then keeps the calls that the tangents reach. Replaying these computes the derivative in another direction.

What a call reaches is asked of storages, not of tensors: a write into a part of a tensor reaches all that look at its memory. And a
constant that is written to after a kept call has read it is no constant: the calls that make it are kept as well.

In PyTorch `make_fx` traces the tangents into an FX graph, whose constant part is folded (`torch/fx/experimental/proxy_tensor.py`,
`torch/fx/experimental/const_fold.py`). A function that writes in place there gives another, wrong derivative, which is not copied here.

In PyTorch: `torch/_functorch/eager_transforms.py`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from dataclasses import dataclass

from readtorch._C import _are_functorch_transforms_active
from readtorch._ops import ops
from readtorch._tensor import Tensor
from readtorch.autograd import forward_ad
from readtorch.utils._python_dispatch import TorchDispatchMode
from readtorch.utils._pytree import tree_flatten, tree_leaves, tree_map_only, tree_unflatten

from .utils import exposed_in


@exposed_in("readtorch.func")
def linearize(func, *primals):
    """(value of `func` at `primals`, the function that computes `jvp(func, primals, tangents)[1]` from tangents).

    Worth it where many directions are asked for at one point: `func` runs twice here, and never again. Raises RuntimeError if `func` takes
    a number out of a tensor, whatever that is used for, and later for tangents that do not fit the primals.
    """
    output = func(*primals)
    _, output_spec = tree_flatten(output)
    flat_primals, spec = tree_flatten(primals)
    run = traced_jvp(func, flat_primals, spec)
    expected = [(p.shape, p.device, p.dtype) for p in flat_primals]

    def jvp_fn(*tangents):
        flat_tangents, tangents_spec = tree_flatten(tangents)
        if tangents_spec != spec:
            raise RuntimeError(f"Expected the tangents {tangents_spec} to have the same argspec as the primals {spec}")
        _check_tangents(flat_tangents, expected)
        return tree_unflatten(run(flat_tangents), output_spec)

    return output, jvp_fn


def _check_tangents(tangents, expected):
    for i, (tangent, facts) in enumerate(zip(tangents, expected)):
        for name, fact in zip(("shape", "device", "dtype"), facts):
            if getattr(tangent, name) != fact:
                raise RuntimeError(
                    f"tangent:{i} with {name} {getattr(tangent, name)} in flattened pytree doesn't match the {name} {fact} of the "
                    "corresponding primal."
                )


def traced_jvp(func, primals, spec):
    """The derivative of `func` at `primals` as a function of a list of tangents; it returns a list of what stands in the output."""

    def derivative(tangents):
        with forward_ad.dual_level():
            duals = [forward_ad.make_dual(p, t) for p, t in zip(primals, tangents)]
            output = func(*tree_unflatten(duals, spec))
            return tree_leaves(tree_map_only(Tensor, _tangent_of, output))

    tangents = [p.new_empty(()).expand_as(p) for p in primals]
    with Tape() as tape:
        results = derivative(tangents)
    if _are_functorch_transforms_active():  # the tape is below them: it has nothing of their levels
        return derivative
    return tape.program(tangents, results)


def _tangent_of(dual):
    primal, tangent = forward_ad.unpack_dual(dual)
    return primal.new_zeros(primal.shape) if tangent is None else tangent


@dataclass
class Call:
    """One operator call. results: the tensors that it returned. storages: those that its tensors look at, before and after."""

    operator: object
    args: tuple
    kwargs: dict
    results: list
    read: set
    written: set

    @property
    def made(self):
        return {_storage_of(t) for t in self.results}

    def reaches(self, storages):
        return not storages.isdisjoint(self.read) or not storages.isdisjoint(self.made)


_ABOUT_TANGENTS = ("aten._make_dual.default", "aten._fw_primal.default")


class Tape(TorchDispatchMode):
    """Writes down the operator calls inside. See Note [ A tape of tangents ]."""

    def __init__(self):
        super().__init__()
        self.calls = []
        self.constants = set()  # ids of what `torch.tensor` has made: it holds numbers that the program has

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        if str(func) == "aten._local_scalar_dense.default" and id(given[0]) not in self.constants:
            raise RuntimeError(
                f"It appears that you're trying to get value out of a tracing tensor with {func} - erroring out! It's likely that this is "
                "caused by data-dependent control flow or similar.  It may be possible to trace this with dynamic shapes; try setting "
                "tracing_mode='symbolic' in your make_fx call."
            )
        result = func(*args, **kwargs)
        if (
            str(func) in _ABOUT_TANGENTS
        ):  # which forward mode did, above: what is left of them is another tensor over the same memory
            func, args, kwargs = ops.aten.alias.default, args[:1], {}
        results = [t for t in tree_leaves(result) if isinstance(t, Tensor)]
        if str(func) == "aten.lift_fresh.default":
            self.constants.update(map(id, results))
        written = {_storage_of(t) for t in _written(func, args, kwargs)}
        self.calls.append(Call(func, args, kwargs, results, {_storage_of(t) for t in given}, written))
        return result

    def program(self, inputs, outputs):
        """The function of a list of tensors in place of `inputs` that computes what stands in place of `outputs`."""
        kept = self._reached_from({_storage_of(t) for t in inputs})
        return lambda values: _replay(kept, dict(zip(map(id, inputs), values)), outputs)

    def _reached_from(self, storages):
        """The calls that these storages reach."""
        reached = set(storages)
        own = set().union(*[call.made for call in self.calls])  # what the function itself has made
        count = -1
        while count != len(reached):
            count = len(reached)
            read_before = set()
            for call in self.calls:
                if call.reaches(reached):
                    reached |= call.made | call.written
                    read_before |= call.read
                reached |= call.written & read_before & own
        return [call for call in self.calls if call.reaches(reached)]


def _replay(calls, values, outputs):
    """values: id of a tensor of the tape -> the tensor in its place; what is not there stands for itself."""
    fill = lambda t: values.get(id(t), t)
    for call in calls:
        args, kwargs = tree_map_only(Tensor, fill, (call.args, call.kwargs))
        results = [t for t in tree_leaves(call.operator(*args, **kwargs)) if isinstance(t, Tensor)]
        values.update(zip(map(id, call.results), results))
    return [fill(t) if isinstance(t, Tensor) else t for t in outputs]


def _written(func, args, kwargs):
    """The tensors among the arguments of a call that it writes to."""
    for i, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = kwargs.get(argument.name) if argument.name in kwargs or i >= len(args) else args[i]
            yield from [t for t in tree_leaves(value) if isinstance(t, Tensor)]


def _storage_of(t):
    """What tells storages apart. The tape keeps its tensors, and so their storages, alive."""
    return t.untyped_storage()._cdata
