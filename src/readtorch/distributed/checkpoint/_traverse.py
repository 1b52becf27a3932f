"""Walks through nested state_dicts. In PyTorch: `torch/distributed/checkpoint/_traverse.py`."""

from collections.abc import Mapping

from readtorch import Tensor


def _is_terminal(value):
    """Whether the walk ends here: everything but mappings, and lists with a tensor or a mapping somewhere in them."""
    if isinstance(value, Mapping):
        return False
    if not isinstance(value, list):
        return True
    return not any(
        isinstance(entry, Tensor) or (isinstance(entry, (Mapping, list)) and not _is_terminal(entry)) for entry in value
    )


def traverse_state_dict(state_dict, visitor):
    """Call `visitor(path, value)` for each leaf; keys of mappings become texts, places in lists stay numbers."""
    for key, value in state_dict.items():
        _traverse((str(key),), value, visitor)


def _traverse(path, value, visitor):
    if isinstance(value, Mapping):
        for key, entry in value.items():
            _traverse((*path, str(key)), entry, visitor)
    elif _is_terminal(value):
        visitor(path, value)
    else:
        for place, entry in enumerate(value):
            _traverse((*path, place), entry, visitor)


def set_element(root_dict, path, value):
    """Put `value` where `path` leads; what is missing on the way is made: dicts for texts, lists for numbers."""
    container = root_dict
    for key, following in zip(path, path[1:]):
        empty = {} if type(following) is str else []
        if isinstance(container, Mapping):
            container = container.setdefault(key, empty)
            continue
        _extend_list(container, key)
        if container[key] is None:
            container[key] = empty
        container = container[key]
    if type(path[-1]) is int:
        _extend_list(container, path[-1])
    container[path[-1]] = value


def _extend_list(items, place):
    items.extend([None] * (place + 1 - len(items)))


def get_element(root_dict, path, default_value=None):
    """What stands where `path` leads, or the default."""
    value = root_dict
    for part in path:
        if type(part) is int:
            if not isinstance(value, list) or len(value) <= part:
                return default_value
        elif not isinstance(value, Mapping) or part not in value:
            return default_value
        value = value[part]
    return value
