"""What goes into a traced function and what comes out of it: which Values stand for the arguments and the
results.

In PyTorch: `addInput` and `TracingState::getOutput` in `torch/csrc/jit/frontend/tracer.cpp`.
"""
from ....c10.tensor_impl import TensorImpl
from ..ir.type import DictType, ListType, StringType, TensorType, TupleType
from ..python import python_tracer

STRICT = (
    " might cause the trace to be incorrect, this is only valid if the container structure does not change based on "
    "the module's inputs. Consider using a constant container instead (e.g. for `list`, use a `tuple` instead. for "
    "`dict`, use a `NamedTuple` instead). If you absolutely need this and know the side effects, pass strict=False "
    "to trace() to allow this behavior."
)


class TracedBoundary:
    """The part of a TracingState that sees to arguments and results."""

    def add_input(self, thing, type, value):
        """`value` stands for the argument `thing`; returns what the function is called with instead of it."""
        value.setType(type)
        if isinstance(type, TensorType):
            if self.has_value(thing):
                thing = thing.view(thing._array.shape)  # given twice: each has a tensor of its own
            self._output(value, thing)
            return thing
        if isinstance(type, TupleType):
            outputs = self.graph.insertNode(self.graph.createTupleUnpack(value)).outputs()
            parts = [self.add_input(*each) for each in zip(thing, type.elements(), outputs)]
            value.setType(type.withContained([o.type() for o in outputs]))
            return type_of_tuple(thing)(parts)
        if isinstance(type, ListType):
            outputs = self.graph.insertNode(self.graph.createListUnpack(value, len(thing))).outputs()
            return [self.add_input(each, type.elem, output) for each, output in zip(thing, outputs)]
        if isinstance(type, DictType):
            return {key: self._dict_entry(key, each, type, value) for key, each in thing.items()}
        raise RuntimeError(
            "Only tensors or (possibly nested) dict or tuples of tensors can be inputs to traced functions. "
            f"Got {type.annotation_str}"
        )

    def _dict_entry(self, key, thing, type, value):
        node = self.graph.create("aten::__getitem__", [value, self.graph.insertConstant(key)])
        self.graph.insertNode(node).setSourceRange(python_tracer.source_range())
        return self.add_input(thing, type.value, node.output())

    def get_output(self, thing, number):
        """The Value that the traced function returns for `thing`."""
        if isinstance(thing, TensorImpl):
            if not self.has_value(thing):
                raise RuntimeError(
                    f"output {number} ({self.paused(thing.__repr__)}) of traced region did not have observable "
                    "data dependence with trace inputs; this probably indicates your program cannot be "
                    "understood by the tracer."
                )
            return self.values[id(thing)][1]
        if isinstance(thing, list) and all(isinstance(t, TensorImpl) for t in thing):
            if self.strict:
                python_tracer.warn("Encountering a list at the output of the tracer" + STRICT)
            return self.list_of(TensorType.get(), [self.get_output(t, number) for t in thing])
        if isinstance(thing, tuple):
            return self.graph.insertNode(
                self.graph.createTuple([self.get_output(t, number) for t in thing])
            ).output()
        if isinstance(thing, dict):
            return self._dict_output(thing, number)
        raise RuntimeError(
            "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced "
            "functions"
        )

    def _dict_output(self, thing, number):
        if self.strict:
            raise RuntimeError("Encountering a dict at the output of the tracer" + STRICT)
        keys_fit = all(isinstance(k, (str, TensorImpl)) for k in thing)
        if not keys_fit or not all(isinstance(v, TensorImpl) for v in thing.values()):
            raise RuntimeError(
                f"output {number} ({self.paused(thing.__repr__)}) of traced region cannot be understood by the tracer, only "
                "dict[str, Tensor] or dict[Tensor, Tensor] can be a dictionary output of a traced function"
            )
        key_type = StringType.get() if all(isinstance(k, str) for k in thing) else TensorType.get()
        keys, values = [], []
        for key, each in thing.items():
            keys.append(self.get_value(key))
            values.append(self.get_output(each, number))
        return self.graph.insertNode(self.graph.createDict(key_type, TensorType.get(), keys, values)).output()


def type_of_tuple(value):
    """What makes such a tuple from a list: the class of a named one."""
    return type(value)._make if hasattr(value, "_make") else tuple
