"""The state of a model and its optimizers by full names, however both are spread over ranks.

In PyTorch: `torch/distributed/checkpoint/state_dict.py`.

Note [ Names instead of numbers ]

An optimizer's own state_dict numbers the parameters in the order in which it was given them. Another program, with the
parameters in other groups or with a part of the model on each rank, cannot know what number 7 was. Here the key is the
parameter's full name in the model as it was written: without the `module` of DistributedDataParallel, the `_orig_mod` of
`compile` and the prefix of a checkpointed module. So what one way of training saved another can load.
"""

from dataclasses import dataclass

import readtorch
from readtorch import Tensor, nn
from readtorch import distributed as dist
from readtorch._dynamo.eval_frame import OptimizedModule
from readtorch.optim import Optimizer

from .utils import narrow_tensor_by_index

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

_CHECKPOINT_PREFIX = "_checkpoint_wrapped_module."
_PARAMS, _PG, _STATE = "params", "param_groups", "state"


@dataclass
class StateDictOptions:
    """full_state_dict: whole tensors instead of DTensors. cpu_offload: on the CPU, and if full on rank 0 alone.

    ignore_frozen_params: without parameters that need no gradient. strict: missing and unexpected names are errors.
    broadcast_from_rank0: rank 0 has the full state_dict to load, the others get their parts from it.
    flatten_optimizer_state_dict: keys like "state.layer.weight.exp_avg" and "param_groups.layer.weight.lr".
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def get_model_state_dict(model, *, submodules=None, options=None):
    """The state_dict of `model` by full names."""
    options = _checked(options, submodules)
    return _get_model_state_dict(model, options)


def get_optimizer_state_dict(model, optimizers, *, submodules=None, options=None):
    """The state_dict of one or more optimizers of `model`: "state" by the parameters' full names, "param_groups"."""
    options = _checked(options, submodules)
    return _get_optim_state_dict(model, _as_tuple(optimizers), options)


def get_state_dict(model, optimizers, *, submodules=None, options=None):
    """(state_dict of the model, state_dict of its optimizers)"""
    options = _checked(options, submodules)
    return _get_model_state_dict(model, options), _get_optim_state_dict(model, _as_tuple(optimizers), options)


def set_model_state_dict(model, model_state_dict, *, options=None):
    """Load what `get_model_state_dict` returned, here or elsewhere. Returns the missing and the unexpected keys."""
    return _load_model_state_dict(model, model_state_dict, _checked(options))


def set_optimizer_state_dict(model, optimizers, optim_state_dict, *, options=None):
    """Load what `get_optimizer_state_dict` returned. Not between `backward` and `step`."""
    _load_optim_state_dict(model, _as_tuple(optimizers), optim_state_dict, _checked(options))


def set_state_dict(model, optimizers, *, model_state_dict, optim_state_dict, options=None):
    """Load what `get_state_dict` returned. Returns the missing and the unexpected keys of the model."""
    options = _checked(options)
    _load_optim_state_dict(model, _as_tuple(optimizers), optim_state_dict, options)
    return _load_model_state_dict(model, model_state_dict, options)


def _checked(options, submodules=None):
    options = options or StateDictOptions()
    if submodules:
        raise NotImplementedError("submodules is deprecated in PyTorch and not in readtorch: filter the state_dict")
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


def _as_tuple(optimizers):
    optimizers = (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)
    if not optimizers:
        raise RuntimeError("Optimizers are not passed in but optim_only is set to True.")
    return optimizers


# ----------------------------------------------------------------------------------------------------- names


def _get_fqn(model, name):
    """The full name of a parameter or buffer in the model as it was written: Note [ Names instead of numbers ]."""
    parts, module = [], model
    for part in name.replace(_CHECKPOINT_PREFIX, "").split("."):
        wraps = isinstance(module, (nn.parallel.DistributedDataParallel, OptimizedModule))
        if not (wraps and part in ("module", "_orig_mod")):
            parts.append(part)
        module = getattr(module, part, None) if isinstance(module, nn.Module) else None
    return ".".join(parts)


def _named_parameters(model):
    """(full name, parameter), shared ones once for each of their names."""
    for name, parameter in model.named_parameters(remove_duplicate=False):
        yield _get_fqn(model, name), parameter


# ----------------------------------------------------------------------------------------------------- model


@readtorch.no_grad()
def _get_model_state_dict(model, options):
    state_dict = {_get_fqn(model, key): value for key, value in model.state_dict().items()}
    if options.ignore_frozen_params:
        for fqn, parameter in _named_parameters(model):
            if not parameter.requires_grad:
                state_dict.pop(fqn, None)
    return _maybe_full_or_cpu_state_dict(state_dict, options)


@readtorch.no_grad()
def _load_model_state_dict(model, state_dict, options):
    if not state_dict and options.strict and not options.broadcast_from_rank0:
        raise RuntimeError(
            "The option indicates that model state_dict is required to save or load, but model state_dict is empty."
            f"rank = dist.get_rank()={dist.get_rank() if dist.is_initialized() else 0}."
        )
    own = model.state_dict()
    names = {key: _get_fqn(model, key) for key in own}
    if options.full_state_dict:
        targets = {names[key]: value for key, value in own.items()}
        state_dict = _spread(state_dict, targets, options)
    keys = {fqn: key for key, fqn in names.items()}
    renamed = {keys.get(fqn, fqn): value for fqn, value in state_dict.items()}
    assign = options.full_state_dict and any(value.device.type == "meta" for value in own.values() if _is_tensor(value))
    return model.load_state_dict(renamed, strict=options.strict, assign=assign)


# ------------------------------------------------------------------------------------------------- optimizers


def _init_optim_state(optimizer):
    """Let an optimizer make its state, by a step with gradients of zero at a rate of zero."""
    parameters = [p for group in optimizer.param_groups for p in group[_PARAMS]]
    if optimizer.state or any(p.grad is not None for p in parameters):
        return
    for parameter in parameters:
        if parameter.requires_grad:
            parameter.grad = readtorch.zeros_like(parameter)
    rates = [group.get("lr") for group in optimizer.param_groups]
    for group, rate in zip(optimizer.param_groups, rates):
        if rate is not None:
            group["lr"] = readtorch.tensor(0.0) if isinstance(rate, Tensor) else 0.0
    optimizer.step(closure=None)
    for group, rate in zip(optimizer.param_groups, rates):
        if rate is not None:
            group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


@readtorch.no_grad()
def _get_optim_state_dict(model, optimizers, options):
    together = {_STATE: {}, _PG: []}
    for optimizer in optimizers:
        _init_optim_state(optimizer)
        names = _names_by_number(model, optimizer)
        own = optimizer.state_dict()
        together[_STATE].update({names[number]: state for number, state in own[_STATE].items()})
        together[_PG] += [group | {_PARAMS: [names[n] for n in group[_PARAMS]]} for group in own[_PG]]
    if options.flatten_optimizer_state_dict:
        together = _flatten_optim_state_dict(together)
    return _maybe_full_or_cpu_state_dict(together, options)


def _names_by_number(model, optimizer):
    """What the optimizer's own state_dict calls a parameter -> its full name."""
    numbers = {}
    for group in optimizer.param_groups:
        for parameter in group[_PARAMS]:
            numbers.setdefault(id(parameter), len(numbers))
    names = {}
    for fqn, parameter in _named_parameters(model):
        if id(parameter) in numbers:
            names.setdefault(numbers[id(parameter)], fqn)
    return names


def _flatten_optim_state_dict(state_dict):
    flat = {}
    for fqn, state in state_dict[_STATE].items():
        _flatten_nested(state, f"{_STATE}.{fqn}", flat)
    for group in state_dict[_PG]:
        for fqn in group[_PARAMS]:
            flat.update({f"{_PG}.{fqn}.{key}": value for key, value in group.items() if key != _PARAMS})
    return flat


def _flatten_nested(state, prefix, flat):
    for key, value in state.items():
        if isinstance(value, dict):
            _flatten_nested(value, f"{prefix}.{key}", flat)
        elif isinstance(value, (Tensor, int, float)):
            flat[f"{prefix}.{key}"] = value
        else:
            raise NotImplementedError(
                f"Flattening optimizer state_dict only supports tensor, int, float, dict states now. "
                f"Type is {type(value)}."
            )


def _unflatten_optim_state_dict(model, optimizer, flat):
    """The nested form, for the names of the parameters of this optimizer."""
    names, number, nested = _names_by_number(model, optimizer), 0, {_STATE: {}, _PG: []}
    for group in optimizer.param_groups:
        fqns = [names[number + i] for i in range(len(group[_PARAMS]))]
        number += len(fqns)
        settings = {key: _group_setting(flat, fqns, key) for key in group if key != _PARAMS}
        nested[_PG].append(settings | {_PARAMS: fqns})
        for fqn, parameter in zip(fqns, group[_PARAMS]):
            if parameter.requires_grad:
                nested[_STATE][fqn] = {
                    key: flat[name] if (name := f"{_STATE}.{fqn}.{key}") in flat else _nested_below(flat, f"{name}.")
                    for key in optimizer.state[parameter]
                }
    return nested


def _group_setting(flat, fqns, key):
    values = [flat[f"{_PG}.{fqn}.{key}"] for fqn in fqns]
    for fqn, value in zip(fqns, values):
        if value != values[0]:
            raise RuntimeError(
                "All the parameters in the same parameter group should have the same saved param_group value. "
                f"But {fqn}.{key} is {value} while other(s) is {values[0]}."
            )
    return values[0]


def _nested_below(flat, prefix):
    nested = {}
    for name, value in flat.items():
        if name.startswith(prefix):
            *way, last = name.removeprefix(prefix).split(".")
            place = nested
            for part in way:
                place = place.setdefault(part, {})
            place[last] = value
    return nested


@readtorch.no_grad()
def _load_optim_state_dict(model, optimizers, state_dict, options):
    if not state_dict and not options.broadcast_from_rank0:
        raise RuntimeError(
            "The option indicates that model state_dict is required to save, "
            f"or load but optim state_dict is empty. {state_dict}"
        )
    for optimizer in optimizers:
        _init_optim_state(optimizer)
        loaded = state_dict
        if options.full_state_dict:
            plain = StateDictOptions(flatten_optimizer_state_dict=options.flatten_optimizer_state_dict)
            loaded = _spread(loaded, _get_optim_state_dict(model, (optimizer,), plain), options)
        if _STATE not in loaded:
            loaded = _unflatten_optim_state_dict(model, optimizer, loaded)
        optimizer.load_state_dict(_numbered(model, optimizer, loaded, options))


def _numbered(model, optimizer, state_dict, options):
    """The optimizer's own form of a state_dict by names, of which it may be a part."""
    names, number, own = _names_by_number(model, optimizer), 0, {_STATE: {}, _PG: []}
    saved_group = {fqn: group for group in state_dict[_PG] for fqn in group[_PARAMS]}
    for group in optimizer.param_groups:
        numbers = list(range(number, number + len(group[_PARAMS])))
        number += len(numbers)
        saved = next((saved_group[names[n]] for n in numbers if names[n] in saved_group), {})
        settings = {key: value for key, value in (group | saved).items() if key != _PARAMS}
        own[_PG].append(settings | {_PARAMS: numbers})
        for n, parameter in zip(numbers, group[_PARAMS]):
            if names[n] in state_dict[_STATE]:
                own[_STATE][n] = state_dict[_STATE][names[n]]
            elif parameter.requires_grad and options.strict and optimizer.state.get(parameter):
                raise RuntimeError(
                    f"Missing optimizer state for parameter '{names[n]}' in checkpoint. "
                    "The parameter requires gradients but has no saved optimizer state. "
                    "To load anyway, use StateDictOptions(strict=False)."
                )
    return own


# --------------------------------------------------------------------------------------- whole tensors and parts


def _is_tensor(value):
    return isinstance(value, Tensor)


def _map_tensors(function, value):
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, dict):
        return {key: _map_tensors(function, entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_map_tensors(function, entry) for entry in value)
    return value


def _maybe_full_or_cpu_state_dict(state_dict, options):
    """The state_dict as the options want it. All ranks take part in gathering, also those that keep nothing."""
    if options.full_state_dict:
        state_dict = _map_tensors(lambda t: t.full_tensor() if hasattr(t, "full_tensor") else t, state_dict)
        if options.cpu_offload and dist.is_initialized() and dist.get_rank() != 0:
            return {}
    if options.cpu_offload:
        state_dict = _map_tensors(lambda t: t.cpu(), state_dict)
    return state_dict


def _spread(state_dict, targets, options):
    """Whole tensors in the form that their places (`targets`, the same names) have: of a DTensor this rank's part."""
    if options.broadcast_from_rank0 and dist.is_initialized():
        state_dict = _from_rank0(state_dict)
    if isinstance(state_dict, dict):
        return {key: _spread_one(value, targets.get(key)) for key, value in state_dict.items()}
    return state_dict


def _spread_one(value, target):
    if isinstance(value, dict):
        return {key: _spread_one(entry, (target or {}).get(key)) for key, entry in value.items()}
    if isinstance(value, Tensor) and hasattr(target, "device_mesh") and not hasattr(value, "device_mesh"):
        return _like_dtensor(value, target)
    return value


def _like_dtensor(whole, target):
    from .planner_helpers import _create_chunk_from_dtensor

    chunk = _create_chunk_from_dtensor(target)
    device = target.to_local().device
    local = narrow_tensor_by_index(whole, chunk.offsets, chunk.sizes).to(device if device.type != "meta" else "cpu")
    return type(target).from_local(
        local.contiguous(), target.device_mesh, target.placements, shape=target.shape, stride=target.stride()
    )


def _from_rank0(state_dict):
    """Rank 0's, on all ranks: first what it is made of, then one tensor after the other.

    in PyTorch: tensors are broadcast into what each rank has, so that only one whole tensor exists at a time.
    """
    tensors = []

    def placeholder(tensor):
        tensors.append(tensor)
        return readtorch.empty_like(tensor, device="meta")

    skeleton = [_map_tensors(placeholder, state_dict) if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(skeleton, src=0)
    waiting = iter(tensors)

    def received(meta):
        tensor = next(waiting).detach() if dist.get_rank() == 0 else readtorch.empty_like(meta, device="cpu")
        dist.broadcast(tensor, src=0)
        return tensor

    return _map_tensors(received, skeleton[0])
