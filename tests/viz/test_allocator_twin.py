"""The allocator in JavaScript decides as PyTorch's did, in all recorded traces of one device."""

import json
from pathlib import Path

import pytest

from readtorch.c10.cuda.allocator_config import AllocatorConfig
from readtorch.c10.cuda.sizes import UNLIMITED
from readtorch.viz._base import STATIC
from tests.allocator.replay import load

TRACES = sorted((Path(__file__).parents[1] / "allocator" / "traces").glob("*.json.gz"))
NOT_IN_THE_TWIN = ("fuzz_12_two_devices", "small_18_two_devices", "small_20_private_pool")
TRACES = [path for path in TRACES if path.name.split(".")[0] not in NOT_IN_THE_TWIN]

RUN = """([source, text]) => {
    const { Device, Allocator } = new Function(source + "; return { Device, Allocator };")();
    const { capacity, downwards, settings, ops, every } = JSON.parse(text);
    const read = (given) => ({ ...given, maxSplit: given.maxSplit ?? Infinity });
    const device = new Device(capacity, downwards), allocator = new Allocator(device, read(settings)), blocks = new Map();
    const act = {
        alloc: (name, size, stream) => {
            const block = size ? allocator.malloc(size, stream) : undefined;
            if (block) blocks.set(name, block);
            return block === null ? "error" : block ? block.address : 0;
        },
        free: (name) => { if (blocks.has(name)) { allocator.free(blocks.get(name)); blocks.delete(name); } },
        record_stream: (name, stream) => { if (blocks.has(name)) allocator.recordStream(blocks.get(name), stream); },
        complete_events: (_, stream, n) => {
            for (const one of stream === undefined ? [...device.pending.keys()] : [stream]) device.complete(one, n || Infinity);
        },
        empty_cache: () => allocator.emptyCache(),
        set_memory_fraction: (fraction) => allocator.setMemoryFraction(fraction),
        set_allocator_settings: (given) => Object.assign(allocator.config, read(given)),
    };
    return JSON.stringify(ops.map(([name, ...given], i) => ({
        result: act[name]?.(...given) ?? null,
        segments: (i + 1) % every === 0 || i === ops.length - 1 ? allocator.segments() : null,
    })));
}"""


def settings_of(config):
    return {
        "maxSplit": None if config.max_split_size == UNLIMITED else config.max_split_size,
        "maxNonSplitRounding": config.max_non_split_rounding_size,
        "largeSegment": config.large_segment_size,
        "gcThreshold": config.garbage_collection_threshold,
        "divisions": list(config.roundup_power2_divisions),
        "expandable": config.expandable_segments,
        "rejectEarly": config.throw_on_cudamalloc_oom,
    }


def as_json(recording):
    """The recording with its settings read: reading them is not the twin's business."""
    config = AllocatorConfig()
    if recording["alloc_conf"]:
        config.read(recording["alloc_conf"])
    given = {
        "capacity": recording["capacity"],
        "downwards": recording["addresses"] == "down",
        "settings": settings_of(config),
        "every": recording["snapshot_every"],
        "ops": [],
    }
    for name, *arguments in recording["ops"]:
        if name == "set_allocator_settings":
            config.read(arguments[0])
            arguments = [settings_of(config)]
        given["ops"].append([name, *arguments])
    return json.dumps(given)


def as_twin(segment):
    states = {"active_allocated": "allocated", "active_pending_free": "pending", "inactive": "free"}
    return {
        "address": segment["address"],
        "size": segment["total_size"],
        "stream": segment["stream"],
        "small": segment["segment_type"] == "small",
        "expandable": bool(segment["is_expandable"]),
        "blocks": [
            {
                "address": block["address"],
                "size": block["size"],
                "requested": block.get("requested_size", 0),
                "state": states[block["state"]],
            }
            for block in segment["blocks"]
        ],
    }


@pytest.fixture(scope="module")
def page(browser):
    made = browser.new_page()
    yield made
    made.close()


@pytest.mark.browser
@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name.split(".")[0])
def test_every_decision_is_the_same(page, path):
    recording = load(path)
    source = (STATIC / "models" / "caching_allocator.js").read_text(encoding="utf8")
    found = json.loads(page.evaluate(RUN, [source, as_json(recording)]))
    for op, expected, mine in zip(recording["ops"], recording["results"], found, strict=True):
        if op[0] == "alloc":
            assert mine["result"] == ("error" if "error" in expected else expected["ptr"]), op
        if "segments" in expected:
            assert mine["segments"] == [as_twin(segment) for segment in expected["segments"]], op
