"""Statements. In PyTorch: `to_ir::emitStatements` in `torch/csrc/jit/frontend/ir_emitter.cpp`."""

import ast

from readtorch.csrc.jit.frontend.definition import UnsupportedNodeError
from readtorch.csrc.jit.frontend.error_report import ErrorReport, update_pending_range
from readtorch.csrc.jit.frontend.schema_matching import NamedValue, try_convert_to_type
from readtorch.csrc.jit.frontend.script_type_parser import type_name
from readtorch.csrc.jit.frontend.sugared_value import ExceptionMessage, ExceptionValue, MethodValue, SugaredValue
from readtorch.csrc.jit.ir.type import AnyType, ClassType, NoneType, StringType, TensorType, unifyTypes


class Closure(SugaredValue):
    """A function without parameters inside of another one: its body is compiled where it is called."""

    kind = "closure"

    def __init__(self, node):
        self.node = node

    def call(self, range, emitter, args, kwargs):
        *body, last = self.node.body
        emitter.statements(body)
        return emitter.sugared(last.value)


class Statements:
    """One method for each kind of statement."""

    def statements(self, body):
        for statement in body:
            update_pending_range(self.range(statement))
            handler = getattr(self, f"statement_{type(statement).__name__}", None)
            if handler is None:
                name = _NAMES.get(type(statement), type(statement).__name__)
                raise UnsupportedNodeError(self.text.first_word(statement), f"{name} aren't supported")
            handler(statement)
            if self.frame.block in self.exit_blocks:
                return  # the rest can never run

    def statement_Expr(self, node):
        if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):  # a docstring
            self.sugared(node.value)

    def statement_Pass(self, node):
        pass

    def statement_Break(self, node):
        self._check_loop(node, "break")
        self.graph.insertNode(self.graph.create("prim::BreakStmt", (), 0)).setSourceRange(self.range(node))

    def statement_Continue(self, node):
        self._check_loop(node, "continue")
        self.graph.insertNode(self.graph.create("prim::ContinueStmt", (), 0)).setSourceRange(self.range(node))

    def _check_loop(self, node, word):
        if self.loop is None:
            raise ErrorReport(self.range(node), f"SyntaxError: '{word}' outside loop")
        if self.loop == "unrolled":
            raise ErrorReport(
                self.range(node),
                "Because we emit iteration over modulelists or tuples as unrolled loops, we do "
                "not support break or continue inside the body of these loops",
            )

    def statement_FunctionDef(self, node):
        """In the text of an archive: the body of a fork. Programs have no functions inside of functions."""
        if not self.resolver.allows_closures:
            raise UnsupportedNodeError(self.text.first_word(node), "function definitions aren't supported")
        self.frame.set(self.range(node), node.name, Closure(node))

    # --------------------------------------------------------------------------------------------- return

    def statement_Return(self, node):
        if node.value is None:
            value = self.graph.insertConstant(None, None, self.range(node))
        else:
            value = self.expression(node.value, self.declared_return)
        self.return_value(self.range(node), value)

    def return_value(self, range, value):
        declared = self.declared_return
        if declared is not None:
            if not (declared.isSubtypeOf(TensorType.get()) and isinstance(value.type(), NoneType)):
                value = try_convert_to_type(range, self.graph, declared, value, True)
            if not value.type().isSubtypeOf(declared):
                raise ErrorReport(
                    range,
                    f"Return value was annotated as having type {type_name(declared)} but is actually of "
                    f"type {type_name(value.type())}",
                )
            self.merged_return = declared
        else:
            self.merged_return = self._merge_return(range, value.type())
        if isinstance(self.merged_return, AnyType) and not isinstance(value.type(), AnyType):
            value = self.graph.insertUncheckedCast(value, self.merged_return)
        self.graph.insertNode(self.graph.create("prim::ReturnStmt", [value], 0)).setSourceRange(range)
        self.exit_blocks.add(self.frame.block)

    def _merge_return(self, range, type):
        if self.merged_return is None:
            return type
        merged = unifyTypes(self.merged_return, type)
        if merged is None:
            raise ErrorReport(
                range,
                f"Previous return statement returned a value of type {type_name(self.merged_return)} but "
                f"this return statement returns a value of type {type_name(type)}",
            )
        return merged

    # ---------------------------------------------------------------------------------------------- errors

    def statement_Raise(self, node):
        range = self.range(node)
        if node.exc is None:
            raise ErrorReport(range, "exceptions must derive from BaseException")
        exception = self.sugared(node.exc)
        if isinstance(exception, ExceptionMessage):
            message, class_name = exception.message, exception.class_name
        elif isinstance(exception, ExceptionValue):
            message = self.graph.insertConstant("", None, range)
            class_name = exception.class_name(range, self)
        else:
            raise ErrorReport(range, "exceptions must derive from BaseException")
        if not isinstance(message.type(), StringType):
            message = self.graph.insert("aten::str", [message])
        self._raise(range, message, class_name)

    def _raise(self, range, message, class_name):
        self.raise_exception(range, message, class_name)
        self.exit_blocks.add(self.frame.block)

    def raise_exception(self, range, message, class_name=None):
        """A prim::RaiseException. class_name: the Value of its qualified name."""
        class_name = class_name or self.graph.insertConstant(None, None, range)
        self.graph.insertNode(self.graph.create("prim::RaiseException", [message, class_name], 0)).setSourceRange(range)

    def statement_Assert(self, node):
        range = self.range(node)
        condition = self.condition(node.test)

        def fail():
            text = self.expression(node.msg) if node.msg is not None else self.graph.insertConstant("", None, range)
            message = self.graph.insert("aten::add", ["AssertionError: ", text], range=range)
            self._raise(range, message, None)

        self.branches(range, condition, lambda: None, fail)

    # ------------------------------------------------------------------------------------------- with, del

    def statement_With(self, node):
        entered = []
        for item in node.items:
            entered.append(self._enter(item))
        self.statements(node.body)
        for value in reversed(entered):
            exit = self.graph.insertNode(self.graph.create("prim::Exit", [value]))
            exit.output().setType(value.type().getMethod("__exit__").schema.returns[0].type)

    def _enter(self, item):
        range = self.range(item.context_expr)
        value = self.expression(item.context_expr)
        if not isinstance(value.type(), ClassType):
            raise ErrorReport(range, "With item expression must return an object")
        enter, exit = (value.type().findMethod(name) for name in ("__enter__", "__exit__"))
        if enter is None or exit is None:
            raise ErrorReport(
                range, "Object returned by with item expression does not define __enter__ and __exit__ methods"
            )
        if len(enter.schema.arguments) != 1:
            raise ErrorReport(range, "__enter__ must have only one argument and one return value")
        if len(exit.schema.arguments) != 4:
            raise ErrorReport(range, "__exit__ must have four arguments")
        for i, argument in enumerate(exit.schema.arguments[1:], 1):
            if not isinstance(argument.type, AnyType):
                raise ErrorReport(
                    range,
                    f"argument {i} of __exit__ must have Any type; TorchScript does not currently support "
                    "passing exception type, value, or traceback to the __exit__ function.",
                )
        node = self.graph.insertNode(self.graph.create("prim::Enter", [value]))
        node.output().setType(enter.schema.returns[0].type)
        if item.optional_vars is not None:
            self.frame.set_value(self.range(item.optional_vars), item.optional_vars.id, node.output())
        return value

    def statement_Delete(self, node):
        for target in node.targets:
            range = self.range(target)
            if isinstance(target, ast.Name):
                self.frame.remove(target.id, range)
            elif isinstance(target, ast.Subscript):
                self._delete_item(target, range)
            else:
                raise ErrorReport(
                    range, "del statements are only supported for deleting list and dict items and variables"
                )

    def _delete_item(self, target, range):
        if isinstance(target.slice, ast.Slice):
            raise ErrorReport(
                range,
                "del statements only support deletion at a single index, slicing is not supported (see "
                "https://github.com/pytorch/pytorch/issues/31430)",
            )
        container = self.sugared(target.value)
        index = self.expression(target.slice)
        value = container.as_value(self.range(target.value), self)
        if isinstance(value.type(), ClassType):
            if value.type().findMethod("__delitem__") is None:
                raise ErrorReport(range, "Class does not define __delitem__")
            MethodValue(value, "__delitem__").call(range, self, [NamedValue(index)], [])
        else:
            self.graph.insertNode(self.graph.create("aten::Delete", [value, index], 0)).setSourceRange(range)


_NAMES = {
    ast.Try: "try blocks",
    ast.Global: "global variables",
    ast.Nonlocal: "nonlocal variables",
    ast.Import: "import statements",
    ast.ImportFrom: "import statements",
    ast.ClassDef: "class definitions",
    ast.AsyncFunctionDef: "async functions",
    ast.Match: "match statements",
}
