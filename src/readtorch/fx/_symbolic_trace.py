"""`symbolic_trace`: runs a function with proxies, which record it as a Graph. In PyTorch: `torch/fx/_symbolic_trace.py`.

Note [ What is patched while a trace runs ]

A Proxy sees what is done with it, and nothing else. Three things would pass it unseen, so they are replaced until the trace
ends. `Module.__call__` asks the tracer whether to record the call or to run it. `Module.__getattr__` hands out proxies for
parameters, so that an operation of two parameters is recorded as well. And functions that cannot work with a Proxy but shall
stand in the graph as calls (those of `math`, and what `wrap` has named) record themselves if a Proxy is among the arguments:
they are replaced in the module's globals, where the traced program looks them up. A kernel that is called for the first time
inside a trace is compiled with the functions themselves.
"""

import builtins
import collections
import contextlib
import copy
import functools
import inspect
import math
import warnings
from types import FunctionType

from numba.core.dispatcher import Dispatcher

import readtorch
from readtorch._C import ScriptObject  # noqa: F401  (programs that trace in their own way take it from here, and compatibility)
from readtorch.c10.module_names import is_in
from readtorch.nn import Module, Parameter, Sequential
from readtorch.utils import _pytree as pytree

from ._compatibility import compatibility  # noqa: F401
from .graph import Graph, _PyTreeCodeGen, _PyTreeInfo
from .graph_module import GraphModule
from .node import base_types, map_aggregate
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase

HAS_VARSTUFF = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS

_orig_module_call = Module.__call__
_orig_module_getattr = Module.__getattr__
_orig_compile = Dispatcher.compile
_orig_math = dict(vars(math))

_proxyable_classes = {}
_is_fx_tracing_flag = False
_constant_attribute_types = (readtorch.Tensor, pytree.TreeSpec)


def is_fx_tracing():
    """Whether a Tracer is at work."""
    return _is_fx_tracing_flag


def is_fx_symbolic_tracing():
    """The same, if nothing is being compiled."""
    return _is_fx_tracing_flag and not readtorch.compiler.is_compiling()


class ProxyableClassMeta(type):
    """The class of a class whose construction is recorded, if there are proxies among the arguments."""

    def __init__(cls, name, bases, attrs):
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args, **kwargs):
        proxy = _find_proxy(args, kwargs) if is_fx_tracing() else None
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        instance = cls.__new__(cls)
        cls.__init__(instance, *args, **kwargs)
        return instance


def _patch_function(fn, nargs):
    """`fn` with *args and **kwargs as ordinary parameters, so that a Proxy can stand for the whole of them."""
    code = fn.__code__.replace(
        co_argcount=nargs, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=fn.__code__.co_flags & ~HAS_VARSTUFF
    )
    return FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


class PHBase:
    """A place in `concrete_args` that stays an input."""

    def __repr__(self):
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """The same; the node of the input gets the attributes of this object."""

    def __init__(self, ph_key=None):
        self.ph_key = ph_key


def _transfer_attrs(fr, to):
    for name in dir(fr):
        value = getattr(fr, name)
        if not callable(value) and not name.startswith("__") and not hasattr(to, name):
            setattr(to, name, value)


def _functions_of(module):
    return [value for name, value in vars(module).items() if not name.startswith("_") and callable(value)]


# --------------------------------------------------------------------------------------------------------- Tracer


class Tracer(TracerBase):
    """Runs a module or function and records a Graph. Subclasses say what a leaf is, and what arguments become.

    autowrap_modules: modules whose functions are recorded as calls where the traced program looks them up. autowrap_functions:
    single ones. param_shapes_constant: sizes of parameters are known while tracing.
    """

    _qualname_counter = collections.defaultdict(int)

    def __init__(self, autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant=False):
        functions = [function for module in autowrap_modules for function in _functions_of(module)]
        self._autowrap_function_ids = {id(function) for function in (*functions, *autowrap_functions)}
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.num_calls = {}
        self.node_name_to_scope = {}

    def __deepcopy__(self, memo):
        new = Tracer.__new__(Tracer)
        for name, value in self.__dict__.items():
            is_modules = name == "_autowrap_search"  # which cannot be copied
            new.__dict__[name] = copy.copy(value) if is_modules else copy.deepcopy(value, memo)
        return new

    # -------------------------------------------------------------------------------------------------- arguments

    def create_arg(self, a):
        """The same as of TracerBase, and: parameters, buffers and modules become `get_attr` nodes; other tensors constants of
        the module, `_tensor_constant0`; a named tuple a call of its class."""
        name = self._name_in_root(a)
        if name is not None:
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", a.__class__, tuple(map(self.create_arg, a)), {})
        if isinstance(a, _constant_attribute_types):
            return self._constant(a)
        if type(a) in _proxyable_classes:
            name = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def _name_in_root(self, a):
        """The name of a Parameter, buffer or module in the traced module; None for what is none of these."""
        if isinstance(a, Parameter):
            for name, p in self.root.named_parameters():
                if a is p:
                    return name
            raise NameError("parameter is not a member of this module")
        members = ()
        if isinstance(a, readtorch.Tensor):
            members = self.root.named_buffers()
        elif isinstance(a, Module):
            members = self.root.named_modules()
        return next((name for name, member in members if a is member), None)

    def _constant(self, a):
        name = self.tensor_attrs.get(a)
        if not name:
            is_tensor = isinstance(a, readtorch.Tensor)
            name = self.get_fresh_qualname("_tensor_constant" if is_tensor else "_tree_spec_constant")
            self.tensor_attrs[a] = name
            setattr(self.root, name, a)
        return self.create_node("get_attr", name, (), {})

    def get_fresh_qualname(self, prefix):
        """`prefix` and the first number that makes it a name that the root has not."""
        i = self._qualname_counter[prefix] if hasattr(self.root, f"{prefix}0") else 0
        while hasattr(self.root, f"{prefix}{i}"):
            i += 1
        self._qualname_counter[prefix] = i
        return f"{prefix}{i}"

    # ---------------------------------------------------------------------------------------------------- modules

    def is_leaf_module(self, m, module_qualified_name):
        """Whether calls of a module stand in the graph as such, its inside unseen: of those of `torch.nn`, but Sequential."""
        return is_in("nn", type(m).__module__) and not isinstance(m, Sequential)

    def path_of_module(self, mod):
        """The name of a module in the root, "layers.0.conv". Raises NameError if it is not there."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
        else:
            path = next((name for name, module in self.root.named_modules() if mod is module), None)
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(self, m, forward, args, kwargs):
        """A call of a module: recorded if it is a leaf, else run by `forward`, which is its own `__call__`."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            count = self.num_calls.get(path, 0)
            key = f"{scope.module_path}@{count}" if count else scope.module_path
            self.module_stack[key] = (path, scope.module_type)
            self.num_calls[path] = count + 1
            if self.is_leaf_module(m, path):
                result = self.create_proxy("call_module", path, args, kwargs)
            else:
                result = forward(*args, **kwargs)
            last, _ = self.module_stack.popitem(last=True)
            if last != key:
                raise AssertionError(f"Unexpected key {last}, expected {key}")
        return result

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        """What the attribute of a module is while tracing: a Proxy for a Parameter, the value itself otherwise."""
        if isinstance(attr_val, Parameter):
            members = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, readtorch.Tensor):
            members = self.root.named_buffers()
        else:
            return attr_val
        for name, member in members:
            if attr_val is member:
                if name not in parameter_proxy_cache:
                    parameter_proxy_cache[name] = self._proxy_of_attribute(name, attr_val)
                return parameter_proxy_cache[name]
        return attr_val

    def _proxy_of_attribute(self, name, value):
        options = {}
        if "proxy_factory_fn" in inspect.signature(self.create_proxy).parameters:
            known_shape = functools.partial(_parameter_proxy, self, name, value)
            options["proxy_factory_fn"] = known_shape if self.param_shapes_constant else None
        return self.create_proxy("get_attr", name, (), {}, **options)

    # ----------------------------------------------------------------------------------------------------- inputs

    def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        """The function to run and the list of its arguments: the root if it is a module, and a placeholder's Proxy for each
        parameter that `concrete_args` gives no value."""
        analysed = inspect.unwrap(root_fn)
        code = analysed.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        names = iter(code.co_varnames)
        args = []
        if is_module:
            if count == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            next(names)
            args.append(self.root)
        if isinstance(concrete_args, tuple) and concrete_args and code.co_flags & HAS_VARSTUFF and count == 1:
            return root_fn, args + [self._numbered_input(i, arg) for i, arg in enumerate(concrete_args)]
        named = [next(names) for _ in range(len(args), count)]
        if isinstance(concrete_args, tuple):
            if len(named) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(named)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(named, concrete_args))
        if code.co_flags & inspect.CO_VARARGS:
            named.append("*" + next(names))
        if code.co_flags & inspect.CO_VARKEYWORDS:
            named.append("**" + next(names))
        signature = inspect.signature(analysed)
        args += [self._proxy_placeholder(name, concrete_args, signature, analysed) for name in named]
        if code.co_kwonlyargcount > 0 or code.co_flags & HAS_VARSTUFF:
            root_fn = _patch_function(root_fn, len(args))
        return self._flat(root_fn, args, list(code.co_varnames)[:count])

    def _flat(self, root_fn, args, names):
        """The same for flat arguments, if some of `args` are nested; the graph's code then flattens and nests."""
        leaves, in_spec = pytree.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in in_spec.children()):
            return root_fn, args
        self.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(names, in_spec, None))

        def flatten_fn(*args):
            results, out_spec = pytree.tree_flatten(root_fn(*pytree.tree_unflatten(list(args), in_spec)))
            codegen = self.graph._codegen
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return results

        return flatten_fn, leaves

    def _numbered_input(self, i, concrete_arg):
        out = self.create_proxy("placeholder", f"input_{i}", (), {})
        if isinstance(concrete_arg, PHBase) and concrete_arg != PH:
            _transfer_attrs(fr=concrete_arg, to=out.node)
        return out

    def _proxy_placeholder(self, name, concrete_args, sig, fn_for_analysis):
        default = ()
        if name[0] != "*" and sig.parameters[name].default is not inspect.Parameter.empty:
            default = (sig.parameters[name].default,)
        if concrete_args is None or name not in concrete_args:
            annotation = fn_for_analysis.__annotations__.get(name)
            return self.create_proxy("placeholder", name, default, {}, type_expr=annotation)
        count = 0

        def specialized(x):
            nonlocal count
            count += 1
            return self._specialized(name, self.create_proxy("placeholder", f"{name}_{count}", default, {}), x)

        return pytree.tree_map(specialized, concrete_args[name])

    def _specialized(self, name, out, x):
        """The value `x` that a trace goes on with, after a check that later calls give the same one."""
        if isinstance(x, PHBase):
            if x != PH:
                _transfer_attrs(fr=x, to=out.node)
            return out
        if type(x) in base_types and type(x) is not readtorch.Tensor:
            readtorch._assert(out == x, f"{name} has been specialized to have value {x} but got another value")
        elif x is None:
            message = f"{name} has been specialized to have value None but got another value"
            self.create_proxy("call_function", _assert_is_none, (out, message), {})
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the "
                f"user to make sure that your inputs match the inputs you specialized the function with.",
                stacklevel=2,
            )
        return x

    # ------------------------------------------------------------------------------------------------------ trace

    def trace(self, root, concrete_args=None):
        """The Graph of a module or function. concrete_args: parameter -> the value that it shall have while tracing.

        Raises TraceError where the program's way depends on a value that is not known.
        """
        global _is_fx_tracing_flag
        was_tracing, _is_fx_tracing_flag = _is_fx_tracing_flag, True
        try:
            fn = self._set_root(root)
            self.graph = Graph(tracer_cls=type(self))
            code = getattr(fn, "__code__", None)
            if code is not None:
                names = ("co_name", "co_filename", "co_firstlineno")
                self.graph._co_fields = {name: getattr(code, name) for name in names}
            self.tensor_attrs = {}
            self._collect_tensor_attrs(self.root, [])
            if not isinstance(inspect.unwrap(fn), FunctionType):  # an operator is none, either
                raise AssertionError(f"Expected FunctionType, got {type(fn)}")
            run, args = self.create_args_for_root(fn, isinstance(root, Module), concrete_args)
            with _new_patcher() as patcher:
                self._patch(patcher, fn.__globals__)
                annotation = inspect.get_annotations(inspect.unwrap(run)).get("return")
                self.create_node("output", "output", (self.create_arg(run(*args)),), {}, type_expr=annotation)
            self.submodule_paths = None
        finally:
            _is_fx_tracing_flag = was_tracing
        return self.graph

    def _set_root(self, root):
        """Set what a trace needs to know of what it traces. Returns the function to run."""
        if not isinstance(root, Module):
            self.root = Module()
            return root
        self.root = root
        if not hasattr(type(root), self.traced_func_name):
            raise AssertionError(f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")
        self.root_module_name = root._get_name()
        self.submodule_paths = {module: name for name, module in root.named_modules()}
        return getattr(type(root), self.traced_func_name)

    def _collect_tensor_attrs(self, m, prefix):
        """Note the tensors that modules have as plain attributes."""
        for name, value in m.__dict__.items():
            if isinstance(value, _constant_attribute_types):
                self.tensor_attrs[value] = ".".join([*prefix, name])
        for name, child in m.named_children():
            self._collect_tensor_attrs(child, [*prefix, name])

    def _patch(self, patcher, fn_globals):
        """See Note [ What is patched while a trace runs ]."""
        parameter_proxy_cache = {}

        @functools.wraps(_orig_module_getattr)
        def module_getattr_wrapper(mod, attr):
            return self.getattr(attr, _orig_module_getattr(mod, attr), parameter_proxy_cache)

        @functools.wraps(_orig_module_call)
        def module_call_wrapper(mod, *args, **kwargs):
            forward = getattr(mod, "forward", mod)
            _autowrap_check(patcher, getattr(forward, "__globals__", {}), self._autowrap_function_ids)
            return self.call_module(mod, functools.partial(_orig_module_call, mod), args, kwargs)

        patcher.patch_method(Module, "__getattr__", module_getattr_wrapper, deduplicate=False)
        patcher.patch_method(Module, "__call__", module_call_wrapper, deduplicate=False)
        patcher.patch_method(Dispatcher, "compile", _compile_kernel, deduplicate=False)
        _patch_wrapped_functions(patcher)
        for frame_dict in (fn_globals, *map(vars, self._autowrap_search)):
            _autowrap_check(patcher, frame_dict, self._autowrap_function_ids)


def _parameter_proxy(tracer, name, value, node):
    return ParameterProxy(tracer, node, name, value)


# -------------------------------------------------------------------------------------------------------- patches

# (id of a module's globals, name) -> the globals: what `wrap` has named
_wrapped_fns_to_patch = {}
_wrapped_methods_to_patch = []  # (class, name)


def _find_proxy(*objects_to_search):
    """A Proxy among the objects, the last one; None if there is none."""
    proxy = None

    def note(x):
        nonlocal proxy
        proxy = x if isinstance(x, Proxy) else proxy

    map_aggregate(objects_to_search, note)
    return proxy


def _create_wrapped_func(orig_fn):
    @functools.wraps(orig_fn)
    def wrapped(*args, **kwargs):
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        result = proxy.tracer.create_proxy("call_function", orig_fn, args, kwargs)
        result.node.meta["is_wrapped"] = True
        return result

    return wrapped


def _create_wrapped_method(cls, name):
    orig_fn = getattr(cls, name)

    @functools.wraps(orig_fn)
    def wrapped(*args, **kwargs):
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


class _Patcher:
    """Replaces entries of globals and attributes of classes, and puts back what was there."""

    def __init__(self):
        self.patches_made = []  # (function that patches, function that reverts)
        self.visited = set()

    def _make(self, patch, revert):
        self.patches_made.append((patch, revert))
        patch()

    def patch(self, frame_dict, name, new_fn, deduplicate=True):
        """Replace a global; a builtin gets an entry in front of it. deduplicate: not if that has been done."""
        new_fn.__fx_already_patched = deduplicate
        new = functools.partial(frame_dict.__setitem__, name, new_fn)
        if name not in frame_dict and hasattr(builtins, name):
            self._make(new, functools.partial(frame_dict.__delitem__, name))
        elif not getattr(frame_dict[name], "__fx_already_patched", False):
            self._make(new, functools.partial(frame_dict.__setitem__, name, frame_dict[name]))

    def patch_method(self, cls, name, new_fn, deduplicate=True):
        """Replace a method of a class."""
        new_fn.__fx_already_patched = deduplicate
        orig_fn = getattr(cls, name)
        if not getattr(orig_fn, "__fx_already_patched", False):
            self._make(functools.partial(setattr, cls, name, new_fn), functools.partial(setattr, cls, name, orig_fn))

    def visit_once(self, thing):
        """Whether this is the first question for an object."""
        is_new = id(thing) not in self.visited
        self.visited.add(id(thing))
        return is_new

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        self.revert_all_patches()
        self.patches_made.clear()
        self.visited.clear()

    def revert_all_patches(self):
        for _, revert in reversed(self.patches_made):
            revert()

    def reapply_all_patches(self):
        for patch, _ in self.patches_made:
            patch()


CURRENT_PATCHER = None


@contextlib.contextmanager
def _new_patcher():
    """Inside, the patches of a new _Patcher hold; those of an outer one hold on."""
    global CURRENT_PATCHER
    outer, CURRENT_PATCHER = CURRENT_PATCHER, _Patcher()
    patcher = CURRENT_PATCHER
    try:
        yield patcher
    finally:
        patcher.revert_all_patches()
        CURRENT_PATCHER = outer


@contextlib.contextmanager
def _maybe_revert_all_patches():
    """Inside, everything is as it was before the trace."""
    patcher = CURRENT_PATCHER
    if patcher is None:
        yield
        return
    patcher.revert_all_patches()
    try:
        yield
    finally:
        patcher.reapply_all_patches()


def _compile_kernel(kernel, signature):
    """Compile with the functions of `math` themselves: numba would not know those that stand in their place."""
    patched = dict(vars(math))
    vars(math).update(_orig_math)
    try:
        return _orig_compile(kernel, signature)
    finally:
        vars(math).update(patched)


def _patch_wrapped_functions(patcher):
    for (_, name), frame_dict in list(_wrapped_fns_to_patch.items()):
        is_builtin = name not in frame_dict and hasattr(builtins, name)
        orig_fn = getattr(builtins, name) if is_builtin else frame_dict[name]
        patcher.patch(frame_dict, name, _create_wrapped_func(orig_fn))
    for cls, name in _wrapped_methods_to_patch:
        patcher.patch_method(cls, name, _create_wrapped_method(cls, name))


def _autowrap_check(patcher, frame_dict, function_ids):
    """Replace those of a module's globals that are functions to be wrapped, once a trace."""
    if patcher.visit_once(frame_dict):
        for name, value in list(frame_dict.items()):
            if not name.startswith("_") and callable(value) and id(value) in function_ids:
                patcher.patch(frame_dict, name, _create_wrapped_func(value))


def wrap(fn_or_name):
    """Let calls of a global function stand in graphs as calls, instead of being traced. Returns its argument: a decorator.

    To be called at the top level of the module that the function is global in; a name may be that of a builtin.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name.__name__ if callable(fn_or_name) else fn_or_name
    frame = inspect.currentframe().f_back
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def symbolic_trace(root, concrete_args=None):
    """A module or function as a GraphModule. concrete_args: parameter -> the value that it shall have while tracing.

    It is run with proxies: what does not depend on its inputs is computed now and once, loops are unrolled, and a condition on an
    input raises TraceError, unless `concrete_args` gives its value.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


@wrap
def _assert_is_none(value, msg):
    if value is not None:
        raise AssertionError(msg)
