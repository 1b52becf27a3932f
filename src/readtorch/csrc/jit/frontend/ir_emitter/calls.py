"""Calls. Most evaluate their arguments and call what the callee means; special forms look at the arguments'
trees.

In PyTorch: `emitApplyExpr`, `emitApplySpecialForm` in `torch/csrc/jit/frontend/ir_emitter.cpp`.
Explained in the chapter "JIT: scripting".
"""

import ast

from readtorch.csrc.jit.frontend.error_report import ErrorReport
from readtorch.csrc.jit.frontend.schema_matching import NamedValue, try_convert_to_type
from readtorch.csrc.jit.frontend.script_type_parser import type_name
from readtorch.csrc.jit.frontend.sugared_value import (
    ClassValue,
    IterableTree,
    RangeValue,
    SimpleValue,
    SliceValue,
    SpecialForm,
)
from readtorch.csrc.jit.ir.type import DictType, FutureType, ListType, NoneType, OptionalType, StringType, TensorType

from .control_flow import FOREVER


class Calls:
    def expression_Call(self, node, type_hint):
        callee = self.sugared(node.func)
        if isinstance(callee, SpecialForm):
            return getattr(self, f"form_{callee.form}")(node, type_hint)
        args = self.named_values(node.args)
        return callee.call(self.range(node.func), self, args, self._keywords(node))

    def _keywords(self, node):
        found = []
        for keyword in node.keywords:
            if keyword.arg is None:
                raise ErrorReport(self.range(node), "keyword-arg expansion is not supported")
            value = self.expression(keyword.value)
            found.append(NamedValue(value, keyword.arg, self.range(keyword.value)))
        return found

    def check_inputs(self, node, count):
        """Raises ErrorReport unless a special form has `count` arguments."""
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        if len(node.args) != count:
            raise ErrorReport(self.range(node), f"{name} expected exactly {count} arguments but found {len(node.args)}")
        if node.keywords:
            raise ErrorReport(self.range(node), f"{name} takes no keyword arguments")

    def _string(self, node, message):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        raise ErrorReport(self.range(node), message)

    # ---------------------------------------------------------------------------------------------- types

    def form_annotate(self, node, type_hint):
        self.check_inputs(node, 2)
        type, range = self.types.type(node.args[0]), self.range(node)
        value = try_convert_to_type(range, self.graph, type, self.expression(node.args[1], type), True)
        if not value.type().isSubtypeOf(type):
            raise ErrorReport(
                range, f"expected an expression of type {type_name(type)} but found {type_name(value.type())}\n"
            )
        if isinstance(type, OptionalType) and isinstance(value.type(), NoneType):
            value = (
                self.graph.insertNode(self.graph.createNone()).output().setType(type)
            )  # remembers of what it is none
        return value

    def form_unchecked_cast(self, node, type_hint):
        self.check_inputs(node, 2)
        type, value = self.types.type(node.args[0]), self.expression(node.args[1])
        if value.node().kind() == "prim::unchecked_cast" and value.type() == type:
            return value
        return self.graph.insertUncheckedCast(value, type)

    def form_uninitialized(self, node, type_hint):
        made = self.graph.createUninitialized(self.types.type(node.args[0]))
        return self.graph.insertNode(made).setSourceRange(self.range(node)).output()

    def form_isinstance(self, node, type_hint):
        return self.isinstance_(node).value

    def form_hasattr(self, node, type_hint):
        return self.hasattr_(node).value

    def form_getattr(self, node, type_hint):
        if len(node.args) not in (2, 3):
            self.check_inputs(node, 2)
        object, range = self.sugared(node.args[0]), self.range(node)
        name = self._string(node.args[1], "getattr's second argument must be a string literal")
        if len(node.args) == 3 and not object.has_attr(range, self, name):
            return self.sugared(node.args[2])
        return object.attr(range, self, name)

    def form_tolist(self, node, type_hint):
        if type_hint is None:
            raise ErrorReport(self.range(node), "Expected type hint for result of tolist()")
        return self.graph.insertToList(self.expression(node.func.value), type_hint)

    def form_CreateObject(self, node, type_hint):
        self.check_inputs(node, 1)
        made = self.sugared(node.args[0])
        if not isinstance(made, ClassValue):
            raise ErrorReport(self.range(node), f"Expected class value as argument to __new__, got {made.kind} instead")
        return self.graph.insertNode(self.graph.createObject(made.type)).setSourceRange(self.range(node)).output()

    # ----------------------------------------------------------------------------------------- iterables

    def form_range(self, node, type_hint):
        return RangeValue(self.range(node), self, self.values_of(node.args))

    def form_enumerate(self, node, type_hint):
        range, count = self.range(node), len(node.args)
        start = [k.value for k in node.keywords if k.arg == "start"] or node.args[1:2]
        if not 1 <= count <= 2:
            bound = "at least 1 arguments, got 0" if count == 0 else f"at most 2 arguments, got {count}"
            raise ErrorReport(range, f"enumerate expected {bound}")
        bounds = [self.expression(start[0])] if start else []
        bounds.append(self.graph.insertConstant(FOREVER, None, range))
        through = self.sugared(node.args[0]).iter(range, self)
        numbers = RangeValue(range, self, bounds, through.static_length())
        return IterableTree(range, [numbers, through])

    def form_zip(self, node, type_hint):
        range = self.range(node)
        if not node.args:
            raise ErrorReport(range, "zip expected at least 1 arguments, got 0")
        return IterableTree(range, [self.sugared(e).iter(range, self) for e in node.args])

    def form_slice(self, node, type_hint):
        range = self.range(node)
        values = [None if isinstance(v.type(), NoneType) else v for v in self.values_of(node.args)]
        if not 1 <= len(values) <= 3:
            raise ErrorReport(range, f"slice accepts exactly 1, 2 or 3 arguments, got: {len(values)}")
        if len(values) == 1:
            values.insert(0, None)
        defaults = (0, FOREVER, 1)
        values += [None] * (3 - len(values))
        bounds = [self.graph.insertConstant(d, None, range) if v is None else v for v, d in zip(values, defaults)]
        return SliceValue(*bounds)

    # ---------------------------------------------------------------------------------------- containers

    def form_tuple(self, node, type_hint):
        self.check_inputs(node, 1)
        range = self.range(node)
        values = [p.as_value(range, self) for p in self.sugared(node.args[0]).as_tuple(range, self)]
        return self.graph.insertNode(self.graph.createTuple(values)).output()

    def form_list(self, node, type_hint):
        range = self.range(node)
        if not node.args:
            type = type_hint or ListType(TensorType.get())
            if not isinstance(type, ListType):
                raise ErrorReport(range, f"Expected list type annotation for list(), found {type_name(type)}")
            return self.graph.insertNode(self.graph.createList(type.elem, [])).output()
        self.check_inputs(node, 1)
        through = self.sugared(node.args[0])
        if isinstance(through, SimpleValue) and isinstance(through.type(), (ListType, StringType)):
            return self.graph.insert("aten::list", [through.value], range=range)
        # list(xs) is [x for x in xs]
        iterable, element = self.temporary("_iter"), self.temporary("_elem")
        self.frame.set(range, iterable, through)
        comprehension = _at(
            node, ast.ListComp(_name(element), [ast.comprehension(_name(element), _name(iterable), [], 0)])
        )
        return self.expression(comprehension, type_hint)

    def form_dict(self, node, type_hint):
        range = self.range(node)
        made = self._dict_of(node, range, type_hint)
        for keyword in node.keywords if node.args else []:
            key = self.graph.insertConstant(keyword.arg, None, range)
            self.graph.insert("aten::_set_item", [made, key, self.expression(keyword.value)], range=range)
        return made

    def _dict_of(self, node, range, type_hint):
        if not node.args and not node.keywords or _is_empty_literal(node.args):
            type = type_hint or DictType(StringType.get(), TensorType.get())
            if not isinstance(type, DictType):
                raise ErrorReport(
                    range, f"Expected a type annotation of Dict for dict constructor dict(), got {type.str()}"
                )
            return self.graph.insertNode(self.graph.createDict(type.key, type.value, [], [])).output()
        if not node.args:
            literal = ast.Dict([ast.Constant(k.arg) for k in node.keywords], [k.value for k in node.keywords])
            return self.expression(_at(node, literal), type_hint)
        if isinstance(node.args[0], ast.DictComp):
            return self.expression(node.args[0], type_hint)
        given = self.sugared(node.args[0])
        if isinstance(given, SimpleValue) and isinstance(given.type(), DictType):
            return self.graph.insert("aten::dict", [given.value], range=range)
        iterable, key, value = self.temporary("_iter"), self.temporary("_key"), self.temporary("_value")
        self.frame.set(range, iterable, given)
        target = ast.Tuple([_name(key), _name(value)])
        generators = [ast.comprehension(target, _name(iterable), [], 0)]
        return self.expression(_at(node, ast.DictComp(_name(key), _name(value), generators)), type_hint)

    # ---------------------------------------------------------------------------------------------- tasks

    def form_fork(self, node, type_hint):
        """A prim::fork: its graph makes the call in a task of its own."""
        range = self.range(node)
        if not node.args:
            raise ErrorReport(range, "Expected at least one argument to fork()")
        callee = self.sugared(node.args[0])
        args, kwargs = self.named_values(node.args[1:]), self._keywords(node)
        fork = self.graph.insertNode(self.graph.create("prim::forkClosure")).setSourceRange(range)
        with self.inside(fork.addBlock()):
            result = callee.call(range, self, args, kwargs).as_value(range, self)
        fork.blocks()[0].registerOutput(result)
        fork.output().setType(FutureType(result.type()))
        return fork.output()


def _name(name):
    return ast.Name(name, ast.Load())


def _at(where, tree):
    """The tree, with the position of `where`."""
    for part in ast.walk(tree):
        if not hasattr(part, "lineno"):
            ast.copy_location(part, where)
    return tree


def _is_empty_literal(args):
    return bool(args) and (
        isinstance(args[0], ast.Dict) and not args[0].keys or isinstance(args[0], ast.List) and not args[0].elts
    )
