"""Writes modules and functions to archives that PyTorch reads.

    data.pkl           the module: its class and its attributes, and of these the same
    data/0, data/1     the bytes of the tensors
    code/…/name.py     the classes and functions of `__torch__.….name`, as text
    constants.pkl      the tensors that the text names
    version, byteorder, .data/serialization_id

In PyTorch: `ScriptModuleSerializer` in `torch/csrc/jit/serialization/export_module.cpp`. Explained in the
chapter "JIT: scripting".
"""

import os

from readtorch.csrc.jit.api.function_impl import GraphFunction
from readtorch.csrc.jit.api.module import ScriptModule
from readtorch.csrc.jit.ir.function_schema import Argument
from readtorch.csrc.jit.ir.type import BoolType, ClassType, FunctionType
from readtorch.serialization._files import is_path, open_for_writing
from readtorch.serialization._inline_container import ZipWriter
from readtorch.serialization._save import _archive_name

from .pickler import Pickler
from .python_print import Dependencies, PythonPrint


def save_object(object, f, extra_files=None):
    """object: a ScriptObject. f: a path or a file object. extra_files: name -> text, kept beside."""
    name = _archive_name(os.fspath(f)) if is_path(f) else "archive"
    with open_for_writing(f) as file:
        writer = ZipWriter(file.write, lambda count: file.seek(count, os.SEEK_CUR), name)
        _Archive(writer).write(object, extra_files or {})
        writer.write_end_of_file()


def save_function(function, f, extra_files=None, _extra_files=None):
    """A function is saved as a module that has it as `forward`."""
    module = ClassType("__torch__.PlaceholderModule", None, is_module=True)
    save_object(_module_of(function, module), f, extra_files or _extra_files)


def _module_of(function, type):
    graph = function.graph.copy()
    graph.insertInput(0, "self").setType(type)
    method = GraphFunction(f"{type.qualified}.forward", graph)
    schema = function.schema
    method.setSchema(schema.with_arguments([Argument("self", type), *schema.arguments]))
    type.addMethod(method)
    type.addAttribute("training", BoolType.get())
    return ScriptModule(type, [True])


# Operators that have changed since the format's version 3: an archive with one says at least from which
# version it is.
_CHANGED = {
    "aten::div": 4,
    "aten::div_": 4,
    "aten::full": 5,
    "aten::linspace": 8,
    "aten::logspace": 9,
    "aten::gelu": 10,
}


class _Archive:
    """One archive while it is written."""

    def __init__(self, writer):
        self.writer = writer
        self.dependencies = Dependencies()
        self.names = {}  # type -> its name in the archive
        self.taken = set()
        self.files = {}  # qualifier -> text
        self.constants = []
        self.version = 3

    def write(self, object, extra_files):
        pickler = Pickler(self.name_of)
        data = pickler.dump(object, object.type)
        self._tensors("data", pickler)
        self.writer.write_record("data.pkl", data)
        for name, text in extra_files.items():
            self.writer.write_record(f"extra/{name}", text.encode() if isinstance(text, str) else text)
        for type in pickler.classes:
            self.dependencies.add(type)
        for type in self.dependencies.types:  # it grows while it is walked
            self._define(type)
        for qualifier, text in self.files.items():
            self.writer.write_record(f"code/{qualifier.replace('.', '/')}.py", text.encode())
        constants = Pickler(self.name_of)
        data = constants.dump(tuple(self.constants))
        self._tensors("constants", constants)
        self.writer.write_record("constants.pkl", data)
        self.writer.write_record("version", b"%d\n" % self.version)

    def _tensors(self, folder, pickler):
        for number, storage in pickler.storages.values():
            self.writer.write_record(f"{folder}/{number}", storage.cpu()._impl.buffer.data, storage.nbytes())

    def _define(self, type):
        """Append the text of a class or function to its file."""
        qualifier = self.name_of(type).rpartition(".")[0]
        out = PythonPrint(self.constants, self.dependencies, self.name_of)
        self._look_through(type)
        out.named_type(type)
        self.files[qualifier] = self.files.get(qualifier, "") + out.text()

    def _look_through(self, type):
        """Note the version that its operators need. Raises RuntimeError for a call of Python."""
        functions = [type.function] if isinstance(type, FunctionType) else list(getattr(type, "methods", {}).values())
        for function in functions:
            for node in function.graph.all_nodes():
                self.version = max(self.version, _CHANGED.get(node.kind(), 0))
                if node.kind() == "prim::PythonOp":
                    where = node.sourceRange().highlight() if node.sourceRange() else ""
                    raise RuntimeError(
                        f"\nCould not export Python function call '{node.pyname()}'. Remove calls to Python "
                        "functions before export. Did you forget to add @script or @script_method "
                        "annotation? If "
                        f"this is a nn.ModuleList, add it to __constants__:\n{where}"
                    )

    def name_of(self, type):
        """Different types have different names in the archive: a name that is taken gets a number."""
        key = type.function if isinstance(type, FunctionType) else type
        if key not in self.names:
            name = type.function.qualified_name if isinstance(type, FunctionType) else type.qualified
            name = name if name.startswith("__torch__.") else f"__torch__.{name}"
            self.names[key] = _free(name, self.taken)
            self.taken.add(self.names[key])
        return self.names[key]


def _free(name, taken):
    prefix, _, last = name.rpartition(".")
    number = 0
    while name in taken:
        name = f"{prefix}.___torch_mangle_{number}.{last}"
        number += 1
    return name
