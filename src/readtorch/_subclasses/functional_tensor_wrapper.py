"""Tensors that are never written to: a write makes a new value, and what else looks at the same memory makes its own anew from it.

    a = x.clone(); b = a[0]; b.add_(1); a * 2

    storage of a and b   base: the value of `a` before the write · updates: [("b is this now", "b is a[0]")]
    a * 2                asks for `a`: its storage puts the new `b` back into the base (select_scatter), and `a` is that base
    b                    if somebody asks for it again: select of the new base

Writes queue up, for what nobody looks at again need not be made. In PyTorch: `aten/src/ATen/FunctionalTensorWrapper.cpp` and
`FunctionalStorageImpl.cpp`, whose Note [Functionalization: Alias Removal] tells the same story.
"""

from typing import NamedTuple

from readtorch.c10.local_dispatch_key_set import grad_mode_enabled


class ViewMeta(NamedTuple):
    """One view operator with its arguments. forward: base -> view; reverse: (base, view as it is now) -> base."""

    forward: object
    reverse: object
    is_as_strided: bool = False
    is_multi_output: bool = False  # one of several that an operator such as unbind makes
    has_symbolic_inputs: bool = False  # its arguments are sizes that the trace leaves open


class FunctionalStorageImpl:
    """What a tensor and all views of it share: the value of the whole, and the writes that are not in it yet."""

    def __init__(self, base):
        self.base = base
        self.updates = []  # (new value of a view, the ViewMetas that lead from the base to it)
        self.generation = 0  # counts what makes views out of date
        self.mutations = self.mutations_during_no_grad = 0  # writes, for AOTAutograd

    def add_update(self, value, view_metas):
        refuse_as_strided(view_metas)
        self.mutations += 1
        self.mutations_during_no_grad += not grad_mode_enabled()
        self.updates.append((value, view_metas))
        self.generation += 1

    def apply_updates(self):
        """Put the writes into the base, in their order. Whether there were any."""
        pending, self.updates = self.updates, []
        for value, view_metas in pending:
            self.base = apply_update(self.base, value, view_metas)
        return bool(pending)


def refuse_as_strided(view_metas):
    """as_strided looks past the tensor that it is called on, at all of its memory: as a view of a view it has no inverse."""
    for i, meta in enumerate(view_metas[1:], 1):
        if meta.is_as_strided:
            raise RuntimeError(
                f"During torch.compile, encountered a mutation on a view chain of length {len(view_metas)}, where view {i} was an "
                "as_strided() call. as_strided() is non-compositional, and therefore is not possible to functionalize properly today,"
                "so this behavior is banned in compile. As a workaround, you can either remove the mutation from the model code, or you "
                "can insert a graph break right before the mutation with torch._dynamo.graph_break(). If you would like this behavior to "
                "work properly, please comment on https://github.com/pytorch/pytorch/issues/104505."
            )


def apply_update(base, value, view_metas):
    """The base in which the view of it that `view_metas` lead to has this value.

    For a view of a view: every tensor on the way there is made, and put back into the one before, the innermost first.
    """
    on_the_way = [base]
    for meta in view_metas[:-1]:
        on_the_way.append(meta.forward(on_the_way[-1]))
    for before, meta in zip(reversed(on_the_way), reversed(view_metas)):
        value = meta.reverse(before, value)
    return value


class FunctionalTensorWrapper:
    """One tensor or view of the program: its value as far as it is known, its storage, and how it is seen in that.

    `value` may be out of date: `sync` first.
    """

    def __init__(self, value, storage=None, view_metas=()):
        self.value = value
        self.storage = storage or FunctionalStorageImpl(value)
        self.view_metas = view_metas
        self.generation = 0  # of the storage, when `value` was made

    def view(self, value, meta):
        """The wrapper of a view of this tensor. `value` may be that of a tensor out of date: the view is made anew then, when it is asked for."""
        return FunctionalTensorWrapper(value, self.storage, (*self.view_metas, meta))

    def mutate_view_meta(self, meta):
        """From here on this tensor is a view of what it was: by `t_`, `squeeze_`."""
        self.view_metas = (*self.view_metas, meta)
        self.value = meta.forward(self.value)

    def replace_(self, value):
        """What a write makes of this tensor; it keeps its dtype."""
        self.value = value if value.dtype == self.value.dtype else value.to(self.value.dtype)

    def commit_update(self):
        """Tell the storage of a write: all views of it are out of date, this one, too."""
        self.storage.add_update(self.value, self.view_metas)

    def sync(self):
        """Bring `value` up to date."""
        if self.generation == self.storage.generation:
            return
        self.storage.apply_updates()
        self.value = self.storage.base
        for meta in self.view_metas:
            self.value = meta.forward(self.value)
        self.generation = self.storage.generation

    def maybe_replace_storage(self, value):
        """What `resize_` to more elements makes of this tensor. RuntimeError for a view."""
        if self.view_metas:
            raise RuntimeError(
                "Attempted to resize a view tensor to a larger size. This is not allowed in the functionalization pass"
            )
        self.value = value
        self.storage.base = value
        self.storage.generation += 1
        self.generation = self.storage.generation
