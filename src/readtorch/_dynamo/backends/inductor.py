"""The backend "inductor". In PyTorch: `torch/_dynamo/backends/inductor.py`."""


def inductor(module, example_inputs):
    """AOTAutograd, then loops in numba. It is imported when a graph needs it."""
    from readtorch._inductor.compile_fx import compile_fx

    return compile_fx(module, example_inputs)
