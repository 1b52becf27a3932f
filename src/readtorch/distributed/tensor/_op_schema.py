"""A call of an operator, with specs in place of tensors, and what a rule answers to it.

In PyTorch: `torch/distributed/tensor/_op_schema.py`. There an input may still have several specs to choose from, of which a run
without a compiler makes no use; here it has the one that it has.
"""

from functools import cached_property

from readtorch.utils._pytree import tree_leaves, tree_map_only

from ._dtensor_spec import DTensorSpec


class OpSpec:
    """One way to run an operator: specs of its inputs and of its outputs.

    input_specs: one for each tensor among the arguments, in their order. output_specs: one, or a tuple of them for several outputs;
    None where there is no tensor. redistribute_cost: of each input, from the spec that it has.
    """

    __slots__ = ("output_specs", "input_specs", "redistribute_cost")

    def __init__(self, output_specs, input_specs, redistribute_cost=None):
        self.output_specs, self.input_specs, self.redistribute_cost = output_specs, input_specs, redistribute_cost

    @property
    def output_spec(self):
        """The spec of the only output."""
        if not isinstance(self.output_specs, DTensorSpec):
            raise ValueError(f"function output_spec expects a single DTensorSpec but got: {self.output_specs}")
        return self.output_specs

    def __repr__(self):
        return f"{tuple(self.input_specs)} -> {self.output_specs}"


class OpSchema:
    """A call: the operator and its arguments, with specs in place of tensors. It is a key: equal calls have equal answers."""

    def __init__(self, op, args_schema, kwargs_schema):
        self.op, self.args_schema, self.kwargs_schema = op, args_schema, kwargs_schema

    @cached_property
    def args_spec(self):
        """The specs of all tensors among the positional arguments."""
        return tuple(_specs(self.args_schema))

    @cached_property
    def kwargs_spec(self):
        """The same for arguments by name."""
        return tuple(_specs(self.kwargs_schema))

    @property
    def args_meta(self):
        """The arguments with sizes, strides and dtype in place of specs: all that most rules may know."""
        return _mapped(lambda spec: spec.tensor_meta, self.args_schema)

    @property
    def kwargs_meta(self):
        return _mapped(lambda spec: spec.tensor_meta, self.kwargs_schema)

    def get_mesh_from_args(self):
        """The mesh of all inputs. Raises RuntimeError if they have several."""
        specs = (*self.args_spec, *self.kwargs_spec)
        mesh = specs[0].mesh
        for spec in specs:
            if spec.mesh != mesh:
                raise RuntimeError(
                    f"DTensor does not support cross-mesh operation on {self.op}! Got meshes: {mesh} {spec.mesh}. "
                    "Please make sure all the arguments have the same DeviceMesh."
                )
        return mesh

    def is_inplace_op(self):
        """Whether the name says that the first argument is written to."""
        return self.op._opname.endswith("_") and not self.op._opname.endswith("__")

    def is_out_variant_op(self):
        return any(argument.is_out for argument in self.op._schema.arguments)

    def with_specs(self, specs):
        """The same call with other specs of the positional tensors."""
        rest = iter(specs)
        return OpSchema(self.op, _mapped(lambda _: next(rest), self.args_schema), self.kwargs_schema)

    @cached_property
    def _key(self):
        """The number of the mesh's world belongs to it: a mesh may be equal to one whose groups have been left, of another rank even.

        in PyTorch: it does not, and after `destroy_process_group` a result can name groups that are gone.
        """
        specs = self.args_spec or self.kwargs_spec
        world = specs[0].mesh._world_number if specs else None
        return self.op, _frozen(self.args_schema), _frozen(self.kwargs_schema), world

    def __hash__(self):
        return hash(self._key)

    def __eq__(self, other):
        return isinstance(other, OpSchema) and self._key == other._key

    def __str__(self):
        direct = [arg for arg in self.args_schema if _is_spec(arg)]
        mesh = direct[-1].mesh if direct else None
        return f"{self.op}({', '.join(map(str, self.args_schema))}) on {mesh})"


def _specs(tree):
    return [leaf for leaf in tree_leaves(tree, is_leaf=_is_spec) if _is_spec(leaf)]


def _mapped(function, tree):
    return tree_map_only(DTensorSpec, function, tree, is_leaf=_is_spec)


def _is_spec(x):
    return isinstance(x, DTensorSpec)


def _frozen(value):
    """What can be hashed, and tells 1 from 1.0 and from True."""
    if isinstance(value, list | tuple):
        return tuple(_frozen(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, _frozen(v)) for k, v in value.items())
    return value if _is_spec(value) else (type(value), value)


class OutputSharding:
    """What propagation answers.

    output_spec: as OpSpec.output_specs, complete. redistribute_schema: the call as it is to be made on local tensors, with the specs
    that inputs must have; None if they have them and nothing else changes.
    """

    def __init__(self, output_spec, redistribute_schema=None):
        self.output_spec, self.redistribute_schema = output_spec, redistribute_schema
