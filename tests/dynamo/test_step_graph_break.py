"""A graph break behind which a function cannot go on: the graph before it, if it is one, and the rest as it is written.

Each program plays with both libraries: as many graphs, of the same operators, and the same results. Switches of the grad mode are
left out: PyTorch leaves an open `with` at the end of a graph and enters it again in the next, and here the mode stays as it is.
"""

import contextlib
import io
import threading

import pytest
import torch

import readtorch as rt

PROGRAMS = {}


def program(make):
    """make(T) gives a function of a tensor."""
    PROGRAMS[make.__name__] = make
    return make


class Own:
    """A context manager of the program."""

    def __enter__(self):
        return 2

    def __exit__(self, *error):
        return False


class Loud:
    """Whatever is asked of it, it prints."""

    def __init__(self):
        self.items = [1, 2]

    def __add__(self, other):
        print("add")
        return other

    def __radd__(self, other):
        print("radd")
        return other

    def __iadd__(self, other):
        print("iadd")
        return self

    def __neg__(self):
        print("neg")
        return 3

    def __bool__(self):
        print("bool")
        return True

    def __len__(self):
        print("len")
        return 2

    def __contains__(self, item):
        print("contains")
        return True

    def __getitem__(self, key):
        print("item")
        return key

    def __iter__(self):
        print("iter")
        return iter(self.items)

    def __lt__(self, other):
        print("lt")
        return True

    def __format__(self, spec):
        print("format")
        return "loud"

    @property
    def size(self):
        print("size")
        return 2


loud = Loud()


class LoudSteps:
    """An iterator that prints at each step."""

    def __init__(self):
        self.left = 2

    def __iter__(self):
        return self

    def __next__(self):
        print("next")
        if not self.left:
            raise StopIteration
        self.left -= 1
        return self.left


# --------------------------------------------------------------------------------------------------------- try, except


@program
def in_a_try(T):
    def f(x):
        x = T.tanh(T.relu(x))
        try:
            print("seen")
        finally:
            x = x * 2
        return T.sin(x)

    return f


@program
def one_operator_before_a_try(T):
    def f(x):
        x = T.relu(x)
        try:
            print("seen")
        finally:
            x = x * 2
        return T.sin(x)

    return f


@program
def operators_within_the_try(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        try:
            x = T.exp(x)
            x = T.cos(x)
            print("seen")
        except ValueError:
            x = x * 2
        return T.sin(x)

    return f


@program
def in_an_except(T):
    def f(x):
        x = T.relu(x) + 1
        y = T.exp(x)
        try:
            raise ValueError("no")
        except ValueError:
            y = y * 2
            print("caught")
        return T.sin(x) + y

    return f


@program
def in_a_finally(T):
    def f(x):
        x = T.relu(x) + 1
        try:
            y = T.exp(x)
        finally:
            print("at last")
        return T.sin(x) + y

    return f


@program
def behind_a_try(T):
    def f(x):
        x = T.relu(x) + 1
        try:
            y = T.exp(x)
        except ValueError:
            y = x
        print("behind")
        return T.sin(x) + y

    return f


@program
def between_two_tries(T):
    def f(x):
        try:
            x = T.relu(x) + 1
        except ValueError:
            pass
        x = T.exp(x)
        x = T.cos(x)
        try:
            print("second")
            x = T.tanh(x)
        except ValueError:
            pass
        return x * 2

    return f


@program
def a_print_before_and_one_within(T):
    def f(x):
        x = T.relu(x) + 1
        print("first")
        x = T.exp(x) * 2
        x = x - 1
        try:
            print("second")
        finally:
            x = x * 2
        return x + 1

    return f


@program
def a_try_in_a_function_that_is_called(T):
    def helper(x):
        x = T.exp(x)
        x = x * 2
        try:
            print("helper")
        finally:
            x = x - 1
        return x

    def f(x):
        x = T.relu(x) + 1
        x = helper(x)
        return x + 1

    return f


# ---------------------------------------------------------------------------------------------------------------- with


@program
def in_own_with(T):
    def f(x):
        x = T.relu(x) + 1
        with Own() as two:
            x = x * two
            print("within")
        return T.sin(x)

    return f


@program
def in_no_grad(T):
    def f(x):
        x = T.relu(x) + 1
        with T.no_grad():
            x = x * 2
            print("within")
            x = x * 3
        return T.sin(x)

    return f


@program
def twice_in_no_grad(T):
    def f(x):
        x = T.relu(x) + 1
        with T.no_grad():
            x = x * 2
            print("within")
            x = x * 3
            print("again")
            x = x * 4
        return T.sin(x)

    return f


@program
def in_no_grad_in_own_with(T):
    def f(x):
        x = T.relu(x) + 1
        with Own():
            with T.no_grad():
                x = x * 2
                print("within")
        return T.sin(x)

    return f


@program
def in_two_grad_modes(T):
    def f(x):
        x = T.relu(x) + 1
        with T.no_grad():
            x = x * 3
            with T.enable_grad():
                x = x * 2
                print("within")
        return T.sin(x)

    return f


@program
def in_no_grad_in_a_try(T):
    def f(x):
        x = T.relu(x) + 1
        try:
            with T.no_grad():
                x = x * 2
                print("within")
        finally:
            x = x + 1
        return T.sin(x)

    return f


@program
def in_a_try_in_no_grad(T):
    def f(x):
        x = T.relu(x) + 1
        with T.no_grad():
            x = x * 3
            try:
                print("within")
            finally:
                x = x + 1
        return T.sin(x)

    return f


@program
def with_a_lock(T):
    lock = threading.Lock()

    def f(x):
        x = T.relu(x) + 1
        with lock:
            x = x * 2
        return T.sin(x)

    return f


@program
def behind_own_with(T):
    def f(x):
        x = T.relu(x) + 1
        with Own() as two:
            x = x * two
        print("behind")
        return T.sin(x)

    return f


@program
def a_manager_made_of_a_generator(T):
    @contextlib.contextmanager
    def opened():
        yield 3

    def f(x):
        x = T.relu(x) + 1
        with opened() as three:
            print(three)
        return T.sin(x)

    return f


@program
def the_mode_of_the_grad_is_an_operator(T):
    def f(x):
        with T.no_grad():
            x = T.relu(x)
        try:
            print("within")
        finally:
            x = x * 2
        return x

    return f


# ------------------------------------------------------------------------------- what Python calls without being told so


@program
def operator_of_an_object(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        return T.sin(x) * (loud + 2)

    return f


@program
def operator_with_little_before(T):
    def f(x):
        x = T.relu(x)
        return T.sin(x) * (loud + 2)

    return f


@program
def operator_from_the_right(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        y = 2 + loud
        return T.sin(x) * y

    return f


@program
def operator_in_place(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        y = loud
        y += 2
        return T.sin(x)

    return f


@program
def sign_of_an_object(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        return T.sin(x) * -loud

    return f


@program
def truth_of_an_object(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        if loud:
            x = x * 2
        return T.sin(x)

    return f


@program
def negated_truth(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        y = not loud
        return T.sin(x) * y

    return f


@program
def or_of_an_object(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        y = loud or 2
        return T.sin(x) * len(y.items)

    return f


@program
def is_in_an_object(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        if 2 in loud:
            x = x * 2
        return T.sin(x)

    return f


@program
def item_of_an_object(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        x = x * loud[3]
        return T.sin(x)

    return f


@program
def property_of_an_object(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        x = x * loud.size
        return T.sin(x)

    return f


@program
def unpacked_object(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        a, b = loud
        return T.sin(x) * (a + b)

    return f


@program
def unpacked_with_a_star(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        a, *b = loud
        return T.sin(x) * (a + len(b))

    return f


@program
def iterated_object(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        for i in loud:
            x = x * i
        return T.sin(x)

    return f


@program
def iterator_that_prints(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        for i in LoudSteps():
            x = x + i
        return T.sin(x)

    return f


@program
def compared_object(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        y = loud < 3
        return T.sin(x) * y

    return f


@program
def length_of_an_object(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        y = len(loud)
        return T.sin(x) * y

    return f


@program
def object_as_text(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        print(f"{loud}")
        return T.sin(x)

    return f


@program
def tensor_as_text(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        print(f"{x.sum():.1f}")
        return T.sin(x)

    return f


@program
def item_is_assigned(T):
    class Table:
        def __setitem__(self, key, value):
            print("set", key)

    table = Table()

    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        table[3] = 4
        return T.sin(x)

    return f


@program
def attribute_is_assigned(T):
    class Record:
        def __setattr__(self, name, value):
            print("set", name)

    record = Record()

    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        record.a = 4
        return T.sin(x)

    return f


@program
def truth_of_a_tensor(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        if x.sum() > 0:
            x = x * 2
        return T.sin(x)

    return f


@program
def truth_of_a_tensor_in_an_object(T):
    class Rule:
        def __init__(self, x):
            self.x = x

        def __bool__(self):
            return bool(self.x.sum() > 0)

    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        if Rule(x):
            x = x * 2
        return T.sin(x)

    return f


@program
def truth_of_a_tensor_in_a_try(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        try:
            if x.sum() > 0:
                x = x * 2
        except ValueError:
            pass
        return T.sin(x)

    return f


@program
def negated_tensor(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        y = not x.sum() > 0
        return T.sin(x) * y

    return f


# --------------------------------------------------------------------------------------------------------------- loops


@program
def a_try_in_a_loop(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        for i in range(2):
            x = x * 2
            try:
                print("step", i)
            finally:
                x = x + 1
        return T.sin(x)

    return f


@program
def an_operator_in_a_loop(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        for i in range(2):
            x = x * (loud + i)
        return T.sin(x)

    return f


@program
def an_operator_in_a_loop_with_a_condition(T):
    def f(x):
        n = 0
        while n < 4:
            x = x + 1
            n += 1
            if n == 3:
                y = loud + 2
                x = x * y
        return T.sin(x)

    return f


@program
def a_call_in_a_loop(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        for i in range(2):
            x = x * 2
            print("step", i)
        return T.sin(x)

    return f


# ------------------------------------------------------------------------------------------------- what is done before


@program
def effects_before(T):
    class Box:
        state = "made"

    seen, box = [], Box()

    def f(x):
        x = T.relu(x)
        box.state = "before"
        x = T.tanh(x)
        seen.append(box.state)
        try:
            print("seen", seen, box.state)
            seen.append("within")
        finally:
            box.state = "behind"
        return T.sin(x)

    return f


@program
def a_cell_before(T):
    def f(x):
        count = 0

        def add():
            nonlocal count
            count += 1
            return count

        x = T.relu(x) * add()
        x = T.tanh(x)
        try:
            print("seen", count)
        finally:
            y = add()
        return T.sin(x) * y * count

    return f


@program
def a_write_to_the_argument(T):
    def f(x):
        x = x.clone()
        x.add_(1)
        y = x[0]
        y.mul_(3)
        try:
            print("seen")
        finally:
            x.mul_(2)
        return T.sin(x) + y

    return f


@program
def an_error_that_leaves(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        try:
            print("seen")
            x = x * {"a": 2}["b"]
        except KeyError as error:
            x = x * len(error.args)
        return T.sin(x)

    return f


@program
def parts_of_a_result(T):
    def f(x):
        low, high = T.aminmax(x)
        try:
            print("seen")
        finally:
            x = x * 2
        return x + low + high

    return f


@program
def an_unbound_variable(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        try:
            print("seen")
            y = x * 2
        finally:
            x = x + 1
        return T.sin(x) + y

    return f


@program
def a_class_within(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)

        class Two:
            value = 2

        return T.sin(x) * Two.value

    return f


@program
def an_import(T):
    def f(x):
        x = T.relu(x)
        x = T.tanh(x)
        import this_is_no_module_at_all  # noqa: F401

        return T.sin(x)

    return f


def graphs_of(T, make):
    """(the operators of each graph, what two calls returned or raised, what was printed)"""
    graphs, function, said, results = [], make(T), io.StringIO(), []

    def backend(module, _):
        targets = [node.target for node in module.graph.nodes if node.op.startswith("call")]
        names = [getattr(target, "__name__", target) for target in targets]
        graphs.append([name for name in names if name != "_set_grad_enabled"])
        return module.forward

    compiled = T.compile(function, backend=backend)
    with contextlib.redirect_stdout(said):
        for _ in range(2):
            try:
                results.append(compiled(T.tensor([-1.0, 0.5, 2.0])).tolist())
            except Exception as error:
                results.append(type(error).__name__)
    return graphs, results, said.getvalue()


@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs_and_results(name):
    torch._dynamo.reset()
    theirs, ours = graphs_of(torch, PROGRAMS[name]), graphs_of(rt, PROGRAMS[name])
    assert ours[0] == theirs[0] and ours[2] == theirs[2]
    assert ours[1] == [pytest.approx(each, abs=1e-6) if isinstance(each, list) else each for each in theirs[1]]
