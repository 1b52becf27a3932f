"""What is registered for one operator, and which kernel follows from it for a key set.

Kernels come from three places: the operator's page (`@op.kernel`, `@op.compose` …), the writers, which make one from the schema
when it is first needed, and what was registered later (`set_kernel`, torch.library). The newest at a key is the one that counts.

In PyTorch: `aten/src/ATen/core/dispatch/OperatorEntry.cpp`. Explained in the chapter "One operator call".
"""

import inspect
from pathlib import Path

from readtorch.c10.dispatch_key import (
    ADINPLACEORVIEW,
    ALIAS_NAMES,
    AUTOCAST,
    AUTOCAST_CPU,
    AUTOCAST_CUDA,
    AUTOGRAD,
    AUTOGRAD_ALIAS,
    BACKEND_SELECT,
    BACKENDS,
    BY_PRIORITY,
    COMPOSITE_EXPLICIT,
    COMPOSITE_EXPLICIT_NON_FUNCTIONAL,
    COMPOSITE_IMPLICIT,
    COPY_ON_WRITE,
    CPU,
    CUDA,
    FACTS,
    FUNCTIONALITIES,
    GRAD_FACTS,
    INFERENCE_MODE,
    INFERENCE_TENSOR,
    KEYS,
    MATH_BITS,
    META,
    NO_STORAGE,
    PYTHON_TLS_SNAPSHOT,
    RUNTIME_BACKENDS,
    RUNTIME_KEYS,
    SIMULATED_CUDA,
    SPARSE,
    SPARSE_CPU,
    SPARSE_CSR_CPU,
    STALE,
    TANGENT,
    THREAD,
    TORCH_FUNCTION,
    TRACER,
    VMAP_MODE,
    key_name,
    keys_below,
)
from readtorch.c10.dispatch_key_set import DispatchKey, from_keys, key_of, to_keys
from readtorch.c10.exception import warn_once
from readtorch.c10.local_dispatch_key_set import DEFAULT_EXCLUDED, DEFAULT_INCLUDED, tls
from readtorch.c10.tensor_impl import TensorImpl, key_set

from .context import context
from .record_function import FUNCTION
from .sequence_number import peek_sequence_nr
from .torch_function import Overridden, mode_enabled

_HERE = Path(__file__).parents[2]


def fallthrough(*arguments):
    """As a kernel: there is nothing to do at this key, the call goes on to the next one."""
    raise AssertionError("fallthrough is never called: the call goes on to the next key")


def _ambiguous(operator, keys, args, kwargs):
    raise RuntimeError(
        f"{operator.name} has kernels registered to both CompositeImplicitAutograd and a backend mapped to AutogradOther. This makes "
        "the backend kernel unreachable; the dispatcher will always prefer the CompositeImplicitAutograd lowering (see Note "
        "[Ambiguity in AutogradOther kernel]). If you want to override CompositeImplicitAutograd, please open an issue to request a "
        "dedicated Autograd dispatch key for the backend."
    )


class Kernel:
    """A function registered at a key, and how it is called.

    plain: with the operator's arguments. keyset: with the DispatchKeySet before them. boxed: f(operator, keys, args, kwargs) with
    the dispatcher's own set. written: f(operator, keys) returns the function for an operator. debug: where it was registered.
    """

    __slots__ = ("function", "style", "given_place")

    def __init__(self, function, style, debug=None):
        self.function = function
        self.style = style
        self.given_place = debug

    @property
    def debug(self):
        return self.given_place or place_of(self.function)

    def for_keys(self, operator, keys):
        """What takes the operator's arguments, for calls with this set; None for a fallthrough."""
        function = self.function
        if function is fallthrough:
            return None
        if self.style == "keyset":
            keyset = from_keys(operator.without_fallthroughs(keys))
            return lambda *arguments: function(keyset, *arguments)
        if self.style == "written":
            return function(operator, keys)
        if self.style == "boxed":
            return lambda *arguments: function(operator, keys, arguments, {})
        return function


class NativeKernel(Kernel):
    """A kernel that came with the build: of the operator's page, or of a writer."""

    def __init__(self, function):
        super().__init__(function, "plain")


def place_of(function):
    """Where a function stands, as the dumps say it."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return "registered at (unknown)"
    file = Path(code.co_filename)
    file = file.relative_to(_HERE) if file.is_relative_to(_HERE) else file
    return f"registered at {file}:{code.co_firstlineno}"


FALLTHROUGH = Kernel(fallthrough, "boxed")

# Key -> function(operator, keys) that writes the kernel of an operator for a key set whose highest key it is, or returns
# None. Higher layers register theirs here: autograd, the tracer. Through this table the engine, which knows no operation,
# meets the operations. In PyTorch: torchgen and tools/autograd write such kernels before the compiler runs.
# INFERENCE_MODE, MATH_BITS, COPY_ON_WRITE -> function(operator, kernel) that changes the kernel of a backend for sets with such a fact or bit;
# STALE -> function(kernel) that does so for a view that nobody marks.
writers = {}

# All operators by full name, in order of registration.
registry = {}

# Key -> Kernel of every operator that has none of its own for the key. In PyTorch: `TORCH_LIBRARY_IMPL(_, …)`.
fallbacks = {
    key: Kernel(fallthrough, "boxed")
    for key in (BACKEND_SELECT, ADINPLACEORVIEW, AUTOCAST_CPU, AUTOCAST_CUDA, VMAP_MODE, PYTHON_TLS_SNAPSHOT)
}

# The operators of the build that have kernels of torch.library: Note [ Fused kernels of compositions ].
overridden = set()

# The facts for which there is something to do at Autograd.
FOR_AUTOGRAD = GRAD_FACTS | TANGENT

# Operators with something to do there for any tensor: the first two refuse tensors that require grad, whether something is
# recorded or not; the others make duals and take them apart.
ASKED_ALWAYS = {"aten::resize_", "aten::resize_as_", "aten::_make_dual", "aten::_fw_primal"}

# ADInplaceOrView does not count their writes. The first calls `resize_`, which counts. In PyTorch: the others count nothing, but the
# fused steps are not what an optimizer calls unless asked.
COUNT_THEMSELVES = {
    *("aten::empty.out", "aten::_fused_sgd_", "aten::_fused_adam_", "aten::_fused_adamw_", "aten::_fused_adagrad_"),
    "aten::_amp_foreach_non_finite_check_and_unscale_",
}

BELOW_AUTOGRAD = keys_below(ADINPLACEORVIEW) & FUNCTIONALITIES & ~BACKEND_SELECT

# The keys of functionality, highest priority first, each with what its kernel is resolved for: itself, what is below, the facts.
HOPS = [(key, keys_below(key) | key | ~KEYS) for key in BY_PRIORITY if key & FUNCTIONALITIES]


def _everything(operator):
    return True


def clear_all_tables():
    """A kernel that may serve any operator has come or gone."""
    for operator in registry.values():
        operator.clear_tables()


def set_fallback(key, function, *, written=False, debug=None):
    """Register what every operator does at `key` that has no kernel for it: f(operator, keys, args, kwargs), or `fallthrough`.

    written: f(operator, keys) returns the function that takes an operator's arguments. Returns a handle with `remove()`.
    """
    previous = fallbacks.get(key)
    fallbacks[key] = Kernel(function, "written" if written else "boxed", debug)
    clear_all_tables()
    return FallbackRegistration(key, fallbacks[key], previous)


class FallbackRegistration:
    """The handle of a fallback."""

    def __init__(self, key, kernel, previous):
        self.key, self.kernel, self.previous = key, kernel, previous

    def remove(self):
        """The fallback of before serves again. A second call does nothing."""
        if fallbacks.get(self.key) is self.kernel:
            if self.previous is None:
                del fallbacks[self.key]
            else:
                fallbacks[self.key] = self.previous
            clear_all_tables()


def is_included_in_alias(key, alias):
    """Whether a kernel at `alias` may serve the runtime key. In PyTorch: `isIncludedInAlias`."""
    if alias == AUTOGRAD_ALIAS:
        return bool(key & AUTOGRAD)
    if alias == COMPOSITE_IMPLICIT:
        return key in RUNTIME_BACKENDS or bool(key & AUTOGRAD)
    if alias == COMPOSITE_EXPLICIT:
        return key in RUNTIME_BACKENDS
    if alias == COMPOSITE_EXPLICIT_NON_FUNCTIONAL:
        return key in RUNTIME_BACKENDS and not key & SPARSE
    return key == alias


class OperatorEntry:
    """The part of an Operator that knows its kernels."""

    def __init__(self):
        self.kernels = {}  # backend key -> function that returns the results, from the operator's page
        self.composite = None  # function of other operators: serves every backend and needs no derivative of its own
        self.fallthroughs = set()  # the keys at which there is nothing to do, by the build's lists
        self.registered = {}  # key -> Kernels that were registered later, the newest first
        self.table = DispatchTable(self)
        self.binding_tables = []  # of its Python bindings, see gen_python_functions.py

    # ------------------------------------------------------------------------------------------- registration

    def set_kernel(self, key, function, *, boxed=False, with_keyset=False, debug=None):
        """Register `function` at a key or alias: the dispatcher's int, a DispatchKey or its name. Returns a handle, whose `remove()`
        takes the kernel back.

        The newest counts. `fallthrough` as the function: calls go on to the next key. boxed, with_keyset: see Kernel.
        """
        key = key_of(key)
        style = "boxed" if boxed else "keyset" if with_keyset else "plain"
        kernel = Kernel(function, style, debug)
        self._warn_of_override(key, kernel)
        self.registered.setdefault(key, []).insert(0, kernel)
        self._kernels_changed()
        return Registration(self, key, kernel)

    def _warn_of_override(self, key, kernel):
        previous = self.kernel_at(key)
        if previous is None or key == META:
            return
        warn_once(
            "Warning only once for all operators,  other operators may also be overridden.\n"
            "  Overriding a previously registered kernel for the same operator and the same dispatch key\n"
            f"  operator: {self.schema}\n    {self.debug or 'no debug info'}\n  dispatch key: {key_name(key)}\n"
            f"  previous kernel: {previous.debug}\n       new kernel: {kernel.debug}",
            UserWarning,
            stacklevel=3,
        )

    def _kernels_changed(self):
        self.clear_tables()
        was_overridden = bool(overridden)
        (overridden.add if self.registered and self.kernels else overridden.discard)(self)
        if bool(overridden) != was_overridden:
            clear_all_tables()

    def clear_tables(self):
        """Forget what was resolved: the next call of each key set asks again."""
        self.table.clear()
        for table in self.binding_tables:
            table.clear()

    def kernel_at(self, key):
        """The newest Kernel that is registered at exactly this key or alias, or None."""
        if key in self.registered:
            return self.registered[key][0]
        if key in self.fallthroughs:
            return FALLTHROUGH
        function = self._native(key)
        return None if function is None else NativeKernel(function)

    def _native(self, key):
        """What the build has for this key or alias: a function, or the writer of one."""
        if key == COMPOSITE_IMPLICIT:
            return self.composite
        if key & AUTOCAST and key in writers:
            return writers[key] if writers[key].serves(self) else None
        if key == BACKEND_SELECT and key in writers and (self.kernels or self.composite):
            return writers[key] if writers[key].serves(self) else None
        if self.composite is not None:
            return writers.get(TRACER) if key == TRACER else None
        if not self.kernels and (self.derivative is None or key in RUNTIME_BACKENDS):
            return None  # one whose kernels come with a device has the kernels above them before
        if key == COMPOSITE_EXPLICIT:
            return self.kernels.get(CPU) if self.serves_every_backend() else None
        if key == CPU and self.serves_every_backend():
            return None
        if key in self.kernels:
            return self.kernels[key]
        if key in RUNTIME_BACKENDS:
            return writers[key](self, key) if key in writers else None
        if key == ADINPLACEORVIEW and not self.writes_or_views():
            return None
        writer = writers.get({AUTOGRAD_ALIAS: AUTOGRAD, TRACER: TRACER, ADINPLACEORVIEW: ADINPLACEORVIEW}.get(key))
        return writer if writer is not None and getattr(writer, "serves", _everything)(self) else None

    def writes_or_views(self):
        """Whether it has a kernel for ADInplaceOrView: it writes in place or to `out=`, or makes views that autograd follows."""
        schema = self.schema
        return (schema.is_inplace or schema.is_out or schema.is_view) and self.name not in COUNT_THEMSELVES

    def serves_every_backend(self):
        """Whether its CPU kernel only calls operators."""
        return getattr(self.kernels.get(CPU), "any_device", False)

    # ------------------------------------------------------------------------------------ the table's entries

    def entry(self, key):
        """(Kernel, why) for a runtime key, of what is registered for it and for its aliases; Kernel is None if nothing is.

        In PyTorch: `OperatorEntry::computeDispatchTableEntryWithDebug`.
        """
        direct = self.kernel_at(key) if key else None
        if direct is not None:
            return direct, "kernel"
        for alias in (COMPOSITE_EXPLICIT_NON_FUNCTIONAL, COMPOSITE_EXPLICIT):
            if not key or is_included_in_alias(key, alias):
                default = self.kernel_at(alias)
                if default is not None:
                    return default, "default backend kernel"
        if not key or is_included_in_alias(key, COMPOSITE_IMPLICIT):
            composite = self.kernel_at(COMPOSITE_IMPLICIT)
            if composite is not None and key == AUTOGRAD and any(map(self.kernel_at, (SPARSE_CPU, SPARSE_CSR_CPU))):
                return Kernel(_ambiguous, "boxed", "ambiguous_autogradother"), "ambiguous autogradother"
            if composite is not None and not self._backend_has_kernel(key):
                return composite, "math kernel"
        if is_included_in_alias(key, AUTOGRAD_ALIAS):
            autograd = self.kernel_at(AUTOGRAD_ALIAS)
            if autograd is not None:
                return autograd, "autograd kernel"
        fallback = fallbacks.get(AUTOGRAD if key & AUTOGRAD else key)
        return (fallback, "backend fallback") if fallback is not None else (None, "missing")

    def _backend_has_kernel(self, key):
        """Whether a key of Autograd stands above a backend that has a kernel: then a composition does not serve it."""
        if not key & AUTOGRAD:
            return False
        backend = key & BACKENDS
        return self.kernel_at(COMPOSITE_EXPLICIT) is not None or backend and self.kernel_at(backend) is not None

    # -------------------------------------------------------------------------------------------- resolution

    def resolve(self, keys):
        """The kernel for a masked key set: that of the highest key which has one."""
        if keys & (THREAD | TORCH_FUNCTION):
            return with_thread_state(self, keys) if keys & THREAD else self.table[keys & ~TORCH_FUNCTION]
        if keys & INFERENCE_TENSOR:
            keys |= ADINPLACEORVIEW  # this thread includes it, and inference tensors are the ones that do not carry it
        for key, kept in HOPS:
            if keys & key:
                kernel = self.functionality_kernel(key, keys & kept, keys & AUTOCAST)
                if kernel is not None:
                    return kernel
        return self.backend_kernel(keys)

    def without_fallthroughs(self, keys):
        """The set without the keys at which the operator has a fallthrough. In PyTorch: its `nonFallthroughKeys_`."""
        for key, _ in HOPS:
            if keys & key:
                kernel, _ = self.entry(autograd_key(keys) if key == AUTOGRAD else key)
                if kernel is not None and kernel.function is fallthrough:
                    keys ^= key
        return keys

    def stops_at(self, keys):
        """The key whose kernel a call with this masked set reaches first."""
        for key, kept in HOPS:
            if keys & key and self.functionality_kernel(key, keys & kept, keys & AUTOCAST) is not None:
                return key
        return highest_backend(keys)

    def functionality_kernel(self, key, keys, casting=0):
        """The kernel for `keys`, whose highest key is `key`, no backend; None if the call goes on to the next key. casting: the keys of
        Autocast that the call has passed.

        Note [ Hops that do nothing ]
        The kernel that is written for Autograd asks its operands whether one requires grad, and goes on if none does. The
        facts HISTORY and STALE say so already, and TANGENT whether one has a tangent, so without them the call goes on at once. A kernel that somebody registered
        is always called.
        """
        if key == ADINPLACEORVIEW and self.counts_for_its_parts(keys):
            return writers[key](self, keys)
        kernel, why = self.entry(autograd_key(keys) if key == AUTOGRAD else key)
        if type(kernel) is not NativeKernel:
            return kernel and kernel.for_keys(self, keys)
        if why == "math kernel":
            return self.composed(keys) if casting or self.must_be_composed(keys) else None
        if key == BACKEND_SELECT and keys & BACKENDS:  # Note [ Who looks at the device ]
            return None
        if key == AUTOGRAD:
            return writers[AUTOGRAD](self, keys) if keys & FOR_AUTOGRAD or self.name in ASKED_ALWAYS else None
        return writers[key](self, keys) if key in writers else kernel.function

    def must_be_composed(self, keys):
        """Note [ Fused kernels of compositions ]
        A few compositions have a kernel of their own for a backend, which does the work of all parts at once. In its
        place the parts must be called where somebody would see them: autograd, autocast, a mode, the fallback of a key, or a kernel
        that was registered for a part. In PyTorch: such operators have the composition alone.
        """
        return bool(keys & (FOR_AUTOGRAD | BELOW_AUTOGRAD) or overridden or not self.kernels.get(highest_backend(keys)))

    def counts_for_its_parts(self, keys):
        """Whether a fused kernel writes in place of parts that would have counted."""
        if self.composite is None or self.registered or not self.schema.is_inplace:
            return False
        counts_itself = self.schema.arguments[0].type.is_list and keys & BACKENDS == CPU  # multi_tensor_apply.py
        return not counts_itself and not self.must_be_composed(keys)

    def composed(self, keys):
        """The composition, which under inference mode marks what it makes."""
        return writers[INFERENCE_MODE](self, self.composite) if keys & INFERENCE_MODE else self.composite

    def backend_kernel(self, keys):
        """The backend's own kernel, else the composition, else the one that can be written for it."""
        backend = runtime_backend(keys)
        if self.registered or backend in fallbacks or not keys & BACKENDS or not (self.kernels or self.composite):
            kernel, _ = self.entry(backend)
            if kernel is not None and kernel.function is fallthrough:
                kernel, _ = self.entry(0)
                keys &= ~BACKENDS
            if kernel is not None and type(kernel) is not NativeKernel:
                return kernel.for_keys(self, keys)
        kernel = self._native_backend_kernel(keys)
        if kernel is None:
            raise NotImplementedError(missing_kernel(self, keys))
        return self.completed(kernel, keys)

    def completed(self, kernel, keys):
        """A backend's own kernel with what the bits and facts of a set ask for around it."""
        if keys & MATH_BITS and MATH_BITS in writers:
            kernel = writers[MATH_BITS](self, kernel)
        if keys & COPY_ON_WRITE:
            kernel = writers[COPY_ON_WRITE](self, kernel)
        marked_above = keys & STALE or kernel is self.composite
        if self.schema.is_view and not marked_above:
            kernel = writers[STALE](kernel)
        kernel = self.as_set(kernel, keys)
        return writers[INFERENCE_MODE](self, kernel) if keys & INFERENCE_MODE else kernel

    def _native_backend_kernel(self, keys):
        backend = highest_backend(keys)
        if keys & NO_STORAGE and backend != META:
            return writers[NO_STORAGE](self, keys)
        if self.composite is not None and (overridden or keys & (BELOW_AUTOGRAD | AUTOCAST)):
            return self.composite
        kernel = self.kernels.get(keys & INFERENCE_TENSOR or backend) or self.kernels.get(backend) or self.composite
        return writers[backend](self, keys) if kernel is None and backend in writers else kernel

    def as_set(self, kernel, keys):
        """`kernel`, or what takes its place while deterministic algorithms are asked for."""
        if not (context.deterministic and self.deterministic and keys & BACKENDS):
            return kernel
        change = self.deterministic.get(highest_backend(keys))
        return kernel if change is None else change(kernel)

    def redispatch(self, keys, *arguments):
        """The kernel for a set of keys, whatever the keys of the arguments and of the thread: what a kernel calls with the keys below
        its own. keys: a DispatchKeySet or the dispatcher's set; for one DispatchKey the kernel of exactly this key runs.
        """
        if isinstance(keys, int):
            return self.table[keys & ~THREAD](*arguments)
        carried = keys_of(arguments)
        if isinstance(keys, DispatchKey):
            return self._kernel_of(key_of(keys), carried)(*arguments)
        keys = to_keys(keys)
        if keys & SIMULATED_CUDA:
            keys = keys & ~(CUDA | SIMULATED_CUDA) | carried & (CUDA | SIMULATED_CUDA | CPU)
        facts = carried & tls.mask & FACTS
        return self.table[keys | (facts if keys & ADINPLACEORVIEW else facts & ~(STALE | INFERENCE_TENSOR))](*arguments)

    def _kernel_of(self, key, carried):
        """The function of one runtime key or alias, for arguments that carry these keys."""
        kernel = self.kernel_at(key) or self.entry(key)[0]
        keys = carried & tls.mask & (FACTS | BACKENDS) | key & KEYS
        if kernel is None:
            raise NotImplementedError(missing_kernel(self, key & KEYS))
        if type(kernel) is not NativeKernel:
            return kernel.for_keys(self, keys)
        if key == AUTOGRAD_ALIAS or key & AUTOGRAD and kernel.function is writers.get(AUTOGRAD):
            return writers[AUTOGRAD](self, keys | GRAD_FACTS | AUTOGRAD)
        if key in RUNTIME_BACKENDS:
            return self.backend_kernel(keys & ~BACKENDS | key | carried & SIMULATED_CUDA)
        return writers[key](self, keys) if key in writers else kernel.function

    # ------------------------------------------------------------------------------------------------- dumps

    def dump_table(self):
        """A line for each runtime key that has a kernel: which, where it was registered, and by which rule it is the one."""
        lines = []
        for key in RUNTIME_KEYS:
            kernel, why = self.entry(key)
            if kernel is not None:
                through = "fallthrough " if kernel.function is fallthrough else ""
                lines.append(f"{key_name(key)}: {through}{kernel.debug} [{why}]\n")
        return "".join(lines)

    def dump(self):
        """What is registered, with what newer registrations hide. In PyTorch: `OperatorEntry::dumpState`."""
        lines = [
            f"name: {self.name}",
            f"schema: {self.schema}",
            f"debug: {self.debug or place_of(self.composite or next(iter(self.kernels.values()), None))}",
            "alias analysis kind: FROM_SCHEMA",
        ]
        signature = f"({', '.join(f'{a.type} _{i}' for i, a in enumerate(self.schema.arguments))}) -> "
        signature += ", ".join(f"{r.type} _{i}" for i, r in enumerate(self.schema.returns))
        unknown = [key for key in self.registered if isinstance(key, str)]
        for key in (
            *RUNTIME_KEYS[1:],
            *unknown,
            AUTOGRAD_ALIAS,
            COMPOSITE_IMPLICIT,
            COMPOSITE_EXPLICIT,
            COMPOSITE_EXPLICIT_NON_FUNCTIONAL,
        ):
            native = None if key in unknown else self._native(key)
            found = [(k, ":: (none) [ boxed ]") for k in self.registered.get(key, [])]
            found += [(NativeKernel(native), f":: {signature} [ boxed unboxed ]")] if native is not None else []
            alias = "[alias]" if key in ALIAS_NAMES else ""
            for number, (kernel, form) in enumerate(found):
                through = "fallthrough " if kernel.function is fallthrough else ""
                lines.append(f"{key_name(key)}{alias}{' (inactive)' if number else ''}: {through}{kernel.debug} {form}")
        return "\n".join(lines) + "\n"


def keys_of(arguments):
    """The keys of all tensors among arguments and in their lists."""
    keys = 0
    for a in arguments:
        for t in a if isinstance(a, (list, tuple)) else (a,):
            if isinstance(t, TensorImpl):
                keys |= key_set(t)
    return keys


def highest_backend(keys):
    """The backend of highest priority in a set; 0 if there is none."""
    backends = keys & BACKENDS
    return backends and 1 << (backends.bit_length() - 1)


def runtime_backend(keys):
    """The backend of a set as Python knows it; 0 if there is none."""
    backend = highest_backend(keys)
    return CUDA if backend == SIMULATED_CUDA else backend


def autograd_key(keys):
    """The key of Autograd for a set: AutogradCPU, AutogradCUDA …"""
    backend = runtime_backend(keys)
    return AUTOGRAD | (CPU if backend & SPARSE else backend)


class Registration:
    """The handle of a registered kernel."""

    def __init__(self, operator, key, kernel):
        self.operator, self.key, self.kernel = operator, key, kernel

    def remove(self):
        """The operator is as if the kernel had not been registered. A second call does nothing."""
        kernels = self.operator.registered.get(self.key, [])
        if self.kernel in kernels:
            kernels.remove(self.kernel)
            if not kernels:
                del self.operator.registered[self.key]
            self.operator._kernels_changed()


class DispatchTable(dict):
    """Masked key set -> kernel. Filled on the first call with that set, so a call costs one look-up."""

    def __init__(self, operator):
        self.operator = operator

    def __missing__(self, keys):
        kernel = self[keys] = self.operator.resolve(keys)
        return kernel


class BindingTable(dict):
    """Masked key set -> what the Python binding of an operator calls: the kernel, or what says that the call is overridden:
    Note [ Who overrides ]."""

    def __init__(self, operator):
        self.operator = operator

    def __missing__(self, keys):
        if keys & TORCH_FUNCTION:
            kernel = _refuse
        elif keys & THREAD:
            kernel = with_thread_state(self.operator, keys, is_binding=True)
        else:
            kernel = self.operator.table[keys]
        self[keys] = kernel
        return kernel


def _refuse(*args):
    raise Overridden


def with_thread_state(operator, keys, is_binding=False):
    """The kernel for a masked set with THREAD: the thread's included keys come in, and its observers see the call.

    is_binding: a mode of functions is asked before all: Note [ Who overrides ].
    """
    table = operator.table
    keys &= ~THREAD
    makes_node = bool(
        keys & FOR_AUTOGRAD
    )  # in PyTorch: whatever has a key of Autograd is given the number of the next node

    usual = keys | DEFAULT_INCLUDED & ~DEFAULT_EXCLUDED

    def from_the_top(*arguments):
        if tls.is_unusual:
            if is_binding and mode_enabled():
                raise Overridden
            kernel = table[keys | tls.included & ~tls.excluded]
        else:
            kernel = table[usual]
        around = tls.around
        if around is None:
            return kernel(*arguments)
        return around(operator, peek_sequence_nr() if makes_node else -1, FUNCTION, kernel, arguments)

    return from_the_top


def missing_kernel(operator, keys):
    """What the error says when no kernel, composite or fallback serves these keys."""
    if keys & META:
        return (
            f"{operator.name}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel "
            "registered. You may have run into this message while using an operator with PT2 compilation APIs "
            "(torch.compile/torch.export); in order to use this operator with those APIs you'll need to add a fake impl. Please see "
            "the following for next steps:  https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html"
        )
    available = [key_name(key) for key in RUNTIME_KEYS[1:] if operator.entry(key)[0] is not None]
    if not keys & BACKENDS:
        return (
            "There were no tensor arguments to this function (e.g., you passed an empty list of Tensors), but no fallback "
            f"function is registered for schema {operator.name}.  This usually means that this function requires a non-empty "
            "list of Tensors, or that you (the operator writer) forgot to register a fallback function.  Available functions "
            f"are [{', '.join(available)}].\n\n{operator.dump_table()}"
        )
    return (
        f"Could not run '{operator.name}' with arguments from the '{key_name(runtime_backend(keys))}' backend. This could be "
        "because the operator doesn't exist for this backend, or was omitted during the selective/custom build process (if using "
        "custom build). If you are a Facebook employee using PyTorch on mobile, please visit https://fburl.com/ptmfixes for "
        f"possible resolutions. '{operator.name}' is only available for these backends: [{', '.join(available)}].\n\n"
        f"{operator.dump_table()}"
    )
