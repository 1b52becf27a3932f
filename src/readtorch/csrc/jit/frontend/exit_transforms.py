"""Removes return, break and continue: a graph's block runs to its end.

A block that may be left early says so by a bool, and gives the values that leave with it; what follows
is put under an `If` of that bool. Note [Exit status]: a block WILL be left, WONT, MIGHT, or THROWS, in which
case nothing that follows matters.

    if c:                         r, left = If(c): (1, True) else: (unset, False)
        return 1                  r = If(left): r  else: 2
    return 2                      return r              (and the two Ifs become one)

In PyTorch: `torch/csrc/jit/frontend/exit_transforms.cpp`. Explained in the chapter "JIT: scripting".
"""

from readtorch.csrc.jit.ir.type import BoolType, unifyTypes

WILL, MIGHT, WONT, THROWS = "will", "might", "wont", "throws"


def TransformExits(graph):
    _enter_and_exit_to_with(graph)
    _Exits(graph, "prim::LoopContinuation").block(graph.block())
    _Exits(graph, "prim::ReturnStmt").block(graph.block())
    _join_consecutive_ifs(graph.block())
    _with_to_enter_and_exit(graph)


class _Exits:
    """Removes the exits of one kind. An exit is (the bool that says whether the block is left, the values)."""

    def __init__(self, graph, kind):
        self.graph = graph
        self.kind = kind
        self.target = None  # the block that an exit leads out of
        self.unset = {}  # type -> a value that is never looked at
        with graph.insert_point_guard(graph.nodes()[0]):
            self.true, self.false = graph.insertConstant(True), graph.insertConstant(False)
            self.throws = self._unset(BoolType.get())

    def _unset(self, type):
        if type not in self.unset:
            self.unset[type] = self.graph.createUninitialized(type).insertAfter(self.graph.param_node()).output()
        return self.unset[type]

    def _all_unset(self, values):
        return [self._unset(v.type()) for v in values]

    def status(self, exit):
        """See Note [Exit status]."""
        return {self.true: WILL, self.false: WONT, self.throws: THROWS}.get(exit[0], MIGHT)

    def wont(self):
        return self.false, []

    # --------------------------------------------------------------------------------------------- blocks

    def block(self, block):
        previous = self.target
        owner = block.owningNode()
        owner_kind = owner.kind() if owner is not None else None
        if owner_kind == "prim::Loop" and self.kind == "prim::LoopContinuation":
            self.target = block
        elif owner is None and self.kind == "prim::ReturnStmt":
            self.target = block
        exit = self._nodes(block)
        if self.target is block:
            self._arrive(block, exit)
            exit = self.wont()
        self.target = previous
        return exit

    def _nodes(self, block):
        """The exit of the first node that has one; what follows it is removed or guarded."""
        exit = self.wont()
        for node in block.nodes():
            following = node.next()
            kind = node.kind()
            if kind == "prim::RaiseException":
                exit = self.throws, []
            elif kind == self.kind:
                exit = self.true, node.inputs()
                node.destroy()
            elif kind == "prim::If":
                exit = self.if_(node)
            elif kind == "prim::Loop":
                exit = self.loop(node)
            elif kind == "prim::With":
                exit = self.block(node.blocks()[0])
            status = self.status(exit)
            if status in (WILL, THROWS):
                self._delete_from(block, following)
                return exit
            if status == MIGHT:
                if following is not block.returnNode():
                    exit = self._guard(block, exit, following)
                return exit
        return exit

    def _arrive(self, block, exit):
        """The exit has come to the block that it leads out of: its values are the block's outputs."""
        status = self.status(exit)
        if status == WILL:
            _set_outputs(block, exit[1])
        elif status == MIGHT:
            node = self.graph.create("prim::If", [exit[0]], 0).insertBefore(block.returnNode())
            node.addBlock()
            node.addBlock()
            _add_if_outputs(node, exit[1], block.outputs())
            _set_outputs(block, node.outputs())

    def _delete_from(self, block, first):
        nodes, node = [], first
        while node is not block.returnNode():
            nodes.append(node)
            node = node.next()
        for node in reversed(nodes):
            for output in node.outputs():
                if output.hasUses():
                    output.replaceAllUsesWith(self._unset(output.type()))
            node.destroy()

    def _guard(self, block, exit, first):
        """Everything from `first` on runs only if the block has not been left."""
        guard = self.graph.create("prim::If", [exit[0]], 0).insertBefore(first)
        left, stayed = guard.addBlock(), guard.addBlock()
        node = first
        while node is not block.returnNode():
            following = node.next()
            node.moveBefore(stayed.returnNode())
            node = following
        for output in block.outputs():
            left.registerOutput(self._unset(output.type()))
            stayed.registerOutput(output)
            guard.addOutput().setType(output.type())
        _set_outputs(block, guard.outputs())
        left.appendNode(self.graph.create(self.kind, exit[1], 0))
        return self.if_(guard)

    # --------------------------------------------------------------------------------------- control flow

    def if_(self, node):
        exits = [self.block(b) for b in node.blocks()]
        statuses = [self.status(e) for e in exits]
        status = _status_of_if(*statuses)
        if status == THROWS:
            return self.throws, []
        if status == WONT:
            return self.wont()
        for i in (0, 1):
            if statuses[i] in (WONT, THROWS):
                exits[i] = exits[i][0], self._all_unset(exits[1 - i][1])
                break
        left = self.true
        if status == MIGHT:
            _add_if_outputs(node, [exits[0][0]], [exits[1][0]])
            left = node.outputs()[-1]
        _add_if_outputs(node, exits[0][1], exits[1][1])
        count = len(exits[0][1])
        return left, node.outputs()[len(node.outputs()) - count :]

    def loop(self, node):
        """A loop that is left for good stops, and hands on the exit."""
        body = node.blocks()[0]
        left, values = exit = self.block(body)
        if self.status(exit) in (WONT, THROWS):
            return self.wont()
        with self.graph.insert_point_guard(body):
            condition = self.graph.insertNode(self.graph.create("prim::If", [left], 0))
            condition.addBlock().registerOutput(self.false)
            condition.addBlock().registerOutput(body.outputs()[0])
            body.replaceOutput(0, condition.addOutput().setType(BoolType.get()))
        self._carry(node, body, self.false, left)
        for value in values:
            self._carry(node, body, self._unset(value.type()), value)
        outputs = node.outputs()
        first = len(outputs) - len(values)
        return outputs[first - 1], outputs[first:]

    def _carry(self, node, body, before, value):
        """One more value that is carried from iteration to iteration."""
        node.addInput(before)
        node.addOutput().setType(value.type())
        body.addInput().setType(value.type())
        body.registerOutput(value)


def _status_of_if(then, otherwise):
    if then == THROWS:
        return otherwise
    if otherwise == THROWS or then == otherwise:
        return then
    return MIGHT


def _add_if_outputs(node, then, otherwise):
    for a, b in zip(then, otherwise):
        node.blocks()[0].registerOutput(a)
        node.blocks()[1].registerOutput(b)
        node.addOutput().setType(unifyTypes(a.type(), b.type(), default_to_union=True))


def _set_outputs(block, values):
    for _ in block.outputs():
        block.eraseOutput(0)
    for value in values:
        block.registerOutput(value)


# -------------------------------------------------------------------------------------------- consecutive Ifs


def _join_consecutive_ifs(block):
    """An If that asks for the answer that the If before it just gave belongs into the branches of the latter."""
    node = block.nodes()[0] if block.nodes() else block.returnNode()
    while node is not block.returnNode():
        for inner in node.blocks():
            _join_consecutive_ifs(inner)
        if not _join(node):
            node = node.next()


def _join(first):
    second = first.next()
    if first.kind() != "prim::If" or second.kind() != "prim::If" or second.input().node() is not first:
        return False
    answers = [block.outputs()[second.input().offset()].toIValue() for block in first.blocks()]
    if None in answers or answers[0] == answers[1]:
        return False
    for block, answer in zip(first.blocks(), answers):
        outputs = block.outputs()
        chosen = second.blocks()[0 if answer else 1]
        block.cloneFrom(chosen, lambda v: outputs[v.offset()] if v.node() is first else v)
    for output in second.outputs():
        new = first.addOutput().setType(output.type())
        name = output.debugName() if output.hasDebugName() else ""
        output.replaceAllUsesWith(new)
        if name:
            output.setDebugName("")
            new.setDebugName(name)
    second.destroy()
    return True


# ------------------------------------------------------------------------------------------------------- with


def _enter_and_exit_to_with(graph):
    """Moves what is between prim::Enter and prim::Exit into the block of a prim::With, so that Exit runs
    however it is left.
    """
    pairs, entered = [], []
    for node in graph.all_nodes():
        if node.kind() == "prim::Enter":
            entered.append(node)
        elif node.kind() == "prim::Exit":
            pairs.append((entered.pop(), node))
    for enter, exit in pairs:
        node = graph.create("prim::With", (), 0)
        body, leave = node.addBlock(), node.addBlock()
        current = enter.next()
        while current is not exit:
            following = current.next()
            current.moveBefore(body.returnNode())
            current = following
        exit.moveBefore(leave.returnNode())
        node.insertAfter(enter)


def _with_to_enter_and_exit(graph):
    for node in graph.all_nodes():
        if node.kind() == "prim::With":
            for block in node.blocks():
                for inner in block.nodes():
                    inner.moveBefore(node)
            node.destroy()
