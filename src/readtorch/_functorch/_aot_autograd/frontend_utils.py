"""What a trace of a module leaves behind. In PyTorch: `torch/_functorch/_aot_autograd/frontend_utils.py`."""

import contextlib
import itertools
import warnings

from readtorch._tensor import Tensor


@contextlib.contextmanager
def _detect_attribute_assignment(mod):
    """The modules have the attributes of before again; a tensor that `forward` has assigned is warned about: it is a fake one."""
    kept = {name: _attributes(m) for name, m in mod.named_modules()}
    try:
        yield
    finally:
        assigned = []
        for name, m in mod.named_modules():
            prefix = f"self.{name}." if name else "self."
            for key, value in _attributes(m).items():
                assigned += _assigned_tensors(prefix + key, kept.get(name, {}).get(key), value)
        for name, m in mod.named_modules():
            vars(m).update(kept.get(name, {}))
    if assigned:
        warnings.warn(
            f"The tensor {'attributes' if len(assigned) > 1 else 'attribute'} {', '.join(assigned)} "
            f"{'were' if len(assigned) > 1 else 'was'} assigned during export. "
            "Such attributes must be registered as buffers using the `register_buffer` API "
            "(https://pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer).",
            stacklevel=2,
        )


def _attributes(m):
    """What a module has besides parameters, buffers and modules; containers are copied, since they may be written to."""
    return {key: _copied(value) for key, value in vars(m).items() if not key.startswith("_")}


def _copied(value):
    if type(value) is dict:
        return {key: _copied(each) for key, each in value.items()}
    return type(value)(map(_copied, value)) if type(value) in (list, tuple) else value


def _assigned_tensors(path, old, new):
    """Paths of the tensors of `new` that `old` has not in their place."""
    if old is new:
        return []
    if isinstance(new, Tensor):
        return [path]
    if isinstance(old, dict) and isinstance(new, dict):
        pairs = [(key, old.get(key), new.get(key)) for key in old | new]
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple):
        pairs = [(i, *pair) for i, pair in enumerate(itertools.zip_longest(old, new))]
    else:
        pairs = []
    return [found for key, before, after in pairs for found in _assigned_tensors(f"{path}[{key!r}]", before, after)]
