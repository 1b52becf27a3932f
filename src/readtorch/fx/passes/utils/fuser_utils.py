"""Whether nodes can become one. In PyTorch: `torch/fx/passes/utils/fuser_utils.py`."""


def validate_partition(partition):
    """Whether a list of nodes can be replaced by one: no way from one of them to another leads through a node outside."""
    inside = set(partition)
    todo = [user for node in partition for user in node.users if user not in inside]
    seen = set(todo)
    while todo:
        node = todo.pop()
        if node in inside:
            return False
        new = [user for user in node.users if user not in seen]
        seen.update(new)
        todo += new
    return True
