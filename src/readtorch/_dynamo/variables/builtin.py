"""Functions and types of `builtins`, `operator`, `math`, `functools`, `itertools`.

In PyTorch: `torch/_dynamo/variables/builtin.py`.
"""

import abc
import builtins
import collections
import enum
import functools
import itertools
import math
import operator
import sys
import types
import typing

from readtorch._dynamo import trace_rules
from readtorch._dynamo.exc import ObservedException, unimplemented
from readtorch._sym_functions import sym_max, sym_min

from .constant import ConstantVariable
from .dicts import ConstDictVariable, SetVariable, key_of
from .functions import FunctoolsPartialVariable, UserMethodVariable
from .iter import (
    ChainVariable,
    CountIteratorVariable,
    EnumerateVariable,
    FilterVariable,
    ListIteratorVariable,
    MapVariable,
    ZipVariable,
    islice,
)
from .lists import BaseListVariable, DequeVariable, ListVariable, TupleVariable
from .misc import SuperVariable, UnknownVariable
from .tensor import SymbolVariable, SymNodeVariable, TensorVariable
from .user_defined import ExceptionVariable, UserDefinedObjectVariable

# Functions whose results for known values are known. They have no effect.
FOLDED = {abs, ascii, bin, chr, divmod, format, hex, max, min, oct, ord, pow, round, sum, repr, hash}
FOLDED |= {int, float, complex, bytes, range, slice}
FOLDED |= {function for function in vars(math).values() if callable(function)}
OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "@": operator.matmul, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv, "//=": operator.ifloordiv,
    "%=": operator.imod, "**=": operator.ipow, "@=": operator.imatmul, "&=": operator.iand, "|=": operator.ior,
    "^=": operator.ixor, "<<=": operator.ilshift, ">>=": operator.irshift,
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
SYMBOLS = {function: symbol for symbol, function in OPERATORS.items()}
FOLDED |= {operator.index}
UNARY = {operator.neg, operator.pos, operator.invert, abs, round}
SPECIAL = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "@": "matmul",
    "&": "and", "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift",
    "<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">": "gt", ">=": "ge",
}  # fmt: skip
REFLECTED = {"<": "gt", "<=": "ge", "==": "eq", "!=": "ne", ">": "lt", ">=": "le"}


class BuiltinVariable(ConstantVariable):
    """A function or type of C that is known here."""

    def describe(self):
        return f"BuiltinVariable({getattr(self.value, '__name__', self.value)})"

    def call_bool(self, tx):
        return True

    def var_getattr(self, tx, name):
        if (self.value, name) in OF_TYPES:
            return tx.held(OF_TYPES[self.value, name])
        return tx.fold(getattr, self.value, name)

    def call_function(self, tx, args, kwargs):
        handler = HANDLERS.get(self.value)
        if handler is not None:
            return handler(tx, *args, **kwargs)
        if self.value in SYMBOLS:
            return binary(tx, SYMBOLS[self.value], *[arg.realize() for arg in args])
        args = [arg.realize() for arg in args]
        if self.value in UNARY and isinstance(args[0], TensorVariable):
            if self.value is round:
                return tx.output.call_method("round", args, kwargs)
            return tx.output.call_function(self.value, args, kwargs)
        self.check(args)
        return tx.fold_call(self.value, args, kwargs)

    def check(self, args):
        for arg in args:
            if isinstance(arg, (TensorVariable, UserDefinedObjectVariable, UnknownVariable)):
                unimplemented(
                    "Failed to trace builtin operator",
                    f"Dynamo does not know how to trace builtin operator `{getattr(self.value, '__name__', self.value)}` "
                    f"with argument types {[arg.python_type().__name__]}",
                    context=f"builtin {getattr(self.value, '__name__', self.value)} [{arg.describe()}]",
                )


# --------------------------------------------------------------------------------------------------------- operators


def unary(tx, function, value):
    if isinstance(value, TensorVariable):
        return tx.output.call_function(function, [value], {})
    if isinstance(value, UserDefinedObjectVariable):
        name = {operator.neg: "__neg__", operator.pos: "__pos__", operator.invert: "__invert__"}[function]
        return value.required(tx, name, f"operator {name}")
    if isinstance(value, SymNodeVariable) and function is operator.neg:
        return of_numbers(tx, "*", ConstantVariable(-1), value)
    return tx.fold_call(function, [value], {})


def binary(tx, symbol, a, b):
    """The result of an operator, of `+=` and its kin, or of a comparison."""
    if isinstance(a, TensorVariable) or isinstance(b, TensorVariable):
        if symbol in ("==", "!=") and not all(isinstance(x, (TensorVariable, ConstantVariable)) for x in (a, b)):
            unimplemented("Unsupported comparison of a tensor with an object")
        result = beside_a_tensor(tx, symbol, a, b)
        if result is not None:
            return result
        return tx.output.call_function(OPERATORS[symbol], [a, b], {})
    plain = symbol if symbol in SPECIAL else symbol[:-1]
    if isinstance(a, SymNodeVariable) or isinstance(b, SymNodeVariable):
        is_power = plain == "**" and any(isinstance(x, SymNodeVariable) and x.is_known_later for x in (a, b))
        if (plain in ARITHMETIC or is_power) and all(is_number(x) for x in (a, b)):
            return of_numbers(tx, plain, a, b)
        a, b = (x.as_constant() if isinstance(x, SymNodeVariable) else x for x in (a, b))
    result = of_containers(tx, symbol, plain, a, b)
    if result is None:
        result = of_objects(tx, symbol, plain, a, b)
    if result is not None:
        return result
    if symbol in ("==", "!=") and isinstance(a, BaseListVariable) and isinstance(b, BaseListVariable):
        return tx.constant(same_items(tx, a, b) == (symbol == "=="))
    x, y = a.as_python_constant(), b.as_python_constant()
    for value in (x, y):
        if isinstance(value, type) and type(value) is not type:  # its metaclass may say what is equal
            tx.output.guard_class(type(value))
    if plain != symbol and isinstance(x, (list, dict, set)):
        unimplemented("Unsupported in-place operator on a container")
    return tx.fold(OPERATORS[symbol], x, y)


def beside_a_tensor(tx, symbol, a, b):
    """What the special methods of an object say: as Python asks, its own first if it stands first; None if there is none."""
    thing = a if isinstance(b, TensorVariable) else b
    if symbol in ("==", "!=") or not isinstance(thing, UserDefinedObjectVariable):
        return None
    if thing is b and hasattr(thing.python_type(), "__torch_function__"):
        return None
    return of_objects(tx, symbol, symbol if symbol in SPECIAL else symbol[:-1], a, b)


ARITHMETIC = {"+", "-", "*", "/", "//", "%", "<", "<=", "==", "!=", ">", ">="}


def is_number(variable):
    return isinstance(variable, SymNodeVariable) or type(getattr(variable, "value", None)) in (int, float)


def is_zero(variable):
    """Whether it is a number, known before the graph runs, that does not divide."""
    if isinstance(variable, SymNodeVariable):
        return not variable.is_known_later and variable.hint == 0
    return variable.value == 0


def of_numbers(tx, symbol, a, b):
    """Arithmetic with symbolic numbers, or a comparison, whose outcome is guarded when the program decides by it."""
    if isinstance(a, SymbolVariable) or isinstance(b, SymbolVariable):
        return tx.output.call_function(OPERATORS[symbol], [a, b], {})
    if symbol in ("/", "//", "%") and is_zero(b) and not (isinstance(a, SymNodeVariable) and a.is_known_later):
        return tx.fold(OPERATORS[symbol], a.as_python_constant(), b.as_python_constant())  # it raises: for this zero
    hints = [x.hint if isinstance(x, SymNodeVariable) else x.value for x in (a, b)]
    later = [x for x in (a, b) if isinstance(x, SymNodeVariable) and x.is_known_later]
    hint = (
        hint_of(symbol, hints) if any(x.expression is None for x in later) else tx.fold(OPERATORS[symbol], *hints).value
    )
    if later:
        if isinstance(hint, bool) and tx.output.tracer is None:
            later[0].check_known()
        operands = [x.as_graph_input(tx.output)[0] if isinstance(x, SymNodeVariable) else x.value for x in (a, b)]
        node = tx.output.graph.call_function(OPERATORS[symbol], tuple(operands))
        sizes = [x.expression for x in later if x.expression is not None]
        if len(sizes) < len(later):
            return SymNodeVariable(tx.output, None, hint, node)
        node.meta["example_value"] = hint
        return SymNodeVariable(tx.output, sizes[0], hint, node)
    tx.output.op_count += 1  # in PyTorch: a node, taken away later if nothing in the graph needs it
    expression = symbol, *(x.expression if isinstance(x, SymNodeVariable) else x.value for x in (a, b))
    return SymNodeVariable(tx.output, expression, hint)


def hint_of(symbol, hints):
    """A number of the result's kind. Those in tensors are not known: what they stand for now may be none that divides."""
    try:
        return OPERATORS[symbol](*hints)
    except ArithmeticError:
        return 1.0 if symbol == "/" or any(isinstance(hint, float) for hint in hints) else 1


def same_items(tx, a, b):
    if len(a.items) != len(b.items) or issubclass(a.python_type(), list) != issubclass(b.python_type(), list):
        return False
    pairs = [(x.realize(), y.realize()) for x, y in zip(a.items, b.items)]
    plain = (ConstantVariable, BaseListVariable, SymNodeVariable)
    if not all(isinstance(each, plain) or x is y for x, y in pairs for each in (x, y)):
        unimplemented("Unsupported comparison of lists of objects")
    return all(x is y or tx.equal(x, y) for x, y in pairs)


def of_containers(tx, symbol, plain, a, b):
    """The result for lists, tuples, dictionaries; None if it is none of them."""
    is_list = type(a) is ListVariable
    if is_list and symbol == "+=":
        a.call_method(tx, "extend", [b], {})
        return a
    plain_lists = (ListVariable, TupleVariable)
    if type(a) in plain_lists and type(b) is type(a) and plain == "+":
        return type(a)(a.items + b.items)
    if plain == "*" and symbol == "*":
        for x, y in ((a, b), (b, a)):
            if type(x) in plain_lists and isinstance(y, ConstantVariable):
                return type(x)(x.items * tx.fold(operator.index, y.value).value)
    if isinstance(a, ConstDictVariable) and isinstance(b, ConstDictVariable) and plain == "|":
        a.keys(tx), b.keys(tx)
        if symbol == "|=":
            a.method_update(tx, b)
            return a
        return ConstDictVariable({**a.items, **b.items}, a.cls)
    if isinstance(a, ConstDictVariable) or isinstance(b, ConstDictVariable):
        for each in (a, b):
            if isinstance(each, ConstDictVariable):
                each.keys(tx)
    if isinstance(a, SetVariable) and plain != symbol:
        unimplemented("Unsupported in-place operator on a set")
    return None


def of_objects(tx, symbol, plain, a, b):
    """What the special methods of objects say; None if there are none."""
    reflected = REFLECTED.get(plain)
    attempts = [(a, b, f"__{SPECIAL[plain]}__"), (b, a, f"__{reflected}__" if reflected else f"__r{SPECIAL[plain]}__")]
    if plain != symbol:
        attempts.insert(0, (a, b, f"__i{SPECIAL[plain]}__"))
    for one, other, name in attempts:
        if isinstance(one, UserDefinedObjectVariable) and not isinstance(one, ExceptionVariable):
            result = one.special(tx, name, other)
            if result is not None and not (isinstance(result, ConstantVariable) and result.value is NotImplemented):
                return result
    if symbol in ("==", "!=") and any(isinstance(x, UserDefinedObjectVariable) for x in (a, b)):
        return tx.constant(tx.identical(a, b) == (symbol == "=="))
    return None


# -------------------------------------------------------------------------------------------- functions of builtins


def asked_of_the_class(tx, value, classes, name):
    """The answer of a class that says itself what its instances are (`__instancecheck__`), as a metaclass in Python may let it; None
    for the classes that Python judges. What classes of `abc` answer changes when one is registered.
    """
    if isinstance(classes, (tuple, types.UnionType)):
        parts = classes if isinstance(classes, tuple) else typing.get_args(classes)
        if not any(asks_python(each, name) for each in parts):
            return None
        ask = call_isinstance if name == "__instancecheck__" else call_issubclass
        return any(tx.truth(ask(tx, value, tx.held(each))) for each in parts)
    if isinstance(classes, abc.ABCMeta) and classes.__module__.partition(".")[0] not in sys.stdlib_module_names:
        tx.output.guard("ABC_TOKEN", None, abc.get_cache_token())
    if not asks_python(classes, name):
        return None
    if name == "__instancecheck__" and value.python_type() is classes:  # Python does not ask then
        return True
    return tx.truth(tx.call(tx.class_function(type(classes), name), [tx.held(classes), value], {}))


def asks_python(cls, name):
    meta = type(cls)
    if meta in (type, abc.ABCMeta, types.UnionType) or isinstance(cls, enum.EnumMeta) or trace_rules.is_ours(meta):
        return False
    return isinstance(getattr(meta, name, None), types.FunctionType)


def call_isinstance(tx, value, classes):
    value, classes = value.realize(), classes.realize().as_python_constant()
    answer = asked_of_the_class(tx, value, classes, "__instancecheck__")
    if answer is not None:
        return tx.constant(answer)
    if isinstance(value, UnknownVariable):
        value.unknown("isinstance()")
    if isinstance(value, ConstantVariable):
        return tx.constant(isinstance(value.value, classes))
    if isinstance(value, TensorVariable) and value.original is None:
        return tx.constant(issubclass(value.cls, classes))
    if value.original is not None:
        return tx.constant(isinstance(value.original, classes))
    return tx.constant(issubclass(value.python_type(), classes))


def call_getattr(tx, owner, name, default=None):
    try:
        return owner.realize().var_getattr(tx, name.realize().as_python_constant())
    except ObservedException as error:
        if default is not None and issubclass(error.variable.cls, AttributeError):
            return default
        raise


def call_hasattr(tx, owner, name):
    absent = tx.constant(None)
    return tx.constant(call_getattr(tx, owner, name, absent) is not absent)


def call_setattr(tx, owner, name, value):
    owner.realize().var_setattr(tx, name.realize().as_python_constant(), value)
    return tx.constant(None)


def call_delattr(tx, owner, name):
    owner.realize().var_delattr(tx, name.realize().as_python_constant())
    return tx.constant(None)


def call_next(tx, iterator, default=None):
    item = tx.next(iterator.realize())
    if item is not None:
        return item
    if default is not None:
        return default
    raise tx.stop_iteration(getattr(iterator.realize(), "returned", None))


def call_iter(tx, iterable):
    return tx.iterator_of(iterable)


def call_sum(tx, iterable, start=None):
    total = tx.constant(0) if start is None else start.realize()
    for each in tx.iterate(iterable):
        total = binary(tx, "+", total, each.realize()).realize()
    return total


def call_all(tx, iterable):
    return tx.constant(all(tx.truth(each) for each in tx.iterate(iterable)))


def call_any(tx, iterable):
    return tx.constant(any(tx.truth(each) for each in tx.iterate(iterable)))


def stays_open(items):
    """Whether the greatest of some numbers may be an expression: they are of one type, and there is a symbol among them."""
    symbols = [x for x in items if isinstance(x, SymNodeVariable)]
    is_known = not any(x.is_known_later for x in symbols)
    return bool(symbols) and is_known and all(map(is_number, items)) and len({x.python_type() for x in items}) == 1


def extreme_of_numbers(tx, function, a, b):
    parts = [(x.expression, x.hint) if isinstance(x, SymNodeVariable) else (x.value, x.value) for x in (a, b)]
    expressions, hints = zip(*parts)
    if not any(isinstance(x, SymNodeVariable) for x in (a, b)):
        return tx.constant(function(*hints))
    tx.output.op_count += 1
    return SymNodeVariable(tx.output, (function.__name__, *expressions), function(*hints))


def extreme_of_symbols(tx, function, a, b):
    return tx.output.call_function(sym_max if function is max else sym_min, [a, b], {}).realize()


def extreme(function, symbol):
    """`max` or `min`."""

    def call_extreme(tx, *args, key=None, default=None):
        items = [each.realize() for each in (tx.iterate(args[0]) if len(args) == 1 else args)]
        if not items:
            if default is not None:
                return default
            raise tx.error(ValueError, f"{function.__name__}() arg is an empty sequence")
        if key is None and all(map(is_number, items)) and any(isinstance(item, SymbolVariable) for item in items):
            return functools.reduce(lambda a, b: extreme_of_symbols(tx, function, a, b), items)
        if key is None and stays_open(items):
            return functools.reduce(lambda a, b: extreme_of_numbers(tx, function, a, b), items)
        best, best_key = None, None
        for item in items:
            own = item if key is None or tx.is_none(key.realize()) else tx.call(key, [item], {}).realize()
            if isinstance(own, TensorVariable):
                return of_tensors(tx, items)
            if best is None or tx.truth(binary(tx, symbol, own, best_key)):
                best, best_key = item, own
        return best

    def of_tensors(tx, items):
        if len(items) != 2:
            unimplemented("Data-dependent branching", f"{function.__name__}() compares tensors")
        library = {"max": "maximum", "min": "minimum"}[function.__name__]
        return unimplemented("Data-dependent branching", f"{function.__name__}() compares tensors, see torch.{library}")

    return call_extreme


def call_sorted(tx, iterable, key=None, reverse=None):
    return ListVariable(tx.sorted_items(list(tx.iterate(iterable)), key=key, reverse=reverse))


def call_reduce(tx, function, iterable, *start):
    items = tx.iterate(iterable)
    total = start[0] if start else next(items, None)
    if total is None:
        raise tx.error(TypeError, "reduce() of empty iterable with no initial value")
    for each in items:
        total = tx.call(function, [total, each], {})
    return total


def call_callable(tx, value):
    value = value.realize()
    if isinstance(value, ConstantVariable):
        return tx.constant(callable(value.value))
    return tx.constant(hasattr(value.python_type(), "__call__"))


def call_issubclass(tx, cls, classes):
    answer = asked_of_the_class(tx, cls.realize(), classes.realize().as_python_constant(), "__subclasscheck__")
    if answer is not None:
        return tx.constant(answer)
    return tx.fold(issubclass, cls.realize().as_python_constant(), classes.realize().as_python_constant())


def call_getitem(tx, owner, key):
    return tx.getitem(owner.realize(), key.realize())


def call_contains(tx, owner, item):
    return tx.constant(owner.realize().contains(tx, item.realize()))


def call_len(tx, value):
    return value.realize().call_len(tx)


def call_cast(tx, kind, value):
    return value


def call_id(tx, value):
    unimplemented("id() with unsupported args", "Dynamo does not trace `id()`", context=value.realize().describe())


def call_vars(tx, owner):
    return owner.realize().var_getattr(tx, "__dict__")


def call_locals(tx):
    """A dictionary of the variables of the frame that asks, in Python's order."""
    names = [*tx.code.co_varnames, *tx.code.co_cellvars, *tx.code.co_freevars]
    found = {name: tx.locals[name] for name in names if name in tx.locals}
    contents = {name: tx.cells[name].realize().content for name in names if name in tx.cells}
    found |= {name: content for name, content in contents.items() if content is not None}
    return ConstDictVariable({name: found[name] for name in names if name in found})


def call_not(tx, value):
    return tx.constant(not tx.truth(value))


def call_truth(tx, value):
    return tx.constant(tx.truth(value))


def call_is(tx, a, b):
    return tx.constant(tx.identical(a.realize(), b.realize()))


# ------------------------------------------------------------------------------------------------------------- types


def make_list(tx, iterable=None):
    return ListVariable(list(tx.iterate(iterable)) if iterable is not None else [])


def make_tuple(tx, iterable=None):
    if iterable is not None and type(iterable.realize()) is TupleVariable:
        return iterable.realize()
    return TupleVariable(list(tx.iterate(iterable)) if iterable is not None else [])


def make_dict(tx, *args, **kwargs):
    made = ConstDictVariable({})
    made.method_update(tx, *args, **kwargs)
    return made


def make_ordered_dict(tx, *args, **kwargs):
    made = make_dict(tx, *args, **kwargs)
    made.cls = collections.OrderedDict
    return made


def make_default_dict(tx, factory=None, *args, **kwargs):
    made = make_dict(tx, *args, **kwargs)
    made.cls = collections.defaultdict
    made.default_factory = None if factory is None or tx.is_none(factory.realize()) else factory
    return made


def from_keys(tx, keys, value=None):
    return ConstDictVariable({key_of(tx, key): value or tx.constant(None) for key in tx.iterate(keys)})


def set_maker(cls):
    def make_set(tx, iterable=None):
        return SetVariable(
            set(key_of(tx, each) for each in tx.iterate(iterable)) if iterable is not None else set(), cls
        )

    return make_set


def make_deque(tx, iterable=None, maxlen=None):
    items = list(tx.iterate(iterable)) if iterable is not None else []
    limit = maxlen.realize().as_python_constant() if maxlen is not None else None
    return DequeVariable(items[-limit:] if limit else items, limit)


def make_str(tx, value=None):
    if value is None:
        return tx.constant("")
    value = value.realize()
    if isinstance(value, ExceptionVariable):
        return value.text(tx)
    if isinstance(value, UserDefinedObjectVariable):
        return value.required(tx, "__str__", "str()")
    return tx.fold_call(str, [value], {})


def make_float(tx, *args):
    value = args[0].realize() if args else None
    if isinstance(value, SymNodeVariable):
        return value if value.python_type() is float else of_numbers(tx, "*", value, ConstantVariable(1.0))
    BuiltinVariable(float).check([arg.realize() for arg in args])
    return tx.fold_call(float, args, {})


def make_bool(tx, value=None):
    return tx.constant(tx.truth(value) if value is not None else False)


def make_type(tx, *args):
    if len(args) != 1:
        unimplemented("Unsupported type() with three arguments")
    return tx.held(args[0].realize().python_type())


def make_super(tx, *args):
    if args:
        return SuperVariable(args[0].realize().as_python_constant(), args[1].realize())
    first = tx.code.co_varnames[0]
    owner = tx.locals[first] if first in tx.locals else tx.cells[first].realize().content
    return SuperVariable(tx.cells["__class__"].realize().content.realize().as_python_constant(), owner.realize())


def make_enumerate(tx, iterable, start=None):
    return EnumerateVariable(tx.iterator_of(iterable), start.realize().as_python_constant() if start is not None else 0)


def make_zip(tx, *iterables, strict=None):
    return ZipVariable([tx.iterator_of(each) for each in iterables], strict is not None and tx.truth(strict))


def make_map(tx, function, *iterables):
    return MapVariable(function, [tx.iterator_of(each) for each in iterables])


def make_filter(tx, function, iterable):
    return FilterVariable(function.realize(), tx.iterator_of(iterable))


def make_reversed(tx, iterable):
    items = list(tx.iterate(iterable))[::-1]
    return ListIteratorVariable(TupleVariable(items))


def make_partial(tx, function, *args, **kwargs):
    return FunctoolsPartialVariable(function, list(args), kwargs)


def make_object(tx):
    return UserDefinedObjectVariable(object)


def make_method(tx, function, owner):
    return UserMethodVariable(owner.realize(), function)


def make_chain(tx, *iterables):
    return ChainVariable(iterables)


def chain_from_iterable(tx, iterable):
    return ChainVariable(list(tx.iterate(iterable)))


def make_repeat(tx, value, times):
    return ListIteratorVariable(TupleVariable([value] * times.realize().as_python_constant()))


def make_product(tx, *iterables, repeat=None):
    pools = [list(tx.iterate(each)) for each in iterables]
    pools *= repeat.realize().as_python_constant() if repeat is not None else 1
    return ListIteratorVariable(TupleVariable([TupleVariable(list(row)) for row in itertools.product(*pools)]))


def make_accumulate(tx, iterable, function=None):
    found, total = [], None
    for each in tx.iterate(iterable):
        if total is None:
            total = each
        else:
            total = (
                tx.call(function, [total, each], {}) if function else binary(tx, "+", total.realize(), each.realize())
            )
        found.append(total)
    return ListIteratorVariable(TupleVariable(found))


def make_pairwise(tx, iterable):
    items = list(tx.iterate(iterable))
    return ListIteratorVariable(TupleVariable([TupleVariable(list(pair)) for pair in itertools.pairwise(items)]))


def make_count(tx, start=None, step=None):
    numbers = [n.realize().as_python_constant() if n is not None else default for n, default in ((start, 0), (step, 1))]
    return CountIteratorVariable(*numbers)


def combinations_of(function):
    def make(tx, iterable, r):
        rows = function(list(tx.iterate(iterable)), r.realize().as_python_constant())
        return ListIteratorVariable(TupleVariable([TupleVariable(list(row)) for row in rows]))

    return make


HANDLERS = {
    isinstance: call_isinstance, getattr: call_getattr, hasattr: call_hasattr, setattr: call_setattr, delattr: call_delattr,
    len: call_len, next: call_next, iter: call_iter, sum: call_sum, all: call_all, any: call_any, sorted: call_sorted,
    max: extreme(max, ">"), min: extreme(min, "<"), functools.reduce: call_reduce, callable: call_callable,
    issubclass: call_issubclass, operator.getitem: call_getitem, operator.contains: call_contains, id: call_id, locals: call_locals,
    vars: call_vars, typing.cast: call_cast, operator.not_: call_not, operator.truth: call_truth, operator.is_: call_is,
    list: make_list, tuple: make_tuple, dict: make_dict, set: set_maker(set), frozenset: set_maker(frozenset),
    collections.OrderedDict: make_ordered_dict, collections.defaultdict: make_default_dict, collections.deque: make_deque,
    str: make_str, float: make_float, bool: make_bool, type: make_type, super: make_super, object: make_object, types.MethodType: make_method,
    enumerate: make_enumerate, zip: make_zip, map: make_map, filter: make_filter, reversed: make_reversed,
    functools.partial: make_partial, itertools.chain: make_chain, itertools.islice: islice, itertools.repeat: make_repeat,
    itertools.product: make_product, itertools.accumulate: make_accumulate, itertools.count: make_count,
    itertools.pairwise: make_pairwise,
    itertools.combinations: combinations_of(itertools.combinations),
    itertools.permutations: combinations_of(itertools.permutations),
    dict.fromkeys: from_keys, itertools.chain.from_iterable: chain_from_iterable,
}  # fmt: skip
OF_TYPES = {(dict, "fromkeys"): dict.fromkeys, (itertools.chain, "from_iterable"): itertools.chain.from_iterable}
IS_BUILTIN = HANDLERS.keys() | FOLDED | SYMBOLS.keys() | UNARY
# Functions that look at the frame that calls them: they run in the frame of the program.
LOOK_AT_THE_FRAME = {builtins.locals, builtins.dir, builtins.eval, builtins.exec, builtins.globals, builtins.breakpoint}
LOOK_AT_THE_FRAME |= {builtins.vars, builtins.super}


def is_hashable_builtin(value):
    try:
        return value in IS_BUILTIN
    except TypeError:
        return False
