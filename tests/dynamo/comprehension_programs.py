"""Comprehensions in which the graph breaks, and what stands around them: since Python 3.12 their instructions are the function's own.

name -> program(lib, compile, note), as in `programs.py`.
"""

from tests.dynamo.programs import values

PROGRAMS = {}


def thrice(make):
    """`make(lib)` gives a function of a tensor: it is called with three, the last of another size."""

    def program(lib, compile, note):
        f = compile(make(lib))
        for x in (values(lib, 2) + 1, values(lib, 2) - 1, values(lib, 3)):
            try:
                note(f(x))
            except ZeroDivisionError as error:
                note(str(error))

    PROGRAMS[make.__name__] = program
    return make


def say(value):
    print("say", value)
    return value


@thrice
def a_list(lib):
    def f(x):
        y = x * 2
        z = [say(y + i) for i in range(3)]
        return z[0] * 3 + z[2]

    return f


@thrice
def a_dict(lib):
    def f(x, k=3):
        y = x * 2
        z = {i: (y + i, print(i)) for i in range(k)}
        return z[0][0] * 3 + k

    return f


@thrice
def a_set(lib):
    def f(x):
        y = x + 1
        z = {print(i) or i for i in (1, 2)}
        return y * sum(z)

    return f


@thrice
def one_in_another(lib):
    def f(x):
        y = x + 1
        z = [[print(i, j) or y * j for j in range(i)] for i in range(3)]
        return z[2][1] + 1

    return f


@thrice
def two_loops_in_one(lib):
    def f(x):
        y = x + 1
        z = [print(i, j) or y * j + i for i in range(3) if i for j in range(i)]
        return z[2] + len(z)

    return f


@thrice
def functions_that_see_the_variable(lib):
    def f(x):
        y = x + 1
        made = [(lambda: say(i) * y) for i in range(3) if print(i) is None]
        return made[0]() + made[2]() + 1

    return f


@thrice
def a_variable_is_hidden(lib):
    def f(x, i=7):
        y = x + 1
        z = [print(i) or y * i for i in range(3)]
        return z[2] + i

    return f


@thrice
def a_variable_in_a_cell_is_hidden(lib):
    def f(x):
        y = x + 1
        i = 5

        def get():
            return i

        z = [print(i) or y * i for i in range(3)]
        return z[2] + get() + i

    return f


@thrice
def a_cell_is_hidden_by_a_cell(lib):
    def f(x):
        y = x + 1
        i = 5
        z = [(lambda: i) for i in range(3) if print(i) is None]
        return y + z[2]() + i

    return f


@thrice
def a_free_variable_is_hidden(lib):
    i = 5

    def f(x):
        y = x + 1
        z = [print(i) or y * i for i in range(3)]
        return z[2] + i

    return f


@thrice
def a_free_variable_is_hidden_by_a_cell(lib):
    """Where Python 3.12 makes one variable of two (CPython's fault): whatever it does, it is done compiled."""
    i = 5

    def f(x):
        y = x + 1
        z = [(lambda: i) for i in range(3)]
        return y + z[2]() + i

    return f


@thrice
def a_variable_without_a_value_is_hidden(lib):
    def f(x):
        y = x + 1
        z = [print(i) or y for i in range(2)]
        if x is None:
            i = 1
        try:
            return i
        except UnboundLocalError as error:
            return z[1] * 2, type(error).__name__

    return f


@thrice
def an_assignment_in_it(lib):
    def f(x):
        y = x + 1
        z = [print(i) or (w := y * i) for i in range(3)]
        return z[2] + w

    return f


@thrice
def values_below_it(lib):
    def f(x):
        y = x + 1
        return max(7, *[print(i) or i for i in range(3)], len([x, y])) + y * 2

    return f


@thrice
def an_error_in_it_is_caught(lib):
    def f(x):
        y = x + 1
        try:
            return [print(i) or 1 / (i - 1) for i in range(3)]
        except ZeroDivisionError:
            return y * 3

    return f


@thrice
def an_error_in_it_is_not_caught(lib):
    def f(x):
        y = x + 1
        return [print(i) or y / (1 / (i - 1)) for i in range(3)]

    return f


@thrice
def it_stands_in_a_loop(lib):
    def f(x):
        for _ in range(2):
            x = x + 1
            z = [print(i) for i in range(2)]
            x = x * len(z)
        return x

    return f


@thrice
def elements_decide(lib):
    def f(x):
        y = x + 1
        z = [t * 2 if t.sum() > 3 else t for t in (y, y * 4)]
        return z[0] + z[1]

    return f


@thrice
def elements_are_read(lib):
    def f(x):
        y = x + 1
        return y * sum([t.item() for t in y])

    return f


@thrice
def it_stands_in_a_function_that_is_called(lib):
    def inner(y, i=7):
        z = [print(i) or y * i for i in range(3)]
        return z[2] + i

    def f(x):
        return inner(x + 1) * 2

    return f


@thrice
def it_sees_free_variables(lib):
    k = 2

    def f(x):
        y = x * k
        z = [print(i) or y * k for i in range(2)]
        return z[1] + k

    return f


@thrice
def it_stands_in_no_grad(lib):
    def f(x):
        y = x + 1
        with lib.no_grad():
            z = [print(i) or y * i for i in range(3)]
            y = y * 2
        return z[1] * y

    return f


@thrice
def nothing_to_loop_over(lib):
    def f(x):
        y = x + 1
        z = [print(i) or y for i in ()]
        return y * 3, z

    return f


@thrice
def two_behind_each_other(lib):
    def f(x):
        y = x + 1
        a = [print(i) or y * i for i in range(3)]
        b = {i: say(t) * 2 for i, t in enumerate(a)}
        return a[1] + b[2]

    return f


@thrice
def a_generator_expression(lib):
    def f(x):
        y = x + 1
        return sum(say(y * i) for i in range(3)) * 2

    return f


@thrice
def a_generator_that_raises_stop_iteration(lib):
    def steps(x):
        yield x * 2
        raise StopIteration(3)

    def f(x):
        try:
            return sum(steps(x + 1))
        except RuntimeError as error:
            return x * 3, str(error)

    return f


@thrice
def an_error_as_text(lib):
    def f(x):
        try:
            raise ValueError("v")
        except ValueError as error:
            text = f"{error!r} {error!s:>3} {error} {error!a}"
        return x * 2, text

    return f


@thrice
def truth_that_raises(lib):
    class Odd:
        def __bool__(self):
            raise ZeroDivisionError("odd")

    def f(x, i=4):
        odd = Odd()
        try:
            y = [x * i for i in range(2) if odd]
        except ZeroDivisionError as error:
            y = str(error)
        try:
            return not odd, y
        except ZeroDivisionError:
            return x + i, y, bool([]) or x or odd

    return f


@thrice
def truth_of_a_tensor(lib):
    def f(x):
        y = x + 1
        if not y.sum():
            return y
        z = y.sum() > 2 and y.sum() < 9
        if z:
            y = y * 2
        return (y, z) if y.max() else y

    return f


@thrice
def slices(lib):
    def f(x, a=0, b=2):
        items = [x, x + 1, x + 2]
        part = items[a:b]
        items[a : b - 1] = [x * 2]
        y = (x * 3)[a:b]
        y[b - 1 :] = 7
        return sum(part) + items[0], y, "abcdef"[b:-b], len(items[:]), f"{b!r:>3}|{b:02d}|{part[:0]!s}"

    return f


@thrice
def calls_by_name(lib):
    def scale(t, *rest, by=2, **more):
        return t * by + len(rest) + sum(more.values())

    def f(x):
        y = scale(x, 1, by=3, more=4)
        print("seen", len(y), sep=":", end="!\n")
        pair = dict(by=5)
        return scale(y, *(1, 2), **pair), scale(y, **pair), scale(*[x])

    return f


@thrice
def methods_of_a_base_class(lib):
    class Base:
        k = 2

        def f(self, x):
            print("base")
            return x * self.k

    class Derived(Base):
        def f(self, x):
            return super().f(x + 1) + super(Derived, self).k + super().k

    return Derived().f
