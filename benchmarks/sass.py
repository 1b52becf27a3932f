"""python -m benchmarks.sass: the machine code of the CUDA kernels, and what it says about their speed. Needs no GPU.

    python -m benchmarks.sass                     every case; the table goes to benchmarks/results/gpu/sass.json
    python -m benchmarks.sass softmax             cases whose name contains one of these words, printed only
    python -m benchmarks.sass softmax --listing   with the instructions of the loop

numba compiles a kernel for sm_90 and links it, as it does on a chip; `nvdisasm` reads the result, SASS (the package
nvidia-cuda-nvdisasm, or a folder of PATH, or the variable NVDISASM). Of the kernel of a case that moves most:
registers, stack, spills, bytes of a load, instructions of the loop for each element, the share of FFMA among them, 64-bit
divisions; and an estimate of its speed, as a share of what a copy reaches. Nothing here is a measurement.

Note [ An estimate of speed from machine code ]
An H100 (SXM) has 132 multiprocessors of four schedulers at 1.755 GHz, and copies 2.9 TB/s (assumed): 3.1 bytes for each
scheduler and cycle. A warp that moves 8 bytes for each of its 32 elements may spend 82 cycles on them. What it does spend
is the sum over the loop's instructions: one cycle for a float32 operation, two for an integer, a comparison or a
selection, four for what goes through shared memory or between lanes, eight for exp2, 1/x and conversions. Their ratio is
`busy`.
Memory answers after about 0.6 µs. To be busy it needs that much time's bytes asked for at once: what the resident threads
load in one iteration, against 0.6 µs of the bandwidth, is `waiting`. The share of the copy's bandwidth is then taken as
(1 + busy⁴ + waiting⁴) ^ -1/4: about 1 where both are small, 1/busy or 1/waiting where one is large.

Note [ The loop that counts ]
It is the outermost one that moves most bytes; a kernel without one counts as a whole. How often loops inside of it run
is not in the code: each takes the share of a row (`Case.row`) that a thread has. A loop that follows one of more bytes an
iteration does what that one leaves, and is left out. A path that is rarely taken counts in full.
"""

import argparse
import collections
import functools
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import typing

import numpy as np

from benchmarks import record
from benchmarks.sass_cases import cases
from benchmarks.sass_loops import executed, loops

RESULTS = record.RESULTS / "gpu"
CHIP = (9, 0)
MULTIPROCESSORS, SCHEDULERS, CLOCK, COPY, LATENCY = 132, 4, 1.755e9, 2.9e12, 0.6e-6
BUDGET = COPY / (MULTIPROCESSORS * SCHEDULERS * CLOCK)  # bytes of a scheduler and cycle
CYCLES = {  # of a scheduler, by the beginning of an instruction's name; 2 for all that is not named
    1: "FFMA FADD FMUL HFMA MOV NOP BRA EXIT BSSY BSYNC U S2UR R2UR LDC LDG STG LD ST WARPSYNC CALL RET",
    4: "LDS STS SHFL BAR VOTE ATOMS RED ATOM LDL STL",
    8: "MUFU I2F F2I F2F S2R FRND DADD DMUL DFMA",
}


# ----------------------------------------------------------------------------------------------------------- compiling


class Launch(typing.NamedTuple):
    kernel: object
    types: tuple
    threads: int  # of a block
    blocks: int
    shared: int


def launches(launcher, arguments):
    """What a launcher would launch; nothing is computed."""
    from readtorch.c10.cuda.compile import signature_of
    from readtorch.c10.cuda.launch import launching_by

    found = []

    def note(kernel, grid, block, *arguments, shared=0):
        found.append(Launch(kernel, signature_of(arguments), int(np.prod(block)), int(np.prod(grid)), shared))

    with launching_by(note):
        launcher(*arguments)
    return found


@functools.cache
def library(kernel, types):
    """numba's library of a kernel, made as its dispatcher does on a chip: with link-time optimization."""
    from numba import types as numba_types
    from numba.cuda import compiler
    from numba.cuda.cudadrv import nvvm

    from readtorch.c10.cuda.compile import bounds_of, for_numba

    result = compiler.compile_cuda(
        for_numba(kernel), numba_types.void, types, cc=CHIP, nvvm_options={"fastmath": False, "opt": 3}, lto=True
    )
    made = result.library
    entry = made.get_function(result.fndesc.llvm_func_name)
    made._entry_name = result.fndesc.llvm_func_name
    compiler.kernel_fixup(entry, False)
    nvvm.set_launch_bounds(entry, bounds_of(kernel))
    return made


def ptx(launch):
    """The kernel as PTX, after link-time optimization: what becomes machine code."""
    text = library(launch.kernel, launch.types).get_lto_ptx(cc=CHIP)
    return (text if isinstance(text, str) else text.decode()).rstrip("\0")


def tool(name):
    """The path of one of NVIDIA's tools: named by a variable, of a package, or of the system. None without it."""
    if name.upper() in os.environ:
        return os.environ[name.upper()]
    packages = importlib.util.find_spec("nvidia")
    roots = packages.submodule_search_locations if packages else []
    found = [str(path) for root in roots for path in pathlib.Path(root).glob(f"*/bin/{name}")]
    return next(iter(found), shutil.which(name))


@functools.cache
def assembled(kernel, types):
    """(what ptxas says of the kernel, the machine code as a cubin)."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder, "kernel.ptx"), pathlib.Path(folder, "kernel.cubin")
        source.write_text(ptx(Launch(kernel, types, 0, 0, 0)), encoding="utf8")
        command = [tool("ptxas"), "-v", f"-arch=sm_{CHIP[0]}{CHIP[1]}", source, "-o", target]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        return said, target.read_bytes()


def resources(launch):
    """(registers, bytes of stack, bytes of spills, bytes of shared memory) of a kernel and what it calls."""
    said, _ = assembled(launch.kernel, launch.types)

    def most(what):
        return max(map(int, re.findall(rf"(\d+) {what}", said)), default=0)

    spills = most("bytes spill stores") + most("bytes spill loads")
    return most("registers"), most("bytes stack frame"), spills, most("bytes smem") + launch.shared


def machine_code(launch):
    """The kernel's instructions, and label -> the place of the instruction after it."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        pathlib.Path(file.name).write_bytes(assembled(launch.kernel, launch.types)[1])
        command = [tool("nvdisasm"), "-c", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    sections = re.split(r"^//-+ (\S+) -+$", text, flags=re.MULTILINE)
    kernels = [body for name, body in zip(sections[1::2], sections[2::2]) if name.startswith(".text._Z")]
    instructions, labels = [], {}
    for line in kernels[0].splitlines():
        if label := re.match(r"(\.L_\w+):", line):
            labels[label[1]] = len(instructions)
        elif found := re.match(r"\s+/\*[0-9a-f]+\*/\s+(.*?)\s*;", line):
            instructions.append(found[1])
    return instructions, labels


# ------------------------------------------------------------------------------------------------------------- reading


def name_of(instruction):
    """Without the predicate: "@!P0 LDG.E.128 R4, …" is an LDG.E.128."""
    return re.sub(r"^@!?U?P\w+\s+", "", instruction).split()[0]


def cycles(instruction):
    name = name_of(instruction)
    for count, starts in CYCLES.items():
        if name.startswith(tuple(starts.split())):
            return count
    return 2


LOADS, STORES = ("LDG", "LD"), ("STG", "ST")  # LD and ST: where the compiler does not know that memory is global


def accesses(instructions, kinds=LOADS + STORES):
    """The names of these loads and stores."""
    return [name for name in map(name_of, instructions) if name.split(".")[0] in kinds]


def moved(instructions, kinds=LOADS + STORES):
    """Bytes that these loads and stores of global memory move for a thread."""
    return sum(map(width, accesses(instructions, kinds)))


def stands(instructions):
    """Whether a loop reads and writes the same places again and again: a case that the compiler set apart."""
    written = {
        found[1] for one in instructions if (found := re.match(r"(?:@\S+\s+)?(?!ST)\S+\s+(?:P\d, )?(U?R\d+)", one))
    }
    addresses = [re.findall(r"U?R\d+", re.split(r"[][]", one)[-2]) for one in instructions if accesses([one])]
    return not written & {register for registers in addresses for register in registers}


def width(name):
    """Bytes of one access: LDG.E.128 has 16."""
    for part, count in (("128", 16), ("64", 8), ("U8", 1), ("S8", 1), ("U16", 2), ("S16", 2)):
        if part in name.split("."):
            return count
    return 4


class Body(typing.NamedTuple):
    """What a thread executes for so many elements."""

    instructions: list
    cycles: float
    executed: float
    elements: float
    loaded: int  # bytes in flight


def hot(instructions, labels):
    """The places that count, and the loops among them that move bytes: Note [ The loop that counts ]."""

    def code(places):
        return [instructions[k] for k in places]

    def bytes_of(places):
        return moved(code(places))

    found = [loop for loop in loops(instructions, labels) if bytes_of(loop) and not stands(code(loop))]
    outer = [loop for loop in found if not any(loop < other for other in found)]
    best = max(outer, key=bytes_of, default=executed(instructions, labels))
    inner = [loop for loop in found if loop < best and not any(other < loop for other in found)]
    return best, sorted(inner, key=min)


def body(instructions, labels, case, launch):
    """The part of the code that counts, with how often each loop inside runs."""
    places, inner = hot(instructions, labels)
    part = [instructions[k] for k in sorted(places)]
    share = case.row_of(launch) / launch.threads
    if not inner or not share:
        elements = moved(part, STORES) / case.stored if case.stored else moved(part) / case.bytes
        return Body(part, sum(map(cycles, part)), len(part), elements, moved(part, LOADS))
    own = places.difference(*inner)
    spent, count, loaded, most = sum(cycles(instructions[k]) for k in own), len(own), 0, 0
    for loop in inner:
        code = [instructions[k] for k in sorted(loop)]
        follows, most = moved(code) < most, moved(code)
        if follows:
            continue
        trips = share * streams(code) * 4 / moved(code)
        spent, count = spent + trips * sum(map(cycles, code)), count + trips * len(code)
        loaded = max(loaded, moved(code, LOADS))
    return Body(part, spent, count, share, loaded)


def streams(code):
    """How many arrays a loop goes along (float32): those that it loads from count as one."""
    return bool(accesses(code, LOADS)) + bool(accesses(code, STORES))


def resident_blocks(launch, registers, shared):
    """How many blocks a multiprocessor holds."""
    warps = -(-launch.threads // 32)
    by_registers = 65536 // (-(-registers * 32 // 256) * 256 * warps)
    return min(2048 // (32 * warps), 32, by_registers, (227 << 10) // (shared + 1024))


def estimate(launch, body, case, registers, shared):
    """(busy, waiting, share of the copy): Note [ An estimate of speed from machine code ]."""
    busy = body.cycles / (32 * case.bytes * max(body.elements, 1 / 32) / BUDGET)
    blocks = min(launch.blocks, MULTIPROCESSORS * resident_blocks(launch, registers, shared))
    reads = body.loaded / max(1, moved(body.instructions))
    waiting = COPY * LATENCY * max(reads, 0.3) / max(1, blocks * launch.threads * body.loaded)
    return busy, waiting, (1 + busy**4 + waiting**4) ** -0.25


def divisions(text):
    """64-bit divisions in PTX."""
    return len(re.findall(r"\b(?:div|rem)\.[su]64\b", text))


def division_calls(instructions):
    """64-bit divisions in machine code: a division of 64 bits is a function."""
    return sum(
        "CALL" in instruction and re.search(r"(div|rem)_[su]64", instruction) is not None
        for instruction in instructions
    )


def bytes_a_load(instructions):
    return moved(instructions, LOADS) / max(1, len(accesses(instructions, LOADS)))


def read(name, case):
    """The row of a case: of the launch whose loop moves most."""
    read = [row_of(name, case, launch) for launch in dict.fromkeys(launches(case.launcher, case.arguments))]
    return max(read, key=lambda pair: pair[0]["blocks"] * pair[0]["threads"])


def row_of(name, case, launch):
    registers, stack, spills, shared = resources(launch)
    instructions, labels = machine_code(launch)
    found = body(instructions, labels, case, launch)
    busy, waiting, share = estimate(launch, found, case, registers, shared)
    kinds = collections.Counter(name_of(one).split(".")[0] for one in found.instructions)
    row = {
        "case": name,
        "kernel": launch.kernel.__name__,
        "threads": launch.threads,
        "blocks": launch.blocks,
        "registers": registers,
        "stack": stack,
        "spills": spills,
        "bytes an element": case.bytes,
        "bytes a load": round(bytes_a_load(found.instructions), 2),
        "instructions an element": round(found.executed / found.elements, 1) if found.elements else None,
        "FFMA share": round(kinds["FFMA"] / len(found.instructions), 3),
        "64-bit divisions": division_calls(instructions),
        "in the loop": division_calls(found.instructions),
        "busy": round(busy, 2),
        "waiting": round(waiting, 2),
        "of the copy": round(share, 2),
    }
    return row, found.instructions


# ------------------------------------------------------------------------------------------------------------ reporting

SHOWN = (
    ("case", 32), ("kernel", 12), ("threads", 8), ("blocks", 8), ("registers", 5), ("spills", 4), ("bytes an element", 4), ("bytes a load", 6),
    ("instructions an element", 7), ("64-bit divisions", 4), ("in the loop", 4), ("busy", 6), ("waiting", 8), ("of the copy", 6),
)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sass")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--listing", action="store_true")
    options = parser.parse_args()
    if not (tool("nvdisasm") and tool("ptxas")):
        parser.exit(1, "nvdisasm and ptxas are needed: pip install nvidia-cuda-nvdisasm nvidia-cuda-nvcc\n")
    chosen = {k: c for k, c in cases().items() if not options.words or any(word in k for word in options.words)}
    rows = []
    print(" ".join(name[:width].ljust(width) for name, width in SHOWN))
    for name, case in chosen.items():
        row, instructions = read(name, case)
        rows.append(row)
        print(" ".join(str(row[name])[:width].ljust(width) for name, width in SHOWN), flush=True)
        if options.listing:
            print("\n".join(f"    {cycles(one)} {one}" for one in instructions))
    if not options.words:
        print(record.write("sass", rows, RESULTS))


if __name__ == "__main__":
    main()
