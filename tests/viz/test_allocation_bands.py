"""Bands over time: Python's and JavaScript's reading of a snapshot are one, and a file that asks for more than data gets nothing."""

import base64
import io
import json
import pickle
import random

import pytest

from readtorch import viz
from readtorch.viz._base import STATIC
from readtorch.viz.allocation_bands import (
    BACKWARD,
    ELSEWHERE,
    FORWARD,
    OPTIMIZER,
    PARAMETERS,
    bands_of,
    category,
    peak_of,
)
from readtorch.viz.memory_snapshot import PlainUnpickler

from .snapshots import TRACES, snapshot_of

NAMES = sorted(path.name.removesuffix(".json.gz") for path in TRACES.glob("*.json.gz"))
JS = "".join((STATIC / f"{name}.js").read_text(encoding="utf8") for name in ("_plain_pickle", "_bands"))
RUN = """([source, data, body]) => {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const plain = (v) => v instanceof Map ? {map: [...v].map(([k, x]) => [plain(k), plain(x)])} : Array.isArray(v) ? v.map(plain) : v;
  try { return JSON.stringify(new Function("bytes", "plain", source + body)(bytes, plain)); }
  catch (error) { return JSON.stringify({error: error.message}); }
}"""


@pytest.fixture(scope="module")
def js(browser):
    """js(bytes, body): what a function body in JavaScript returns of them, or {"error": …}."""
    page = browser.new_page()
    yield lambda data, body: json.loads(page.evaluate(RUN, [JS, base64.b64encode(data).decode(), body]))
    page.close()


def frame(name, filename="/home/me/train.py"):
    return {"name": name, "filename": filename, "line": 3}


@pytest.mark.parametrize(
    "frames, expected",
    [
        ([], ELSEWHERE),
        ([frame("main")], ELSEWHERE),
        ([frame("forward"), frame("main")], FORWARD),
        ([frame("_init_group", "/x/torch/optim/adam.py"), frame("main")], OPTIMIZER),
        ([frame("convert", "/x/torch/nn/modules/module.py"), frame("main")], PARAMETERS),
        ([frame("__init__")], ELSEWHERE),
        ([frame("_engine_run_backward", "/x/torch/autograd/graph.py"), frame("main")], BACKWARD),
        ([frame("torch::autograd::Engine::thread_main", "??")], BACKWARD),
        ([frame("run", "/usr/lib/python3.13/threading.py")], BACKWARD),
        ([frame("forward"), frame("backward", "/x/torch/autograd/function.py")], FORWARD),
    ],
)
def test_who_asked(frames, expected):
    assert category(frames) == expected


@pytest.mark.parametrize("name", NAMES)
def test_bytes_in_use_are_the_recorded_ones(name):
    """The sum of all bands is what PyTorch's own counter said at the end, and at no time is it less than nothing."""
    snapshot = snapshot_of(name)
    if not any(snapshot["device_traces"]):
        pytest.skip("nothing happened")
    bands = bands_of(snapshot)
    used = sum(size for born, freed, size, *_ in bands["allocations"] if freed > bands["events"])
    blocks = [b for s in snapshot["segments"] if s["device"] == bands["device"] for b in s["blocks"]]
    assert used == sum(b["requested_size"] for b in blocks if b["state"] == "active_allocated")
    assert all(0 <= born < freed <= bands["events"] + 1 for born, freed, *_ in bands["allocations"])
    assert 0 <= peak_of(bands) <= bands["events"]


def test_what_was_there_before_the_history_is_a_band_from_the_beginning():
    whole, late = bands_of(snapshot_of("small_04_best_fit")), bands_of(snapshot_of("small_04_best_fit", drop=20))
    sizes = lambda bands: sorted(size for _, freed, size, *_ in bands["allocations"] if freed > bands["events"])
    assert sizes(whole) == sizes(late)
    assert any(born == 0 for born, *_ in late["allocations"]) and all(born for born, *_ in whole["allocations"])


def test_a_snapshot_without_a_history_is_refused():
    with pytest.raises(ValueError, match="no history in this snapshot"):
        viz.memory_bands({"segments": [], "device_traces": [[]]})


# ------------------------------------------------------------------------------------------ the twin in the page


@pytest.mark.browser
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_snapshot_is_read_the_same(js, protocol):
    for name in NAMES[::4]:
        snapshot = snapshot_of(name)
        found = js(pickle.dumps(snapshot, protocol), "return bandsOf(readPlainPickle(bytes));")
        assert found == json.loads(json.dumps(bands_of(snapshot))), name


def plain(draw, depth=0):
    kinds = ["int", "text", "none", "bool", "float"] + ["list", "tuple", "dict"] * (depth < 4)
    match draw.choice(kinds):
        case "int":
            return draw.choice(
                [0, 1, 255, 256, 65536, -1, -128, 1 << 31, -(1 << 40), (1 << 52) + 1, draw.randrange(1 << 50)]
            )
        case "text":
            return draw.choice(["", "alloc", "grün", "x" * 300, "日本"])
        case "none":
            return None
        case "bool":
            return draw.random() < 0.5
        case "float":
            return draw.choice([0.5, -1e300, 3.0])
        case "list":
            return [plain(draw, depth + 1) for _ in range(draw.randrange(5))]
        case "tuple":
            return tuple(plain(draw, depth + 1) for _ in range(draw.randrange(5)))
    return {draw.choice([f"k{i}", i]): plain(draw, depth + 1) for i in range(draw.randrange(5))}


def as_json(value):
    if isinstance(value, dict):
        return {"map": [[as_json(k), as_json(v)] for k, v in value.items()]}
    return [as_json(v) for v in value] if isinstance(value, list | tuple) else value


@pytest.mark.browser
@pytest.mark.parametrize("seed", range(40))
def test_plain_data_is_read_as_python_reads_it(js, seed):
    draw = random.Random(seed)
    shared = plain(draw)
    value = [plain(draw), shared, {"again": shared}, shared]
    data = pickle.dumps(value, draw.choice([2, 3, 4, 5]))
    assert js(data, "return plain(readPlainPickle(bytes));") == as_json(value)


@pytest.mark.browser
@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02cos\nsystem\nX\x08\x00\x00\x00rm -rf ~\x85R.",  # a function, called
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.",  # named from the stack
        b"\x80\x02]\x81.",  # an object made
        b"\x80\x02}}b.",  # and filled
        b"cos\nsystem\n(S'rm -rf ~'\ntR.",  # protocol 0
        b"\x80\x02X\x01\x00\x00\x00aQ.",  # a persistent id
        b"\x80\x02\x82\x01.",  # an extension
        b"\x80\x02(i__main__\nX\n.",  # an instance
        b"\x80\x02B\x02\x00\x00\x00ab.",  # bytes
        b"\x80\x05\x97.",  # a buffer
    ],
)
def test_what_is_more_than_data_is_refused(js, data):
    assert "and is refused" in js(data, "return plain(readPlainPickle(bytes));")["error"]
    with pytest.raises((pickle.UnpicklingError, EOFError)):
        PlainUnpickler(io.BytesIO(data)).load()


@pytest.mark.browser
@pytest.mark.parametrize("seed", range(30))
def test_damaged_files_end_in_a_sentence(js, seed):
    draw = random.Random(seed)
    data = bytearray(pickle.dumps(snapshot_of("small_06_record_stream"), draw.choice([2, 4])))
    for _ in range(draw.randrange(1, 4)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    found = js(
        bytes(data[: draw.randrange(len(data) // 2, len(data) + 1)]), "return bandsOf(readPlainPickle(bytes)).events;"
    )
    assert isinstance(found, int) or found["error"].startswith(("This file is no snapshot", "There is no history"))


@pytest.mark.browser
def test_keys_are_no_properties(js):
    data = pickle.dumps({"__proto__": {"polluted": 1}, "constructor": 2})
    assert js(data, "readPlainPickle(bytes); return ({}).polluted ?? 'clean';") == "clean"


LAID_OUT = """
const found = bandsOf(readPlainPickle(bytes)), { total } = totalsOf(found), wrong = [];
for (const [first, last] of [[0, found.events], [found.events >> 2, found.events >> 1]]) {
  const { covered, pieces } = layOutBands(found, first, last);
  for (let t = first; t <= last; t++) {
    let height = 0;
    for (const [i, , , below] of pieces.filter(([, from, to]) => from <= t && t < to).sort((a, b) => a[3] - b[3])) {
      if (below !== height) wrong.push([t, i]);
      height += found.allocations[i][2];
    }
    const sum = found.allocations.filter(([born, freed]) => born <= t && t < freed).reduce((all, [, , size]) => all + size, 0);
    if (height !== sum || covered[t] !== sum || total[t] !== sum) wrong.push([t, height, covered[t], total[t], sum]);
  }
}
return wrong.slice(0, 3);
"""


@pytest.mark.browser
@pytest.mark.parametrize(
    "name", ["small_04_best_fit", "small_05_streams", "small_06_record_stream", "fuzz_01_default_roomy"]
)
def test_bands_lie_on_one_another_without_a_gap(js, name):
    assert js(pickle.dumps(snapshot_of(name, drop=5)), LAID_OUT) == []


MOST = """
const found = bandsOf(readPlainPickle(bytes)), { pieces } = layOutBands(found, 0, found.events), near = layOutBands(found, 4000, 4100).pieces;
const number = (some) => new Set(some.map(([i]) => i)).size;
const there = found.allocations.filter(([born, freed]) => born <= 4100 && freed > 4000).length;
return [number(pieces), number(near) === there, MOST_BANDS];
"""


@pytest.mark.browser
def test_of_many_allocations_the_largest_in_view_get_a_band(js):
    drawn, all_are, most = js(pickle.dumps(snapshot_of("real_03_gpt_tight")), MOST)
    assert drawn == most and all_are


# ------------------------------------------------------------------------------------------ the figure


DROPPED = """data => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], "dropped.pickle"));
  return transfer;
}"""


@pytest.mark.browser
@pytest.mark.slow
def test_a_snapshot_of_the_readers_is_read_in_the_page(visit, page_with, tmp_path):
    mine, two, evil = (tmp_path / f"{name}.pickle" for name in ("mine", "two", "evil"))
    two.write_bytes(pickle.dumps(snapshot_of("small_18_two_devices")))
    mine.write_bytes(pickle.dumps(snapshot_of("small_05_streams")))
    evil.write_bytes(b"\x80\x02cos\nsystem\nX\x08\x00\x00\x00rm -rf ~\x85R.")
    with visit(page_with(viz.memory_bands(snapshot_of("real_01_mlp_roomy")))) as seen:
        page, file = seen.page, seen.page.get_by_label("Open a snapshot.pickle")
        file.set_input_files(mine)
        page.get_by_text("mine.pickle: device 0").wait_for()
        assert page.locator(".rt-title").inner_text() == "mine.pickle"
        file.set_input_files(two)
        page.locator("label", has_text="device").locator("select").select_option("0")
        page.get_by_text("two.pickle: device 0").wait_for()
        page.locator("label", has_text="device").locator("select").select_option("1")
        page.get_by_text("two.pickle: device 1").wait_for()
        file.set_input_files(mine)
        page.get_by_text("mine.pickle: device 0").wait_for()
        assert page.locator("label", has_text="device").locator("select").count() == 0
        file.set_input_files(evil)
        page.get_by_text("and is refused").wait_for()
        assert page.locator(".rt-title").inner_text() == "mine.pickle", "what was shown stays"
        dropped = page.evaluate_handle(DROPPED, base64.b64encode(two.read_bytes()).decode())
        page.dispatch_event(".rt-bands", "drop", {"dataTransfer": dropped})
        page.get_by_text("dropped.pickle: device").wait_for()
        page.get_by_role("button", name="The page's own snapshot again").click()
        assert page.locator(".rt-title").inner_text() == "Memory over time"
        assert seen.problems == []


@pytest.mark.browser
@pytest.mark.slow
def test_a_band_is_chosen_by_list_and_by_mouse_and_the_picture_zooms(visit, page_with):
    with visit(page_with(viz.memory_bands(snapshot_of("real_01_mlp_roomy")))) as seen:
        page, detail = seen.page, seen.page.locator(".rt-detail")
        assert "the peak" in page.locator(".rt-now").inner_text()
        page.locator(".rt-frames .rt-link").first.click()
        assert "asked for" in detail.inner_text() and "layer" in detail.inner_text()
        box = page.locator(".rt-bandchart").bounding_box()
        page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 270)
        assert "made" in detail.inner_text()
        whole = page.locator(".rt-bandchart").screenshot()
        page.locator(".rt-slider").focus()
        for key in ("+", "+", ">", "<", "-"):
            page.keyboard.press(key)
        assert page.locator(".rt-bandchart").screenshot() != whole
        assert seen.problems == []


@pytest.mark.browser
@pytest.mark.slow
def test_the_bands_and_what_is_chosen_fit_a_phone(visit, page_with):
    with visit(page_with(viz.memory_bands(snapshot_of("real_01_mlp_roomy"))), width=390) as seen:
        seen.page.locator(".rt-largest .rt-link").first.click()
        assert "asked for" in seen.page.locator(".rt-detail").inner_text()
        assert seen.page.locator(".rt-bands").bounding_box()["height"] <= 810
        assert seen.problems == []
