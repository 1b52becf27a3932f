"""Operators that take functions: each function is captured as a graph of its own, which the operator's node holds.

Note [ A graph within a graph ]
While such a function is interpreted, `output.graph` is its graph. A node of a graph further out that it uses becomes a placeholder
there: it is *lifted*. All that is lifted are operands of the operator, in both functions in the same order: first what both use,
then what the first alone, then what the second alone. What happens outside cannot be done for a function of which nobody knows
whether it runs, or how often: a write to anything that was there before is an error.

In PyTorch: `torch/_dynamo/variables/higher_order_ops.py`.
"""

import functools
import operator
import warnings

import readtorch
from readtorch._dynamo.exc import (
    DifferentSizes,
    ObservedException,
    TorchRuntimeError,
    UncapturedHigherOrderOpError,
    Unsupported,
    unimplemented,
)
from readtorch._higher_order_ops.cond import cond, cond_op
from readtorch._higher_order_ops.utils import check_meta_consistency
from readtorch._higher_order_ops.while_loop import while_loop, while_loop_op
from readtorch.fx import GraphModule

from .constant import ConstantVariable
from .dicts import ConstDictVariable
from .lists import ListVariable, NamedTupleVariable, TupleVariable
from .tensor import SymNodeVariable, TensorVariable

USER_ERROR = (
    "Your code may result in an error when running in eager. Please double check that your code doesn't contain a similar error when "
    "actually running eager/uncompiled. You can do this by removing the `torch.compile` call, or by using "
    '`torch.compiler.set_stance("force_eager")`.',
)
NO_ALIASING = (
    "Replace `return input` with `return input.clone()` to avoid aliasing.",
    "Consider using the debug context to change user code to avoid aliasing.",
    "Please open an issue.",
)
NO_MUTATION = ("Consider using the debug context to change user code to avoid mutation.", "Please open an issue.")


def captured_whole(name, *parameters, **defaults):
    """Decorator for a rule, which gets its arguments in this order: where the graph would break, there is an error, for the
    operator is none without its graphs.
    """

    def decorate(rule):
        @functools.wraps(rule)
        def call(tx, *args, **kwargs):
            given = bound(name, parameters, defaults, args, kwargs)
            try:
                return rule(tx, *given)
            except DifferentSizes:
                raise
            except (Unsupported, ObservedException) as error:
                raise uncaptured(error, name) from None

        return call

    return decorate


def bound(name, parameters, defaults, args, kwargs):
    """The arguments in order. Python writes the message where they do not fit."""
    given = {key: make() for key, make in defaults.items()} | dict(zip(parameters, args)) | kwargs
    if len(args) > len(parameters) or given.keys() != set(parameters):
        unimplemented("failed to bind arguments when attempting to inline", f"arguments of {name}()")
    return [given[parameter].realize() for parameter in parameters]


def uncaptured(error, name):
    first, _, rest = text_of(error).partition("\n")
    text = "\n".join([f"  Higher Order Operator: {name}", *([rest] if rest else [])])
    if getattr(error, "gb_type", None) == "TorchRuntimeError":
        return TorchRuntimeError(f"RuntimeError when making fake tensor call\n{text}")
    text = f"{first}\n{text}"
    return UncapturedHigherOrderOpError(
        "This higher order operator doesn't work unless it is captured completely with torch.compile. "
        f"Got graph break/error:\n\n{text}"
    )


def text_of(error):
    if isinstance(error, ObservedException):
        return ", ".join(arg.realize().describe() for arg in error.variable.args) or error.variable.cls.__name__
    return str(error)


# ---------------------------------------------------------------------------------------------------- nests of values


def flatten(tx, variable):
    """(the variables in a nest of containers, what makes such a nest of other variables, its form)"""
    variable = variable.realize()
    if isinstance(variable, ConstDictVariable):
        variable.keys(tx)
        parts, again = list(variable.items.values()), lambda items: ConstDictVariable(dict(zip(keys, items)), cls)
        keys, cls = list(variable.items), variable.cls
        form = cls, tuple(keys)
    elif type(variable) in (TupleVariable, ListVariable, NamedTupleVariable):
        parts, form = variable.items, (variable.python_type(),)
        again = lambda items: remade(variable, items)  # noqa: E731
    else:
        return [variable], lambda leaves: leaves[0], None
    flat = [flatten(tx, part) for part in parts]

    def rebuild(leaves):
        items, at = [], 0
        for found, make, _ in flat:
            items.append(make(leaves[at : at + len(found)]))
            at += len(found)
        return again(items)

    return [leaf for found, *_ in flat for leaf in found], rebuild, (*form, [inner for *_, inner in flat])


def remade(variable, items):
    if isinstance(variable, NamedTupleVariable):
        return NamedTupleVariable(items, variable.cls)
    return type(variable)(items)


def check_callable(variable, name):
    if isinstance(variable, (TensorVariable, SymNodeVariable)) or type(variable) is ConstantVariable:
        what = variable.describe()
        unimplemented(
            "HOP: non-callable variable",
            f"{name} should be a callable but is of type {what}.",
            f"arg name: {name}, func_var type: {what}",
        )


# ------------------------------------------------------------------------------------------------ one of the functions


class Subgraph:
    """What became of one function. tracer: its graph, and what was lifted; leaves: the variables that it returns, nodes: what they
    are in its graph; mutated: the placeholders of what it writes to.
    """

    def __init__(self, output, tracer, leaves, rebuild, form):
        self.tracer, self.leaves, self.rebuild, self.form = tracer, leaves, rebuild, form
        self.nodes = [node_of(output, leaf) for leaf in leaves]
        self.mutated = tracer.mutated_nodes()

    def examples(self):
        return [example_of(leaf) for leaf in self.leaves]

    def end(self, as_tuple=True):
        self.tracer.graph.output(tuple(self.nodes) if as_tuple else self.nodes[0])

    def written(self):
        """The nodes further out that it writes to."""
        return [outer for outer, node in self.tracer.lifted.items() if node in self.mutated]

    def module(self, output):
        return GraphModule(dict(output.nn_modules), self.tracer.graph)


def node_of(output, leaf):
    if isinstance(leaf, SymNodeVariable):
        return leaf.as_graph_input(output)[0]
    return leaf.as_proxy(output)[0]


def example_of(leaf):
    """What stands for a tensor or a number now."""
    if isinstance(leaf, TensorVariable):
        return leaf.example
    return leaf.hint if isinstance(leaf, SymNodeVariable) else leaf.value


def speculate_subgraph(tx, function, args, carried=()):
    """Interpret a function into a graph of its own. carried: what stands for the operands, and becomes placeholders in any case."""
    output = tx.output
    grad_mode, regions = output.grad_mode, list(output.autocast_regions)
    with output.subtracer() as tracer:
        args = [carried_variable(tx, tracer, x) for x in carried] + list(args)
        leaves, rebuild, form = flatten(tx, tx.call(function, args, {}))
        if output.grad_mode is not grad_mode or output.autocast_regions != regions:
            unsafe_side_effect("the thread's modes")
        for leaf in leaves:
            check_output_type(leaf)
            if isinstance(leaf, TensorVariable):
                leaf.known_sizes()
        made = Subgraph(output, tracer, leaves, rebuild, form)
        if grad_mode:
            check_input_mutation(made)
            check_aliasing(made)
    for node in made.mutated:
        node.meta["example_value"].constant = None
    return made


def unsafe_side_effect(what):
    unimplemented(
        "HOP: Unsafe side effect",
        "Mutating a variable from outside the scope of this HOP is not supported.",
        f"Attempted to mutate {what}",
    )


def check_output_type(leaf):
    value = leaf.hint if isinstance(leaf, SymNodeVariable) else getattr(leaf, "value", 1.0)
    if isinstance(leaf, TensorVariable) or value is None or isinstance(value, int):
        return
    unimplemented(
        "HOP body output unsupported",
        f"HigherOrderOperator body's output must consist of tensors or ints/bools only but got {leaf.python_type()}.",
        f"non-tensor outputs: {{{leaf.describe()}}}",
        USER_ERROR,
    )


def check_input_mutation(made):
    if made.mutated:
        unimplemented(
            "Encountered input mutation during higher order op tracing",
            "Higher order ops do not support input mutation.",
            f"Input mutation detected at {made.mutated} in\n {made.tracer.graph}",
            NO_MUTATION,
        )


def check_aliasing(made):
    """No memory is that of two inputs, of two results, or of an input and a result."""
    inputs, results = {}, {}
    for node, example in made.tracer.inputs():
        note_storage(made, inputs, node, example, "Input-to-input")
    for leaf, node in zip(made.leaves, made.nodes):
        if isinstance(leaf, TensorVariable):
            note_storage(made, results, node, leaf.example, "Output-to-output")
    both = [f"{inputs[key]} and {results[key]}" for key in inputs.keys() & results.keys()]
    if both:
        refuse_alias(made, f"Input-to-output aliasing detected at nodes {', '.join(both)}")


def note_storage(made, seen, node, example, kind):
    key = example.untyped_storage()._cdata
    if key in seen:
        refuse_alias(made, f"{kind} aliasing detected at nodes {seen[key]} and {node}")
    seen[key] = node


def refuse_alias(made, message):
    unimplemented(
        "Encountered aliasing during higher order op tracing",
        "Higher order ops do not support aliasing.",
        f"{message} in\n {made.tracer.graph}",
        NO_ALIASING,
    )


def merge_inputs(first, second, names):
    """Give both graphs the same placeholders for what was lifted. Returns the outer nodes, as operands."""
    a, b = first.tracer.lifted, second.tracer.lifted
    by_name = functools.partial(sorted, key=lambda node: node.name)
    shared = by_name([node for node in a if node in b])
    alone = [by_name([node for node in one if node not in other]) for one, other in ((a, b), (b, a))]
    wanted = [(node, node.name) for node in shared]
    for nodes, name in zip(alone, names):
        wanted += [(node, f"{node.name}_{name}") for node in nodes]
    for each in (first, second):
        each.tracer.replace_placeholders(wanted)
    return [node for node, _ in wanted]


def install(output, first, second, names):
    """The nodes of both graphs in the one around."""
    return [output.install_subgraph(name, each.module(output)) for name, each in zip(names, (first, second))]


def call_node(tx, hop, args, kwargs, first, same_numbers):
    """The operator's node, and the variables of its results. same_numbers: which results are numbers that are known now."""
    output = tx.output
    fakes = tuple(output.example_of(arg) for arg in args)
    found = output.run_fake(hop.name(), hop, fakes, kwargs)
    node = output.graph.create_node("call_function", hop, tuple(args), kwargs, name=hop.name())
    node.meta["example_value"] = found
    output.op_count += 1
    results = []
    for i, (value, leaf) in enumerate(zip(found, first.leaves)):
        if not isinstance(value, readtorch.Tensor):
            known = isinstance(leaf, ConstantVariable) and same_numbers[i]
            results.append(leaf if known else SymNodeVariable(output, None, value, item_of(output, node, i, value)))
        else:
            results.append(output.part(node, i, value, []))
    return first.rebuild(results)


def item_of(output, node, index, value):
    made = output.graph.call_function(operator.getitem, (node, index))
    made.meta["example_value"] = value
    return made


# ------------------------------------------------------------------------------------------------------------- cond


SPECIALIZED = (
    "Pred is a Python constant. When used with torch.cond, it specializes on one of the branches."
    " If you want torch.cond to preserve two branches, please make the predicate a boolean tensor or a SymBool."
)


@captured_whole("torch.cond", "pred", "true_fn", "false_fn", "operands", operands=lambda: TupleVariable([]))
def call_cond(tx, pred, true_fn, false_fn, operands):
    if isinstance(pred, (ConstantVariable, SymNodeVariable)):
        warnings.warn(SPECIALIZED, UserWarning, stacklevel=2)
        return tx.call(true_fn if tx.truth(pred) else false_fn, list(tx.iterate(operands)), {})
    check_cond_arguments(tx, pred, operands)
    check_callable(true_fn, "true_fn")
    check_callable(false_fn, "false_fn")
    args = list(tx.iterate(operands))
    true, false = (speculate_branch(tx, function, args) for function in (true_fn, false_fn))
    check_forms(true, false)
    true.end(), false.end()
    lifted = merge_inputs(true, false, ("true_branch", "false_branch"))
    nodes = install(tx.output, true, false, ("cond_true", "cond_false"))
    same_numbers = [a == b for a, b in numbers_in(zip(true.examples(), false.examples()))]
    return call_node(tx, cond_op, (node_of(tx.output, pred), *nodes, tuple(lifted)), {}, true, same_numbers)


def check_forms(true, false):
    """Both return the same nest, of tensors of the same sizes."""
    if true.form != false.form and None not in (true.form, false.form):
        unimplemented(
            "torch.cond: differing branch outputs",
            "Expected branches to return the same pytree structure.",
            f"true_spec: {true.form}, false_spec: {false.form}, same_spec: False",
            USER_ERROR,
        )
    tensors = [(a, b) for a, b in zip(true.examples(), false.examples()) if is_tensor(a, b)]
    if any(a.dim() == b.dim() and a.shape != b.shape for a, b in tensors):
        why = "the branches of torch.cond return tensors of different sizes"
        raise DifferentSizes(f"Dynamic shape operator\n  Explanation: {why}", "Dynamic shape operator")


def is_tensor(*values):
    return all(isinstance(x, readtorch.Tensor) for x in values)


def numbers_in(pairs):
    return [(None, None) if is_tensor(a) or is_tensor(b) else (a, b) for a, b in pairs]


def check_cond_arguments(tx, pred, operands):
    if not isinstance(pred, TensorVariable):
        unimplemented(
            "torch.cond: improper predicate",
            "Expected `pred` to be a bool or a boolean tensor with a single item "
            f"but got {type(pred)} with original python type {pred.python_type()}.",
            pred.describe(),
            USER_ERROR,
        )
    if not isinstance(operands, (ListVariable, TupleVariable)):
        unimplemented(
            "torch.cond: improper operands",
            f"Expected `operands` to be a list/tuple but got {operands.python_type()}.",
            operands.describe(),
            USER_ERROR,
        )
    if not all(isinstance(x, (TensorVariable, ConstantVariable, SymNodeVariable)) for x in flatten(tx, operands)[0]):
        unimplemented(
            "torch.cond: improper operands contents",
            "Expected `operands` to be a list/tuple of pytrees that only consists of tensor leaves.",
            operands.describe(),
            USER_ERROR,
        )


def speculate_branch(tx, function, args):
    made = speculate_subgraph(tx, function, args)
    if any(isinstance(leaf, ConstantVariable) and leaf.value is None for leaf in made.leaves):
        unimplemented(
            "torch.cond: unsupported branch return type (constant non-int)",
            "Constants returned from branches must be ints.",
            f"TupleVariable(length={len(made.leaves)})",
            USER_ERROR,
        )
    return made


# ------------------------------------------------------------------------------------------------------- while_loop


def carried_variable(tx, tracer, variable):
    """What stands for an operand inside the functions: all that is known of it is what every turn has alike."""
    output = tx.output
    if not isinstance(variable, TensorVariable):
        value = variable.hint if isinstance(variable, SymNodeVariable) else variable.value
        node = tracer.placeholder("unbacked_symint", value)
        return SymNodeVariable(output, None, value, node)
    variable.known_sizes()
    example = output.run_fake("clone", lambda x: x.detach().clone(), (variable.example,), {})
    example.constant = None
    if variable.example.requires_grad:
        example.requires_grad_()
    return TensorVariable(output, readtorch.Tensor, tracer.placeholder("child", example), example)


def check_carried(variable):
    """Tensors and ints are carried from turn to turn."""
    is_number = type(getattr(variable, "hint", getattr(variable, "value", None))) in (int, bool)
    if not isinstance(variable, TensorVariable) and not is_number:
        raise AssertionError("Expected carry to be a tensor")


@captured_whole("torch.while_loop", "cond_fn", "body_fn", "carried_inputs")
def call_while_loop(tx, cond_fn, body_fn, carried):
    leaves, rebuild, _ = flatten(tx, carried)

    def call(function):
        return CallOfNest(function, rebuild)

    return call_loop(tx, cond_fn, body_fn, leaves, [], call)


@captured_whole("torch.while_loop", "cond_fn", "body_fn", "carried_inputs", "additional_inputs")
def call_while_loop_op(tx, cond_fn, body_fn, carried, additional):
    return call_loop(tx, cond_fn, body_fn, *([x.realize() for x in tx.iterate(each)] for each in (carried, additional)))


class CallOfNest:
    """A function whose arguments come flat, and are given as the nest that they were."""

    def __init__(self, function, rebuild):
        self.function, self.rebuild = function, rebuild

    def realize(self):
        return self

    def call_function(self, tx, args, kwargs):
        return tx.call(self.function, list(tx.iterate(self.rebuild(args))), kwargs)


def call_loop(tx, cond_fn, body_fn, operands, additional, form=lambda function: function):
    output = tx.output
    check_callable(cond_fn, "cond_fn")
    check_callable(body_fn, "body_fn")
    for operand in operands:
        check_carried(operand)
    condition = speculate_subgraph(tx, form(cond_fn), additional, operands)
    if check_condition(condition) is False:
        return TupleVariable(list(operands))
    body = speculate_subgraph(tx, form(body_fn), additional, operands)
    check_meta_consistency(body.examples(), [*map(example_of, operands)], "body_fn_output", "carried_inputs")
    condition.end(as_tuple=False)
    body.end()
    lifted = merge_inputs(condition, body, ("cond_fn", "body_fn"))
    nodes = install(output, condition, body, ("cond_fn", "body_fn"))
    carried = tuple(node_of(output, x) for x in operands)
    extra = tuple(node_of(output, x) for x in additional) + tuple(lifted)
    kwargs = mutated_arg_indices([*condition.written(), *body.written()], len(operands) + len(additional), lifted)
    return call_node(tx, while_loop_op, (*nodes, carried, extra), kwargs, body, [False] * len(operands))


def check_condition(condition):
    """False if it is known that there is no turn."""
    leaf = condition.leaves[0]
    if isinstance(leaf, TensorVariable):
        if leaf.example.dtype is not readtorch.bool or leaf.example.dim():
            unimplemented(
                "torch.while_loop: unsupported cond_fn return type",
                f"Expected cond_fn to return a scalar tensor or a bool but got {leaf.example.shape}.",
                leaf.describe(),
                USER_ERROR,
            )
    elif isinstance(leaf, ConstantVariable):
        if leaf.value:
            unimplemented(
                "torch.while_loop: infinite loop detected",
                f"Infinite loop detected because while_loop's cond_fn always returns the same value {leaf.value}.",
                leaf.describe(),
                USER_ERROR,
            )
        return False
    return None


def mutated_arg_indices(written, count, lifted):
    """Which of the operands that were lifted, behind `count` others, are written to: the operator's argument. Without grad mode they
    may be."""
    found = [str(count + i) for i, node in enumerate(lifted) if node in written]
    return {"mutated_arg_indices": ",".join(found)} if found else {}


FUNCTIONS = {cond: call_cond, cond_op: call_cond, while_loop: call_while_loop, while_loop_op: call_while_loop_op}
