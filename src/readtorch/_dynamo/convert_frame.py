"""One capture of a function: from its code and arguments to a function with guards, graph, side effects and result.

Note [ A graph break is a restart ]
Where an instruction cannot be interpreted, in the function itself or in one that it calls, nothing is saved of the attempt. Only
the number of the root's step is kept, and the capture begins anew with the order to stop there. The second attempt does the same
steps, since nothing outside has changed: what would change is in the log of side effects.

A function can go on behind a few instructions only (`GraphBreak` knows them), and not within a `try`. Elsewhere the second attempt stops
earlier, at the last step before it at which nothing lay on the stack, provided that there is more than one operator by then. Behind
that graph the rest runs as it is written. Without such a step all of the function does, and so it does where it seems to be in a loop.

In PyTorch: `torch/_dynamo/convert_frame.py`; it restarts, too (`exc.RestartAnalysis`, `SpeculationLog`).
"""

import re

import readtorch
from readtorch._dynamo.bytecode_transformation import mixes_up_cells
from readtorch._dynamo.codegen import FunctionWriter, PyCodegen
from readtorch._dynamo.exc import CannotGenerate, ObservedException, SkipFrame, SpecializeSizes, Unsupported
from readtorch._dynamo.guards import MISS, GuardBuilder, autocast_state
from readtorch._dynamo.output_graph import OutputGraph
from readtorch._dynamo.resume_execution import GraphBreak
from readtorch._dynamo.source import GetItemSource, LocalSource, Source
from readtorch._dynamo.symbolic_convert import InstructionTranslator
from readtorch._dynamo.utils import counters, log_artifact, log_bytecode
from readtorch._dynamo.variables.builtin import LOOK_AT_THE_FRAME
from readtorch._dynamo.variables.misc import CellVariable
from readtorch.aten.codegen import compile_function
from readtorch.csrc.autograd import autocast_init
from readtorch.fx import GraphModule


class GuardedCode:
    """What one capture has made. run(closure, *arguments) returns MISS if a guard does not hold.

    reason: why the graph breaks at its end, None if it does not.
    """

    def __init__(self, run, text, output, graph_module, state, reason):
        self.run, self.text, self.guards, self.graph_module = run, text, output.guards, graph_module
        self.state, self.reason, self._checker = state, reason, None

    def first_failing_guard(self, closure, args):
        """What is reported of the first guard that does not hold, with the program's own names."""
        return re.sub(r"L\['(\w+)'\]", r"\1", self._first_failing_guard(closure, args))

    def _first_failing_guard(self, closure, args):
        if self._checker is None:
            self._checker = _checker_of(self.guards, self.state.parameters)
        try:
            number = self._checker(closure, *args)
        except Exception:
            return "there is no longer what was read"
        if number is None:
            return "?"
        guard = self.guards[number]
        if guard.kind == "TENSOR_MATCH":
            writer_value = _value_of(guard.source, self.state, closure, args)
            if isinstance(writer_value, readtorch.Tensor):
                return guard.seen.difference(guard.source.name, writer_value)
        return guard.describe()


def read_input(writer, key):
    """The text of an input of the graph: a source, or an expression of numbers."""
    return writer.get(key) if isinstance(key, Source) else writer.expression(key.expression)


def _checker_of(guards, parameters):
    """A function that returns the number of the first guard that does not hold; None if all do."""
    writer = FunctionWriter(indent=1)
    builder = GuardBuilder(writer, leave=lambda i: f"return {i}")
    for guard in guards:
        builder.write(guard)
    source = f"def check({', '.join(['__closure', *parameters])}):\n" + "\n".join(writer.lines) + "\n    return None\n"
    return compile_function("check", source, writer.held)


def _value_of(source, state, closure, args):
    writer = FunctionWriter(indent=1)
    name = writer.get(source)
    lines = "\n".join([*writer.lines, f"    return {name}"])
    text = f"def value({', '.join(['__closure', *state.parameters])}):\n{lines}\n"
    return compile_function("value", text, writer.held)(closure, *args)


def leaves_autocast(run):
    """`run`, which may raise within a region that it has entered."""

    def run_and_leave(*inputs):
        (states, cache), nesting = autocast_state(), autocast_init.autocast_increment_nesting()
        try:
            return run(*inputs)
        except BaseException:
            for kind, (enabled, dtype) in zip(("cpu", "cuda"), states):
                autocast_init.set_autocast_enabled(kind, enabled)
                autocast_init.set_autocast_dtype(kind, dtype)
            autocast_init.set_autocast_cache_enabled(cache)
            while autocast_init.autocast_decrement_nesting() >= nesting:
                pass
            autocast_init.autocast_increment_nesting()
            raise
        finally:
            if autocast_init.autocast_decrement_nesting() == 0:
                autocast_init.clear_autocast_cache()

    return run_and_leave


def has_backedge(instructions, number, offset):
    """Whether a jump that follows, up to the next return, goes back beyond an instruction: a guess that it is in a loop."""
    for instruction in instructions[number:]:
        if instruction.opname == "RETURN_VALUE":
            return False
        if "JUMP" in instruction.opname and instruction.argval < offset:
            return True
    return False


def compile_frame(state, closure, args):
    """GuardedCode for a call of `state` with these arguments. Raises CannotGenerate, and Unsupported with fullgraph."""
    if mixes_up_cells(state.code):
        raise CannotGenerate("a cell with the name of a free variable")
    return Capture(state, closure, args).attempt(None, None)


class Capture:
    def __init__(self, state, closure, args):
        self.state, self.closure, self.args = state, closure, args
        self.assumed = []

    def attempt(self, stop_at, reason):
        output = OutputGraph(stop_at, self.assumed, self.state)
        try:
            return self.attempt_with(output, stop_at, reason)
        finally:
            output.cleanup()

    def attempt_with(self, output, stop_at, reason):
        tx = self.translator(output)
        try:
            outcome = tx.run()
        except SpecializeSizes:
            self.state.sizes_are_known = True
            return self.attempt(None, None)
        except (Unsupported, ObservedException, RecursionError) as error:
            return self.again(output, tx, error, stop_at)
        return self.generate(output, tx, outcome, reason)

    def translator(self, output):
        state, locals, cells = self.state, {}, {}
        code = state.code
        for name, value, parameter in zip(state.names, self.args, state.parameters):
            locals[name] = output.wrap(value, LocalSource(parameter, name))
        for name in code.co_cellvars:
            found = locals.pop(name, None)
            cells[name] = found.realize() if state.shift or state.is_comprehension else CellVariable(found)
        for i, name in enumerate(code.co_freevars):
            cells[name] = output.wrap(self.closure[i], GetItemSource(LocalSource("__closure", "closure"), i))
        return InstructionTranslator(output, code, state.globals, locals, cells)

    def again(self, output, tx, error, stop_at):
        """Once more, up to the step at which the graph can end."""
        if stop_at is not None:
            raise CannotGenerate(f"unstable capture: {error}")
        if isinstance(error, RecursionError):
            raise CannotGenerate("the recursion limit was hit while it was captured")
        if isinstance(error, ObservedException):
            if error.variable.chained:
                raise CannotGenerate("an exception with a cause or context escapes")
            return self.attempt(output.steps, f"Observed exception\n  Explanation: {error}")
        if self.state.settings.fullgraph:
            raise error
        stop_at, reason = self.step_to_stop_at(output, tx), str(error)
        counters["graph_break"][reason.partition("\n")[0]] += 1
        log_artifact("graph_breaks", f"Graph break in user code at {self.where(tx)}\nGraph Break Reason: {reason}")
        return self.attempt(stop_at, reason)

    def step_to_stop_at(self, output, tx):
        """The step that failed, if a function can go on behind it; else the last one before it from which Python can go on."""
        instruction, after, step = tx.instructions[max(tx.number - 1, 0)], tx.number, output.steps
        found = tx.comprehension
        if found is not None and found.can_be_a_function(instruction) and not self.state.is_comprehension:
            instruction, after, step = found.first, found.after, found.step
        if not (GraphBreak.can_write(tx, instruction) and tx.can_be_entered(instruction)):
            if output.checkpoint is None:
                raise SkipFrame("graph break that cannot resume")
            return output.checkpoint
        if has_backedge(tx.instructions, after, instruction.offset):
            raise SkipFrame("graph break in loop")
        return step

    def where(self, tx):
        instruction = tx.instructions[max(tx.number - 1, 0)]
        line = getattr(instruction.positions, "lineno", None) or tx.code.co_firstlineno
        return f"{tx.code.co_filename}:{line}"

    # ---------------------------------------------------------------------------------------------- writing it down

    def generate(self, output, tx, outcome, reason):
        if outcome is not None and not output.op_count and not self.state.settings.fullgraph:
            raise SkipFrame("because no content in function call")
        if any(generator.stands_in_a_try() for generator in output.generators):
            raise CannotGenerate("a generator that has not ended stands in a `try` or `with`")
        self.guard_aliases(output)
        output.guard_equal_sizes()
        writer = FunctionWriter()
        builder, codegen = GuardBuilder(writer), PyCodegen(output, writer)
        for guard in output.guards:
            builder.write(guard)
        written = len(output.guards)
        if outcome is not None:
            result = codegen(outcome[1])
            finish = lambda: [f"return {result}"]  # noqa: E731
        else:
            finish = GraphBreak(tx, codegen, self.state, LOOK_AT_THE_FRAME).write()
        effects = output.side_effects.codegen(codegen)
        for guard in output.guards[written:]:  # what was looked at while values were written
            builder.write(guard)
        for source in output.read_sources:  # that it is there, though nobody looked at it
            writer.get(source)
        last = finish()
        module, graph_lines = self.graph_call(output, codegen, writer)
        body = [*graph_lines, *codegen.body, *("    " + line for line in [*effects, *last])]
        return self.function(output, writer, body, module, reason)

    def guard_aliases(self, output):
        """What the function changes is not another of the objects that it looked at, unless it was so when it was captured; and the
        tensors of the graph are as many as they were."""
        for changed in list(output.side_effects.changed.values()):
            if changed.original is None or changed.source is None:
                continue
            for other in list(output.tracked.values()):
                if other is not changed and type(other.original) is type(changed.original) and other.source is not None:
                    output.guard("NOT_DUPLICATE", changed.source, other.source)
        tensors = [source for source in output.inputs if isinstance(source, Source)]
        if len(tensors) > 1:
            output.guard("NO_TENSOR_ALIASING", None, tensors)

    def graph_call(self, output, codegen, writer):
        """The GraphModule, and the lines that run what the backend makes of it. (None, []) if there is no operator."""
        if not output.op_count:
            mode = output.grad_mode
            return None, [f"    {codegen.set_grad_mode}({mode})"] if mode != output.initial_grad_mode else []
        outputs = list(codegen.graph_outputs)
        output.graph.output(tuple(outputs))
        module, has_writes = GraphModule(output.nn_modules, output.graph), output.wrote_to_tensors()
        run = self.state.settings.backend(module, [tensor for *_, tensor in output.inputs.values()])
        run = leaves_autocast(run) if output.has_autocast else run
        names = "".join(f"{name}, " for name in codegen.graph_outputs.values())
        call = f"{writer.hold(run)}({', '.join(read_input(writer, key) for key in output.inputs)})"
        lines = ["    try:", f"        {names + '= ' if names else ''}{call}", "    except Exception:"]
        if output.grad_mode != output.initial_grad_mode or output.switched_grad_mode:
            lines.append(f"        {codegen.set_grad_mode}({output.initial_grad_mode})")
        native = (
            f"{writer.hold(self.state)}.run_native(__closure, ({''.join(p + ', ' for p in self.state.parameters)}))"
        )
        lines.append("        raise" if has_writes else f"        return {native}")
        return module, lines

    def function(self, output, writer, body, module, reason):
        head = f"def entry({', '.join(['__closure', *self.state.parameters])}):"
        miss = writer.hold(MISS)
        lines = [line.replace("return MISS", f"return {miss}") for line in writer.lines] or ["        pass"]
        text = "\n".join([head, "    try:", *lines, "    except Exception:", f"        return {miss}", *body, ""])
        run = compile_function("entry", text, writer.held)
        self.state.frame_state |= output.numbers
        counters["stats"]["unique_graphs"] += module is not None
        counters["frames"]["ok"] += 1
        log_bytecode("ORIGINAL BYTECODE", self.state.code, self.state.code)
        log_bytecode("MODIFIED BYTECODE", self.state.code, run.__code__)  # in PyTorch: of the same frame, changed
        log_artifact("guards", "GUARDS:\n" + "\n".join(guard.describe() for guard in output.guards))
        if module is not None:
            log_artifact("graph_code", module.code)
        return GuardedCode(run, text, output, module, self.state, reason)
