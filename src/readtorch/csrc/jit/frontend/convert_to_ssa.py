"""Replaces the variables of a program by values.

    %a : int = prim::Constant[value=1]()
    prim::Store[name="a"](%a)
    %b : int = prim::Load[name="a"]()          what used %b uses %a

Where branches and loops assign variables, these become outputs of the prim::If or prim::Loop: a value for
each path.

In PyTorch: `torch/csrc/jit/frontend/convert_to_ssa.cpp`. Explained in the chapter "JIT: scripting".
"""

from readtorch.csrc.jit.ir.type import unifyTypes

from .exit_transforms import TransformExits
from .inline_loop_condition import CanonicalizeModifiedLoops, InlineLoopCondition, inline_block_before
from .ir_emitter.environment import is_meaningful


def ConvertToSSA(graph):
    """Five steps: outputs of control flow, what break and continue lead to, loop conditions, variables,
    exits.
    """
    _ControlFlowVariables().block(graph.block(), None)
    _LoopContinuations(graph).block(graph.block(), None)
    InlineLoopCondition(graph)
    _erase_variables(graph.block(), None)
    TransformExits(graph)
    CanonicalizeModifiedLoops(graph)


class _Scope:
    """name -> what it is in a block. next: the block around it."""

    def __init__(self, next):
        self.next = next
        self.known = {}

    def find(self, name):
        scope = self
        while scope is not None:
            if name in scope.known:
                return scope.known[name]
            scope = scope.next
        return None


# ------------------------------------------------------------------------------------ outputs of control flow


class _ControlFlowVariables:
    """Adds the variables that a branch or a loop assigns to the outputs of its node, by Load and Store."""

    def block(self, block, outer):
        scope = _Scope(outer)
        for node in block.nodes():
            kind = node.kind()
            if kind == "prim::If":
                self.if_(node, scope)
            elif kind == "prim::Loop":
                self.loop(node, scope)
            elif kind == "prim::Store":
                scope.known[node.s("name")] = node.input().type()
            elif kind == "prim::ComprehensionScope" or kind == "prim::forkClosure":
                self.block(node.blocks()[0], scope)
        return scope

    def if_(self, node, scope):
        then, otherwise = (self.block(block, scope) for block in node.blocks())
        names = {n for n in then.known if otherwise.find(n) is not None}
        names |= {n for n in otherwise.known if then.find(n) is not None}
        for name in sorted(names):
            types = then.find(name), otherwise.find(name)
            unified = unifyTypes(*types, default_to_union=True)
            for block, type in zip(node.blocks(), types):
                _add_block_output(block, type, name)
            _add_node_output(node, unified, name)
            scope.known[name] = unified

    def loop(self, node, scope):
        body = node.blocks()[0]
        inner = self.block(body, scope)
        for name in sorted(inner.known):
            outer_type = scope.find(name)
            if outer_type is None:
                continue  # a variable of the body alone
            unified = unifyTypes(outer_type, inner.known[name], default_to_union=True)
            graph = node.owningGraph()
            node.addInput(graph.createLoad(name, outer_type).insertBefore(node).output())
            carried = body.addInput(name if is_meaningful(name) else "").setType(unified)
            graph.createStore(name, carried).insertAfter(body.paramNode())
            _add_block_output(body, inner.known[name], name)
            _add_node_output(node, unified, name)
            scope.known[name] = unified


def _add_block_output(block, type, name):
    load = block.owningGraph().createLoad(name, type)
    block.appendNode(load)
    block.registerOutput(load.output())


def _add_node_output(node, type, name):
    output = node.addOutput().setType(type)
    if is_meaningful(name):
        output.setDebugName(name)
    node.owningGraph().createStore(name, output).insertAfter(node)


# -------------------------------------------------------------------------------------------- break, continue


class _LoopContinuations:
    """A break or continue becomes a prim::LoopContinuation: whether to go on, and the variables as they are
    now.
    """

    def __init__(self, graph):
        self.graph = graph
        self.false = None

    def block(self, block, loop):
        for node in block.nodes():
            kind = node.kind()
            if kind == "prim::Loop":
                self.block(node.blocks()[0], node)
            elif kind == "prim::If" or kind == "prim::ComprehensionScope":
                for inner in node.blocks():
                    self.block(inner, loop)
            elif kind == "prim::ContinueStmt":
                exit = self.graph.create("prim::LoopContinuation", (), 0).insertAfter(node)
                condition = exit.addBlock()
                condition.cloneFrom(loop.blocks()[1], lambda v: v)
                inline_block_before(exit, condition)
                exit.addInput(condition.outputs()[0])
                exit.eraseBlock(0)
                self._finish(node, exit, loop)
            elif kind == "prim::BreakStmt":
                exit = self.graph.create("prim::LoopContinuation", (), 0).insertAfter(node)
                exit.addInput(self._false())
                self._finish(node, exit, loop)

    def _false(self):
        if self.false is None:
            with self.graph.insert_point_guard(self.graph.nodes()[0]):
                self.false = self.graph.insertConstant(False)
        return self.false

    def _finish(self, node, exit, loop):
        for output in loop.blocks()[0].outputs():
            load = self.graph.createClone(output.node(), lambda v: v).insertBefore(exit)
            exit.addInput(load.output())
        node.destroy()


# -------------------------------------------------------------------------------------------------- variables


def _erase_variables(block, outer):
    """What reads a variable uses the value that was written last."""
    scope = _Scope(outer)
    for node in block.nodes():
        kind = node.kind()
        if kind == "prim::Store":
            scope.known[node.s("name")] = node.input()
            node.destroy()
        elif kind == "prim::Load":
            node.output().replaceAllUsesWith(scope.find(node.s("name")))
            node.destroy()
        elif kind == "prim::ComprehensionScope":
            inner = node.blocks()[0]
            _erase_variables(inner, scope)
            inline_block_before(node, inner)
            node.destroy()
        else:
            for inner in node.blocks():
                _erase_variables(inner, scope)
