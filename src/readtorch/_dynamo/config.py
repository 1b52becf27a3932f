"""Settings. In PyTorch: `torch/_dynamo/config.py`."""

recompile_limit = 8  # graphs for one function; what comes then runs as it is written
inline_depth_limit = 60  # calls within calls that are interpreted
loop_limit = 5000  # steps of one loop that are interpreted
