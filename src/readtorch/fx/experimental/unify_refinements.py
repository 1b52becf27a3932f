"""The unknown sizes of a graph, solved for. In PyTorch: `torch/fx/experimental/unify_refinements.py`."""

from readtorch.fx.tensor_type import TensorType

from .graph_gradual_typechecker import Refine
from .unification import Var, unify

__all__ = [
    "check_for_type_equality",
    "convert_eq",
    "infer_symbolic_types",
    "infer_symbolic_types_single_pass",
    "substitute_all_types",
    "substitute_solution_one_type",
    "unify_eq",
]


def infer_symbolic_types_single_pass(traced):
    """Give each unknown size of a GraphModule a variable, and put the same one for those that must be equal."""
    _refined(traced)


def infer_symbolic_types(traced):
    """The same twice, as what follows from a broadcast needs the equalities found first; then what follows by arithmetic."""
    _refined(traced)
    _refined(traced).symbolic_relations()


def _refined(traced):
    refine = Refine(traced)
    refine.refine()
    substitute_all_types(traced.graph, unify_eq(refine.constraints))
    return refine


def convert_eq(list_of_eq):
    """The left sides and the right sides of a list of equalities."""
    return tuple(eq.lhs for eq in list_of_eq), tuple(eq.rhs for eq in list_of_eq)


def unify_eq(list_of_eq):
    """What to put for variables so that all equalities hold; False if they cannot."""
    return unify(*convert_eq(list_of_eq))


def substitute_solution_one_type(mapping, t):
    """A type with what the mapping has for its variables."""
    if isinstance(t, Var):
        return mapping.get(t, t)
    if isinstance(t, TensorType):
        return TensorType(tuple(substitute_solution_one_type(mapping, size) for size in t.dims))
    if isinstance(t, (list, tuple)):
        return type(t)(substitute_solution_one_type(mapping, each) for each in t)
    return t


def substitute_all_types(graph, mapping):
    """The same for the types of all nodes. What is put for a variable may be a variable that has something put for it, too."""
    for variable in mapping:
        while isinstance(mapping[variable], Var) and mapping[variable] in mapping:
            mapping[variable] = mapping[mapping[variable]]
    for n in graph.nodes:
        n.type = substitute_solution_one_type(mapping, n.type)


def check_for_type_equality(g1, g2):
    """Whether the nodes of two graphs have the same types."""
    return all(n.type == m.type for n, m in zip(g1.nodes, g2.nodes))
