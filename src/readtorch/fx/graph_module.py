"""`GraphModule`: a Module whose `forward` is generated from a Graph. In PyTorch: `torch/fx/graph_module.py`.

Each has a class of its own, because Python looks up `__call__` and `forward` there. `recompile` writes the code and runs it;
linecache is told of the text, so that tracebacks and debuggers show its lines.

Note [ A GraphModule is pickled as code ]

Nodes know each other in all directions and name functions that pickle cannot save. So the generated code is pickled, with the
imports that it needs. Who loads it traces that code, and gets the same graph.
"""

import copy
import itertools
import linecache
import pickle
import sys
import traceback
import warnings
from contextlib import contextmanager
from pathlib import Path

import readtorch
from readtorch import nn
from readtorch.nn.modules.module import _addindent

from ._gen_python_code import _is_from_torch
from .graph import Graph, _custom_builtins, _PyTreeCodeGen

__all__ = ["reduce_graph_module", "GraphModule"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


# -------------------------------------------------------------------------------------------------- generated code


class _EvalCacheLoader:
    """Hands generated code to linecache, as if it were a module's source."""

    def __init__(self):
        self.eval_cache = {}
        self.next_id = 0

    def cache(self, src, globals, co_fields=None):
        """Note a source. Returns the file name that it shall be compiled under, which says what was traced, too."""
        key = f"<eval_with_key>.{self.next_id}"
        self.next_id += 1
        if co_fields and "co_filename" in co_fields:
            if "co_firstlineno" in co_fields and "co_name" in co_fields:
                key += f" from {co_fields['co_filename']}:{co_fields['co_firstlineno']} in {co_fields['co_name']}"
            else:
                key = co_fields["co_filename"]
        self.eval_cache[key] = src
        linecache.lazycache(key, {**globals, "__file__": key, "__name__": key, "__loader__": self})
        return key

    def get_source(self, module_name):
        return self.eval_cache.get(module_name)


_loader = _EvalCacheLoader()


def _exec_with_source(src, globals, co_fields=None):
    exec(compile(src, _loader.cache(src, globals, co_fields), "exec", dont_inherit=True), globals)


def _forward_from_src(src, globals, co_fields=None):
    return _method_from_src("forward", src, globals, co_fields)


def _method_from_src(method_name, src, globals, co_fields=None):
    """The function `method_name` that a source defines."""
    globals = globals.copy()
    _exec_with_source(src, globals, co_fields)
    return globals.pop(method_name)


# -------------------------------------------------------------------------------------------------------- pickles


def _format_import_statement(name, obj):
    """The statement that makes `name` mean what it does in generated code."""
    if name in _custom_builtins:
        return _custom_builtins[name].import_str
    if _is_from_torch(name):
        return _custom_builtins["torch"].import_str
    return f"from {pickle.whichmodule(obj, obj.__name__)} import {getattr(obj, '__qualname__', obj.__name__)} as {name}"


def _format_import_block(globals):
    return "\n".join(sorted({_format_import_statement(name, obj) for name, obj in globals.items()}))


def reduce_graph_module(body, import_block):
    """What a pickle calls: the GraphModule with the attributes `body` and the code in them."""
    forward = _forward_from_src(import_block + body["_code"], {})
    return _deserialize_graph_module(forward, body)


class _CodeOnlyModule(nn.Module):
    """A module with given attributes."""

    def __init__(self, body):
        super().__init__()
        self.__dict__ = body


def _deserialize_graph_module(forward, body, graph_module_cls=None):
    """See Note [ A GraphModule is pickled as code ]."""
    tracer_cls = body.get("_tracer_cls") or readtorch.fx.Tracer

    class KeepModules(tracer_cls):
        def is_leaf_module(self, _, __):
            return True

    com = type("_CodeOnlyModule", (_CodeOnlyModule,), {"forward": forward})(body)
    graph = KeepModules().trace(com, **body.get("_tracer_extras", {}))
    graph._tracer_cls = tracer_cls
    name = body.get("_graphmodule_cls_name", "GraphModule")
    gm = (graph_module_cls or GraphModule)(com, graph, class_name=name)
    for k, v in body.items():
        if not hasattr(gm, k):
            setattr(gm, k, v)
    return gm


# ----------------------------------------------------------------------------------------------------- attributes


def _copy_attr(from_module, to_module, target):
    """Give `to_module` the attribute "a.b.weight" of `from_module`, and modules a and a.b if it has none."""
    *prefix, field = target.split(".")
    for item in prefix:
        f, t = getattr(from_module, item), getattr(to_module, item, None)
        if f is t:
            return  # it has the whole submodule
        if t is None:
            t = nn.Module()
            setattr(to_module, item, t)
        from_module, to_module = f, t
    _assign(getattr(from_module, field), to_module, field)


def _assign_attr(from_obj, to_module, target):
    """Make an object the attribute "a.b.weight"."""
    *prefix, field = target.split(".")
    for item in prefix:
        if getattr(to_module, item, None) is None:
            setattr(to_module, item, nn.Module())
        to_module = getattr(to_module, item)
    _assign(from_obj, to_module, field)


def _assign(value, module, field):
    """A plain tensor is made a buffer, so that `to` and `state_dict` see it."""
    if isinstance(value, readtorch.Tensor) and not isinstance(value, nn.Parameter):
        module.register_buffer(field, value)
    else:
        setattr(module, field, value)


def _get_attr(model, attr_name):
    """The attribute "a.b.weight"."""
    for item in attr_name.split("."):
        model = getattr(model, item)
    return model


def _print_readable(module, module_name, print_output=True, **options):
    graph = getattr(module, "graph", None)
    if not isinstance(graph, Graph):
        raise AssertionError("print_readable must be used on a module with a graph")
    own = graph.python_code("self", verbose=True, **options).src.lstrip("\n")
    inner = {name: options[name] for name in options if name != "expanded_def"}
    parts = [
        _print_readable(child, name, print_output=False, **inner)
        for name, child in module.named_children()
        if isinstance(child, GraphModule)
    ]
    text = _addindent(f"class {module_name}(torch.nn.Module):\n{own}", 4) + _addindent("\n".join(["", *parts]), 4)
    if print_output:
        print(text)
    return text


# ---------------------------------------------------------------------------------------------------- GraphModule


def _innermost_frame(error):
    """Where an error came from, in Python: what is C++ in PyTorch has frames here."""
    compiled = [str(Path(readtorch.__file__).with_name(room)) for room in ("aten", "c10", "csrc")]
    frames = traceback.extract_tb(error.__traceback__)
    shown = [f for f in frames if not f.filename.startswith((*compiled, "<readtorch generated"))]
    return (shown or frames)[-1]


class _WrappedCall:
    """The call of a GraphModule. An error in the generated code is told with the lines around it."""

    def __init__(self, cls, cls_call):
        self.cls = cls
        self.cls_call = cls_call

    @staticmethod
    def _generate_error_message(frame_summary):
        line = frame_summary.lineno
        source = linecache.getlines(frame_summary.filename)
        return "\n".join(
            [
                traceback.format_exc(),
                f"Call using an FX-traced Module, line {line} of the traced Module's generated forward function:",
                "".join(source[line - 2 : line]),
                "~" * len(frame_summary.line) + "~~~ <--- HERE",
                "\n".join(source[line : line + 2]),
            ]
        )

    def __call__(self, obj, *args, **kwargs):
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)
        except Exception as e:
            innermost = _innermost_frame(e)
            if "eval_with_key" not in innermost.filename:
                raise
            print(_WrappedCall._generate_error_message(innermost), file=sys.stderr)
            raise e.with_traceback(None)  # noqa: B904  the same error, without the frames that were printed


class GraphModule(nn.Module):
    """A Module that runs a Graph. Its `forward` is generated; after a change of `graph`, call `recompile`.

    root: the module, or the dict name -> object, that what the graph names is taken from: those attributes alone, not copied.
    class_name: what it is called when it is printed. meta: a dict for notes of passes.
    """

    __jit_unused_properties__ = ["graph"]

    def __new__(cls, *args, **kwargs):
        """An instance of a class of its own, derived from the class that was asked for."""
        for t in cls.__mro__:
            if t.__qualname__.split(".")[-1] != "GraphModuleImpl":
                cls = t
                break

        class GraphModuleImpl(cls):
            pass

        return super().__new__(GraphModuleImpl)

    def __init__(self, root, graph, class_name="GraphModule"):
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, nn.Module):
            self._take_from_module(root, graph)
        elif isinstance(root, dict):
            self._take_from_dict(root, graph)
        else:
            raise RuntimeError("Unsupported type " + str(root) + " passed for root!")
        self.graph = graph
        self._tracer_cls = None
        if graph._tracer_cls and "<locals>" not in graph._tracer_cls.__qualname__:  # pickle finds no local classes
            self._tracer_cls = graph._tracer_cls
        self._tracer_extras = graph._tracer_extras or {}
        self.meta = {}
        self._replace_hooks = []
        self._create_node_hooks = []
        self._erase_node_hooks = []
        self._deepcopy_hooks = []

    def _take_from_module(self, root, graph):
        if hasattr(root, "training"):
            self.training = root.training
        names = [node.target for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, _CodeOnlyModule):  # loaded or copied: it has what was given to it beside, too
            members = (root.named_children(), root.named_buffers(), root.named_parameters())
            names = [name for group in members for name, _ in group] + names
        for name in names:
            _copy_attr(root, self, name)

    def _take_from_dict(self, root, graph):
        names = []
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                if node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not provided in ``root``!"
                    )
                names.append(node.target)
        for name in sorted(names, key=lambda name: name.count(".")):  # modules before what is in them
            _assign_attr(root[name], self, name)

    # -------------------------------------------------------------------------------------------- graph and code

    @property
    def graph(self):
        """The Graph. Assign another one to run that."""
        return self._graph

    @graph.setter
    def graph(self, g):
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self):
        """The generated code, a text."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def recompile(self):
        """Generate the code anew, also of submodules that are GraphModules. Returns the PythonCode."""
        if isinstance(self._graph._codegen, _PyTreeCodeGen):
            self._in_spec = self._graph._codegen.pytree_info.in_spec
            self._out_spec = self._graph._codegen.pytree_info.out_spec
        python_code = self._graph.python_code(root_module="self")
        self._code = python_code.src
        self._lineno_map = python_code._lineno_map
        self._prologue_start = python_code._prologue_start
        cls = type(self)
        cls.forward = _forward_from_src(self._code, python_code.globals, getattr(self._graph, "_co_fields", {}))
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = _WrappedCall(cls, vars(cls).get("__call__"))

        def call_wrapped(self, *args, **kwargs):
            return self._wrapped_call(self, *args, **kwargs)

        cls.__call__ = call_wrapped
        for child in self.children():
            if isinstance(child, GraphModule):
                child.recompile()
        return python_code

    def print_readable(
        self,
        print_output=True,
        include_stride=False,
        include_device=False,
        colored=False,
        *,
        expanded_def=False,
        additional_meta=None,
    ):
        """The code as a class, with where each line comes from, and those of submodules. Returns the text.

        print_output: print it. See `Graph.python_code` for the others.
        """
        return _print_readable(
            self,
            self._get_name(),
            print_output,
            include_stride=include_stride,
            include_device=include_device,
            colored=colored,
            expanded_def=expanded_def,
            additional_meta=additional_meta,
        )

    def __str__(self):
        reminder = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, reminder])

    # -------------------------------------------------------------------------------------------------- submodules

    def add_submodule(self, target, m):
        """Make `m` the submodule "a.b.c"; missing modules on the way are made. Returns whether it could be done."""
        *prefix, field = target.split(".")
        module = self
        for item in prefix:
            child = getattr(module, item, None)
            if child is None:
                child = nn.Module()
                setattr(module, item, child)
            if not isinstance(child, nn.Module):
                return False
            module = child
        module.add_module(field, m)
        return True

    def delete_submodule(self, target):
        """Delete the submodule "a.b.c". Returns whether there was one."""
        *path, field = target.split(".")
        module = self
        for item in path:
            module = getattr(module, item, None)
            if not isinstance(module, nn.Module):
                return False
        if not isinstance(getattr(module, field, None), nn.Module):
            return False
        delattr(module, field)
        return True

    def delete_all_unused_submodules(self):
        """Delete the submodules that no node calls, reads or has within what it calls."""
        used = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                used.update(itertools.accumulate(node.target.split("."), "{}.{}".format))
            if node.op == "call_module":
                try:
                    inner = self.get_submodule(node.target)
                except AttributeError:
                    continue  # it has been deleted
                used.update(f"{node.target}.{name}" for name, _ in inner.named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name not in used]:
            self.delete_submodule(name)

    # ------------------------------------------------------------------------------------------- copies and files

    def __reduce__(self):
        attributes = self.__dict__.copy()
        import_block = _format_import_block(self.recompile().globals)
        del attributes["_graph"]
        return reduce_graph_module, (attributes, import_block)

    def _deepcopy_init(self):
        return GraphModule.__init__

    def __deepcopy__(self, memo):
        res = type(self).__new__(type(self))
        memo[id(self)] = res
        fake_mod = _CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        self._deepcopy_init()(res, fake_mod, fake_mod.__dict__["_graph"])
        hooks = ("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks")
        for name in (*hooks, "_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks"):
            if name in self.__dict__:
                setattr(res, name, copy.deepcopy(self.__dict__[name], memo))
        res.meta = copy.deepcopy(getattr(self, "meta", {}), memo)
        for name, value in res.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(res, name, value)
        for hook in getattr(self, "_deepcopy_hooks", ()):
            hook(res)
        return res

    def __copy__(self):
        res = GraphModule(self, self.graph)
        res.meta = getattr(self, "meta", {})
        return res

    def _replicate_for_data_parallel(self):
        new_gm = self.__copy__()
        object.__setattr__(new_gm, "_is_replica", True)
        return new_gm

    def to_folder(self, folder, module_name="FxModule"):
        """Write the module into a folder that can be imported: `module.py` and what it loads. Warns of pickled modules."""
        folder = Path(folder)
        folder.mkdir(exist_ok=True)
        readtorch.save(self.state_dict(), folder / "state_dict.pt")
        pickled = [name for name, child in self.named_children() if not _has_safe_repr(child)]
        for name in pickled:
            readtorch.save(getattr(self, name), folder / f"{name}.pt")
        (folder / "module.py").write_text(self._source_of_class(folder, module_name, pickled))
        (folder / "__init__.py").write_text("from .module import *")
        if pickled:
            warnings.warn(
                "Was not able to save the following children modules as reprs -"
                f"saved as pickled files instead: {pickled}",
                stacklevel=2,
            )

    def _source_of_class(self, folder, module_name, pickled):
        """The source of a class that is equal to this module."""
        torch, imports = _custom_builtins["torch"].import_str, [v.import_str for v in _custom_builtins.values()]
        lines = [
            "",
            torch,
            *imports,
            "",
            f"from {readtorch.__name__}.nn import *",
            f"class {module_name}(torch.nn.Module):",
        ]
        lines += ["    def __init__(self):", "        super().__init__()"]
        for name, child in self.named_children():
            value, comment = repr(child), ""
            if name in pickled:
                comment = f" # {' '.join(repr(child).split())}"
                value = f"torch.load(r'{folder / name}.pt', weights_only=False)"
            lines.append(f"        setattr(self, '{name}', {value}){comment}")
        for name, buffer in self._buffers.items():
            if buffer is not None:
                value = f"torch.empty({list(buffer.shape)}, dtype={buffer.dtype})"
                lines.append(f"        self.register_buffer('{name}', {value})")
        for name, parameter in self._parameters.items():
            if parameter is not None:
                value = f"torch.nn.Parameter(torch.empty({list(parameter.shape)}, dtype={parameter.dtype}))"
                lines.append(f"        setattr(self, '{name}', {value})")
        lines.append(f"        self.load_state_dict(torch.load(r'{folder}/state_dict.pt'))")
        return "\n".join([*lines, _addindent(self.code, 4), ""])

    # ------------------------------------------------------------------------------------------------------- hooks

    @contextmanager
    def _set_replace_hook(self, f):
        """Inside, f(old=node, new=name, user=node) is called before an input of a node is replaced."""
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    def _register_replace_node_hook(self, f):
        self._replace_hooks.append(_callable(f, "create_node"))

    def _unregister_replace_node_hook(self, f):
        self._replace_hooks.remove(f)

    def _register_create_node_hook(self, f):
        self._create_node_hooks.append(_callable(f, "create_node"))

    def _unregister_create_node_hook(self, f):
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f):
        self._erase_node_hooks.append(_callable(f, "erase_node"))

    def _unregister_erase_node_hook(self, f):
        self._erase_node_hooks.remove(f)

    def _register_deepcopy_hook(self, f):
        self._deepcopy_hooks.append(_callable(f, "deepcopy"))

    def _unregister_deepcopy_hook(self, f):
        self._deepcopy_hooks.remove(f)


def _callable(f, kind):
    if not callable(f):
        raise AssertionError(f"{kind} hook must be a callable.")
    return f


def _has_safe_repr(module):
    """Whether the text that a module shows makes an equal one."""
    return type(module) in (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
