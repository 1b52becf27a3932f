"""Which kernels a call visits, one key after the other: predicted from the dispatch table, the key sets and the thread's state, and
observed by kernels that write down their key and call the one whose place they took.

`python -m tests.aten.hops torch` and `… readtorch` print what was predicted and observed as JSON. It is a program of its own because
the recording kernels stay.
"""

import contextlib
import importlib
import json
import random
import re
import sys
import warnings

CASES = 500

# In order of priority. A tensor's key in an order like this one is made of a functionality and a backend.
FUNCTIONALITIES = "Dense Sparse BackendSelect Python Functionalize Conjugate Negative ZeroTensor ADInplaceOrView Autograd Autocast PythonTLSSnapshot".split()
BACKENDS = ["CPU", "CUDA", "Meta"]
RECORDED = "CPU Meta SparseCPU BackendSelect Conjugate Negative ZeroTensor ADInplaceOrView AutogradCPU AutogradMeta PythonTLSSnapshot".split()

# What a call is given: two tensors of 3 x 3, and a device for what has none.
OPERATORS = {
    "add.Tensor": lambda a, b, device: (a, b),
    "sub.Tensor": lambda a, b, device: (a, b),
    "mul.Tensor": lambda a, b, device: (a, b),
    "div.Tensor": lambda a, b, device: (a, b),
    "neg": lambda a, b, device: (a,),
    "exp": lambda a, b, device: (a,),
    "sin": lambda a, b, device: (a,),
    "abs": lambda a, b, device: (a,),
    "sum": lambda a, b, device: (a,),
    "sum.dim_IntList": lambda a, b, device: (a, [0]),
    "mean": lambda a, b, device: (a,),
    "mm": lambda a, b, device: (a, b),
    "addmm": lambda a, b, device: (a, a, b),
    "cat": lambda a, b, device: ([a, b],),
    "clone": lambda a, b, device: (a,),
    "sgn": lambda a, b, device: (a,),
    "matmul": lambda a, b, device: (a, b),
    "linear": lambda a, b, device: (a, b),
    "square": lambda a, b, device: (a,),
    "reshape": lambda a, b, device: (a, [9]),
    "flatten.using_ints": lambda a, b, device: (a,),
    "resolve_conj": lambda a, b, device: (a,),
    "resolve_neg": lambda a, b, device: (a,),
    "add_.Tensor": lambda a, b, device: (a, b),
    "mul_.Tensor": lambda a, b, device: (a, b),
    "neg_": lambda a, b, device: (a,),
    "exp_": lambda a, b, device: (a,),
    "zero_": lambda a, b, device: (a,),
    "fill_.Scalar": lambda a, b, device: (a, 2),
    "copy_": lambda a, b, device: (a, b),
    "add.out": lambda a, b, device: (a, a, {"out": b}),
    "mul.out": lambda a, b, device: (a, a, {"out": b}),
    "exp.out": lambda a, b, device: (a, {"out": b}),
    "mm.out": lambda a, b, device: (a, a, {"out": b}),
    "view": lambda a, b, device: (a, [9]),
    "t": lambda a, b, device: (a,),
    "transpose.int": lambda a, b, device: (a, 0, 1),
    "select.int": lambda a, b, device: (a, 0, 1),
    "slice.Tensor": lambda a, b, device: (a, 0, 1),
    "expand": lambda a, b, device: (a, [2, 3, 3]),
    "unsqueeze": lambda a, b, device: (a, 0),
    "detach": lambda a, b, device: (a,),
    "alias": lambda a, b, device: (a,),
    "conj": lambda a, b, device: (a,),
    "_neg_view": lambda a, b, device: (a,),
    "empty.memory_format": lambda a, b, device: ([2], {"device": device}),
    "ones": lambda a, b, device: ([2], {"device": device}),
    "full": lambda a, b, device: ([2], 1.5, {"device": device}),
    "arange": lambda a, b, device: (3, {"device": device}),
    "ones_like": lambda a, b, device: (a,),
    "new_zeros": lambda a, b, device: (a, [2]),
}

TENSORS = {
    "plain": lambda T: T.ones(3, 3),
    "leaf": lambda T: T.ones(3, 3, requires_grad=True),
    "history": lambda T: T.ones(3, 3, requires_grad=True).cos(),
    "view": lambda T: T.ones(9).view(3, 3),
    "view of history": lambda T: T.ones(9, requires_grad=True).cos().view(3, 3),
    "complex": lambda T: T.ones(3, 3, dtype=T.complex64),
    "conj": lambda T: T.ones(3, 3, dtype=T.complex64).conj(),
    "conj of leaf": lambda T: T.ones(3, 3, dtype=T.complex64, requires_grad=True).conj(),
    "neg": lambda T: T._neg_view(T.ones(3, 3)),
    "neg of leaf": lambda T: T._neg_view(T.ones(3, 3, requires_grad=True)),
    "conj and neg": lambda T: T._neg_view(T.ones(3, 3, dtype=T.complex64).conj()),
    "zero": lambda T: T._efficientzerotensor((3, 3)),
    "sparse": lambda T: T.ones(3, 3).to_sparse(),
    "sparse leaf": lambda T: T.ones(3, 3).to_sparse().requires_grad_(),
    "meta": lambda T: T.ones(3, 3, device="meta"),
    "meta leaf": lambda T: T.ones(3, 3, device="meta", requires_grad=True),
    "inference": lambda T: inference(T, lambda: T.ones(3, 3)),
    "inference conj": lambda T: inference(T, lambda: T.ones(3, 3, dtype=T.complex64).conj()),
    "wrapper": lambda T: wrapper(T, False),
    "wrapper leaf": lambda T: wrapper(T, True),
}

STATES = {
    "no_grad": lambda T: T.no_grad(),
    "inference_mode": lambda T: T.inference_mode(),
    "inference_mode(False)": lambda T: T.inference_mode(False),
    "mode": lambda T: mode(T),
    "below autograd": lambda T: T._C._AutoDispatchBelowAutograd(),
    "below ADInplaceOrView": lambda T: T._C._AutoDispatchBelowADInplaceOrView(),
    "no dispatch to Python": lambda T: T._C._DisableTorchDispatch(),
    **{
        f"without {key}": lambda T, key=key: without(T, key)
        for key in "AutogradCPU ADInplaceOrView Conjugate Negative".split()
    },
    **{
        f"with {key}": lambda T, key=key: T._C._IncludeDispatchKeyGuard(T._C.DispatchKey.__members__[key])
        for key in "ADInplaceOrView Conjugate Negative ZeroTensor".split()
    },
}


def cases(seed=22):
    """[(left, right, states)]: two kinds of tensors and up to four things that are done to the thread."""
    chance = random.Random(seed)
    kinds, result = list(TENSORS), []
    for _ in range(CASES):
        left = chance.choice(kinds)
        right = chance.choice([left, "plain", chance.choice(kinds)])
        if {"sparse", "meta"} <= set(f"{left} {right}".split()):
            right = left  # together they are at SparseMeta, a key that only PyTorch has
        # A wrapper has no memory: PyTorch reads address 0 where nothing asks its class. What PyTorch does with a sparse tensor
        # at ZeroTensor does not end.
        never = {"wrapper": "no dispatch to Python", "sparse": "with ZeroTensor"}
        states = [s for s in STATES if s not in [never.get(kind) for kind in f"{left} {right}".split()]]
        result.append((left, right, chance.sample(states, chance.choice((0, 0, 1, 1, 2, 2, 3, 4)))))
    return result


def inference(T, make):
    with T.inference_mode():
        return make()


def without(T, key):
    return T._C._ExcludeDispatchKeyGuard(T._C.DispatchKeySet(T._C.DispatchKey.__members__[key]))


# --------------------------------------------------------------------------------------------------- prediction


def split(names):
    """{"CPU", "AutogradCPU", "Negative"} as functionalities and backends."""
    functionalities, backends = set(), set()
    for name in names:
        kind, backend = next(
            ((f, name.removeprefix(f)) for f in ("Autograd", "Autocast", "Sparse") if name.startswith(f)), (name, "")
        )
        if name in BACKENDS:
            kind, backend = "Dense", name
        functionalities.add(kind)
        backends |= {backend} & set(BACKENDS)
    return functionalities & set(FUNCTIONALITIES), backends


def entry(functionality, backends):
    """The key at which the table is read: with the highest of the backends where there is one a backend."""
    backend = max(backends, key=BACKENDS.index, default="")
    if functionality == "Dense":
        return backend
    return functionality + (backend if functionality in ("Autograd", "Autocast", "Sparse") else "")


def is_last(key, kind):
    """Whether a kernel hands the call to no other one of the same operator."""
    if kind in ("math kernel", "default backend kernel"):
        return True
    return kind == "kernel" and (key in ("CPU", "Meta", "SparseCPU", "Conjugate", "Negative", "ZeroTensor"))


def predicted(table, keys, included, excluded, device):
    """The hops of one call: key sets are lists of names, `table` is {key: kind of kernel}."""
    functionalities, backends = split(keys + included)
    functionalities -= split(excluded)[0]
    hops = []
    while True:
        open_to = [
            f for f in FUNCTIONALITIES if f in functionalities and table.get(entry(f, backends)) != "fallthrough"
        ]
        if not open_to:  # readtorch has no BackendSelect: it looks at `device` before the first key
            return hops if backends else [*hops, device]
        key = entry(open_to[-1], backends)
        if key not in table:
            return hops
        hops.append(key)
        if key == "Python" or is_last(key, table[key]) or open_to[-1] in ("Dense", "Sparse"):
            return hops
        functionalities = set(FUNCTIONALITIES[: FUNCTIONALITIES.index(open_to[-1])]) & functionalities
        if key == "BackendSelect":
            functionalities, backends = {"Dense"}, {device}


# -------------------------------------------------------------------------------------------------- observation


class Recorder:
    """Writes down the hops of one call, and what each way to it was made of."""

    def __init__(self, T):
        self.T = T
        self.under = []  # [(operator, whether it is the last)] of the kernels that run
        self.hops, self.sets, self.calls = [], [], []
        self.library = T.library.Library("aten", "IMPL")
        self.tables = {name: self.table_of(name) for name in OPERATORS}
        for name in OPERATORS:
            self.record(name)

    def table_of(self, name):
        """{key: kind of kernel} from PyTorch's text."""
        lines = (line.partition(": ") for line in self.T._C._dispatch_dump_table(f"aten::{name}").splitlines())
        return {
            key: "fallthrough" if what.startswith("fallthrough") else re.search(r"\[(.*)\]$", what)[1]
            for key, _, what in lines
        }

    def record(self, name):
        table = self.tables[name]
        keys = [key for key in RECORDED if table.get(key, "fallthrough") != "fallthrough"]
        kernels = {key: self.T.library.get_kernel(f"aten::{name}", key) for key in keys}
        for key, kernel in kernels.items():
            self.library.m.impl(name, key, self.recording(name, key, kernel), True)

    def recording(self, name, key, kernel):
        last = is_last(key, self.tables[name][key])
        operator = self.operator(name)
        tensors = [a.name for a in operator._schema.arguments if str(a.type) == "Tensor"]

        def record(keys, *args, **kwargs):
            with self.running(name, key, last):
                args = [self.as_tensor(a) if p.name in tensors else a for p, a in zip(operator._schema.arguments, args)]
                return kernel.call_boxed(keys, *args, **kwargs)

        return record

    def as_tensor(self, value):
        """Where a kernel was given a tensor for a number, PyTorch gives the number to one that is written in Python."""
        if isinstance(value, self.T.Tensor):
            return value
        hops, calls = list(self.hops), list(self.calls)
        value = self.T.tensor(value)
        self.hops, self.calls = hops, calls
        return value

    def operator(self, name):
        packet, _, overload = name.partition(".")
        return getattr(getattr(self.T.ops.aten, packet), overload or "default")

    @contextlib.contextmanager
    def running(self, name, key, last):
        if all(other == name and not ends for other, ends in self.under):
            self.hops.append(key)
        if not self.under:
            self.calls.append(name)
        self.under.append((name, last))
        try:
            yield
        finally:
            self.under.pop()

    def note_call(self, name, args, kwargs):
        """What decides where a call goes that is about to be made."""
        if not all(other == name and not ends for other, ends in self.under):
            return
        tensors = [
            t
            for a in (*args, *kwargs.values())
            for t in (a if isinstance(a, list) else [a])
            if isinstance(t, self.T.Tensor)
        ]
        keys = [names(self.T._C._dispatch_keys(t)) for t in tensors]
        included, excluded = self.T._C._dispatch_tls_local_include_set(), self.T._C._dispatch_tls_local_exclude_set()
        self.sets.append((sum(keys, []), names(included), names(excluded)))

    def made_from(self, name, left, right):
        """The operator and its arguments."""
        operator = self.operator(name)
        args = OPERATORS[name](TENSORS[left](self.T), TENSORS[right](self.T), "meta" if "meta" in left else "cpu")
        return (operator, args[:-1], args[-1]) if isinstance(args[-1], dict) else (operator, args, {})

    def observe(self, name, left, right, states):
        """(predicted hops, observed hops, type of the error or None)."""
        operator, args, kwargs = self.made_from(name, left, right)
        error = None
        with contextlib.ExitStack() as stack:
            try:
                for state in states:
                    stack.enter_context(STATES[state](self.T))
                self.hops, self.sets, self.under = [], [], []
                self.note_call(name, args, kwargs)
                operator(*args, **kwargs)
            except Exception as e:
                error = type(e).__name__
            sets, hops = list(self.sets), list(self.hops)
        device = "Meta" if "meta" in left else "CPU"
        expected = [hop for parts in sets for hop in predicted(self.tables[name], *parts, device)]
        return expected, hops, error

    def observe_profiler(self):
        """The calls that this program makes as the recording kernels saw them come, and as the profiler tells of them."""
        made = [self.made_from(name, "history", "plain") for name in OPERATORS if not name.endswith("out")]
        self.calls = []
        with profiler(self.T) as profiled:
            for operator, args, kwargs in made:
                operator(*args, **kwargs)
        return [name.partition(".")[0] for name in self.calls], profiled()


@contextlib.contextmanager
def profiler(T):
    """Gives a function that tells, after them, the names of the calls that were made inside, not by other calls."""
    if T.__name__ == "torch":
        with T.profiler.profile(activities=[T.profiler.ProfilerActivity.CPU]) as profile:
            yield lambda: [e.name.removeprefix("aten::") for e in profile.events() if e.cpu_parent is None]
        return
    from readtorch.aten import record_function

    with record_function.observe(lambda *call: called.append(call)):
        called = []
        yield lambda: [function.__name__ for function, _, _ in called]


recorder = None


def names(keys):
    return re.findall(r"\w+", str(keys).partition("(")[2])


def name_of(func):
    return str(func).removeprefix("aten.").removesuffix(".default")


def mode(T):
    class Mode(T.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            with recorder.running(name_of(func), "Python", False):
                recorder.note_call(name_of(func), args, kwargs or {})
                return func(*args, **(kwargs or {}))

    return Mode()


def wrapper(T, requires_grad):
    if not hasattr(T, "_hops_wrapper"):

        class Wrapper(T.Tensor):
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                with recorder.running(name_of(func), "Python", True):
                    args, kwargs = T.utils._pytree.tree_map_only(cls, lambda w: w.inner, (args, kwargs or {}))
                    return T.utils._pytree.tree_map_only(T.Tensor, wrap, func(*args, **kwargs))

        def wrap(inner, requires_grad=False):
            made = T.Tensor._make_wrapper_subclass(Wrapper, inner.shape, dtype=inner.dtype, requires_grad=requires_grad)
            made.inner = inner
            return made

        T._hops_wrapper = wrap
    return T._hops_wrapper(T.ones(3, 3), requires_grad)


def observe_all(T):
    """What each operator does in each case, `hops`, and what is `called` and `profiled`."""
    global recorder  # modes and wrappers, made anywhere, write to it
    importlib.import_module(f"{T.__name__}.utils._python_dispatch")
    importlib.import_module(f"{T.__name__}.utils._pytree")
    warnings.simplefilter("ignore")
    recorder = Recorder(T)
    hops = [[recorder.observe(name, *case) for name in OPERATORS] for case in cases()]
    called, profiled = recorder.observe_profiler()
    return {"hops": hops, "called": called, "profiled": profiled}


if __name__ == "__main__":
    json.dump(observe_all(importlib.import_module(sys.argv[1])), sys.stdout)
