"""Operators called with arguments drawn at random from what their schemas allow: `python -m tests.aten.random_calls` writes down which
calls end as PyTorch's do on the CPU, for `test_random_calls.py`, and which of these do so on the simulated device, too, for
`tests/cuda/test_random_calls.py`.
"""

import concurrent.futures
import contextlib
import functools
import gc
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import warnings

CALLS = 16  # of each operator
FILE = pathlib.Path(__file__).with_name("random_calls.json")
FILE_OF_CUDA = FILE.parents[1] / "cuda/random_calls.json"
LEFT_OUT = re.compile(  # no numbers that could be compared, no memory that was written to, or nothing that PyTorch survives
    "_(?!softmax|log_softmax|cdist|euclid|prelu|conj|neg|cum|trilinear|index_put|embedding_bag$|adaptive|linalg_(det|slogdet|solve)|foreach|"
    "logcum|masked|reshape|unsafe|fft|pdist|aminmax|is_)|.*empty|rand|normal|bernoulli|multinomial|poisson|binomial|dropout|rrelu|geometric|"
    "exponential|cauchy|uniform|resize|record_stream|set_|data|sparse|from_file|q_|cudnn|mkldnn|miopen|quant|fake|fbgemm|rename|align|lstm|gru|"
    "rnn|to_|coalesce|indices|values|crow|ccol|col_ind|row_ind|sym_|lift|retain|numpy|pin_memory|nested|batch_norm_|cuda|native_group_norm|"
    "native_layer_norm_backward|unsafe|max_unpool|fractional|ctc|sspaddmm|stft|istft|output_nr|share|svd|qr|eig|ormqr|geqrf|histogramdd|ldl|"
    "conv_tbc|choose_qparams|kaiser"
)


@functools.cache
def operators():
    """{name: schema} of those that are called."""
    import readtorch  # noqa: F401
    from readtorch.aten.dispatcher import registry

    known = {
        "Tensor",
        "Scalar",
        "int",
        "SymInt",
        "bool",
        "float",
        "ScalarType",
        "Layout",
        "Device",
        "MemoryFormat",
        "Generator",
        "str",
    }
    return {
        name: operator.schema
        for name, operator in sorted(registry.items())
        if not LEFT_OUT.match(operator.schema.name)
        and not operator.schema.is_out
        and not operator.schema.overload.endswith(("out", "Dimname", "names", "generator"))
        and all(a.type.base in known for a in operator.schema.arguments)
        and any(a.type.base == "Tensor" for a in operator.schema.arguments)
    }


SHAPES = [(2, 3), (2, 3), (3,), (), (3, 3), (1, 3), (0, 3), (2, 1, 4, 4), (2, 3, 5), (1, 2, 3, 3, 3)]
DTYPES = ["float64", "float64", "float32", "int64", "bool", "complex128", "int32"]


def tensor(T, chance, shape, dtype, grad):
    """On T's default device."""
    t = on_cpu(T, chance, shape, dtype).to(T.get_default_device())
    return t.requires_grad_() if grad and dtype == "float64" else t


def on_cpu(T, chance, shape, dtype):
    count = math.prod(shape)
    numbers = [chance.choice((-2, -1.5, -0.5, 0, 0.25, 0.75, 1, 2, 3)) for _ in range(count)]
    t = T.tensor(numbers, dtype=T.float64, device="cpu").reshape(shape)
    t = (
        (t * (1 - 0.5j)).to(T.complex128)
        if dtype == "complex128"
        else (t != 0)
        if dtype == "bool"
        else t.abs().to(getattr(T, dtype))
        if dtype.startswith("int")
        else t.to(getattr(T, dtype))
    )
    if len(shape) > 1 and chance.random() < 0.3:
        t = t.transpose(0, 1).contiguous().transpose(0, 1)
    return t


def value(T, chance, type_, common, grad):
    if type_.is_list:
        length = type_.size or chance.randint(1, 3)
        if type_.base == "Tensor":
            return [tensor(T, chance, common[0], common[1], grad) for _ in range(length)]
        return [value_of(T, chance, type_.base, common, grad) for _ in range(length)]
    return value_of(T, chance, type_.base, common, grad)


def value_of(T, chance, base, common, grad):
    if base == "Tensor":
        alike = chance.random() < 0.7
        return tensor(
            T,
            chance,
            common[0] if alike else chance.choice(SHAPES),
            common[1] if chance.random() < 0.8 else chance.choice(DTYPES),
            grad,
        )
    if base == "Scalar":
        return chance.choice((0, 1, 2, -1, 0.5, -2.5, True, 3, 1, 2, 0.75, 1.5, 1j))
    if base in ("int", "SymInt"):
        return chance.choice((0, 1, 2, -1, 3, 1, 0, 1, -2, 7))
    if base == "bool":
        return chance.random() < 0.5
    if base == "float":
        return chance.choice((0.0, 0.5, 1.0, 2.0, -1.0, 1e-5))
    if base == "ScalarType":
        return getattr(T, chance.choice(DTYPES))
    if base == "str":
        return chance.choice(("none", "mean", "sum", "floor", "trunc", "linear", "ij", "x"))
    return None


def arguments(T, name, schema, number):
    chance = random.Random(f"{name} {number}")
    common, grad = (chance.choice(SHAPES), chance.choice(DTYPES)), number % 2 == 1 and not schema.is_inplace
    given, named = [], {}
    for a in schema.arguments:
        drawn = value(T, chance, a.type, common, grad)
        if (
            a.has_default
            and chance.random()
            < (0.95 if a.type.base in ("ScalarType", "Layout", "Device", "MemoryFormat", "Generator") else 0.5)
            or a.type.base in ("Layout", "Device", "Generator")
        ):
            drawn = a.default if a.has_default else None
        elif a.type.optional and chance.random() < 0.4:
            drawn = None
        if a.keyword_only:
            if not a.has_default or drawn is not a.default:
                named[a.name] = drawn
        elif isinstance(drawn, str) and a.has_default and drawn == a.default:
            break
        else:
            given.append(drawn)
    return given, named


def described(T, result):
    if isinstance(result, T.Tensor):
        values = result.detach().cpu().resolve_conj().resolve_neg()
        numbers = T.view_as_real(values) if values.is_complex() else values.double()
        return (
            str(result.dtype).rpartition(".")[2],
            tuple(result.shape),
            numbers.reshape(-1).tolist(),
            result.requires_grad,
        )
    if isinstance(result, (tuple, list)):
        return [described(T, r) for r in result]
    return result


def outcome(T, name, schema, number):
    """What a call gives, or how it is refused."""
    given, named = arguments(T, name, schema, number)
    T.manual_seed(0)
    tensors = [
        t for a in (*given, *named.values()) for t in (a if isinstance(a, list) else [a]) if isinstance(t, T.Tensor)
    ]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = getattr(getattr(T.ops.aten, schema.name), schema.overload or "default")(*given, **named)
        seen = [
            described(T, result),
            [t._version for t in tensors],
            [described(T, t) for t in tensors] if schema.is_inplace else None,
        ]
        outputs = [
            r
            for r in (result if isinstance(result, (tuple, list)) else [result])
            if isinstance(r, T.Tensor) and r.requires_grad
        ]
        if outputs:
            sum((r * r).sum().real.double() for r in outputs).backward()
            seen.append([t.grad is not None and described(T, t.grad) for t in tensors])
    except Exception as error:
        return type(error).__name__, str(error).replace("_cuda", "_cpu")[:30]
    return seen


def alike(a, b):
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or a != a and b != b or abs(a - b) <= 1e-4 * max(1e-2, abs(a), abs(b))
    return type(a) is type(b) and a == b


def agreeing(names, progress):
    """{name: the calls that end alike}"""
    import torch

    import readtorch

    known = operators()
    found = {}
    for name in names:
        found[name] = []
        if not hasattr(torch.ops.aten, known[name].name) or not hasattr(
            getattr(torch.ops.aten, known[name].name), known[name].overload or "default"
        ):
            continue
        for number in range(CALLS):
            progress(name, number)
            if alike(outcome(torch, name, known[name], number), outcome(readtorch, name, known[name], number)):
                found[name].append(number)
    return found


@contextlib.contextmanager
def on_simulated_device():
    """readtorch's tensors are made on a device whose kernels run thread by thread."""
    import readtorch

    readtorch.cuda.simulate(1, "64MiB", kernels=True)
    readtorch.set_default_device("cuda")
    try:
        yield
    finally:
        readtorch.set_default_device(None)
        gc.collect()
        readtorch.cuda.simulate(0)


def agreeing_on_device():
    """{name: the calls that end alike on the CPU and on the device}, of the operators that have a kernel there."""
    import torch

    import readtorch
    from readtorch.aten.dispatcher import registry
    from readtorch.c10.dispatch_key import CUDA

    known, found = operators(), {}
    with on_simulated_device():
        for name, numbers in known_calls(FILE).items():
            if CUDA in registry[name].kernels:
                found[name] = [
                    number
                    for number in numbers
                    if alike(*(outcome(T, name, known[name], number) for T in (torch, readtorch)))
                ]
    return found


def known_calls(file):
    return json.loads(file.read_text(encoding="utf8"))


def write(found, file):
    found = {name: numbers for name, numbers in found.items() if numbers}
    file.write_text(
        "{\n"
        + ",\n".join(f" {json.dumps(name)}: {json.dumps(numbers)}" for name, numbers in sorted(found.items()))
        + "\n}\n",
        encoding="utf8",
    )
    print(file.name, sum(map(len, found.values())), "calls of", len(found), "operators end alike")


def main():
    if len(sys.argv) > 1:
        found = agreeing(sys.argv[1:], lambda name, number: print(name, number, file=sys.stderr, flush=True))
        print(json.dumps(found))
        return
    names, found = list(operators()), {}
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for some in pool.map(of_some, [names[start : start + 20] for start in range(0, len(names), 20)]):
            found |= some
    write(found, FILE)
    write(agreeing_on_device(), FILE_OF_CUDA)


def of_some(names):
    """In a process of its own; again without an operator that ends the process."""
    if not names:
        return {}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.aten.random_calls", *names], text=True, capture_output=True, timeout=60
        )
        if done.returncode == 0:
            return json.loads(done.stdout.splitlines()[-1])
        printed = done.stderr
    except subprocess.TimeoutExpired as error:
        printed = error.stderr.decode() if isinstance(error.stderr, bytes) else error.stderr or ""
    last = [line.split()[0] for line in printed.splitlines() if line.startswith("aten::")]
    print("ends the process:", last[-1:], printed.splitlines()[-1:], flush=True)
    return of_some([name for name in names if last and name != last[-1]])


if __name__ == "__main__":
    main()
