"""Specs of nested arguments, compared. In PyTorch: `torch/export/_tree_utils.py`."""


def reorder_kwargs(user_kwargs, spec):
    """Keyword arguments in the order of `spec`, the spec of (args, kwargs). Raises ValueError for other keywords."""
    if spec.type is not tuple:
        raise AssertionError(f"Expected spec type to be tuple, but got {spec.type}")
    if spec.num_children != 2:
        raise AssertionError(f"Expected spec to have 2 children, but got {spec.num_children}")
    kwargs_spec = spec.child(1)
    if kwargs_spec.type is not dict:
        raise AssertionError(f"Expected kwargs_spec type to be dict, but got {kwargs_spec.type}")
    if set(user_kwargs) != set(kwargs_spec.context):
        raise ValueError(
            f"Ran into a kwarg keyword mismatch: Got the following keywords {list(user_kwargs)} but expected {kwargs_spec.context}"
        )
    return {name: user_kwargs[name] for name in kwargs_spec.context}


def is_equivalent(spec1, spec2, equivalence_fn):
    """Whether two specs are alike. equivalence_fn: (type, context, other type, other context) -> whether two nodes are."""
    if not equivalence_fn(spec1.type, spec1.context, spec2.type, spec2.context):
        return False
    if spec1.num_children != spec2.num_children:
        return False
    return all(is_equivalent(a, b, equivalence_fn) for a, b in zip(spec1.children(), spec2.children()))
