"""What a node does besides computing its outputs.

In PyTorch: `Node::hasSideEffects`, `Node::isNondeterministic` in `torch/csrc/jit/ir/ir.cpp`.
"""

# Nodes with an effect that is visible outside of the graph.
SIDE_EFFECTS = {
    "prim::Print",
    "prim::RaiseException",
    "prim::SetAttr",
    "aten::warn",
    "aten::save",
    "aten::manual_seed",
    "aten::wait",
    "aten::set_grad_enabled",
    "prim::AddStatValue",
    "prim::TimePoint",
    "prim::PythonOp",
    "prim::IgnoredPythonOp",
    "prim::CallFunction",
    "prim::CallMethod",
    "prim::fork",
    "prim::Enter",
    "prim::Exit",
    "prim::Store",
    "aten::backward",
    "prim::awaitable_wait",
    "aten::_no_grad_uniform_",
    "aten::_no_grad_normal_",
    "aten::_no_grad_fill_",
    "aten::_no_grad_zero_",
}

# Nodes that need not give the same result twice.
NONDETERMINISTIC = {
    "dropout",
    "feature_dropout",
    "alpha_dropout",
    "feature_alpha_dropout",
    "native_dropout",
    "_fused_dropout",
    "_standard_gamma",
    "bernoulli",
    "multinomial",
    "normal",
    "poisson",
    "binomial",
    "rrelu",
    "rrelu_with_noise",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
}

# Nodes that read a state that is not an input.
READS_STATE = {"aten::is_grad_enabled", "aten::get_num_threads", "aten::initial_seed", "aten::seed"}


def has_side_effects(node):
    """Whether the node, or one in its blocks, must run even if its outputs are unused."""
    if node.kind() in SIDE_EFFECTS:
        return True
    return any(has_side_effects(inner) for block in node.blocks() for inner in block.nodes())


def is_nondeterministic(node):
    """Whether it draws random numbers, or reads a state. A dropout that is switched off does not."""
    if node.kind() in READS_STATE:
        return True
    name = node.kind().removeprefix("aten::")
    if name not in NONDETERMINISTIC:
        return False
    if name in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"):
        training = node.input(2)
        return not (training.isConstant() and training.toIValue() is False)
    return True
