"""if, while and for. In PyTorch: `emitIfElseBlocks`, `emitLoopCommon`, `emitFor` in
`torch/csrc/jit/frontend/ir_emitter.cpp`.

Explained in the chapter "JIT: scripting".
"""

from contextlib import contextmanager

from readtorch.csrc.jit.frontend.definition import NotSupportedError
from readtorch.csrc.jit.frontend.error_report import ErrorReport
from readtorch.csrc.jit.frontend.script_type_parser import type_name
from readtorch.csrc.jit.frontend.sugared_value import SimpleValue
from readtorch.csrc.jit.ir.type import IntType, OptionalType, UnionType, unifyTypes

from .environment import Environment

FOREVER = 2**63 - 1  # the number of iterations of a `while`


class ControlFlow:
    @contextmanager
    def inside(self, block):
        """Compile into `block`, in a frame of its own."""
        self.frame = frame = Environment(self, block, self.frame)
        with self.graph.insert_point_guard(block):
            yield frame
        self.frame = frame.next

    @contextmanager
    def looping(self, status):
        previous, self.loop = self.loop, status
        yield
        self.loop = previous

    # ------------------------------------------------------------------------------------------------- if

    def statement_If(self, node):
        condition = self.condition(node.test)
        self.branches(
            self.range(node), condition, lambda: self.statements(node.body), lambda: self.statements(node.orelse)
        )

    def branches(self, range, condition, then, otherwise):
        """then(), otherwise(): compile the branches. One of them only, if the condition is known."""
        if condition.known is not None:
            refinements = condition.refinements if condition.known else ~condition.refinements
            self.refine(range, refinements)
            (then if condition.known else otherwise)()
            return
        node = self.graph.insertNode(self.graph.create("prim::If", [condition.value], 0)).setSourceRange(range)
        frames = []
        for emit, refinements in ((then, condition.refinements), (otherwise, ~condition.refinements)):
            with self.inside(node.addBlock()) as frame:
                self.refine(range, refinements)
                emit()
            frames.append(frame)
        exits = [block in self.exit_blocks for block in node.blocks()]
        if all(exits):
            self.exit_blocks.add(node.owningBlock())
            return
        self._join(range, node, frames, exits)

    def refine(self, range, refinements):
        """From here on the variables have the types that the condition implies."""
        for name, type in refinements.true.items():
            value = self.graph.insertUncheckedCast(self.frame.value(name, range), type)
            self.frame.set_value(range, name, value)

    def _join(self, range, node, frames, exits):
        """A variable has a value after the `if` when both branches give it one (or one never gets there)."""
        for name in self._assigned(range, node, frames, exits):
            types = [
                self._type_in(name, block, frame, exit, range)
                for block, frame, exit in zip(node.blocks(), frames, exits)
            ]
            for i, block in enumerate(node.blocks()):
                if exits[i]:
                    types[i] = types[1 - i]
                    with self.graph.insert_point_guard(block):
                        unset = self.graph.insertNode(self.graph.createUninitialized(types[i])).output()
                        self.graph.insertNode(self.graph.createStore(name, unset))
            unified = self._unify(name, *types)
            if unified is not None:
                self.frame.types[name] = unified
                continue
            error = (
                f"Type mismatch: {name} is set to type {type_name(types[0])} in the true branch and type "
                f"{type_name(types[1])} in the false branch"
            )
            if self.frame.find(name) is not None:
                raise ErrorReport(range, error)
            self.frame.errors[name] = f"{error}:\n{range.highlight()}"

    def _unify(self, name, a, b):
        outer = self.frame.find(name)
        declared = outer.type() if isinstance(outer, SimpleValue) else None
        if isinstance(declared, (UnionType, OptionalType)) and a.isSubtypeOf(declared) and b.isSubtypeOf(declared):
            return unifyTypes(a, b) or declared
        return unifyTypes(a, b)

    def _assigned(self, range, node, frames, exits):
        """The names that have a value after the `if`, sorted; for the others the reason is noted."""
        found = set()
        for i, word in ((0, "false"), (1, "true")):
            other = node.blocks()[1 - i]
            for name in frames[i].types:
                with self.graph.insert_point_guard(other):
                    known = frames[1 - i].find(name) is not None
                if known or exits[1 - i]:
                    found.add(name)
                else:
                    report = ErrorReport(range, f"{name} is not defined in the {word} branch")
                    self.frame.errors[name] = str(report).lstrip("\n")
        return sorted(found)

    def _type_in(self, name, block, frame, exits, range):
        if exits:
            return None
        with self.graph.insert_point_guard(block):
            return frame.value(name, range).type()

    # ---------------------------------------------------------------------------------------------- loops

    def statement_While(self, node):
        if node.orelse:
            raise _no_else(self.text.first_word(node), "while")
        iterations = self.graph.insertConstant(FOREVER, None, self.range(node))
        self._loop(self.range(node), iterations, node.test, lambda iteration: self.statements(node.body))

    def statement_For(self, node):
        if node.orelse:
            raise _no_else(self.text.first_word(node), "for")
        self.loop_over(self.range(node), node.target, node.iter, lambda: self.statements(node.body))

    def loop_over(self, range, target, iterable, body):
        """`for target in iterable: body()`."""
        through = self.sugared(iterable).iter(range, self)
        if through.static_length() is not None:
            self._unrolled(range, target, through, body)
            return

        def iteration(index):
            item = through.item(range, self, index).as_value(range, self)
            self.check_targets([target], range)
            self.assign(target, SimpleValue(item), range)
            body()

        self._loop(range, through.length(range, self), None, iteration)

    def _loop(self, range, iterations, test, body):
        """A prim::Loop: its first block the body, its second the condition, which convert_to_ssa.py moves to
        its places.
        """
        node = self.graph.insertNode(self.graph.create("prim::Loop", (), 0)).setSourceRange(range)
        body_block, condition_block = node.addBlock(), node.addBlock()
        with self.inside(condition_block):
            if test is None:
                with self.graph.insert_point_guard(node):
                    go_on = self.graph.insertConstant(True, None, range)
            else:
                go_on = self.to_bool(self.range(test), self.condition(test).value)
            condition_block.registerOutput(go_on)
        node.addInput(iterations)
        index = body_block.addInput().setType(IntType.get())
        with self.looping("loop"), self.inside(body_block):
            body(index)

    def _unrolled(self, range, target, through, body):
        """The body once for each item. It gets no frame of its own: items may have different types."""
        with self.looping("unrolled"):
            for i in _range(through.static_length()):
                index = self.graph.insertConstant(i, None, range)
                self.assign(target, through.item(range, self, index), self.range(target))
                body()


_range = range


def _no_else(range, word):
    return NotSupportedError(range, f"else branches of {word} loops aren't supported")
