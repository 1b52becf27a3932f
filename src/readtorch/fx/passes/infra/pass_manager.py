"""Passes one behind the other. In PyTorch: `torch/fx/passes/infra/pass_manager.py`."""

import inspect
import logging
from collections import deque
from functools import wraps

from readtorch.fx.graph_module import GraphModule
from readtorch.nn import Module

from .pass_base import PassResult

__all__ = ["pass_result_wrapper", "this_before_that_pass_constraint", "PassManager"]

logger = logging.getLogger(__name__)
logger.setLevel(logging.WARNING)


def _name(fn):
    return fn.__name__ if inspect.isfunction(fn) else type(fn).__name__


def pass_result_wrapper(fn):
    """A function that changes a module, or returns another one, as a pass that returns a PassResult."""
    if fn is None:
        return None

    @wraps(fn)
    def wrapped_fn(gm):
        result = fn(gm)
        if result is None:
            return PassResult(gm, True)
        return PassResult(result, True) if isinstance(result, Module) else result

    wrapped_fn.__name__ = _name(fn)
    return wrapped_fn


def this_before_that_pass_constraint(this, that):
    """The constraint (a, b) -> whether `a` may run before `b` that says: `this` runs before `that`."""
    return lambda a, b: a != that or b != this


def _validate_pass_schedule_constraint(constraint, passes):
    for i, a in enumerate(passes):
        for j, b in enumerate(passes[i + 1 :]):
            if not constraint(a, b):
                raise RuntimeError(
                    f"pass schedule constraint violated. Expected {a} before {b} but found {a} at index {i} and {b} at index {j} "
                    f"in pass list."
                )


def _topological_sort_passes(passes, constraints):
    """The passes in an order that all constraints allow. Raises RuntimeError if there is none."""
    if not constraints:
        return passes
    behind = {p: [] for p in passes}
    waits_for = dict.fromkeys(passes, 0)
    for a in passes:
        for b in passes:
            count = sum(not constraint(a, b) for constraint in constraints) if a != b else 0
            behind[b] += [a] * count
            waits_for[a] += count
    ready = deque(p for p in passes if waits_for[p] == 0)
    found = []
    while ready:
        found.append(ready.popleft())
        for p in behind[found[-1]]:
            waits_for[p] -= 1
            if waits_for[p] == 0:
                ready.append(p)
    circular = [p for p in waits_for if waits_for[p]]
    if circular:
        raise RuntimeError(f"Circular dependency detected within the following passes: {circular}")
    return found


class PassManager:
    """Runs passes over a module, in an order that `constraints` allow, up to `steps` times while one of them changes something.

    passes: functions of a module that return a PassResult. run_checks_after_each_pass: call what `add_checks` has set after each.
    """

    def __init__(
        self, passes=None, constraints=None, steps=None, run_checks_after_each_pass=False, suppress_check_failures=False
    ):
        self.passes = passes or []
        self.constraints = constraints or []
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass):
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint):
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self):
        """Raises RuntimeError if the order of the passes breaks a constraint."""
        if not self._validated:
            for constraint in self.constraints:
                _validate_pass_schedule_constraint(constraint, self.passes)
            self._validated = True

    def solve_constraints(self):
        """Bring the passes into an order that the constraints allow."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check):
        """Set the function of a module that is called before the passes."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check

    def check(self, module):
        pass

    def __call__(self, module):
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        any_modified = False
        for _ in range(self.steps):
            modified = False
            for i, fn in enumerate(self.passes):
                try:
                    result = self._run(fn, module)
                except Exception as e:
                    before = [_name(p) for p in self.passes[:i]]
                    message = (
                        f"An error occurred when running the '{_name(fn)}' pass after the following passes: {before}"
                    )
                    raise Exception(message) from e
                module, modified = result.graph_module, modified or result.modified
            any_modified = any_modified or modified
            if not modified:
                break
        return PassResult(module, any_modified)

    def _run(self, fn, module):
        logger.debug("Running pass '%s'", _name(fn))
        result = fn(module)
        if not hasattr(result, "graph_module"):
            raise TypeError(
                f"The result of the pass {_name(fn)} should be type PassResult."
                "Please wrap it with pass_result_wrapper()"
            )
        if isinstance(result.graph_module, GraphModule):
            result.graph_module.recompile()
        if self.run_checks_after_each_pass:
            self.check(result.graph_module)
        return result
