"""readtorch.mini.trace: what is compiled does what the function does, whatever changes between two calls."""

import sys
import types

import pytest

from readtorch.mini import trace
from readtorch.mini.autograd import no_grad
from readtorch.mini.trace import Compiled, Tensor, exp, matmul

pytestmark = pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="mini.trace reads the bytecode of Python 3.11")


class Box:
    scale = 2.0

    def times(self, x):
        return x * self.scale


class Loud(Box):
    @property
    def scale(self):
        print("asked")
        return 3.0


box = PLAIN = Box()
OFFSET, seen = 1, []
X = Tensor.of([[1.0, 2.0], [3.0, 4.0]])


def double(x):
    return x + x


def setting(x):
    return exp(x * box.scale) + OFFSET


def method(x):
    return box.times(double(x))


def loop(x, n):
    for i in range(n):
        if i % 2 == 0:
            x = x * i + len(x.shape)
    return x


def sizes(x):
    return matmul(x, x.transpose(0, 1)) * x.shape[0]


def breaks(x):
    y = double(x) * box.scale
    seen.append(y.shape[0])
    z = y + OFFSET
    print("seen", len(seen))
    return exp(z) * 2


def nested(x):
    return double(x) + float(print("inner", OFFSET) or 1)


def effects(x):
    box.last = OFFSET
    return x * 2


def caught(x):
    try:
        return x * box.missing
    except AttributeError:
        return x


def counts(x):
    i = 0
    while i < 3:
        x = x * box.scale
        i += 1
    return x


def listed(x):
    return x * len(widths) + widths[0]


def nested_tuple(x):
    for one in tuples:
        x = x * len(one)
    return x


def saved(x):
    before = box.scale
    seen.append(sets_scale(x))
    return x * before


def sets_scale(x):
    box.scale = box.scale + 1.0
    return 0


def infinite(x):
    bound = limit
    print("bound", bound)
    return x * bound * limit


def matmuls(x):
    return x * other_sign(3)


def other_sign(n):
    return n & 1


def entry(x):
    return x * 3


def MISS(x):
    return entry(x) + 1


def reads_cached(x):
    return x * Lazy().scale * lazy.scale


class Lazy:
    def __getattr__(self, name):
        print("asked for", name)
        return 5.0


lazy, widths, tuples, limit = Lazy(), [1, 2], ([1], [2, 3]), float("inf")

FIRST = {"box": PLAIN, "OFFSET": 1, "double": double}
CHANGES = [
    lambda: globals().update(FIRST) or globals().pop("len", None),
    lambda: setattr(PLAIN, "scale", 3.0),
    lambda: setattr(PLAIN, "scale", 3),
    lambda: globals().update(OFFSET=2),
    lambda: globals().update(double=lambda x: x * 3),
    lambda: globals().update(box=Loud()),
    lambda: globals().update(len=lambda x: 7),
]


@pytest.fixture(autouse=True)
def as_it_was():
    yield
    CHANGES[0]()
    vars(PLAIN).clear()
    seen.clear()


@pytest.mark.parametrize(
    "function, more",
    [
        (setting, ()),
        (method, ()),
        (loop, (5,)),
        (sizes, ()),
        (breaks, ()),
        (nested, ()),
        (effects, ()),
        (caught, ()),
        (counts, ()),
        (matmuls, ()),
        (MISS, ()),
        (reads_cached, ()),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_whatever_changes_the_result_is_the_functions(function, more, capsys):
    compiled = Compiled(function)
    for x in (X, X.transpose(0, 1), X[0:1], X):
        for change in CHANGES:
            change()
            seen.clear()
            expected = function(x, *more).tolist(), capsys.readouterr().out
            seen.clear()
            assert (compiled(x, *more).tolist(), capsys.readouterr().out) == expected, compiled.texts[-1]


@pytest.mark.parametrize(
    "function, captured, resumed",
    [(setting, True, 0), (loop, True, 0), (breaks, True, 1), (effects, False, 0), (counts, False, 0)],
)
def test_what_is_captured_and_what_is_left_to_python(function, captured, resumed, capsys):
    compiled = Compiled(function)
    compiled(X, *([3] if function is loop else []))
    assert (f"return {function.__name__}(" not in compiled.texts[0]) is captured
    assert len(compiled.resumes) == resumed


def test_a_second_call_captures_nothing():
    compiled = Compiled(setting)
    results = [compiled(X).tolist() for _ in range(3)]
    assert len(compiled.texts) == 1 and results[0] == results[2] == setting(X).tolist()


def test_there_is_a_limit():
    compiled = Compiled(loop)
    for n in range(2 * trace.LIMIT):
        assert compiled(X, n).tolist() == loop(X, n).tolist()
    assert len(compiled.texts) == trace.LIMIT


def test_without_guards_it_is_stale(monkeypatch):
    class Careless(trace.Capture):
        def guard(self, condition):
            pass

    monkeypatch.setattr(trace, "Capture", Careless)
    compiled = Compiled(setting)
    compiled(X)
    box.scale = 3.0
    assert compiled(X).tolist() != setting(X).tolist()


def test_the_program_raises_what_it_raises():
    compiled = Compiled(sizes)
    with pytest.raises(AttributeError):
        compiled(3)
    with pytest.raises(TypeError):
        compiled(X, X)


@pytest.mark.parametrize(
    "function, change", [(listed, lambda: widths.append(9)), (nested_tuple, lambda: tuples[0].append(9))]
)
def test_what_may_change_under_its_identity_is_left_to_python(function, change):
    compiled = Compiled(function)
    for _ in range(3):
        assert compiled(X).tolist() == function(X).tolist()
        change()


def folded_attribute(x):
    return x * box.fold(2, 5)


def folded_global(x):
    return x * fold(-2.0)


fold = abs


def test_a_folded_function_is_guarded_where_it_was_read():
    """A built-in that is reached through a global or an attribute may be another one in the next call."""
    for function, names, functions in (
        (folded_attribute, vars(box), {"fold": (max, min, max)}),
        (folded_global, globals(), {"fold": (abs, float, lambda x: x + 1)}),
    ):
        compiled = Compiled(function)
        for names["fold"] in functions["fold"]:
            assert compiled(X).tolist() == function(X).tolist()
        assert compiled.texts[0].count("fold") == 1 and not compiled.resumes
    globals().update(fold=abs)


def test_variables_are_saved_before_the_call_of_a_break():
    box.scale = 2.0
    compiled = Compiled(saved)
    for scale in (2.0, 3.0, 3.0):
        box.scale = scale
        assert compiled(X).tolist() == (X * scale).tolist() and compiled.resumes


def test_infinite_numbers_and_nan():
    compiled = Compiled(infinite)
    for value in (float("inf"), float("nan"), float("nan"), -float("inf"), float("inf")):
        globals().update(limit=value)
        assert repr(compiled(X).tolist()) == repr(infinite(X).tolist())
    assert len(compiled.texts) == 1, "the first half only passes the number on"
    assert len(next(iter(compiled.resumes.values())).texts) == 3


def by_history(x):
    y = x * 2
    return y + 1 if y.requires_grad else y


def test_the_grad_mode_is_guarded():
    compiled, x = Compiled(by_history), Tensor.of([1.0, 2.0]).requires_grad_()
    for _ in range(2):
        assert compiled(x).tolist() == [3.0, 5.0]
        with no_grad():
            assert compiled(x).tolist() == [2.0, 4.0]
    assert len(compiled.texts) == 2


def reads_of(owner):
    """A function that reads `owner.scale`, and the reads so far in a list that whoever runs code appends to."""
    names = {"owner": owner}
    exec("def f(x):\n    return x * owner.scale\n", names)
    return names["f"]


def a_module(reads):
    made = types.ModuleType("counted")
    made.__getattr__ = lambda name: reads.append(name) or 2.0
    return made


def an_object(reads):
    class Counted:
        def __getattribute__(self, name):
            reads.append(name)
            return 2.0

    return Counted()


def a_class(reads):
    class Descriptor:
        def __get__(self, owner, kind):
            reads.append("scale")
            return 2.0

    return type("Counted", (), {"scale": Descriptor()})


@pytest.mark.parametrize("make", [a_module, an_object, a_class, lambda reads: a_class(reads)()])
def test_attributes_that_run_code_run_it_as_often_as_the_program(make):
    reads = []
    compiled = Compiled(reads_of(make(reads)))
    for _ in range(3):
        assert compiled(X).tolist() == (X * 2).tolist()
    assert reads == ["scale"] * 3


def defaulted(x, n=2):
    print("seen")
    return x * n


def test_other_numbers_of_arguments_are_pythons_after_a_capture_too():
    compiled = Compiled(defaulted)
    for args in ((X, 3), (X,), (X, 3)):
        assert compiled(*args).tolist() == defaulted(*args).tolist()
    for args in ((), (X, 3, 5)):
        with pytest.raises(TypeError):
            compiled(*args)


def unbound(x):
    if box.scale == 3.0:
        factor = 2
    return x * factor


def unknown(x):
    return x * nowhere  # noqa: F821


@pytest.mark.parametrize("function, error", [(unbound, UnboundLocalError), (unknown, NameError)])
def test_names_without_a_value(function, error):
    for _ in range(2):
        with pytest.raises(error):
            Compiled(function)(X)


def long_one(lines, variables):
    """A function whose break stands behind many instructions, or whose stack follows many variables."""
    body = [f"    v{i} = x" for i in range(variables)] + ["    x = exp(x) * 0.1"] * lines
    names = {"exp": exp}
    exec("\n".join(["def long(x):", *body, "    print('seen')", "    return x + 1"]), names)
    return names["long"]


@pytest.mark.parametrize("lines, variables", [(13, 0), (14, 0), (40, 0), (4000, 0), (1, 253), (1, 254), (1, 300)])
def test_a_jump_or_a_variable_whose_number_needs_more_than_a_byte(lines, variables):
    function = long_one(lines, variables)
    compiled = Compiled(function)
    for _ in range(2):
        assert compiled(X).tolist() == function(X).tolist()
    (rest,) = compiled.resumes.values()
    assert len(compiled.entries) == len(rest.entries) == 1
    assert rest.texts[0].endswith("return t0"), "the rest was left to Python"


def deep(x, n):
    return x if n == 0 else deep(x + x, n - 1)


def test_a_deep_recursion_is_left_to_python():
    assert Compiled(deep)(X, 300).tolist() == deep(X, 300).tolist()


def renamed(x):
    return x + x


renamed.__name__ = "in"


def calls_renamed(x):
    return renamed(x)


def test_a_function_whose_name_is_a_keyword():
    assert Compiled(calls_renamed)(X).tolist() == calls_renamed(X).tolist()


def test_a_call_with_a_keyword_runs_as_it_is_written():
    compiled = Compiled(loop)
    assert compiled(X, n=2).tolist() == loop(X, 2).tolist()
    assert compiled.texts == []
