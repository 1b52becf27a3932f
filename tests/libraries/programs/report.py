"""How a program of this folder says what it computed: a line of JSON for each result, which `tests.libraries` compares."""

import json

import torch


def report(name, value):
    """Print a result: a tensor, a number, a text, or a list, tuple or dict of them."""
    for path, leaf in _leaves(name, value):
        if isinstance(leaf, torch.Tensor):
            leaf = leaf.detach()
            kind = "float64" if leaf.dtype in (torch.float64, torch.complex128) else "float32"
            leaf = torch.view_as_real(leaf) if leaf.is_complex() else leaf
            leaf = leaf.double() if leaf.is_floating_point() else leaf
            print(
                json.dumps({"name": path, "kind": kind, "shape": list(leaf.shape), "values": leaf.flatten().tolist()})
            )
        else:
            print(json.dumps({"name": path, "kind": "float32", "shape": [], "values": [leaf]}))


def _leaves(name, value):
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    else:
        yield name, value.item() if hasattr(value, "item") and not isinstance(value, torch.Tensor) else value
        return
    for key, part in items:
        yield from _leaves(f"{name}.{key}", part)
