"""What the reducer says when gradients do not come, or come twice. In PyTorch: `reducer.cpp`."""


def unfinished_reduction(reducer):
    """A new iteration begins, and some parameters got no gradient in the last one."""
    begin = "Expected to have finished reduction in the prior iteration before starting a new one. "
    if reducer.static_graph:
        return RuntimeError(
            f"{begin}This error indicates that your training graph has changed in this iteration, e.g., one "
            "parameter is used in first iteration, but then got unused in the second iteration. this is not "
            "compatible with static_graph set to True.")
    missing = [i for i in range(len(reducer.parameters)) if i not in reducer.ready]
    names = ", ".join(reducer.names.get(i, str(i)) for i in missing)
    rank = reducer.process_group.rank()
    return RuntimeError(
        f"{begin}This error indicates that your module has parameters that were not used in producing loss. "
        f"{_advice(reducer)}making sure all `forward` function outputs participate in calculating loss. \n"
        f"Parameters which did not receive grad for rank {rank}: {names}\n"
        f"Parameter indices which did not receive grad for rank {rank}: {' '.join(map(str, missing))}")


def _advice(reducer):
    if reducer.find_unused_parameters:
        return ("Since `find_unused_parameters=True` is enabled, this likely  means that not all `forward` "
                "outputs participate in computing loss. You can fix this by ")
    return ("You can enable unused parameter detection by passing the keyword argument "
            "`find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by \n")


def marked_twice(reducer, index):
    """A second gradient of a parameter came after its bucket had left."""
    return RuntimeError(
        "Expected to mark a variable ready only once. This error is caused by one of the following reasons: "
        "1) Use of a module parameter outside the `forward` function. Please make sure model parameters are "
        "not shared across multiple concurrent forward-backward passes. or try to use _set_static_graph() as "
        "a workaround if this module graph does not change during training loop.2) Reused parameters in "
        "multiple reentrant backward passes.\n"
        f"Parameter at index {index} with name {reducer.names.get(index, '?')} has been marked as ready "
        "twice. This means that multiple autograd engine  hooks have fired for this particular parameter "
        "during this iteration.")


def used_after_all():
    """With static_graph: a parameter got a gradient that had none in the first iteration."""
    return RuntimeError(
        "Your training graph has changed in this iteration, e.g., one parameter is unused in first "
        "iteration, but then got used in the second iteration. this is not compatible with static_graph set "
        "to True.")
