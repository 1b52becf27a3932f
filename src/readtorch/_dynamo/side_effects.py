"""What a function changes besides its own variables: noted while it is interpreted, done after the graph has run.

One log in the order of the first writes; a later write to the same place takes the place of the earlier one, unless something
was deleted in between. In PyTorch: `torch/_dynamo/side_effects.py`.
"""

from readtorch._dynamo.exc import unimplemented
from readtorch._dynamo.source import ConstantSource
from readtorch._dynamo.variables.dicts import text_of_key

DELETED = object()


class SideEffects:
    """log: key -> (kind, variable or dictionary of globals, name, value)."""

    def __init__(self):
        self.log = {}
        self.changed = {}  # id of a variable -> that variable
        self.globals = {}  # (id of a dictionary of globals, name) -> the variable that was written there, or DELETED
        self.classes = {}  # (class, name) -> the variable that was written to its attribute
        self.has_deletions = set()
        self.scope = None  # within a function of a higher order operator: the serial of the first variable made in it

    def check_scope(self, variable):
        """Within such a function nothing may change that was there before."""
        if self.scope is None:
            return
        existed = variable.source is not None or variable.original is not None
        if existed or variable.serial < self.scope:
            unimplemented(
                "HOP: Unsafe side effect",
                "Mutating a variable from outside the scope of this HOP is not supported.",
                f"Attempted to mutate {variable.describe()}",
            )

    def __contains__(self, variable):
        return id(variable) in self.changed

    def note(self, kind, variable, name=None, value=None):
        """Objects that the function has made itself are made with all that was written to them: nothing to note."""
        self.check_scope(variable)
        if variable.source is None and variable.original is None:
            return
        key = kind, id(variable), type(name), name
        if id(variable) in self.has_deletions:
            key += (len(self.log),)
        self.log[key] = kind, variable, name, value
        self.changed[id(variable)] = variable

    def note_deletion(self, kind, variable, name):
        self.has_deletions.add(id(variable))
        self.note(kind, variable, name)

    def store_attr(self, variable, name, value):
        self.note("attr", variable, name, value)

    def delete_attr(self, variable, name):
        self.note_deletion("delattr", variable, name)

    def store_item(self, variable, name, value):
        self.note("item", variable, name, value)

    def delete_item(self, variable, name):
        self.note_deletion("delitem", variable, name)

    def store_list(self, variable):
        self.note("list", variable)

    def store_set(self, variable):
        self.note("set", variable)

    def store_cell(self, variable):
        self.note("cell", variable)

    def store_global(self, globals, name, value):
        if self.scope is not None:
            unimplemented(
                "HOP: Unsafe side effect",
                "Mutating a variable from outside the scope of this HOP is not supported.",
                "Attempted to mutate NewGlobalVariable()",
            )
        self.globals[id(globals), name] = value
        self.log["global", id(globals), name, len(self.log) if value is DELETED else None] = (
            "global",
            globals,
            name,
            value,
        )

    def store_class_attr(self, cls, name, value):
        if self.scope is not None:
            unimplemented("HOP: Unsafe side effect", context=f"Attempted to mutate {cls}")
        self.classes[cls, name] = value
        self.log["class_attr", id(cls), name] = "class_attr", cls, name, value

    def global_written(self, globals, name):
        """The variable that was written to a global; None if none was."""
        return self.globals.get((id(globals), name))

    def codegen(self, codegen):
        """The lines that do all of it, as one list: the values are made before the first of them runs."""
        return [
            line for entry in list(self.log.values()) for line in getattr(self, f"do_{entry[0]}")(codegen, *entry[1:])
        ]

    def do_attr(self, codegen, variable, name, value):
        target, text = codegen(variable), codegen(value)
        if variable.python_type().__setattr__ is object.__setattr__ or variable.keeps_setter():
            return [f"{target}.{name} = {text}"]
        return [f"object.__setattr__({target}, {name!r}, {text})"]

    def do_class_attr(self, codegen, cls, name, value):
        return [f"{codegen.writer.hold(cls)}.{name} = {codegen(value)}"]

    def do_delattr(self, codegen, variable, name, value):
        return [f"del {codegen(variable)}.{name}"]

    def do_item(self, codegen, variable, name, value):
        return [f"{codegen(variable)}[{text_of_key(codegen, name)}] = {codegen(value)}"]

    def do_delitem(self, codegen, variable, name, value):
        return [f"del {codegen(variable)}[{text_of_key(codegen, name)}]"]

    def do_list(self, codegen, variable, name, value):
        target, items = codegen(variable), f"[{', '.join(map(codegen, variable.items))}]"
        if variable.python_type() is list:
            return [f"{target}[:] = {items}"]
        return [f"{target}.clear()", f"{target}.extend({items})"]

    def do_set(self, codegen, variable, name, value):
        target, items = codegen(variable), ", ".join(text_of_key(codegen, each) for each in variable.items)
        return [f"{target}.clear()", f"{target}.update([{items}])"]

    def do_cell(self, codegen, variable, name, value):
        if variable.content is None:
            return [f"del {codegen(variable)}.cell_contents"]
        return [f"{codegen(variable)}.cell_contents = {codegen(variable.content)}"]

    def do_global(self, codegen, globals, name, value):
        target = codegen.writer.get(ConstantSource(globals))
        return [f"del {target}[{name!r}]" if value is DELETED else f"{target}[{name!r}] = {codegen(value)}"]
