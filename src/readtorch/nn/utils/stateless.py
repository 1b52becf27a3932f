"""A module as a function of its parameters. In PyTorch: `torch/nn/utils/stateless.py`.

`functional_call(module, {"weight": w}, x)` is what the module gives for x if its weight is w: the tensors of
the module are swapped for those given, the module is called, and everything is put back. Gradients flow to
the tensors given.
"""

import contextlib
import warnings

from ._named_member_accessor import NamedMemberAccessor

__all__ = ["functional_call"]


def _tied_names(module):
    """name -> all names of the same tensor, for the tensors that have several."""
    names_of = {}
    for members in (module.named_parameters, module.named_buffers):
        for name, tensor in members(remove_duplicate=False):
            names_of.setdefault(tensor, set()).add(name)
    return {name: names for names in names_of.values() if len(names) > 1 for name in names}


def _untie_named_tensors_map(module, parameters_and_buffers):
    """The same, with a tied tensor under all its names. Raises ValueError if it has several values."""
    tied = _tied_names(module)
    given = [name for name in parameters_and_buffers if name in tied]
    untied = parameters_and_buffers.copy()
    for name in given:
        values = {parameters_and_buffers[other] for other in tied[name] if other in parameters_and_buffers}
        if len(values) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(tied[name])}, "
                "which are tied. Consider using tie_weights=False"
            )
        for other in tied[name]:
            untied[other] = parameters_and_buffers[name]
    return untied


def _check_keys(module, accessor, keys):
    missing, unexpected = accessor.check_keys(keys)
    problems = [
        f"{kind} key(s): {', '.join(map(repr, names))}."
        for kind, names in (("Unexpected", unexpected), ("Missing", missing))
        if names
    ]
    if problems:
        raise RuntimeError(
            "Error(s) in reparametrizing for {}:\n\t{}".format(module._get_name(), "\n\t".join(problems))
        )


@contextlib.contextmanager
def _reparametrize_module(module, parameters_and_buffers, tie_weights=False, strict=False, stack_weights=False):
    """Inside, `module` has these tensors. What it assigned to them is in `parameters_and_buffers` afterwards.

    stack_weights: put the tensors back in the reverse order.
    """
    replacements = parameters_and_buffers
    if tie_weights:
        replacements = _untie_named_tensors_map(module, parameters_and_buffers)
    accessor = NamedMemberAccessor(module)
    if strict:
        _check_keys(module, accessor, replacements)
    originals = {}
    try:
        originals, _ = accessor.swap_tensors_dict(replacements, allow_missing=True)
        yield
    finally:
        if stack_weights:
            originals = dict(reversed(originals.items()))
        assigned, _ = accessor.swap_tensors_dict(originals, allow_missing=True)
        parameters_and_buffers.update({name: assigned[name] for name in parameters_and_buffers if name in assigned})


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Deprecated: use `func.functional_call`."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 "
        "and will be removed in a future version of PyTorch. "
        "Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def _functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    # in PyTorch: refuses what the JIT compiled, and DataParallel
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))
