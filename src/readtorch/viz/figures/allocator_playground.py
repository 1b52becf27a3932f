"""The caching allocator on a device of the reader's: a program of tensors that come and go, statement by statement (the
chapter "The caching allocator").

In Python the allocator is readtorch's own; the page has a twin in JavaScript, which tests let repeat recorded runs of
PyTorch's. In PyTorch: `c10/cuda/CUDACachingAllocator.cpp`.
"""

import logging
import re
from dataclasses import dataclass

from readtorch.c10.cuda.allocator_config import AllocatorConfig
from readtorch.c10.cuda.cuda_caching_allocator import CachingAllocator
from readtorch.c10.cuda.cuda_caching_allocator.snapshot import segments_of
from readtorch.c10.cuda.cuda_exception import OutOfMemoryError
from readtorch.c10.cuda.sizes import LARGE_SEGMENT, MIB, SMALL_SEGMENT, SMALL_SIZE, segment_size
from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Expression, Integer, Refusal, Switch
from readtorch.viz.picture import drawing, tag, text
from readtorch.viz.told_driver import ToldDriver

MOST_STEPS = 60
STREAMS = 4
UNITS = {"": MIB, "B": 1, "K": 1 << 10, "M": MIB, "G": 1 << 30}
FRAGMENTED = "a,b,c,d,e,f,g,h,i,j,k,l = 5; del a,c,e,g,i,k; x = 24"
PROGRAMS = (
    FRAGMENTED,
    "a = 5; b = 2; c = 9; del a; d = 3; e = 4; del b,c,d,e; empty",
    "a = 8; use a @1; del a; b = 8; wait @1; c = 8",
    "a = 8; read a @1; del a; b = 8; wait @1",
    "a = 8; b = 8; read b @1; use b @1; del b; c = 70; d = 8",
    "a = 300B; b = 600K; c = 1; d = 1025K; e = 9.9; f = 10; g = 10.1",
    "a = 30; del a; b = 31; del b; c = 32; del c; d = 33; e = 25",
    "a = 60; del a; b = 10; c = 10; del b,c; d = 70",
    "a = 20; a = 20; a = 20",
    "a = 6 @1; del a; b = 6; c = 6 @1",
    "a,b,c,d = 512; del b; e = 700K; del a,c; empty; f = 3",
    "a = 40; b = 40; del a; c = 50; del b; d = 50; wait @2; empty",
)


@dataclass(frozen=True)
class Action:
    """One thing that the program does. kind: "make", "del", "read", "use", "wait" or "empty"."""

    kind: str
    name: str = ""
    size: int = 0
    stream: int = 0
    statement: int = 0  # which one it belongs to

    def written(self):
        at = f" @{self.stream}" if self.stream else ""
        return {
            "make": f"{self.name} = {amount(self.size)}{at}",
            "del": f"del {self.name}",
            "read": f"read {self.name} @{self.stream}",
            "use": f"use {self.name} @{self.stream}",
            "wait": f"wait @{self.stream}",
            "empty": "empty",
        }[self.kind]


# ---- reading the program

NAMES = r"([a-z]\w{0,3}(?:\s*,\s*[a-z]\w{0,3})*)"
FORMS = {
    "make": re.compile(rf"{NAMES}\s*=\s*(\d+(?:\.\d+)?|\.\d+)\s*([BKMG]?)\s*(?:@\s*([0-9]))?", re.ASCII),
    "del": re.compile(rf"del\s+{NAMES}", re.ASCII),
    "read": re.compile(rf"read\s+{NAMES}\s*@\s*([0-9])", re.ASCII),
    "use": re.compile(rf"use\s+{NAMES}\s*@\s*([0-9])", re.ASCII),
    "wait": re.compile(r"wait\s*@\s*([0-9])", re.ASCII),
    "empty": re.compile(r"empty", re.ASCII),
}


def read_program(code):
    """[Action]. Raises Refusal."""
    statements = [piece.strip() for piece in code.split(";") if piece.strip()]
    actions = [action for i, piece in enumerate(statements) for action in read_statement(piece, i)]
    if not 1 <= len(actions) <= MOST_STEPS:
        raise Refusal(
            f"The program makes and deletes, statement by statement: 1 to {MOST_STEPS} steps. This one has {len(actions)}."
        )
    there = set()
    for action in actions:
        if action.kind == "make":
            there.add(action.name)
        elif action.kind in ("del", "read", "use") and action.name not in there:
            raise Refusal(f"“{statements[action.statement]}”: there is no {action.name} at that point.")
        if action.kind == "del":
            there.remove(action.name)
    return actions


def read_statement(piece, i):
    for kind, form in FORMS.items():
        match = form.fullmatch(piece)
        if match:
            return list(READ[kind](piece, i, *match.groups()))
    raise Refusal(
        f"“{piece}” is none of: a = 5, a,b = 512K @1, del a,b, read a @1, use a @1, wait @1, empty. Sizes are in MiB."
    )


def read_make(piece, i, names, number, unit, stream):
    size = int(float(number) * UNITS[unit])
    if size < 1:
        raise Refusal(f"“{piece}”: an empty tensor asks for no memory; here one has 1 byte to 64 GiB.")
    if size > 64 << 30:
        raise Refusal(f"“{piece}”: a tensor has at most 64 GiB here; a number without a unit is in MiB.")
    for name in split_names(names):
        yield Action("make", name, size, read_stream(piece, stream or 0), i)


def read_stream(piece, text):
    if int(text) >= STREAMS:
        raise Refusal(f"“{piece}”: there are streams 0 to {STREAMS - 1}.")
    return int(text)


def split_names(names):
    return [name.strip() for name in names.split(",")]


def on_a_stream(kind, piece, i, names, stream):
    return (Action(kind, name, stream=read_stream(piece, stream), statement=i) for name in split_names(names))


READ = {
    "make": read_make,
    "del": lambda piece, i, names: (Action("del", name, statement=i) for name in split_names(names)),
    "read": lambda piece, i, *rest: on_a_stream("read", piece, i, *rest),
    "use": lambda piece, i, *rest: on_a_stream("use", piece, i, *rest),
    "wait": lambda piece, i, stream: [Action("wait", stream=read_stream(piece, stream), statement=i)],
    "empty": lambda piece, i: [Action("empty", statement=i)],
}


# ---- running it


@dataclass
class Reading:
    """What a stream has still to read, and the allocator was not told."""

    name: str
    stream: int
    block: tuple[int, int]  # address and size when the read was launched: the allocator changes its blocks
    event: object  # passed when it is done
    overwritten_by: str = ""

    def meets(self, address, size):
        return self.block[0] < address + size and address < sum(self.block)


class Run:
    """A device of its own, the tensors that there are, and what the last action did."""

    def __init__(self, inputs):
        logging.getLogger("readtorch.c10.cuda").setLevel(logging.ERROR)  # memory is meant to run out
        config = AllocatorConfig()
        config.read(settings(inputs))
        self.driver = ToldDriver(1, inputs["memory"] * MIB)
        self.caching = CachingAllocator(self.driver, config)
        self.allocator = self.caching.devices[0]
        self.caching.record_history(True, context=None)
        self.blocks = {}
        self.readings = []

    def step(self, action):
        old = self.blocks.get(action.name)
        failed = action.kind in ("del", "read", "use") and old is None
        spoilt = [one for one in self.readings if one.overwritten_by and one.stream == action.stream]
        if action.kind == "make":
            try:
                self.blocks[action.name] = self.caching.malloc(0, action.size, action.stream)
            except OutOfMemoryError:
                failed = True
            else:
                if old is not None:
                    self.caching.free(old)
        elif action.kind == "del" and not failed:
            self.caching.free(self.blocks.pop(action.name))
        elif action.kind == "read" and not failed:
            self.read(action, old)
        elif action.kind == "use" and not failed:
            self.caching.record_stream(old, action.stream)
        elif action.kind == "wait":
            self.driver.complete(0, action.stream, 0)
        elif action.kind == "empty":
            self.caching.empty_cache()
        entries = [entry.as_dict() for entry in self.allocator.history.entries]
        self.allocator.history.entries.clear()
        seen = self.seen(
            action, entries, failed, old is not None and action.kind == "make", self.too_early(action, entries, failed)
        )
        if action.kind == "wait":
            seen["say"] += "".join(f" It read {one.overwritten_by} where {one.name} had been." for one in spoilt)
        return seen

    def read(self, action, block):
        event = self.driver.event_create(0)
        self.driver.event_record(event, 0, action.stream)
        self.readings.append(Reading(action.name, action.stream, (block.address, block.size), event))

    def too_early(self, action, entries, failed):
        """The readings whose memory this action hands out, though they are not done."""
        if any(entry["action"] == "segment_free" for entry in entries):
            self.readings.clear()  # the driver has waited for the device
        self.readings = [one for one in self.readings if not self.driver.event_query(one.event)]
        if action.kind != "make" or failed:
            return []
        new = self.blocks[action.name]
        met = [one for one in self.readings if one.stream != action.stream and one.meets(new.address, new.size)]
        for one in met:
            one.overwritten_by = action.name
        return met

    def seen(self, action, entries, failed, replaced, too_early):
        names = {block.address: name for name, block in self.blocks.items()}
        spoilt = [one for one in self.readings if one.overwritten_by]
        segments = [picked(segment, names, spoilt) for segment in segments_of(self.allocator)]
        free, total = self.driver.mem_get_info(0)
        sums = {state: sum_of(segments, state) for state in ("allocated", "pending", "free")}
        largest = max((b["size"] for s in segments for b in s["blocks"] if b["state"] == "free"), default=0)
        say = said(action, entries, failed, replaced, self.allocator.config, sums["free"], largest, free)
        say += "".join(
            f" Stream {one.stream} may still read {one.name} there: nobody told the allocator." for one in too_early
        )
        return {
            "code": action.written(),
            "statement": action.statement,
            "failed": failed,
            "segments": segments,
            **sums,
            "driver": free,
            "say": say,
        }


def settings(inputs):
    pieces = []
    if inputs["max_split"]:
        pieces.append(f"max_split_size_mb:{inputs['max_split']}")
    if inputs["divisions"] != "off":
        pieces.append(f"roundup_power2_divisions:{inputs['divisions']}")
    if inputs["expandable"]:
        pieces.append("expandable_segments:True")
    return ",".join(pieces)


def picked(segment, names, spoilt):
    states = {"active_allocated": "allocated", "active_pending_free": "pending", "inactive": "free"}
    return {
        "address": segment["address"],
        "size": segment["total_size"],
        "stream": segment["stream"],
        "small": segment["segment_type"] == "small",
        "expandable": segment["is_expandable"],
        "blocks": [
            {
                "address": block["address"],
                "size": block["size"],
                "state": states[block["state"]],
                "name": names.get(block["address"], "") if block["state"] == "active_allocated" else "",
                "early": block["state"] == "active_allocated"
                and any(one.meets(block["address"], block["size"]) for one in spoilt),
            }
            for block in segment["blocks"]
        ],
    }


def sum_of(segments, state):
    return sum(block["size"] for segment in segments for block in segment["blocks"] if block["state"] == state)


# ---- in words


def amount(nbytes):
    """ "20 MiB", "1.13 MiB", "512 B"."""
    unit, name = next(
        ((unit, name) for unit, name in ((1 << 30, "GiB"), (MIB, "MiB"), (1 << 10, "KiB")) if nbytes >= unit), (1, "B")
    )
    return f"{nbytes / unit * (1 + 1e-12):.2f}".rstrip("0").rstrip(".") + f" {name}"


def said(action, entries, failed, replaced, config, free, largest, driver):
    if failed and action.kind != "make":
        return f"There is no {action.name}: it was not made."
    back = sum(entry["size"] for entry in entries if entry["action"] in ("segment_free", "segment_unmap"))
    if action.kind == "make":
        return of_make(action, entries, failed, replaced, back, config, free, largest, driver)
    if action.kind == "del":
        return of_del(action, entries)
    if action.kind == "use":
        return f"The memory of {action.name} is used on stream {action.stream}, too. Once it is freed, it waits for that stream."
    if action.kind == "read":
        return f"Stream {action.stream} will read {action.name}, and the allocator does not know."
    if action.kind == "wait":
        return f"Stream {action.stream} has caught up. The allocator will see that at the next request."
    return (
        f"{amount(back)} go back to the driver."
        if back
        else "No segment is free as a whole: nothing goes back to the driver."
    )


def of_make(action, entries, failed, replaced, back, config, free, largest, driver):
    begins = f"Memory is short: {amount(back)} go back to the driver. " if back else ""
    if failed:
        size = next(entry["size"] for entry in entries if entry["action"] == "oom")
        return (
            f"{begins}Out of memory: {what_is_missing(size, config, driver)} "
            f"The free blocks have {amount(free)} together, the largest {amount(largest)}."
        )
    details = next(entry["details"] for entry in entries if entry["action"] == "alloc")
    found, rounded = details["chosen"]["size"], details["rounded_size"]
    words = begins + where_from(entries, found)
    if found > rounded:
        words += (
            f"; a remainder of {amount(found - rounded)} stays free"
            if details["split"]
            else f"; it is not cut: {amount(found - rounded)} unused"
        )
    if rounded != action.size:
        words += f". The block of {action.name} has {amount(rounded if details['split'] else found)}"
    return f"{words}. Only then is the old {action.name} freed." if replaced else f"{words}."


def what_is_missing(size, config, driver):
    if not config.expandable_segments:
        return (
            f"the request needs a segment of {amount(segment_size(size, config))}, and the driver has {amount(driver)}."
        )
    page = SMALL_SEGMENT if size <= SMALL_SIZE else LARGE_SEGMENT
    return f"memory comes in pages of {amount(page)}, and the driver has room for {driver // page}: too few for {amount(size)}."


def where_from(entries, found):
    new, pages = (
        sum(entry["size"] for entry in entries if entry["action"] == name) for name in ("segment_alloc", "segment_map")
    )
    if new:
        return f"No free block fits, so the driver gives a segment of {amount(new)}"
    if pages:
        return f"No free block fits, so {amount(pages)} of pages are mapped"
    return f"The best of the free blocks has {amount(found)}"


def of_del(action, entries):
    done = [entry for entry in entries if entry["action"] == "free_completed"]
    if not done:
        return f"Another stream may still use the memory of {action.name}: it waits."
    details = done[-1]["details"]
    into, size = details["merged_into"]["size"], details["block_size"]
    return (
        f"{amount(size)} are free."
        if into == size
        else f"{amount(size)} are free, and with the neighbors one block of {amount(into)}."
    )


def model(inputs):
    if 0 < inputs["max_split"] < 20:
        raise Refusal("CachingAllocator option max_split_size_mb too small, must be >= 20 (or 0 here: off).")
    run = Run(inputs)
    steps = [run.step(action) for action in read_program(inputs["code"])]
    return {
        "steps": [{key: value for key, value in step.items() if key != "say"} for step in steps],
        "say": [step["say"] for step in steps],
    }


def picture(result, step):
    segments = result["steps"][step]["segments"]
    wide = 330 / max([segment["size"] for segment in segments], default=1)
    parts = []
    for row, segment in enumerate(segments):
        y = 10 + 24 * row
        parts.append(text(amount(segment["size"]), 2, y + 13, "dim"))
        for block in segment["blocks"]:
            x = 64 + wide * (block["address"] - segment["address"])
            shade = "pick" if block["state"] == "allocated" else "pale"
            parts.append(
                tag("rect", x=f"{x:.1f}", y=y, width=f"{max(0.5, wide * block['size']):.1f}", height=18, class_=shade)
            )
    return drawing(400, 20 + 24 * max(len(segments), 1), *parts)


FIGURE = Figure(
    name="allocator_playground",
    title="The allocator, statement by statement",
    inputs=(
        Expression(
            "code", "program", FRAGMENTED, longest=400, examples=PROGRAMS,
            hint="a,b = 5 (MiB; 512K, 300B) · a = 5 @1 (on stream 1) · del a · read a @1 · use a @1 · wait @1 · empty",
        ),
        Integer("memory", "memory", 80, low=2, high=1 << 20, unit="MiB"),
        Integer("max_split", "max_split_size_mb", 0, low=0, high=1 << 20, unit="(0: off)"),
        Choice("divisions", "roundup_power2_divisions", "off", ["off", "2", "4", "8", "16"]),
        Switch("expandable", "expandable_segments", False),
    ),
    model=model,
    picture=picture,
    helpers=("models/caching_allocator",),
    sample=lambda random: {"memory": random.randint(20, 200), "max_split": random.choice([0, 0, 20, 25, 40])},
)  # fmt: skip
