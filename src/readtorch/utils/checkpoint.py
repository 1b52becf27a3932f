"""Activation checkpointing: forget what a part of forward saved, and run that part again when backward needs it.

In PyTorch: `torch/utils/checkpoint.py`. Explained in the chapter "Autograd".
"""

import contextlib
import enum
import warnings
import weakref
from collections import defaultdict

import readtorch
from readtorch import autograd, random
from readtorch.amp.autocast_mode import autocast
from readtorch.autograd.function import Function
from readtorch.autograd.grad_mode import enable_grad, is_grad_enabled, no_grad
from readtorch.autograd.graph import saved_tensors_hooks
from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.autograd.autocast_init import get_autocast_dtype, is_autocast_cache_enabled, is_autocast_enabled
from readtorch.utils._python_dispatch import TorchDispatchMode
from readtorch.utils._pytree import tree_leaves, tree_map

__all__ = [
    "checkpoint",
    "checkpoint_sequential",
    "CheckpointFunction",
    "CheckpointError",
    "set_checkpoint_early_stop",
    "noop_context_fn",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
]


class CheckpointError(RuntimeError):
    """The recomputed forward did not save what the first one did."""


def noop_context_fn():
    """Two contexts that do nothing: for the forward pass, and for the one in backward."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def detach_variable(inputs):
    """Leaves with the values and requires_grad of `inputs`; other values as they are."""
    return tuple([t.detach().requires_grad_(t.requires_grad) if isinstance(t, TensorImpl) else t for t in inputs])


def check_backward_validity(inputs):
    if not any(t.requires_grad for t in inputs if isinstance(t, TensorImpl)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


@contextlib.contextmanager
def _rng_state(state):
    """Run with the random state of the first forward, so that dropout drops the same elements; then put the own one back."""
    if state is None:
        yield
        return
    own = random.get_rng_state()
    random.set_rng_state(state)
    try:
        yield
    finally:
        random.set_rng_state(own)


def get_device_states(*args):
    """The numbers of the accelerators where tensors of `args` are, and the random state of each."""
    tensors = [t for t in tree_leaves(args) if isinstance(t, TensorImpl) and t.device.type not in ("cpu", "meta")]
    return [t.get_device() for t in tensors], [readtorch.cuda.get_rng_state(t.device) for t in tensors]


def set_device_states(devices, states, *, device_type=None):
    """Put random states back, as `get_device_states` gave them. device_type: "cuda" (None), or "meta" for nothing."""
    if device_type == "meta":
        return
    module = getattr(readtorch, device_type or "cuda")
    for device, state in zip(devices, states):
        with module.device(device):
            module.set_rng_state(state)


class _ForwardState:
    """The thread's state in the first forward, under which the same is computed again: random numbers, and autocast."""

    def __init__(self, preserve_rng_state):
        self.rng_state = random.get_rng_state() if preserve_rng_state else None
        self.autocasts = [
            (kind, get_autocast_dtype(kind), is_autocast_enabled(kind), is_autocast_cache_enabled())
            for kind in ("cuda", "cpu")
        ]

    @contextlib.contextmanager
    def again(self):
        with _rng_state(self.rng_state), contextlib.ExitStack() as stack:
            for settings in self.autocasts:
                stack.enter_context(autocast(*settings))
            yield


# ------------------------------------------------------------------------------------------------- reentrant


class CheckpointFunction(Function):
    """The older way: a Function whose backward runs forward again and then a backward of its own inside the running one."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.forward_state = _ForwardState(preserve_rng_state)
        ctx.tensor_indices = [i for i, a in enumerate(args) if isinstance(a, TensorImpl)]
        ctx.inputs = [None if isinstance(a, TensorImpl) else a for a in args]
        ctx.save_for_backward(*[a for a in args if isinstance(a, TensorImpl)])
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        if not autograd._is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter "
                "to .backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without "
                "passing the `inputs` argument."
            )
        inputs = list(ctx.inputs)
        for index, tensor in zip(ctx.tensor_indices, ctx.saved_tensors):
            inputs[index] = tensor
        detached = detach_variable(tuple(inputs))
        with ctx.forward_state.again(), enable_grad():
            outputs = ctx.run_function(*detached)
        outputs = (outputs,) if isinstance(outputs, TensorImpl) else outputs
        pairs = [(o, g) for o, g in zip(outputs, grads) if isinstance(o, TensorImpl) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None) + tuple([t.grad if isinstance(t, TensorImpl) else None for t in detached])


# --------------------------------------------------------------------------------------------- non-reentrant


class _StopRecomputation(Exception):
    """Raised when the recomputed forward has saved everything that backward still needs."""


class _Frame:
    """Note [ Checkpointing by saved-tensor hooks ]

    During the first forward every saved tensor is packed into an empty holder. When backward unpacks the first holder, the
    forward runs once more under hooks that fill the holders in the order in which they were made; then each holder gives
    up its tensor. Forward must therefore save the same tensors in the same order both times, which is checked by shape,
    dtype and device.
    """

    def __init__(self, recompute, early_stop):
        self.recompute = recompute
        self.early_stop = early_stop
        self.holders = []  # weak references: a holder that nobody keeps is not filled
        self.facts = []  # shape, dtype, device of each tensor the first time
        self.filled = False

    def pack(self, tensor):
        holder = _Holder()
        self.holders.append(weakref.ref(holder))
        self.facts.append(_facts(tensor))
        return holder

    def unpack(self, holder):
        if holder.tensor is None:
            if self.filled:
                raise CheckpointError(
                    "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. "
                    "If you are calling ctx.saved_tensors in backward, make sure to do so only once. Otherwise "
                    "please open an issue with details on your use case."
                )
            self.fill()
        tensor, holder.tensor = holder.tensor, None
        self.filled = any(h() is not None and h().tensor is not None for h in self.holders)
        if tensor is None:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.holders)}"
            )
        return tensor

    def fill(self):
        count = 0

        def pack_again(tensor):
            nonlocal count
            if count >= len(self.holders):
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original "
                    f"forward pass.\n{_mode_note()}"
                )
            if _facts(tensor) != self.facts[count]:
                raise CheckpointError(
                    "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                    f"during the forward pass.\ntensor at position {count}:\nsaved metadata: {self.facts[count]}\n"
                    f"recomputed metadata: {_facts(tensor)}\n"
                )
            holder = self.holders[count]()
            if holder is not None:
                holder.tensor = tensor.detach()
            count += 1
            if self.early_stop and count == len(self.holders):
                raise _StopRecomputation
            return tensor.detach()

        with saved_tensors_hooks(pack_again, lambda tensor: tensor), enable_grad():
            try:
                self.recompute()
            except _StopRecomputation:
                pass
        if count != len(self.holders):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.holders)}\nNumber of tensors saved "
                f"during recomputation: {count}.\n"
            )
        self.filled = True


class _Holder:
    """Stands for a saved tensor until backward asks for it."""

    def __init__(self):
        self.tensor = None


def _facts(tensor):
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


def _mode_note():
    return "Make sure that the checkpointed function does the same work every time it is called with the same inputs."


_early_stop = [True]


@contextlib.contextmanager
def set_checkpoint_early_stop(enable):
    """Whether recomputation stops as soon as everything needed has been saved again (the default)."""
    previous, _early_stop[0] = _early_stop[0], enable
    try:
        yield
    finally:
        _early_stop[0] = previous


def _checkpoint_without_reentrant(function, preserve_rng_state, context_fn, args, kwargs):
    forward_context, recompute_context = context_fn()
    forward_state = _ForwardState(preserve_rng_state)

    def recompute():
        with forward_state.again(), recompute_context:
            function(*args, **kwargs)

    frame = _Frame(recompute, _early_stop[0])
    with saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        return function(*args, **kwargs)


# ------------------------------------------------------------------------------------------ selective policies


class CheckpointPolicy(enum.Enum):
    """What becomes of an operator's results. MUST_ and PREFER_ are the same here, where no compiler decides otherwise."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy is told beside the operator and its arguments. op_output: what the operator gave."""

    def __init__(self, *, is_recompute, op_output=None):
        self.is_recompute = is_recompute
        self.op_output = op_output


_RECOMPUTE, _CONSUMED = object(), object()
_MISMATCH = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend on global state that changed "
    "between forward and backward."
)


class _Saved:
    """A result that was kept, with the version it had."""

    def __init__(self, value):
        self.value = value.detach() if isinstance(value, TensorImpl) else value
        self.version = self.value._version if isinstance(value, TensorImpl) else None

    def get(self, may_be_mutated):
        if self.version is not None and not may_be_mutated and self.value._version != self.version:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return self.value


def _is_ignored(func):
    return func is readtorch.ops.aten.detach.default  # their number differs between both runs


class _CachingTorchDispatchMode(TorchDispatchMode):
    """In the first forward: keeps the results that the policy says, in the order of the calls of each operator."""

    def __init__(self, policy_fn, storage):
        super().__init__()
        self.policy_fn, self.storage = policy_fn, storage

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if _is_ignored(func):
            return result
        context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
        policy = self.policy_fn(context, func, *args, **kwargs)
        is_saved = policy in (True, CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
        self.storage[func].append(tree_map(_Saved, result) if is_saved else _RECOMPUTE)
        return result


class _CachedTorchDispatchMode(TorchDispatchMode):
    """In the second: gives the results that were kept, each once, and computes the others."""

    def __init__(self, storage, allow_cache_entry_mutation):
        super().__init__()
        self.storage, self.allow_cache_entry_mutation = storage, allow_cache_entry_mutation

    def __enter__(self):
        self.calls = defaultdict(int)
        return super().__enter__()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if _is_ignored(func):
            return func(*args, **(kwargs or {}))
        index = self.calls[func]
        self.calls[func] += 1
        if func not in self.storage:
            raise RuntimeError(f"{func} encountered during backward but not found in storage. {_MISMATCH}")
        entries = self.storage[func]
        if index >= len(entries):
            raise RuntimeError(
                f"{func} invocation index {index} encountered during backward but not found in storage. {_MISMATCH}"
            )
        entry = entries[index]
        if entry is _CONSUMED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        if entry is _RECOMPUTE:
            return func(*args, **(kwargs or {}))
        entries[index] = _CONSUMED
        return tree_map(lambda saved: saved.get(self.allow_cache_entry_mutation), entry)


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation=False):
    """Two contexts for `checkpoint(context_fn=...)`: some operators' results are kept, and only the others computed again.

    policy_fn_or_list: the operators whose results are kept, or a function (context, operator, *arguments) -> CheckpointPolicy
    or bool. allow_cache_entry_mutation: whether what was kept may be written to. Raises ValueError for a list with other
    things than OpOverloads, TypeError for what is neither.
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            _check_is_overload(op)
        policy = lambda context, op, *args, **kwargs: op in policy_fn_or_list
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage = defaultdict(list)
    return _CachingTorchDispatchMode(policy, storage), _CachedTorchDispatchMode(storage, allow_cache_entry_mutation)


def _check_is_overload(op):
    from readtorch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket

    if not isinstance(op, (OpOverload, HigherOrderOperator)):
        hint = ""
        if isinstance(op, OpOverloadPacket):
            hint = (
                "Please update the OpOverloadPacket to a specific OpOverload.For example, if you have `torch.ops.aten.mm`, "
                "change it to `torch.ops.aten.mm.default`."
            )
        raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. {hint}")


# -------------------------------------------------------------------------------------------- public functions


def checkpoint(
    function,
    *args,
    use_reentrant=None,
    context_fn=noop_context_fn,
    determinism_check="default",
    debug=False,
    early_stop=True,
    **kwargs,
):
    """`function(*args, **kwargs)` without keeping what it saves for backward: it runs a second time then.

    use_reentrant=False (recommended) recomputes through hooks on saved tensors, True through a nested backward. Among the
    kwargs `preserve_rng_state` (True) is not the function's: whether the second run draws the same random numbers.
    """
    preserve_rng_state = kwargs.pop("preserve_rng_state", True)
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, calling "
            "checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to "
            "preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for more details on the "
            "differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    if use_reentrant:
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    if not is_grad_enabled():
        return function(*args, **kwargs)
    with set_checkpoint_early_stop(early_stop and _early_stop[0]):
        return _checkpoint_without_reentrant(function, preserve_rng_state, context_fn, args, kwargs)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """Run a sequence of modules in `segments` checkpointed parts; the last part is not checkpointed."""
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(functions) // segments

    def run(start, end):
        def forward(value):
            for function in functions[start:end]:
                value = function(value)
            return value

        return forward

    for start in range(0, size * (segments - 1), size):
        input = checkpoint(run(start, start + size), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return run(size * (segments - 1), len(functions))(input)
