"""The interpreter: a function's bytecode is executed on variables instead of values.

    InstructionTranslatorBase       the stack, the locals, a method for each instruction
      InstructionTranslator         the function that is compiled: it may stop at a break
      InliningInstructionTranslator a function that it calls, or a generator's frame

An instruction that cannot be interpreted raises Unsupported. Whatever was done is thrown away then, the capture begins again and
stops at that instruction: what Python does there, and how the program goes on, is written by `convert_frame.py`.

Explained in the chapter "Dynamo". In PyTorch: `torch/_dynamo/symbolic_convert.py`.
"""

import builtins
import collections.abc
import inspect
import operator
import sys
import traceback

from readtorch._dynamo import config
from readtorch._dynamo.bytecode_transformation import (
    LOOP_END,
    NOTHING,
    NULL_IS_BELOW,
    cleaned_instructions,
    handler_around,
    handler_at,
    mixes_up_cells,
)
from readtorch._dynamo.comprehension_graph_break import CLEARS, Comprehension
from readtorch._dynamo.exc import ObservedException, Unsupported, unimplemented
from readtorch._dynamo.side_effects import DELETED
from readtorch._dynamo.source import ConstantSource, GetItemSource
from readtorch._dynamo.variables.base import NULL
from readtorch._dynamo.variables.builtin import binary, call_getattr, call_isinstance, unary
from readtorch._dynamo.variables.constant import ConstantVariable
from readtorch._dynamo.variables.ctx_manager import ContextWrappingVariable, GradModeVariable
from readtorch._dynamo.variables.dicts import ConstDictVariable, SetVariable, key_of
from readtorch._dynamo.variables.functions import (
    FunctionParts,
    LocalGeneratorObjectVariable,
    NestedUserFunctionVariable,
    UserMethodVariable,
    bind_arguments,
    cells_of,
)
from readtorch._dynamo.variables.iter import IteratorVariable, ListIteratorVariable, RangeIteratorVariable
from readtorch._dynamo.variables.lists import ListVariable, SliceVariable, TupleVariable
from readtorch._dynamo.variables.misc import CellVariable, GetAttrVariable, PythonModuleVariable, UnknownVariable
from readtorch._dynamo.variables.tensor import SymbolVariable, TensorVariable
from readtorch._dynamo.variables.user_defined import (
    ExceptionVariable,
    UserDefinedObjectVariable,
    bind,
    class_function,
    lookup,
)

# A class pattern with one part gives the subject itself.
MATCHED_AS_A_WHOLE = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
LITERALS = (int, float, complex, str, bytes, tuple)
CONVERSIONS = (None, str, repr, ascii)  # of a format: none, !s, !r, !a


class Operations:
    """What variables and instructions ask of a translator: values from variables and back, calls, truth, iteration."""

    # ------------------------------------------------------------------------------------------ making variables

    def constant(self, value):
        return self.output.constant(value)

    def held(self, value):
        """The variable of an object that the compiled function holds itself."""
        return self.output.wrap(value, ConstantSource(value)).realize()

    def list_of(self, items):
        return ListVariable(items)

    def tuple_of(self, items):
        return TupleVariable(items)

    def dict_of(self, items):
        return ConstDictVariable(items)

    def bound(self, owner, function):
        return UserMethodVariable(owner, function)

    def method_of(self, owner, name):
        return GetAttrVariable(owner, name)

    lookup = staticmethod(lookup)

    def class_function(self, cls, name):
        return class_function(self, cls, name)

    def bind(self, cls, owner, found, name, instance):
        return bind(self, cls, owner, found, name, instance)

    # ------------------------------------------------------------------------------------------------- exceptions

    def error(self, cls, *args):
        """The exception to raise for an error of the program."""
        return ObservedException(ExceptionVariable(cls, [self.constant(arg) for arg in args]))

    def stop_iteration(self, value=None):
        empty = value is None or self.is_none(value.realize())
        return ObservedException(ExceptionVariable(StopIteration, [] if empty else [value]))

    def raised(self, variable):
        """The exception to raise for `raise variable`."""
        if isinstance(variable, ConstantVariable) and isinstance(variable.value, type):
            variable = self.call(variable, [], {}).realize()
        if not isinstance(variable, ExceptionVariable):
            unimplemented("Unsupported raise of an exception that exists already", context=variable.describe())
        return ObservedException(variable)

    # ---------------------------------------------------------------------------------------------- computing now

    def fold(self, function, *args):
        """Call a function on known values now."""
        try:
            return self.constant(function(*args))
        except (Unsupported, ObservedException):
            raise
        except Exception as error:
            raise self.error(type(error), *error.args) from None

    def fold_call(self, function, args, kwargs):
        values = [self.known(arg) for arg in args]
        by_name = {name: self.known(arg) for name, arg in kwargs.items()}
        return self.fold(lambda: function(*values, **by_name))

    def known(self, variable):
        variable = variable.realize()
        if isinstance(variable, ConstDictVariable):
            variable.keys(self)
        return variable.as_python_constant()

    def assumed_constant(self, function, args, kwargs):
        """A function marked by `assume_constant_result` is called now, once: a second attempt gets what the first one got."""
        output = self.output
        if output.assumed_count == len(output.assumed):
            by_name = {name: self.known(arg) for name, arg in kwargs.items()}
            output.assumed.append(function(*map(self.known, args), **by_name))
        value = output.assumed[output.assumed_count]
        output.assumed_count += 1
        return self.output.wrap(value, ConstantSource(value))

    # -------------------------------------------------------------------------------------------------- questions

    def truth(self, variable):
        return variable.realize().call_bool(self)

    def is_none(self, variable):
        variable = variable.realize()
        if isinstance(variable, UnknownVariable):
            if variable.source is None:
                variable.unknown("`is None`")
            self.output.guard("TYPE_MATCH", variable.source, type(variable.original))
            return False
        return isinstance(variable, ConstantVariable) and variable.value is None

    def equal(self, a, b):
        return self.truth(binary(self, "==", a, b))

    def identical(self, a, b):
        if a is b:
            return True
        if isinstance(a, ConstantVariable) and isinstance(b, ConstantVariable):
            same_type = type(a.value) is type(b.value)
            if same_type and isinstance(a.value, LITERALS) and not isinstance(a.value, bool):
                unimplemented("Unsupported `is` on numbers and strings")
            return a.value is b.value
        if isinstance(a, UnknownVariable) or isinstance(b, UnknownVariable):
            constant, other = (a, b) if isinstance(a, ConstantVariable) else (b, a)
            if isinstance(constant, ConstantVariable) and constant.value is None:
                return self.is_none(other)
            unimplemented("Unsupported `is` on an object of which nothing is known")
        if isinstance(a, UserMethodVariable) and isinstance(b, UserMethodVariable):
            unimplemented("Unsupported `is` on methods")
        if isinstance(a, TensorVariable) and isinstance(b, TensorVariable) and a.source is None and b.source is None:
            a.known_sizes()
            return a.example is b.example
        if a.source is not None and b.source is not None and type(a) is type(b):
            self.output.guard("NOT_DUPLICATE", a.source, b.source)
        return False

    def getitem(self, owner, key):
        if isinstance(key, TensorVariable) and not isinstance(owner, (UserDefinedObjectVariable, ConstDictVariable)):
            if not isinstance(owner, TensorVariable):
                unimplemented("Unsupported index: the number in a tensor")
            return self.output.call_getitem(owner, key)
        return owner.getitem(self, key)

    # --------------------------------------------------------------------------------------------------- iteration

    def iterator_of(self, variable, is_iterator=False):
        variable = variable.realize()
        if isinstance(variable, IteratorVariable) or is_iterator and isinstance(variable, UserDefinedObjectVariable):
            return variable
        if isinstance(variable, ConstantVariable) and isinstance(variable.value, range):
            return RangeIteratorVariable(variable)
        return variable.call_iter(self)

    def iterator_over(self, items, over):
        return ListIteratorVariable(over, items)

    def iterator_over_list(self, variable):
        return ListIteratorVariable(variable)

    def next(self, iterator):
        """The next element; None at the end."""
        self.output.side_effects.check_scope(iterator.realize())
        return iterator.realize().next_variable(self)

    def next_or_raise(self, iterator):
        item = self.next(iterator)
        if item is None:
            raise self.stop_iteration(getattr(iterator, "returned", None))
        return item

    def until_stop(self, step):
        try:
            return step()
        except ObservedException as error:
            if error.variable.cls is StopIteration:
                return None
            raise

    def iterate(self, variable):
        iterator, count = self.iterator_of(variable), 0
        while (item := self.next(iterator)) is not None:
            count += 1
            if count > config.loop_limit:
                unimplemented("Unsupported loop with many steps", context=str(config.loop_limit))
            yield item

    def sorted_items(self, items, key=None, reverse=None):
        chosen = [item if key is None or self.is_none(key) else self.call(key, [item], {}) for item in items]
        keys = [self.known(each) for each in chosen]
        backwards = reverse is not None and self.truth(reverse)
        try:
            order = sorted(range(len(items)), key=keys.__getitem__, reverse=backwards)
        except TypeError as error:
            raise self.error(TypeError, *error.args) from None
        return [items[i] for i in order]

    # ------------------------------------------------------------------------------------------------------- calls

    def call(self, function, args, kwargs):
        return function.realize().call_function(self, list(args), kwargs)

    def inline_call(self, parts, args, kwargs):
        code = parts.code
        if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            unimplemented("Unsupported async function", context=code.co_qualname)
        if mixes_up_cells(code):
            unimplemented("Unsupported cell with the name of a free variable", context=code.co_qualname)
        locals = bind_arguments(self, parts, args, kwargs)
        inner = InliningInstructionTranslator(self.output, code, parts.globals, locals, cells_of(parts, locals))
        if code.co_flags & inspect.CO_GENERATOR:
            inner.skip_to_generator()
            self.output.generators.append(LocalGeneratorObjectVariable(inner))
            return self.output.generators[-1]
        return inner.run_inlined()[1]


class InstructionTranslatorBase(Operations):
    """One frame. ended: whether `run` ended by a return; a generator's may end by a `yield`."""

    is_root = False

    def __init__(self, output, code, globals, locals, cells):
        self.output, self.code, self.globals, self.locals, self.cells = output, code, globals, locals, cells
        self.stack, self.number, self.keyword_names = [], 0, ()
        self.instructions, self.number_at = cleaned_instructions(code)
        self.handled = []  # the exceptions whose `except` blocks are under way, innermost last
        self.pending = None  # an exception that is thrown into a generator

    def summary(self):
        """Where it stands, as tracebacks show it."""
        place = self.instructions[max(self.number - 1, 0)].positions
        return traceback.FrameSummary(
            self.code.co_filename,
            place.lineno,
            self.code.co_name,
            end_lineno=place.end_lineno,
            colno=place.col_offset,
            end_colno=place.end_col_offset,
        )

    # ------------------------------------------------------------------------------------------------------- stack

    def push(self, variable):
        self.stack.append(variable)

    def pop_as_is(self):
        return self.stack.pop()

    def pop(self):
        return self.stack.pop().realize()

    def push_callable(self, function):
        """With NULL, where CPython may have the object that a method is called on."""
        self.stack += [NULL, function] if NULL_IS_BELOW else [function, NULL]

    @staticmethod
    def without_null(variables):
        return [each for each in variables if each is not NULL]

    def popn(self, count):
        if not count:
            return []
        found = self.stack[-count:]
        del self.stack[-count:]
        return found

    def jump(self, offset):
        self.number = self.number_at[offset]

    # --------------------------------------------------------------------------------------------------------- run

    def run(self):
        """(True, what it returned), or (False, what it yielded)."""
        while True:
            instruction = self.instructions[self.number]
            if self.is_root and self.must_stop():
                return None
            name = instruction.opname
            if name == "RETURN_VALUE" and self.pending is None:
                return True, self.pop_as_is()
            self.number += 1
            if name == "YIELD_VALUE" and self.pending is None:
                return False, self.pop_as_is()
            try:
                self.step(instruction, name)
            except ObservedException as error:
                self.unwind(instruction, error)

    def step(self, instruction, name):
        if self.pending is not None:  # a generator stands at its `yield`: the instruction before this one
            error, self.pending = self.pending, None
            self.number -= 1
            raise error
        handler = HANDLERS.get(name)
        if handler is None:
            unimplemented(
                "Missing bytecode handler", f"Dynamo does not know how to handle the bytecode `{name}`.", name
            )
        handler(self, instruction)

    def unwind(self, instruction, error):
        """Go to the handler of an exception, if the frame has one."""
        if self.handled and error.variable is not self.handled[-1].realize():
            error.variable.chained = True  # Python would set its context
        entry = handler_at(self.code, self.instructions[self.number - 1].offset)
        if entry is None:
            raise error
        del self.stack[entry.depth :]
        if entry.lasti:
            self.push(ConstantVariable(instruction.offset // 2))
        self.push(error.variable)
        self.jump(entry.target)

    # ----------------------------------------------------------------------------------------- variables and names

    def LOAD_CONST(self, instruction):
        self.push(self.constant(instruction.argval))

    def POP_TOP(self, instruction):
        self.pop_as_is()

    def PUSH_NULL(self, instruction):
        self.push(NULL)

    def COPY(self, instruction):
        self.push(self.stack[-instruction.arg])

    def SWAP(self, instruction):
        stack, place = self.stack, -instruction.arg
        stack[-1], stack[place] = stack[place], stack[-1]

    def LOAD_FAST(self, instruction):
        name = instruction.argval
        if name not in self.locals:
            message = f"cannot access local variable '{name}' where it is not associated with a value"
            raise self.error(UnboundLocalError, message)
        self.push(self.locals[name])

    LOAD_FAST_CHECK = LOAD_FAST

    def STORE_FAST(self, instruction):
        self.locals[instruction.argval] = self.pop_as_is()
        if self.locals[instruction.argval] is NULL:  # it had no value before the comprehension
            del self.locals[instruction.argval]

    def DELETE_FAST(self, instruction):
        if instruction.argval not in self.locals:
            self.LOAD_FAST(instruction)
        del self.locals[instruction.argval]

    def value_in_place(self, instruction):
        """What LOAD_FAST_AND_CLEAR or its kin would put on the stack."""
        name = instruction.argval
        return self.cells[name] if instruction.opname == "LOAD_CLOSURE_AND_CLEAR" else self.locals.get(name, NULL)

    def LOAD_FAST_AND_CLEAR(self, instruction):
        """The variable of a comprehension hides one of the function, which STORE_FAST brings back."""
        self.push(self.locals.pop(instruction.argval, NULL))

    def LOAD_CLOSURE(self, instruction):
        self.push(self.cells[instruction.argval])

    def LOAD_CLOSURE_AND_CLEAR(self, instruction):
        self.push(self.cells.pop(instruction.argval))

    def MAKE_CELL(self, instruction):
        self.cells.setdefault(instruction.argval, CellVariable())  # those of the function's beginning are there

    def STORE_CLOSURE(self, instruction):
        self.cells[instruction.argval] = self.pop_as_is()

    def LOAD_DEREF(self, instruction):
        cell, name = self.cells[instruction.argval].realize(), instruction.argval
        if cell.content is None:
            if name in self.code.co_freevars:
                message = (
                    f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
                )
                raise self.error(NameError, message)
            message = f"cannot access local variable '{name}' where it is not associated with a value"
            raise self.error(UnboundLocalError, message)
        self.push(self.output.touch(cell.content))

    def STORE_DEREF(self, instruction):
        cell = self.cells[instruction.argval].realize()
        cell.content = self.pop_as_is()
        self.output.side_effects.store_cell(cell)

    def DELETE_DEREF(self, instruction):
        cell = self.cells[instruction.argval].realize()
        if cell.content is None:
            self.LOAD_DEREF(instruction)
        cell.content = None
        self.output.side_effects.store_cell(cell)

    def global_variable(self, name):
        written = self.output.side_effects.global_written(self.globals, name)
        if written is not None and written is not DELETED:
            return written
        if name in self.globals and written is not DELETED:
            return self.output.read(self.globals[name], GetItemSource(ConstantSource(self.globals), name))
        if hasattr(builtins, name):
            self.output.guard("DICT_NOT_CONTAINS", ConstantSource(self.globals), name)
            value = getattr(builtins, name)
            return self.output.read(value, GetItemSource(ConstantSource(vars(builtins)), name))
        self.output.guard("DICT_NOT_CONTAINS", ConstantSource(self.globals), name)
        raise self.error(NameError, f"name '{name}' is not defined")

    def LOAD_GLOBAL(self, instruction):
        value = self.global_variable(instruction.argval)
        if instruction.arg & 1:
            self.push_callable(value)
        else:
            self.push(value)

    def LOAD_NAME(self, instruction):
        unimplemented("Unsupported class body", context=self.code.co_qualname)

    def STORE_GLOBAL(self, instruction):
        self.output.side_effects.store_global(self.globals, instruction.argval, self.pop_as_is())

    def DELETE_GLOBAL(self, instruction):
        self.global_variable(instruction.argval)
        self.output.side_effects.store_global(self.globals, instruction.argval, DELETED)

    def IMPORT_NAME(self, instruction):
        names, level = self.pop(), self.pop()
        name = instruction.argval
        if level.as_python_constant() or name not in sys.modules:
            unimplemented("Unsupported import", context=name)
        is_from = self.truth(names)
        self.push(self.imported(name if is_from else name.partition(".")[0]))

    def imported(self, name):
        modules = ConstantSource(sys.modules)
        self.output.guard("DICT_CONTAINS", modules, name)
        return self.output.read(sys.modules[name], GetItemSource(modules, name)).realize()

    def IMPORT_FROM(self, instruction):
        module = self.stack[-1].realize()
        if not isinstance(module, PythonModuleVariable) or instruction.argval not in vars(module.value):
            unimplemented("Unsupported import", context=instruction.argval)
        self.push(module.var_getattr(self, instruction.argval))

    def LOAD_ASSERTION_ERROR(self, instruction):
        self.push(self.held(AssertionError))

    # --------------------------------------------------------------------------------------------------- operators

    def UNARY_NOT(self, instruction):
        self.push(self.constant(not self.truth(self.pop())))

    def UNARY_NEGATIVE(self, instruction):
        self.push(unary(self, operator.neg, self.pop()))

    def UNARY_POSITIVE(self, instruction):
        self.push(unary(self, operator.pos, self.pop()))

    def UNARY_INVERT(self, instruction):
        self.push(unary(self, operator.invert, self.pop()))

    def BINARY_OP(self, instruction):
        b, a = self.pop(), self.pop()
        self.push(binary(self, instruction.argrepr, a, b))

    def COMPARE_OP(self, instruction):
        b, a = self.pop(), self.pop()
        self.push(binary(self, instruction.argval, a, b))

    def IS_OP(self, instruction):
        b, a = self.pop(), self.pop()
        self.push(self.constant(self.identical(a, b) != bool(instruction.arg)))

    def CONTAINS_OP(self, instruction):
        owner, item = self.pop(), self.pop()
        self.push(self.constant(owner.contains(self, item) != bool(instruction.arg)))

    def BINARY_SUBSCR(self, instruction):
        key, owner = self.pop(), self.pop()
        self.push(self.getitem(owner, key))

    def STORE_SUBSCR(self, instruction):
        key, owner, value = self.pop(), self.pop(), self.pop_as_is()
        owner.setitem(self, key, value)

    def DELETE_SUBSCR(self, instruction):
        key, owner = self.pop(), self.pop()
        owner.delitem(self, key)

    # ------------------------------------------------------------------------------------------------------- jumps

    def JUMP_FORWARD(self, instruction):
        self.jump(instruction.argval)

    JUMP_BACKWARD = JUMP_BACKWARD_NO_INTERRUPT = JUMP_FORWARD

    def TO_BOOL(self, instruction):
        """A jump or UNARY_NOT follows. The truth of a tensor is left to them: the graph breaks there, as before 3.13."""
        if not isinstance(self.stack[-1].realize(), TensorVariable):
            self.stack[-1] = self.constant(self.truth(self.stack[-1]))

    def jump_if(test):
        def jump_if(self, instruction):
            holds = test(self, self.stack[-1].realize())
            self.pop_as_is()
            if holds:
                self.jump(instruction.argval)

        return jump_if

    POP_JUMP_IF_TRUE = jump_if(lambda tx, v: tx.truth(v))
    POP_JUMP_IF_FALSE = jump_if(lambda tx, v: not tx.truth(v))
    POP_JUMP_IF_NONE = jump_if(lambda tx, v: tx.is_none(v))
    POP_JUMP_IF_NOT_NONE = jump_if(lambda tx, v: not tx.is_none(v))
    # 3.11 has two of each.
    POP_JUMP_FORWARD_IF_TRUE = POP_JUMP_BACKWARD_IF_TRUE = POP_JUMP_IF_TRUE
    POP_JUMP_FORWARD_IF_FALSE = POP_JUMP_BACKWARD_IF_FALSE = POP_JUMP_IF_FALSE
    POP_JUMP_FORWARD_IF_NONE = POP_JUMP_BACKWARD_IF_NONE = POP_JUMP_IF_NONE
    POP_JUMP_FORWARD_IF_NOT_NONE = POP_JUMP_BACKWARD_IF_NOT_NONE = POP_JUMP_IF_NOT_NONE

    def JUMP_IF_TRUE_OR_POP(self, instruction):
        if self.truth(self.stack[-1]):
            return self.jump(instruction.argval)
        return self.pop_as_is()

    def JUMP_IF_FALSE_OR_POP(self, instruction):
        if not self.truth(self.stack[-1]):
            return self.jump(instruction.argval)
        return self.pop_as_is()

    # --------------------------------------------------------------------------------------------------- iteration

    def GET_ITER(self, instruction):
        self.push(self.iterator_of(self.pop()))

    def FOR_ITER(self, instruction):
        item = self.next(self.stack[-1])
        if item is None:
            self.pop_as_is()
            self.jump(instruction.argval)
            self.number += LOOP_END
        else:
            self.push(item)

    def UNPACK_SEQUENCE(self, instruction):
        items, count = list(self.iterate(self.pop())), instruction.arg
        if len(items) > count:
            raise self.error(ValueError, f"too many values to unpack (expected {count})")
        if len(items) < count:
            raise self.error(ValueError, f"not enough values to unpack (expected {count}, got {len(items)})")
        self.stack += items[::-1]

    def UNPACK_EX(self, instruction):
        items = list(self.iterate(self.pop()))
        before, after = instruction.arg & 255, instruction.arg >> 8
        if len(items) < before + after:
            message = f"not enough values to unpack (expected at least {before + after}, got {len(items)})"
            raise self.error(ValueError, message)
        end = len(items) - after
        self.stack += (items[:before] + [ListVariable(items[before:end])] + items[end:])[::-1]

    # -------------------------------------------------------------------------------------------------- containers

    def BUILD_TUPLE(self, instruction):
        self.push(TupleVariable(self.popn(instruction.arg)))

    def BUILD_LIST(self, instruction):
        self.push(ListVariable(self.popn(instruction.arg)))

    def BUILD_SET(self, instruction):
        self.push(SetVariable({key_of(self, item) for item in self.popn(instruction.arg)}))

    def BUILD_MAP(self, instruction):
        items = self.popn(2 * instruction.arg)
        self.push(ConstDictVariable({key_of(self, key): value for key, value in zip(items[::2], items[1::2])}))

    def BUILD_CONST_KEY_MAP(self, instruction):
        keys = self.pop().as_python_constant()
        self.push(ConstDictVariable(dict(zip(keys, self.popn(instruction.arg)))))

    def BUILD_SLICE(self, instruction):
        parts = [part.realize() for part in self.popn(instruction.arg)]
        if any(isinstance(part, SymbolVariable) for part in parts):
            return self.push(SliceVariable(parts))
        if any(isinstance(part, TensorVariable) for part in parts):
            unimplemented("Unsupported slice with the number in a tensor")
        return self.push(ConstantVariable(slice(*[part.as_python_constant() for part in parts])))

    # A container under way is new, or it comes from before a break: then somebody may hold it.

    def under(self, place):
        return self.stack[-place].realize()

    def extend_list(self, place, items):
        target = self.under(place)
        target.items.extend(items)
        self.output.side_effects.store_list(target)

    def update_set(self, place, keys):
        target = self.under(place)
        target.items.update(keys)
        self.output.side_effects.store_set(target)

    def update_dict(self, place, items):
        target = self.under(place)
        for key, value in items.items():
            target.items[key] = value
            self.output.side_effects.store_item(target, key, value)

    def LIST_APPEND(self, instruction):
        item = self.pop_as_is()
        self.extend_list(instruction.arg, [item])

    def SET_ADD(self, instruction):
        key = key_of(self, self.pop_as_is())
        self.update_set(instruction.arg, [key])

    def MAP_ADD(self, instruction):
        value, key = self.pop_as_is(), self.pop_as_is()
        self.update_dict(instruction.arg, {key_of(self, key): value})

    def LIST_EXTEND(self, instruction):
        items = list(self.iterate(self.pop()))
        self.extend_list(instruction.arg, items)

    def LIST_TO_TUPLE(self, instruction):
        self.push(TupleVariable(list(self.pop().items)))

    def SET_UPDATE(self, instruction):
        keys = [key_of(self, item) for item in self.iterate(self.pop())]
        self.update_set(instruction.arg, keys)

    def DICT_UPDATE(self, instruction):
        update = self.pop()
        if not isinstance(update, ConstDictVariable):
            unimplemented("Unsupported ** of an object", context=update.describe())
        update.keys(self)
        self.update_dict(instruction.arg, update.items)

    def DICT_MERGE(self, instruction):
        update = self.stack[-1].realize()
        target = self.stack[-instruction.arg - 1].realize()
        if isinstance(update, ConstDictVariable) and set(update.items) & set(target.items):
            unimplemented("failed to bind arguments when attempting to inline", "an argument is given twice")
        self.DICT_UPDATE(instruction)

    # ------------------------------------------------------------------------------------------- attributes, calls

    def LOAD_ATTR(self, instruction):
        self.stack[-1] = self.stack[-1].realize().var_getattr(self, instruction.argval)

    def LOAD_METHOD(self, instruction):
        method = self.stack[-1].realize().var_getattr(self, instruction.argval)
        self.pop_as_is()
        self.push_callable(method)

    def LOAD_SUPER_ATTR(self, instruction):
        function, cls, owner = self.popn(3)
        self.push(self.call(function, [cls, owner] if instruction.arg & 2 else [], {}))
        (self.LOAD_METHOD if instruction.arg & 1 else self.LOAD_ATTR)(instruction)

    def STORE_ATTR(self, instruction):
        owner, value = self.pop(), self.pop_as_is()
        owner.var_setattr(self, instruction.argval, value)

    def DELETE_ATTR(self, instruction):
        self.pop().var_delattr(self, instruction.argval)

    def KW_NAMES(self, instruction):
        self.keyword_names = self.code.co_consts[instruction.arg]

    def CALL(self, instruction):
        function, *args = self.without_null(self.popn(instruction.arg + 2))
        names, self.keyword_names = self.keyword_names, ()
        positional = len(args) - len(names)
        self.push(self.call(function, args[:positional], dict(zip(names, args[positional:]))))

    def CALL_KW(self, instruction):
        self.keyword_names = self.pop().as_python_constant()
        self.CALL(instruction)

    def CALL_FUNCTION_EX(self, instruction):
        kwargs = self.pop() if instruction.arg & 1 else ConstDictVariable({})
        function, args = self.without_null(self.popn(3))
        if not isinstance(kwargs, ConstDictVariable):
            unimplemented("Unsupported ** of an object", context=kwargs.describe())
        kwargs.keys(self)
        self.push(self.call(function, list(self.iterate(args.realize())), dict(kwargs.items)))

    def MAKE_FUNCTION(self, instruction):
        parts = FunctionParts(self.pop().as_python_constant(), self.globals, None, None, [])
        function = NestedUserFunctionVariable(parts)
        for flag in (8, 4, 2, 1):
            if (instruction.arg or 0) & flag:
                self.set_function_attribute(function, flag, self.pop())
        self.push(function)

    def SET_FUNCTION_ATTRIBUTE(self, instruction):
        function = self.pop()
        self.set_function_attribute(function, instruction.arg, self.pop())
        self.push(function)

    def set_function_attribute(self, function, flag, value):
        if flag == 8:
            function.parts.closure = [cell.realize() for cell in value.items]
        elif flag == 4:
            pairs = zip(value.items[::2], value.items[1::2])
            function.annotations = ConstDictVariable({self.known(name): each for name, each in pairs})
        else:
            setattr(function.parts, "kwdefaults" if flag == 2 else "defaults", value)

    def LOAD_BUILD_CLASS(self, instruction):
        self.push(self.held(builtins.__build_class__))  # its call breaks the graph

    # ----------------------------------------------------------------------------------------------------- strings

    def FORMAT_VALUE(self, instruction):
        how = instruction.arg
        spec = self.known(self.pop()) if how & 4 else ""
        self.push(self.fold(format, self.converted(self.pop(), how & 3), spec))

    def CONVERT_VALUE(self, instruction):
        self.push(self.constant(self.converted(self.pop(), instruction.arg)))

    def FORMAT_SIMPLE(self, instruction):
        self.push(self.fold(format, self.converted(self.pop(), 0)))

    def FORMAT_WITH_SPEC(self, instruction):
        spec = self.known(self.pop())
        self.push(self.fold(format, self.converted(self.pop(), 0), spec))

    def converted(self, value, how):
        """What a format is given of a value: itself, or by `!s`, `!r`, `!a` a text."""
        if isinstance(value, ExceptionVariable) and how < 2:
            return value.text(self).value
        if isinstance(value, (TensorVariable, UserDefinedObjectVariable)):
            unimplemented("Unsupported formatting", "a tensor or an object as text", value.describe())
        known = self.known(value)
        return self.fold(CONVERSIONS[how], known).value if how else known

    def BUILD_STRING(self, instruction):
        self.push(self.constant("".join(self.known(part) for part in self.popn(instruction.arg))))

    # -------------------------------------------------------------------------------------------------- with, try

    def BEFORE_WITH(self, instruction):
        manager = self.pop()
        if isinstance(manager, ContextWrappingVariable):
            self.push(GetAttrVariable(manager, "__exit__"))
            self.push(manager.enter(self))
            return
        if not isinstance(manager, UserDefinedObjectVariable):
            unimplemented("Unsupported context manager", context=manager.describe())
        enter, leave = (self.class_function(manager.cls, name) for name in ("__enter__", "__exit__"))
        if enter is None or leave is None:
            unimplemented("Unsupported context manager", context=manager.describe())
        self.push(UserMethodVariable(manager, leave))
        self.push(self.call(enter, [manager], {}))

    def WITH_EXCEPT_START(self, instruction):
        error, leave = self.stack[-1].realize(), self.stack[-4]
        self.push(self.call(leave, [self.held(error.cls), error, self.constant(None)], {}))

    def PUSH_EXC_INFO(self, instruction):
        error = self.pop_as_is()
        self.handled.append(error)
        self.push(NULL)
        self.push(error)

    def POP_EXCEPT(self, instruction):
        self.pop_as_is()
        self.handled.pop()

    def CHECK_EXC_MATCH(self, instruction):
        kinds, error = self.known(self.pop()), self.stack[-1].realize()
        self.push(self.constant(issubclass(error.cls, kinds)))

    def RERAISE(self, instruction):
        raise ObservedException(self.pop())

    def RAISE_VARARGS(self, instruction):
        if instruction.arg == 0:
            if not self.handled:
                unimplemented("Unsupported raise without an exception")
            raise ObservedException(self.handled[-1].realize())
        if instruction.arg == 2:
            self.pop_as_is()
        error = self.raised(self.pop())
        error.variable.chained = error.variable.chained or instruction.arg == 2
        raise error

    # -------------------------------------------------------------------------------------------------- generators

    def GET_YIELD_FROM_ITER(self, instruction):
        self.push(self.iterator_of(self.pop()))

    def SEND(self, instruction):
        """One step of `yield from`."""
        value, iterator = self.pop(), self.stack[-1].realize()
        is_generator = isinstance(iterator, LocalGeneratorObjectVariable)
        item = iterator.send(self, value) if is_generator else self.next(iterator)
        if item is None:
            self.stack[-1] = getattr(iterator, "returned", None) or self.constant(None)
            self.jump(instruction.argval)
        else:
            self.push(item)

    def CLEANUP_THROW(self, instruction):
        """An exception was thrown into a generator that stands in a `yield from`."""
        error = self.pop()
        if error.cls is StopIteration:
            unimplemented("Unsupported throw of a StopIteration into `yield from`")
        raise ObservedException(error)

    # ----------------------------------------------------------------------------------------------------- matching

    def subject(self):
        subject = self.stack[-1].realize()
        if isinstance(subject, UnknownVariable):
            unimplemented("Unsupported match of an object", context=subject.describe())
        return subject

    def MATCH_SEQUENCE(self, instruction):
        kind = self.subject().python_type()
        self.push(self.constant(issubclass(kind, collections.abc.Sequence) and not issubclass(kind, (str, bytes))))

    def MATCH_MAPPING(self, instruction):
        subject = self.subject()
        if isinstance(subject, UserDefinedObjectVariable) and issubclass(subject.cls, collections.abc.Mapping):
            unimplemented("Unsupported match of an object", context=subject.describe())
        self.push(self.constant(isinstance(subject, ConstDictVariable)))

    def MATCH_KEYS(self, instruction):
        keys, subject = self.stack[-1].realize(), self.stack[-2].realize()
        names = [key_of(self, key) for key in keys.items]
        found = all([subject.has(self, name) for name in names])
        self.push(TupleVariable([subject.items[name] for name in names]) if found else self.constant(None))

    def GET_LEN(self, instruction):
        self.push(self.stack[-1].realize().call_len(self))

    def MATCH_CLASS(self, instruction):
        """`case C(a, name=b)`: a tuple of the attributes, or None."""
        names, kind, subject = self.pop().as_python_constant(), self.pop(), self.pop()
        if not self.truth(call_isinstance(self, subject, kind)):
            return self.push(self.constant(None))
        is_whole = kind.as_python_constant() in MATCHED_AS_A_WHOLE
        if instruction.arg > 1 and is_whole:
            unimplemented("Unsupported class pattern")
        found = [subject] if is_whole and instruction.arg else []
        if not is_whole and instruction.arg:
            order = kind.var_getattr(self, "__match_args__").as_python_constant()
            if len(order) < instruction.arg:
                unimplemented("Unsupported class pattern")
            names = (*order[: instruction.arg], *names)
        missing = self.constant(None)
        for name in names:
            value = call_getattr(self, subject, self.constant(name), missing)
            if value is missing:
                return self.push(missing)
            found.append(value)
        return self.push(TupleVariable(found))


def ignored(tx, instruction):
    """For the instructions that mean nothing here."""


HANDLERS = {
    name: value for name, value in vars(InstructionTranslatorBase).items() if name.isupper() and callable(value)
}
HANDLERS |= dict.fromkeys(NOTHING, ignored)


class InstructionTranslator(InstructionTranslatorBase):
    """The frame of the function that is compiled."""

    is_root = True
    comprehension = None  # the one that began last, not in another

    def must_stop(self):
        """Whether this is the step at which the graph ends, as an earlier attempt has found."""
        output = self.output
        output.steps += 1
        instruction = self.instructions[self.number]
        is_first = self.number_at[instruction.offset] == self.number  # of those that one is read as
        if is_first and not self.stack and output.is_worth_a_graph() and self.can_be_entered(instruction):
            output.checkpoint = output.steps
        if instruction.opname in CLEARS and not (self.comprehension and self.comprehension.has_within(instruction)):
            self.comprehension = Comprehension(self.code, self.number, output.steps)
        return output.stop_at == output.steps

    def can_be_entered(self, instruction):
        """Whether an instruction stands in no `try`, no `except`, and no `with` but that of `no_grad` and its kin."""
        handler = handler_at(self.code, instruction.offset)
        while handler is not None and self.is_with_of_grad_mode(handler):
            handler = handler_around(self.code, handler)
        return handler is None

    def is_with_of_grad_mode(self, handler):
        second = self.instructions[self.number_at[handler.target] + 1]
        if second.opname != "WITH_EXCEPT_START":
            return False
        leave = self.stack[handler.depth - 1].realize()
        return isinstance(leave, GetAttrVariable) and isinstance(leave.owner, GradModeVariable)


class InliningInstructionTranslator(InstructionTranslatorBase):
    """The frame of a function that it calls."""

    def run_inlined(self):
        frames = self.output.frames
        frames.append(self)
        if len(frames) > config.inline_depth_limit:
            unimplemented("Unsupported depth of calls", context=self.code.co_qualname)
        try:
            return self.run()
        finally:
            frames.pop()

    def skip_to_generator(self):
        """A generator stands behind its first instructions, and expects a value that its start throws away."""
        names = [instruction.opname for instruction in self.instructions]
        self.number = names.index("RETURN_GENERATOR") + 1
