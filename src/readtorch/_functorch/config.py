"""Settings of AOTAutograd. In PyTorch: `torch/_functorch/config.py`."""

cse = True  # whether nodes that compute the same become one before the graph is cut
treat_parameters_as_free_to_save = True  # they are there anyway

# What is not computed again in the backward, though it could be (min_cut_rematerialization_partition).
ban_recompute_used_far_apart = True  # results that are used early and late, with something between that stops fusion
ban_recompute_long_fusible_chains = True  # ends of chains of more than a hundred operators
ban_recompute_materialized_backward = True  # what the backward needs in memory anyway
# operators that are not known to be cheap; if False, all but expensive and random ones are
ban_recompute_not_in_allowlist = True
ban_recompute_reductions = True  # results a quarter the size of their operands, or less
aggressive_recomputation = False  # none of these but the last
recompute_views = False  # whether views are made again and never saved
max_dist_from_bw = 1000  # steps from the backward, from which nothing is computed again

activation_memory_budget = 1.0  # how much may be saved: 1 is what the cut saves, 0 only the inputs
# what recomputing costs: "flops", or 1 for each operator ("testing")
activation_memory_budget_runtime_estimator = "flops"
activation_memory_budget_solver = "dp"  # "dp" or "greedy", see _activation_checkpointing/knapsack.py
