"""`compile` by recording: a call runs as usual, its operators are kept as a graph of the JIT, and all that the function may read
has a guard. What no guard covers runs as it is written.

    output_graph.py a call becomes a graph
    reads.py        what the function may read
    trace_rules.py  what it may do
    guards.py       when that graph may run again
    eval_frame.py   graphs are kept, looked up and recompiled

It is what `readtorch.compile` uses while `_dynamo.config.capture` is "recorded". In PyTorch: `torch/_dynamo/eval_frame.py`
captures by bytecode alone, as the modules beside this package do.
"""
