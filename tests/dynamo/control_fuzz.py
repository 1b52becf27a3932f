"""Random programs with control flow over tensors: choices and loops that elements decide, in Python and as operators, forward and
backward. What is compared with the compiled program is Python's own `if` and `while`.

.venv/bin/python -m tests.dynamo.control_fuzz FIRST COUNT [record]     more of them than the suite runs
"""

import math

import readtorch
from readtorch._dynamo import eval_frame
from tests.dynamo import fuzzing

TENSORS = ("x", "y", "z", "w")


class Writer:
    def __init__(self, r):
        self.r, self.lines, self.count = r, [], 0

    def write(self, depth, text):
        self.lines.append("    " * depth + text)

    def name(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def number(self):
        return self.r.choice(["n", "m", "2", "0.5", "x.shape[0]", "-1"])

    def tensor(self, names=TENSORS):
        """An expression of the size of `x`, that is none of its operands."""
        a, b, r = self.r.choice(names), self.r.choice(names), self.r
        return r.choice(
            [f"{a} + {b}", f"({a} * {b}).tanh()", f"{a}.sin() * {self.number()}", f"({a} - {b}) * 0.5", f"T.relu({a}) - {b}"]
            + [f"T.where({a} > {b}, {a} * 2, {b} - 1)", f"({a} * w).cos()", f"{a} + {a}.mean()", f"h({a}, {self.number()})"]
        )  # fmt: skip

    def truth(self, names=TENSORS):
        a = self.r.choice(names)
        return f"{a}.{self.r.choice(['sum', 'max', 'min', 'mean'])}() {self.r.choice('<>')} {self.r.choice([-1, 0, 0.5, 1])}"

    def block(self, depth, deeper, in_loop=False):
        for _ in range(self.r.randint(1, 3)):
            self.statement(depth, deeper, in_loop)

    def statement(self, depth, deeper, in_loop):
        r = self.r
        kinds = [
            self.assignment,
            self.assignment,
            self.number_assignment,
            self.cond,
            self.while_loop,
            self.in_place,
            self.early,
        ]
        kinds += [self.choice, self.choice, self.loop_over_rows, self.loop_while, self.no_grad] if deeper else []
        if in_loop and r.random() < 0.15:
            self.write(depth, f"if {r.choice([self.truth(), 'm > 3'])}: {r.choice(['break', 'continue'])}")
        else:
            r.choice(kinds)(depth, deeper)

    def assignment(self, depth, deeper):
        self.write(depth, f"{self.r.choice(['x', 'y', 'z'])} = {self.tensor()}")

    def number_assignment(self, depth, deeper):
        self.write(depth, f"m = {self.r.choice(['m + 1', 'n + m', 'int(x.sum() > 0)', 'len(seen)', 'm % 3'])}")

    def choice(self, depth, deeper):
        self.write(depth, f"if {self.r.choice([self.truth(), self.truth(), 'm > n'])}:")
        self.block(depth + 1, deeper - 1)
        if self.r.random() < 0.6:
            self.write(depth, "else:")
            self.block(depth + 1, deeper - 1)

    def loop_over_rows(self, depth, deeper):
        name = self.name("v")
        over = self.r.choice(["x", "y.unbind()", "range(n)", "enumerate(z)"])
        self.write(depth, f"for {name} in {over}:")
        self.write(depth + 1, f"z = z + {name}" if over in ("x", "y.unbind()") else "z = z * 0.5 + 1")
        self.block(depth + 1, deeper - 1, True)

    def loop_while(self, depth, deeper):
        name = self.name("i")
        self.write(depth, f"{name} = 0")
        self.write(depth, f"while {name} < {self.r.randint(1, 3)} and {self.truth()}:")
        self.write(depth + 1, f"{name} += 1")
        self.block(depth + 1, deeper - 1, True)

    def cond(self, depth, deeper):
        names = ("a", "y", "w", "x")
        first, second = self.tensor(names), self.tensor(names)
        if self.r.random() < 0.3:
            first = f"cond({self.truth(('a', 'y'))}, lambda b: {self.tensor(('b', 'a', 'w'))}, lambda b: {self.tensor(('b', 'y'))}, (a,))"
        self.write(
            depth, f"z = cond({self.truth()}, lambda a: {first}, lambda a: {second}, ({self.r.choice(TENSORS[:3])},))"
        )

    def while_loop(self, depth, deeper):
        body, limit = self.tensor(("a", "y", "w")), self.r.randint(0, 3)
        start = self.r.choice(["T.tensor(0)", "0"])
        condition = self.r.choice([f"i < {limit}", f"i < {limit}", "i < n + 1"])
        self.write(
            depth,
            f"i, z = while_loop(lambda i, a: {condition}, lambda i, a: (i + 1, {body}), ({start}, {self.r.choice('xz')} * 1))",
        )
        self.write(depth, "seen.append(int(i))")

    def in_place(self, depth, deeper):
        self.write(
            depth, f"z = z.clone(); z.{self.r.choice(['add_', 'mul_', 'sub_'])}({self.number()}); seen.append(m)"
        )

    def early(self, depth, deeper):
        if self.r.random() < 0.3:
            self.write(depth, f"if {self.truth()}: return {self.tensor()}, m")
        else:
            self.number_assignment(depth, deeper)

    def no_grad(self, depth, deeper):
        self.write(depth, "with T.no_grad():")
        self.block(depth + 1, deeper - 1)

    def program(self):
        self.write(0, "def f(x, y, n, seen):")
        self.write(1, "z = x * y; m = 1")
        for _ in range(self.r.randint(2, 5)):
            self.statement(1, 2, False)
        self.write(1, self.r.choice(["return x + y + z, m", "return z, m", "return {'a': x * z, 'b': y}, m"]))
        return "\n".join(self.lines)


def source(r):
    return Writer(r).program()


def as_python(pred, true_fn, false_fn, operands):
    return true_fn(*operands) if pred else false_fn(*operands)


def loop_of_python(cond_fn, body_fn, carried):
    while cond_fn(*carried):
        carried = body_fn(*carried)
    return carried


def play(text, seed, compile):
    """What three calls return, and the gradients. A gradient that is not there is zero."""
    is_compiled = compile(play) is not play
    names = {"T": readtorch, "w": readtorch.tensor([0.5, -1.5, 1.0], requires_grad=True), "h": lambda t, k: t * 0.5 + k}
    names |= {"cond": readtorch.cond, "while_loop": readtorch.while_loop}
    if not is_compiled:
        names |= {"cond": as_python, "while_loop": loop_of_python}
    exec(text, names)
    f, found = compile(names["f"]), []
    generator = readtorch.Generator().manual_seed(seed)
    for n in (1, 2, 2):
        x, y = (readtorch.randn(3, generator=generator).requires_grad_(n == 2) for _ in range(2))
        seen = []
        result, m = f(x, y, n, seen)
        results = list(result.values()) if isinstance(result, dict) else [result]
        loss = sum((r * r).sum() for r in results)
        if loss.requires_grad:
            loss.backward()
        found.append([*(r.tolist() for r in results), m, seen, [shown(t) for t in (x, y, names["w"])]])
    return found


def shown(t):
    return t.grad.tolist() if t.grad is not None else [0.0] * 3


def same(expected, reached):
    """Results to the bit. Gradients to the rounding of float32: an operator with a graph inside adds up what reaches a tensor within
    it before the rest, where the function as it is written adds each use in turn.
    """
    pairs = list(zip(expected, reached))
    return all(repr(a[:-1]) == repr(b[:-1]) and all(map(near, a[-1], b[-1])) for a, b in pairs)


def near(expected, reached):
    allowed = 1e-5 * max([1.0, *(abs(g) for g in expected if math.isfinite(g))])
    return all(abs(a - b) <= allowed if math.isfinite(a) else repr(a) == repr(b) for a, b in zip(expected, reached))


def differs(seed):
    """None if a program's results and gradients are the same compiled and as it is written; else its text."""
    text = source(fuzzing.random.Random(seed))
    expected = play(text, seed, lambda f: f)
    reached = play(text, seed, lambda f: eval_frame.optimize(f, backend="eager"))
    return None if same(expected, reached) else text


if __name__ == "__main__":
    fuzzing.main(differs)
