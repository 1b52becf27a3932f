"""Settings. In PyTorch: `torch/_dynamo/config.py`."""

# How `readtorch.compile` captures: "recorded" (a call runs and is kept, see recorded/) or "bytecode" (the function's
# instructions are interpreted, see symbolic_convert.py). In PyTorch: always by bytecode.
capture = "recorded"

recompile_limit = 8  # graphs for one function; what comes then runs as it is written
inline_depth_limit = 60  # calls within calls that are interpreted
loop_limit = 5000  # steps of one loop that are interpreted
