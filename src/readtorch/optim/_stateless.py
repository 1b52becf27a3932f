"""`swap_in_optimizer_params_and_state`: an optimizer that for a while works on other parameters and state.

In PyTorch: `torch/optim/_stateless.py`.
"""

import contextlib
from collections import defaultdict

from readtorch._tensor import Tensor

_NAME = "swap_in_optimizer_params_and_state"


@contextlib.contextmanager
def swap_in_optimizer_params_and_state(optimizer, swapin_parameters, swapin_optim_state):
    """Inside, the optimizer has these parameters, settings and state; then its own again.

    swapin_parameters: {name: tensor}, in the order of the optimizer's own parameters. swapin_optim_state: what
    `state_dict()` returns. Its tensors are used, not copied: a step changes them. RuntimeError unless the
    optimizer has state, and the state dict its structure.
    """
    state, groups = _checked(optimizer, swapin_optim_state)
    params_of_groups = _in_groups(list(swapin_parameters.values()), groups, optimizer)
    _check_ids(state, groups)
    own_state, own_groups = optimizer.state, [dict(group) for group in optimizer.param_groups]
    try:
        optimizer.state = defaultdict(dict)
        for live, swapin, params in zip(optimizer.param_groups, groups, params_of_groups):
            live.update(swapin)
            live["params"] = params
            for param, position in zip(params, swapin["params"]):
                optimizer.state[param] = dict(state.get(position, {}))
        yield
    finally:
        for live, own in zip(optimizer.param_groups, own_groups):
            live.clear()
            live.update(own)
        optimizer.state = own_state


def _checked(optimizer, state_dict):
    """State and groups of a state dict that this optimizer could have made."""
    _require(optimizer.state, f"{_NAME} requires initialized optimizer state.")
    _require(isinstance(state_dict, dict), f"{_NAME} requires a DCP-style optimizer state_dict.")
    state, groups = state_dict.get("state"), state_dict.get("param_groups")
    _require(
        isinstance(state, dict),
        (
            f"{_NAME} requires swapin_optim_state['state'] to be a dict mapping packed parameter ids to "
            f"per-param state dicts, got {type(state).__name__}."
        ),
    )
    _require(
        not any(isinstance(key, Tensor) for key in state),
        (f"{_NAME} requires optimizer.state_dict()-style state keyed by packed parameter ids."),
    )
    _require(
        not any(isinstance(key, int) and not isinstance(value, dict) for key, value in state.items()),
        (f"{_NAME} requires per-parameter optimizer state entries to be dictionaries."),
    )
    _require(
        isinstance(groups, list),
        (
            f"{_NAME} requires swapin_optim_state['param_groups'] to be a list of param-group dicts, "
            f"got {type(groups).__name__}."
        ),
    )
    _require(
        len(optimizer.param_groups) == len(groups),
        ("swapin_optim_state has a different number of parameter groups than the live optimizer."),
    )
    return state, groups


def _in_groups(parameters, groups, optimizer):
    """`parameters` cut into a list for each group."""
    lists, start = [], 0
    for i, (live, swapin) in enumerate(zip(optimizer.param_groups, groups)):
        _check_group(i, live, swapin)
        end = start + len(swapin["params"])
        _require(
            end <= len(parameters),
            (f"{_NAME} requires the explicit parameter state to match optimizer.param_groups ordering."),
        )
        lists.append(parameters[start:end])
        start = end
    return lists


def _check_group(i, live, swapin):
    _require(isinstance(swapin, dict), f"{_NAME} requires each optimizer param group to be a dictionary.")
    ids = swapin.get("params")
    _require(
        isinstance(ids, list) and all(isinstance(position, int) for position in ids),
        (
            f"{_NAME} requires optimizer.state_dict()-style param_groups[*]['params'] entries keyed by packed "
            "parameter ids."
        ),
    )
    _require(
        len(live["params"]) == len(ids),
        (f"swapin_optim_state param group {i} has a different number of params than the live optimizer param group."),
    )
    swapin_only, live_only = [k for k in swapin if k not in live], [k for k in live if k not in swapin]
    _require(
        not (swapin_only or live_only),
        (
            f"{_NAME} requires optimizer.state_dict()-style param group keys to exactly match the live optimizer "
            f"group keys for group {i}. Keys only in swap-in: {swapin_only}. Keys only in live: {live_only}."
        ),
    )


def _check_ids(state, groups):
    known = {position for group in groups for position in group["params"]}
    extra = [key for key in state if key not in known]
    _require(
        not extra,
        (
            f"{_NAME} requires swapin_optim_state['state'] to be keyed only by packed parameter ids from "
            f"param_groups[*]['params']; got extra keys {extra!r}."
        ),
    )


def _require(condition, message):
    if not condition:
        raise RuntimeError(message)
