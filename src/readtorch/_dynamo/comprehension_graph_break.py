"""Comprehensions in which the graph breaks.

Note [ A break in a comprehension ]
Up to Python 3.11 a comprehension is a function that is called: it breaks the graph of its caller as any call, and is compiled by
itself. Since 3.12 its instructions stand in the function around it:

    LOAD_FAST_AND_CLEAR i; …; SWAP; BUILD_LIST; SWAP; FOR_ITER …; END_FOR    a value hidden by its variable lies on the stack
    STORE_FAST z; STORE_FAST i                                               and is brought back

A function cannot go on in the middle of a loop. So the graph ends in front of the comprehension, whose instructions are made a
function again. Not so where it assigns variables of the function around it (`:=`).

In PyTorch: `torch/_dynamo/comprehension_graph_break.py`.
"""

from .bytecode_transformation import LOOP_END, cleaned_instructions, create_instruction
from .resume_execution import make_resume_code

CLEARS = ("LOAD_FAST_AND_CLEAR", "LOAD_CLOSURE_AND_CLEAR")


class Comprehension:
    """The one that begins at an instruction. step: the root's step at which it did; after: the number of the instruction behind it.

    hides: the instructions that put values of the function's variables on the stack. assigns: whether it has a `:=`.
    """

    def __init__(self, code, number, step):
        instructions, number_at = cleaned_instructions(code)
        self.first, self.step = instructions[number], step
        loop = next(i for i in range(number, len(instructions)) if instructions[i].opname == "FOR_ITER")
        self.after = number_at[instructions[loop].argval] + LOOP_END
        self.end = instructions[self.after].offset
        self.hides = [each for each in instructions[number:loop] if each.opname in CLEARS]
        body = instructions[number : self.after]
        own = {each.argval for each in body if each.opname in CLEARS}
        self.assigns = any(each.opname == "STORE_FAST" and each.argval not in own for each in body)

    def has_within(self, instruction):
        return self.first.offset < instruction.offset < self.end

    def can_be_a_function(self, instruction):
        """Whether the instruction, at which the graph breaks, stands in it, and it can be one."""
        return self.has_within(instruction) and not self.assigns


def make_comprehension_code(code, comprehension, shift, unbound):
    """The code of a function that does a comprehension of `code` alone, which stands there `shift` bytes earlier.

    The arguments: `locals_of(code)`, of them those in `unbound` without a value, and the iterator.
    """
    entered, prologue = make_resume_code(code, comprehension.first.offset - shift, (False,), unbound)
    parts = [entered.co_code[: prologue + comprehension.end - shift]]
    for each in reversed(comprehension.hides):
        parts += [create_instruction("SWAP", 2), create_instruction("STORE_FAST", each.arg)]
    parts.append(create_instruction("RETURN_VALUE"))
    return entered.replace(
        co_code=b"".join(parts),
        co_exceptiontable=b"",
        co_varnames=(*entered.co_varnames[:-1], ".0"),  # as Python calls it
        co_name="<comprehension>",
    )
