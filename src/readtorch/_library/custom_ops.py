"""`custom_op`: a Python function as an operator, with kernels for devices, a fake kernel and a gradient.

In PyTorch: `torch/_library/custom_ops.py`. Explained in the chapter "One operator call".
"""

import inspect
import logging
import warnings
import weakref
from contextlib import contextmanager

from readtorch import _C
from readtorch._functorch.autograd_function import batched_kernel
from readtorch._ops import OpOverload
from readtorch.amp.autocast_mode import check_device_type
from readtorch.aten.tags import Tag
from readtorch.autograd import graph

from . import autograd, utils
from .autocast import autocast_kernel, autocast_key, check_available
from .infer_schema import infer_schema

log = logging.getLogger(__name__)


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """The function `fn` as the operator `name`, "mylib::cube"; a decorator without `fn`.

    mutates_args: the names of the arguments that it writes to, or "unknown". device_types: what the function can do ("cpu", a
    list of these; None: any device). schema: "(Tensor x) -> Tensor", inferred from the annotations if None.
    Returns a CustomOpDef. Raises ValueError for annotations that no schema expresses, and for a schema that contradicts
    `mutates_args`.
    """

    def register(fn):
        normalized = _normalize_tags(tags)
        spelled = infer_schema(fn, mutates_args=mutates_args, tags=normalized) if schema is None else schema
        namespace, opname = name.split("::")
        made = CustomOpDef(namespace, opname, spelled, fn, normalized)
        if schema is not None:
            _check_mutates_args(made, schema, mutates_args)
        made.register_kernel(device_types)(fn)
        return made

    return register if fn is None else register(fn)


def _check_mutates_args(opdef, schema, mutates_args):
    written = {a.name for a in opdef._opoverload._schema.arguments if a.is_write}
    if written != set(mutates_args):
        raise ValueError(
            f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={schema}. The schema suggests "
            f"that the op mutates {written}which is different from what was provided to us in `mutates_args`. "
            "Please make these consistent."
        )


def _normalize_tags(tags):
    tags = () if tags is None else (tags,) if isinstance(tags, Tag) else tags
    return tuple(dict.fromkeys(tags))


class CustomOpDef:
    """A custom operator. Made by `custom_op`; its methods register what it does."""

    def __init__(self, namespace, name, schema, fn, tags=None):
        self._namespace, self._name, self._schema = namespace, name, schema
        self._tags = _normalize_tags(tags)
        self._init_fn = fn
        self._backend_fns = {}  # device type (None: any) -> function
        self._abstract_fn = None
        self._setup_context_fn = self._backward_fn = None
        self._torch_dispatch_fns = {}
        self._vmap_fn = None
        self._disabled_kernel = set()
        self._autocast_dtype = {}
        self._lib = get_library_allowing_overwrite(namespace, name)
        self._register_to_dispatcher()
        OPDEFS[self._qualname] = self

    @property
    def _qualname(self):
        return f"{self._namespace}::{self._name}"

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args, **kwargs):
        return self._opoverload(*args, **kwargs)

    # --------------------------------------------------------------------------------------------- kernels

    def register_kernel(self, device_types, fn=None, /):
        """`fn` is the kernel for these devices ("cpu", a list of these; None: for any). A decorator without `fn`."""

        def register(fn):
            for device_type in (
                [device_types] if device_types is None or isinstance(device_types, str) else device_types
            ):
                self._register_kernel_for(device_type, fn)
            return fn

        if device_types is not None and not utils.has_tensor_arg(self._opoverload._schema):
            place = utils.get_device_arg_index(self._opoverload._schema)
            if place is None:
                raise ValueError(
                    "Functions without tensor inputs are required to have a `device: torch.device` argument"
                )
            self._register_backend_select_dispatcher(place)
        return register if fn is None else register(fn)

    def _register_kernel_for(self, device_type, fn):
        is_new = device_type not in self._backend_fns

        def unless_disabled(*args, **kwargs):
            return (self._init_fn if device_type in self._disabled_kernel else fn)(*args, **kwargs)

        unless_disabled.__wrapped__ = fn
        self._backend_fns[device_type] = unless_disabled
        if is_new:
            key = "CompositeExplicitAutograd" if device_type is None else _C._dispatch_key_for_device(device_type)
            self._lib.impl(self._name, self._checked(device_type), key)

    def _checked(self, device_type):
        """The kernel for a device: the function, and a look at what it returned."""

        def backend_impl(*args, **kwargs):
            result = self._backend_fns[device_type](*args, **kwargs)
            self._check_returned(args, kwargs, result, lambda: inspect.getmodule(self._backend_fns[device_type]))
            return result

        return backend_impl

    def _check_returned(self, args, kwargs, result, get_module):
        """Raises RuntimeError for results that are not what the schema promises, or share memory with inputs."""
        promised = None
        if self._is_inplace:
            promised = None if result is args[0] else "torch.Tag.inplace must return its first argument."
        elif self._is_out:
            outs = [kwargs[name] for name in self._out_kwarg_names]
            returned = [result] if len(outs) == 1 else result if isinstance(result, tuple) else []
            if len(returned) != len(outs) or any(r is not out for r, out in zip(returned, outs)):
                promised = "torch.Tag.out must return its mutable keyword-only arguments."
        elif not self._returns_views:
            utils.check_aliasing_constraint(self._name, list(utils.iter_tensors(args, kwargs)), result, get_module)
        if promised:
            raise RuntimeError(
                f"{self._name} (with implementation in {get_module()}): An operator tagged with {promised}"
            )

    @contextmanager
    def set_kernel_enabled(self, device_type, enabled=True):
        """`with op.set_kernel_enabled("cpu", False):` inside, the function of `custom_op` takes the kernel's place."""
        action = "enable" if enabled else "disable"
        was_disabled = device_type in self._disabled_kernel
        if device_type not in self._backend_fns:
            log.warning(
                "Attempted to %s kernel for %s but no kernel was registered for this device type.", action, device_type
            )
        if enabled and not was_disabled:
            log.warning("Attempted to enable kernel for  %s but it was already enabled.", device_type)
        if not enabled and was_disabled:
            log.warning("Attempted to disable kernel for %s but it was already disabled.", device_type)
        (self._disabled_kernel.discard if enabled else self._disabled_kernel.add)(device_type)
        try:
            yield
        finally:
            (self._disabled_kernel.add if was_disabled else self._disabled_kernel.discard)(device_type)

    # -------------------------------------------------------------------------------------------- the rest

    def register_fake(self, fn, /):
        """Decorator: `fn` says what the operator does to fake tensors: it returns tensors of the right sizes."""
        if self._is_inplace or self._is_out:
            tag = "torch.Tag.inplace" if self._is_inplace else "torch.Tag.out"
            warnings.warn(
                f"The fake registration for {self} is unnecessary. Custom ops tagged with {tag} already get an autogenerated "
                "fake kernel. The provided fake impl will be used instead.",
                stacklevel=2,
            )
        self._abstract_fn = fn
        return fn

    def register_autograd(self, backward, /, *, setup_context=None):
        """backward(ctx, *grads) gives the inputs' gradients; setup_context(ctx, inputs, output) saves what it needs.

        Raises RuntimeError for operators that write to arguments.
        """
        schema = self._opoverload._schema
        if self._is_out:
            raise RuntimeError(
                f"Cannot register autograd formula for operator tagged with torch.Tag.out: {self}. Out variants do not "
                "support autograd."
            )
        if not utils.is_functional_schema(schema, allow_valid_view=True):
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} with schema {schema}. Please create "
                "a functional operator and register an autograd formula for that."
            )
        self._backward_fn, self._setup_context_fn = backward, setup_context

    def register_torch_dispatch(self, torch_dispatch_class, fn=None, /):
        """fn(cls_or_mode, func, types, args, kwargs) is what the operator does to tensors of a class, or under a mode."""

        def register(fn):
            if torch_dispatch_class not in self._torch_dispatch_fns:

                def newest(*args, **kwargs):
                    return self._torch_dispatch_fns[torch_dispatch_class](*args, **kwargs)

                self._lib._register_torch_dispatch_rule(self._name, torch_dispatch_class, newest)
            self._torch_dispatch_fns[torch_dispatch_class] = fn
            return fn

        return register if fn is None else register(fn)

    def register_vmap(self, func=None):
        """func(info, in_dims, *args, **kwargs) is what `torch.vmap` does with the operator: see `torch.library.register_vmap`."""

        def register(func):
            if self._vmap_fn is None:
                kernel = batched_kernel(self._opoverload, lambda: self._vmap_fn)
                self._lib.impl(self._name, kernel, "FuncTorchBatched", with_keyset=True)
            self._vmap_fn = func

        return register if func is None else register(func)

    def register_autocast(self, device_type, cast_inputs):
        """To which dtype `autocast` casts the operator's inputs: see `torch.library.register_autocast`. The first dtype stays."""
        check_device_type(device_type)
        check_available(device_type)
        kernel = autocast_kernel(self._opoverload, device_type, cast_inputs)
        if device_type not in self._autocast_dtype:
            self._autocast_dtype[device_type] = cast_inputs
            self._lib.impl(self._name, kernel, autocast_key(device_type), with_keyset=True)
        return kernel

    def register_effect(self, effect):
        """In PyTorch: that compilers must keep the operator's place among others. Raises NotImplementedError."""
        raise NotImplementedError(f"register_effect for {self._qualname}: no compiler here asks for effects")

    # -------------------------------------------------------------------------------------- the dispatcher

    def _register_to_dispatcher(self):
        text = self._name + self._schema
        if utils.has_kwarg_only_tensors(_C.parse_schema(text)) and Tag.out not in self._tags:
            raise NotImplementedError(
                f"custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: {text}"
            )
        tags = [Tag.pt2_compliant_tag, *(tag for tag in self._tags if tag is not Tag.pt2_compliant_tag)]
        self._lib.define(text, tags=tags)
        self._opoverload = utils.lookup_op(self._qualname)
        schema = self._opoverload._schema
        self._is_inplace, self._is_out = utils.is_inplace(self._opoverload), utils.is_out(self._opoverload)
        self._out_kwarg_names = tuple(utils.mutated_args_kwargs(schema)[1]) if self._is_out else ()
        self._returns_views = schema._is_view_op()
        self._lib._register_fake(self._name, self._fake_impl, _stacklevel=4)
        self._lib.impl(self._name, autograd.make_autograd_impl(self._opoverload, self), "Autograd", with_keyset=True)
        if schema._is_view_op() or schema.is_mutable:
            self._register_adinplaceorview(schema)

    def _fake_impl(self, *args, **kwargs):
        if self._abstract_fn is not None:
            return self._abstract_fn(*args, **kwargs)
        if utils.can_generate_trivial_fake_impl(self._opoverload):
            return utils.generate_trivial_fake_impl(self._opoverload, *args, **kwargs)
        raise RuntimeError(
            f"There was no fake impl registered for {self}. This is necessary for torch.compile/export/fx tracing to work. "
            f"Please use `{self._init_fn.__name__}.register_fake` to add an fake impl."
        )

    def _register_adinplaceorview(self, schema):
        """At ADInplaceOrView: what is written to gets a new version, views are noted."""
        self._lib.m.register_ad_inplace_or_view_fallback(self._name)
        if not schema.is_mutable:
            return
        places, names = utils.mutated_args_kwargs(schema)
        is_view = schema._is_view_op()
        views = (
            _C._dispatch_get_computed_kernel_for_dispatch_key(self._qualname, "ADInplaceOrView") if is_view else None
        )

        def count_versions(keyset, *args, **kwargs):
            all_args, all_kwargs = utils.fill_defaults(schema, args, kwargs)
            for value in [all_args[i] for i in places] + [all_kwargs[name] for name in names]:
                increment_version(value)
            if is_view:
                return views.call_boxed(keyset, *args, **kwargs)
            return self._opoverload.redispatch(keyset & _C._after_ADInplaceOrView_keyset, *args, **kwargs)

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Warning only once for all operators", UserWarning)
            self._lib.impl(self._name, count_versions, "ADInplaceOrView", with_keyset=True)

    def _register_backend_select_dispatcher(self, device_arg_index):
        """Without tensors the argument `device` says which kernel is meant."""

        def backend_select(keyset, *args, **kwargs):
            kind = args[device_arg_index].type
            if kind not in self._backend_fns:
                raise RuntimeError(
                    f"{self._name} does not have a kernel registered for {kind}. Please use register_kernel to do so."
                )
            key = getattr(_C.DispatchKey, _C._dispatch_key_for_device(kind))
            return self._opoverload.redispatch(_C.DispatchKeySet(key), *args, **kwargs)

        self._lib.impl(self._name, backend_select, "BackendSelect", with_keyset=True)


def increment_version(value):
    """Counts a write to a tensor, or to each of a list's."""
    for tensor in utils.iter_tensors((value,), {}):
        graph.increment_version(tensor)


OPDEF_TO_LIB = {}  # full name -> the Library that holds a custom_op's registrations
OPDEFS = weakref.WeakValueDictionary()  # full name -> CustomOpDef


def get_library_allowing_overwrite(namespace, name):
    """A new Library for a custom_op. A custom_op of this name that there was is taken back."""
    import readtorch

    qualname = f"{namespace}::{name}"
    if qualname in OPDEF_TO_LIB:
        OPDEF_TO_LIB.pop(qualname)._destroy()
    made = OPDEF_TO_LIB[qualname] = readtorch.library.Library(namespace, "FRAGMENT")
    return made


def _maybe_get_opdef(op):
    """The CustomOpDef of an operator, given as one, as an OpOverload or by name; None if it has none."""
    if isinstance(op, CustomOpDef):
        return op
    return OPDEFS.get(op._name if isinstance(op, OpOverload) else op)
