"""New operators, and new kernels for operators that there are.

    @torch.library.custom_op("mylib::cube", mutates_args=())
    def cube(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.numpy() ** 3)

    cube.register_autograd(lambda ctx, grad: 3 * grad * ctx.x**2, setup_context=...)

`custom_op` writes the schema and registers what every operator needs; a `Library` registers schemas and kernels one by one.

In PyTorch: `torch/library.py`. Explained in the chapter "One operator call".
"""

import contextlib
import functools
import re
import sys
import warnings
import weakref

from . import _C, _library
from ._functorch.autograd_function import batched_kernel
from ._library.autocast import autocast_kernel, autocast_key, check_available
from ._library.custom_ops import CustomOpDef, _maybe_get_opdef, custom_op
from ._library.infer_schema import infer_schema
from ._library.triton import triton_op, wrap_triton
from ._ops import OpOverload, ops, refused_libraries
from .aten.dispatcher import registry
from .aten.operator_entry import fallthrough
from .aten.tags import Tag
from .csrc.jit.ir.type import TensorType

__all__ = [
    "Library",
    "impl",
    "define",
    "fallthrough_kernel",
    "impl_abstract",
    "register_autocast",
    "register_fake",
    "register_torch_dispatch",
    "register_vmap",
    "get_ctx",
    "get_kernel",
    "custom_op",
    "triton_op",
    "wrap_triton",
    "infer_schema",
]

for _function in (custom_op, infer_schema, triton_op, wrap_triton):
    _function.__module__ = __name__

_impls = set()  # "namespace/operator/key" of every kernel that a Library has registered
_defs = set()  # "namespace::operator" of every operator that a Library has defined
_reserved_namespaces = ["prim"]
_keep_alive = []  # the Libraries of the functions below, which nobody else holds


def fallthrough_kernel():
    """Given to `Library.impl` in a function's place: the key is passed over, as if the operator had no kernel there."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class Library:
    """Registers operators of a namespace, and kernels. What it registered goes when it is collected.

    kind: "DEF" (the one that defines the namespace's operators), "FRAGMENT" (one of several that do), "IMPL" (kernels only).
    dispatch_key: for which `impl` registers, unless told otherwise.
    Raises ValueError for other kinds and for the namespace prim, RuntimeError for a second DEF of a namespace.
    """

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in _reserved_namespaces and kind != "IMPL":
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        caller = sys._getframe(1)
        self.m = _C._dispatch_library(kind, ns, dispatch_key, caller.f_code.co_filename, caller.f_lineno)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._op_defs, self._op_impls = set(), set()
        self._registration_handles = []
        weakref.finalize(self, _del_library, self._op_impls, self._op_defs, self._registration_handles, self.m)

    def __repr__(self):
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def _module(self):
        if self.m is None:
            raise AssertionError("Library object has been destroyed")
        return self.m

    def define(self, schema, alias_analysis="", *, tags=()):
        """Defines the operator "name(Tensor x) -> Tensor" and returns its name. tags: a Tag or several.

        Raises RuntimeError for what is not a schema, and for an operator that there is already.
        """
        if alias_analysis not in ["", "FROM_SCHEMA", "CONSERVATIVE"]:
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        tags = (tags,) if isinstance(tags, Tag) else tuple(tags)
        if not all(isinstance(tag, Tag) for tag in tags):
            raise TypeError(f"define(): tags must be torch.Tag, got {tags}")
        if Tag.out in tags:
            _validate_out_schema(schema)
        if Tag.inplace in tags:
            _validate_inplace_schema(schema)
        name = self._module().define(schema, alias_analysis, tags)
        qualname = f"{self.ns}::{schema.split('(')[0].split('::')[-1]}"
        self._op_defs.add(qualname)
        _defs.add(qualname)
        return name

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=True):
        """Makes `fn` the operator's kernel for a key; "" stands for the Library's own, or CompositeImplicitAutograd.

        with_keyset: the call's DispatchKeySet is `fn`'s first argument.
        Raises RuntimeError for a key that is none, for another namespace's operator, and, without allow_override, for a second
        kernel.
        """
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        dispatch_key = dispatch_key or self.dispatch_key
        name = _name_of(op_name, "impl")
        short = name.split("::")[-1]
        key = f"{self.ns}/{short}/{dispatch_key}"
        if not allow_override and key in _impls:
            raise RuntimeError(
                f"This is not allowed since there's already a kernel registered from python overriding {short}'s behavior for "
                f"{dispatch_key} dispatch key and {self.ns} namespace."
            )
        if dispatch_key == "Meta":
            self._check_that_it_is_not_composed(name)
        function = fallthrough if fn is fallthrough_kernel else fn
        self._module().impl(name, dispatch_key or "CompositeImplicitAutograd", function, with_keyset)
        _impls.add(key)
        self._op_impls.add(key)

    def _check_that_it_is_not_composed(self, name):
        qualname = name if "::" in name else f"{self.ns}::{name}"
        if _C._dispatch_has_kernel_for_dispatch_key(qualname, "CompositeImplicitAutograd"):
            raise RuntimeError(
                f"We should not register a meta kernel directly to the operator '{name}', because it has a "
                "CompositeImplicitAutograd kernel in core. Instead we should let the operator decompose, and ensure that we "
                "have meta kernels for the base ops that it decomposes into."
            )

    def fallback(self, fn, dispatch_key="", *, with_keyset=False):
        """Makes `fn` what every operator does that has no kernel for a key: fn(op, *args, **kwargs). The namespace is "_"."""
        dispatch_key = dispatch_key or self.dispatch_key
        if self.ns != "_":
            raise RuntimeError(
                f'Fallback can only be registered using library fragment on the global namespace "_" but it is {self.ns}'
            )
        if dispatch_key == "":
            raise AssertionError("dispatch_key must not be empty for fallback")
        self._module().fallback(dispatch_key, fallthrough if fn is fallthrough_kernel else fn, with_keyset)

    def _register_fake(self, op_name, fn, _stacklevel=1, *, allow_override=True):
        source = _library.utils.get_source(_stacklevel + 1)
        entry = _library.simple_registry.singleton.find(f"{self.ns}::{op_name}")
        handle = entry.fake_impl.register(fn, source, lib=self, allow_override=allow_override)
        self._registration_handles.append(handle)

    def _register_torch_dispatch_rule(self, op_name, torch_dispatch_class, fn):
        entry = _library.simple_registry.singleton.find(f"{self.ns}::{op_name}")
        self._registration_handles.append(entry.torch_dispatch_rules.register(torch_dispatch_class, fn))

    def _destroy(self):
        """Takes back what it registered."""
        module, self.m = self.m, None
        _del_library(self._op_impls, self._op_defs, self._registration_handles, module)


def _name_of(op_name, asked_by):
    if isinstance(op_name, str):
        return op_name
    if isinstance(op_name, OpOverload):
        return op_name._name
    raise RuntimeError(
        f"{asked_by} should be passed either a name or an OpOverload object as the first argument, got {type(op_name)}"
    )


def _del_library(op_impls, op_defs, registration_handles, module):
    """Takes back what a Library registered."""
    _impls.difference_update(op_impls)
    _defs.difference_update(op_defs)
    for handle in registration_handles:
        handle.destroy()
    registration_handles.clear()
    if module is not None:
        module.reset()
    _clear_torch_ops_cache(op_defs)


def _clear_torch_ops_cache(op_defs):
    """Forgets the packets of operators that are gone: the next look finds what is left."""
    for qualname in op_defs:
        namespace, name = qualname.split("::")
        namespace, name = vars(ops).get(namespace), name.split(".")[0]
        if namespace is not None and name in vars(namespace):
            delattr(namespace, name)
            namespace._dir.remove(name)


@contextlib.contextmanager
def _scoped_library(*args, **kwargs):
    """`with _scoped_library("mylib", "FRAGMENT") as lib:` a Library until the end of the block."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


# --------------------------------------------------------------------------------- schemas that Tag.out and Tag.inplace allow


def _validate_out_schema(schema):
    """Raises ValueError unless a schema writes its results to keyword-only tensors, and returns these in order."""
    schema = _C.parse_schema(schema) if isinstance(schema, str) else schema
    written = [a for a in schema.arguments if a.is_write]
    tagged, got = "Schema tagged with torch.Tag.out", f"Got: {schema}"
    if not written:
        raise ValueError(f"{tagged} must have at least one mutable argument. {got}")
    positional = [a.name for a in written if not a.kwarg_only]
    if positional:
        raise ValueError(
            f"{tagged} requires all mutable arguments to be keyword-only (after the *). Found mutable positional args: "
            f"{positional}. {got}"
        )
    others = [a.name for a in written if not isinstance(a.type, TensorType)]
    if others:
        raise ValueError(
            f"{tagged} only supports Tensor mutable arguments. Found unsupported mutable args: {others}. {got}"
        )
    if len(schema.returns) != len(written):
        raise ValueError(
            f"{tagged} must return all mutable arguments (got {len(written)} mutable args but {len(schema.returns)} "
            f"returns). {got}"
        )
    for i, (returned, argument) in enumerate(zip(schema.returns, written)):
        _validate_returned_out(f"Return {i} of schema tagged with torch.Tag.out must", returned, argument, got)


def _validate_returned_out(must, returned, argument, got):
    if returned.alias_info is None:
        raise ValueError(f"{must} alias mutable arg '{argument.name}'. {got}")
    if not returned.alias_info.is_write:
        raise ValueError(f"{must} be a mutable alias (e.g., Tensor(a!), not Tensor(a)) of arg '{argument.name}'. {got}")
    theirs, its = returned.alias_info.before_set, argument.alias_info.before_set
    if theirs != its:
        raise ValueError(
            f"{must} alias mutable arg '{argument.name}' (return aliases {theirs} but arg aliases {its}). {got}"
        )


def _validate_inplace_schema(schema):
    """Raises ValueError unless a schema writes to its first argument alone, a tensor, and returns it."""
    schema = _C.parse_schema(schema) if isinstance(schema, str) else schema
    tagged, got = "Schema tagged with torch.Tag.inplace", f"Got: {schema}"
    if not schema.arguments or schema.arguments[0].kwarg_only:
        raise ValueError(f"{tagged} must have at least one positional argument. {got}")
    first, *others = schema.arguments
    if not first.is_write:
        raise ValueError(f"{tagged} requires the first positional argument to be mutable (e.g., Tensor(a!)). {got}")
    if not isinstance(first.type, TensorType):
        raise ValueError(
            f"{tagged} requires the first positional argument to be a Tensor. Got type '{first.type}' for arg "
            f"'{first.name}'. {got}"
        )
    if len(schema.returns) != 1:
        raise ValueError(
            f"{tagged} must return exactly one value (the first argument). Got {len(schema.returns)} returns. {got}"
        )
    _validate_returned_self(f"{tagged} must return the first mutable argument", schema.returns[0], first, got)
    written = [a.name for a in others if a.is_write]
    if written:
        raise ValueError(
            f"{tagged} must only mutate the first positional argument. Found additional mutable args: {written}. {got}"
        )


def _validate_returned_self(must, returned, first, got):
    if not isinstance(returned.type, TensorType):
        raise ValueError(f"{must} (return must be a Tensor, got type '{returned.type}'). {got}")
    if returned.alias_info is None:
        raise ValueError(f"{must} (return must alias the first argument). {got}")
    if not returned.alias_info.is_write:
        raise ValueError(f"{must} (return must be a mutable alias, e.g., Tensor(a!)). {got}")
    theirs, its = returned.alias_info.before_set, first.alias_info.before_set
    if theirs != its:
        raise ValueError(f"{must} (return aliases {theirs} but first arg aliases {its}). {got}")


# -------------------------------------------------------------------------------------------------- by name, without a Library

NAMELESS_SCHEMA = re.compile(r"\(.*\) -> .*")


@functools.singledispatch
def define(qualname, schema, *, lib=None, tags=()):
    """Defines the operator `qualname`, "mylib::cube", with a schema "(Tensor x) -> Tensor". Its Library is kept for good.

    define(lib, "cube(Tensor x) -> Tensor") is a decorator: the function is the kernel, too.
    """
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}")
    namespace, name = _library.utils.parse_namespace(qualname)
    lib = _library_for_registration(namespace, lib)
    if not NAMELESS_SCHEMA.fullmatch(schema):
        raise ValueError(
            f'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but got "{schema}"'
        )
    lib.define(name + schema, alias_analysis="", tags=tags)


@define.register
def _(lib: Library, schema, alias_analysis=""):
    def wrap(f):
        lib.impl(lib.define(schema, alias_analysis), f)
        return f

    return wrap


@functools.singledispatch
def impl(qualname, types, func=None, *, lib=None):
    """Makes `func` the kernel of `qualname` for `types`: "cpu", "cuda", "default", a dispatch key, or a list of these.

    impl(lib, "cube", "CPU") is a decorator.
    """
    return _impl(qualname, types, func, lib=lib)


@impl.register
def _(lib: Library, name, dispatch_key=""):
    def wrap(f):
        lib.impl(name, f, dispatch_key)
        return f

    return wrap


def _impl(qualname, types, func=None, *, lib=None):
    types = (types,) if isinstance(types, str) else types
    keys = {kind if _C._parse_dispatch_key(kind) else _device_type_to_key(kind) for kind in types}

    def register(func):
        namespace, _ = _library.utils.parse_namespace(qualname)
        use_lib = _library_for_registration(namespace, lib)
        for key in keys:
            use_lib.impl(qualname, func, key)

    return register if func is None else register(func)


def _device_type_to_key(device_type):
    if device_type == "default":
        return "CompositeExplicitAutograd"
    return _C._dispatch_key_for_device(device_type)


def _library_for_registration(namespace, lib):
    if lib is None:
        lib = Library(namespace, "FRAGMENT")
        _keep_alive.append(lib)
    return lib


def _resolve_op_for_registration(op, registration_name):
    """The CustomOpDef of an operator, or its full name if it has none."""
    if not isinstance(op, (str, OpOverload, CustomOpDef)):
        raise ValueError(f"{registration_name}({op}): got unexpected type for op: {type(op)}")
    name = op._name if isinstance(op, OpOverload) else op
    return _maybe_get_opdef(name) or name


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """`func` is the operator's kernel for these devices: "cpu", a list of these, or None for any. A decorator without `func`."""
    op = _resolve_op_for_registration(op, "register_kernel")
    if isinstance(op, CustomOpDef):
        return op.register_kernel(device_types, func)
    return _impl(op, device_types or "CompositeExplicitAutograd", func, lib=lib)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=True):
    """`func` says what the operator does to fake tensors: it returns tensors of the right sizes. A decorator without `func`."""
    op = _resolve_op_for_registration(op, "register_fake")
    if isinstance(op, CustomOpDef):
        return op.register_fake if func is None else op.register_fake(func)

    def register(func, stacklevel=_stacklevel + 1):
        if refused_libraries and op not in registry:
            return func  # a package of C++ operators tells their sizes whether or not its library could be loaded
        namespace, op_name = _library.utils.parse_namespace(op)
        use_lib = _library_for_registration(namespace, lib)
        use_lib._register_fake(op_name, func, _stacklevel=stacklevel, allow_override=allow_override)
        return func

    return register if func is None else register(func, _stacklevel + 2)


def impl_abstract(qualname, func=None, *, lib=None, _stacklevel=1):
    """The older name of `register_fake`."""
    warnings.warn(
        "`torch.library.impl_abstract` was renamed to `torch.library.register_fake`. Please use that instead; we will remove "
        "`torch.library.impl_abstract` in a future version of PyTorch.",
        FutureWarning,
        stacklevel=2,
    )
    return register_fake(qualname, func, lib=lib, _stacklevel=_stacklevel + (func is not None))


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """backward(ctx, *grads) gives the inputs' gradients; setup_context(ctx, inputs, output) saves what it needs.

    Raises RuntimeError for operators that write to arguments, return views or nothing.
    """
    op = _resolve_op_for_registration(op, "register_autograd")
    if isinstance(op, CustomOpDef):
        return op.register_autograd(backward, setup_context=setup_context)
    qualname, op = op, _library.utils.lookup_op(op)
    if _library.utils.is_out(op):
        raise RuntimeError(
            f"Cannot register autograd formula for operator tagged with torch.Tag.out: {op}. Out variants do not support "
            "autograd."
        )
    if not _library.utils.is_functional_schema(op._schema):
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {op} with schema {op._schema}. Please create a "
            "functional operator and register an autograd formula for that."
        )
    _refuse_keyword_only_tensors(op, "register_autograd")
    kernel = _library.autograd.make_autograd_impl(op, _library.autograd.Info(backward, setup_context))
    namespace, opname = _library.utils.parse_namespace(qualname)
    _library_for_registration(namespace, lib).impl(opname, kernel, "Autograd", with_keyset=True)


def _refuse_keyword_only_tensors(op, asked_by):
    if _library.utils.has_kwarg_only_tensors(op._schema):
        raise NotImplementedError(
            f"{asked_by} with kwarg-only Tensor args. In the original definition of the op, please make your tensors not "
            f"kwarg-only. Got: {op._schema}"
        )


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None):
    """func(cls_or_mode, func, types, args, kwargs) is what the operator does to tensors of a class with
    `__torch_dispatch__`, or under a TorchDispatchMode. A decorator without `func`."""
    op = _resolve_op_for_registration(op, "register_torch_dispatch")
    if isinstance(op, CustomOpDef):
        return op.register_torch_dispatch(torch_dispatch_class, func)

    def register(func):
        namespace, op_name = _library.utils.parse_namespace(op)
        use_lib = _library_for_registration(namespace, lib)
        use_lib._register_torch_dispatch_rule(op_name, torch_dispatch_class, func)
        return func

    return register if func is None else register(func)


def register_vmap(op, func=None, /, *, lib=None):
    """`func(info, in_dims, *args, **kwargs)` is what `torch.vmap` does with the operator. A decorator without `func`.

    It gets whole batches and returns (outputs, their batch dimensions). info: `batch_size` and `randomness` of the vmap; in_dims: the
    batch dimension of each argument, None for what is the same for all examples or no tensor. NotImplementedError for an operator
    with keyword-only tensors.
    """
    op = _resolve_op_for_registration(op, "register_vmap")
    if isinstance(op, CustomOpDef):
        return op.register_vmap(func)
    overload = _library.utils.lookup_op(op)
    _refuse_keyword_only_tensors(overload, "register_vmap")

    def register(func):
        namespace, op_name = _library.utils.parse_namespace(op)
        use_lib = _library_for_registration(namespace, lib)
        use_lib.impl(op_name, batched_kernel(overload, lambda: func), "FuncTorchBatched", with_keyset=True)

    return register if func is None else register(func)


def register_autocast(op, device_type, cast_inputs, /, *, lib=None):
    """To which dtype `autocast` for a kind of device casts the operator's inputs; then the operator runs with autocast off.

    op: its name, an OpOverload or a CustomOpDef. ValueError for a kind of device without autocast.
    """
    op = _resolve_op_for_registration(op, "register_autocast")
    check_available(device_type)
    if isinstance(op, CustomOpDef):
        return op.register_autocast(device_type, cast_inputs)
    namespace, op_name = _library.utils.parse_namespace(op)
    kernel = autocast_kernel(_library.utils.lookup_op(op), device_type, cast_inputs)
    use_lib = _library_for_registration(namespace, lib)
    return use_lib.impl(op_name, kernel, autocast_key(device_type), with_keyset=True)


def get_ctx():
    """Inside a fake kernel: the FakeImplCtx of the call. Elsewhere None."""
    return _library.fake_impl.global_ctx_getter()


def get_kernel(op, dispatch_key):
    """The kernel that calls of an operator reach at a key, with `call_boxed(keyset, *args, **kwargs)`.

    op: "aten::add.Tensor" or an OpOverload. dispatch_key: "CPU", or a DispatchKey.
    """
    if not isinstance(op, (str, OpOverload)):
        raise ValueError(f"get_kernel({op}): got unexpected type for op: {type(op)}")
    if isinstance(dispatch_key, str):
        if dispatch_key not in _C.DispatchKey.__members__:
            raise ValueError(f"Invalid dispatch key: {dispatch_key}")
        dispatch_key = _C.DispatchKey.__members__[dispatch_key]
    return _C._dispatch_get_computed_kernel_for_dispatch_key(getattr(op, "_name", op), dispatch_key)


# In PyTorch: and test_aot_dispatch_dynamic, for which there is no compiler here yet.
_OPCHECK_DEFAULT_UTILS = ("test_schema", "test_autograd_registration", "test_faketensor")


def opcheck(op, args, kwargs=None, *, test_utils=_OPCHECK_DEFAULT_UTILS, raise_exception=True, atol=None, rtol=None):
    """Calls an operator with these arguments and looks whether it is registered rightly.

    test_schema: it writes to what its schema says, and returns nothing that it was given. test_autograd_registration: its
    gradient is at an Autograd key. test_faketensor: its fake kernel gives tensors like the real ones.
    test_aot_dispatch_dynamic and _static are refused.
    Returns {test: "SUCCESS" or the exception}; raises OpCheckError for the first that fails, unless raise_exception is False.
    """
    from .testing._internal import optests

    return optests.opcheck(
        op, args, kwargs, test_utils=test_utils, raise_exception=raise_exception, rtol=rtol, atol=atol
    )
