"""Nested state_dicts as flat ones. In PyTorch: `torch/distributed/checkpoint/_nested_dict.py`."""

from ._traverse import set_element, traverse_state_dict


def flatten_state_dict(state_dict):
    """(flat name -> value, flat name -> path): {"a": {"b": 1}} becomes {"a.b": 1} and {"a.b": ("a", "b")}."""
    flattened, mappings = {}, {}

    def flat_copy(path, value):
        name = ".".join(map(str, path))
        if name in flattened:
            raise ValueError(f"duplicated flatten key {name}")
        flattened[name] = value
        mappings[name] = path

    traverse_state_dict(state_dict, flat_copy)
    return flattened, mappings


def unflatten_state_dict(state_dict, mapping):
    """The nested state_dict, given the flat one and the paths."""
    nested = {}
    for key, value in state_dict.items():
        set_element(nested, mapping[key], value)
    return nested
