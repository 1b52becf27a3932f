"""The pickle machine's model against the machines themselves: torch.load's, instruction for instruction, and Python's."""

import collections
import contextlib
import inspect
import io
import os
import pickle
import pickletools
import random
import zipfile

import pytest
import torch
from torch import _weights_only_unpickler

from readtorch import viz
from readtorch.viz.figure_kit import find
from readtorch.viz.figures import pickle_machine
from readtorch.viz.figures.pickle_machine import (
    ARGUMENTS,
    NAMES,
    NOT_CALLED,
    PROGRAMS,
    UNRUN_SHOWN,
    Machine,
    is_class,
    read_bytes,
    unrun,
)
from readtorch.viz.inputs import Refusal
from readtorch.viz.pickle_names import ALLOWED, NEVER

FIGURE = find("pickle_machine")


def written(data):
    return repr(data)[2:-1]


def program_of(value):
    file = io.BytesIO()
    torch.save(value, file)
    return zipfile.ZipFile(file).read("archive/data.pkl")


def run(data, strict):
    """Outcome and sentence of the model."""
    steps, say = Machine(data.decode("latin-1"), strict).run()
    return steps[-1]["state"], say[-1].partition("Refused. ")[2]


def test_the_names_are_pytorchs():
    assert ALLOWED == set(_weights_only_unpickler._get_allowed_globals())
    assert list(NEVER) == _weights_only_unpickler._blocklisted_modules


def test_functions_take_so_many_arguments_and_classes_are_classes():
    for name, real in _weights_only_unpickler._get_allowed_globals().items():
        assert is_class(name) == isinstance(real, type), name
        assert bool(NOT_CALLED.fullmatch(name)) == (not callable(real)), name
        if inspect.isfunction(real):
            parameters = inspect.signature(real).parameters.values()
            needed = sum(one.default is one.empty for one in parameters)
            assert ARGUMENTS[name] == (needed, len(parameters)), name


def test_the_programs_are_what_torch_save_writes():
    torch.manual_seed(0)
    assert PROGRAMS["linear"] == written(program_of(torch.nn.Linear(2, 1).state_dict()))
    base = torch.arange(6, dtype=torch.float32)
    assert PROGRAMS["views"] == written(program_of({"all": base, "row": base.reshape(2, 3)[1]}))
    loop = []
    loop.append(loop)
    assert PROGRAMS["loop"] == written(pickle.dumps(loop, 2))
    assert NAMES.keys() - PROGRAMS.keys() == {"own"}


@pytest.mark.parametrize("text", ["a", r"\x80\x02", r"\n\t\\", "b'K\\x01.'", 'b"K\\x01."', ".", "'"])
def test_bytes_are_read_as_python_reads_them(text):
    literal = text if text[:2] in ("b'", 'b"') else f'b"{text}"'
    assert read_bytes(text).encode("latin-1") == eval(literal)


@pytest.mark.parametrize("text", ["é", "\\", r"\xg0", "a\nb", r"\8"])
def test_other_texts_are_refused(text):
    with pytest.raises(Refusal, match="Not understood"):
        read_bytes(text)


def test_instructions_are_those_of_pickletools():
    for name in ("linear", "views", "class", "old", "item", "loop"):
        data = read_bytes(PROGRAMS[name]).encode("latin-1")
        theirs = [(code.name, place) for code, _, place in pickletools.genops(data)]
        steps, _ = Machine(data.decode("latin-1"), strict=False).run()
        assert [(step["name"], step["at"]) for step in steps] == theirs


@pytest.mark.parametrize("name", ["attack", "call", "item", "class"])
def test_what_stands_behind_a_refusal_is_read_and_not_run(name):
    result = FIGURE.result(program=name)
    theirs = [(code.name, place) for code, _, place in pickletools.genops(bytes(result["bytes"]))]
    assert result["steps"][-1]["state"] == "refused" and result["unrun"]
    shown = [(one["name"], one["at"]) for one in [*result["steps"], *result["unrun"]]]
    assert shown == theirs[: len(shown)] and len(shown) == min(len(theirs), len(result["steps"]) + UNRUN_SHOWN)


def test_instructions_behind_any_stop_are_pickletools():
    seen = 0
    for data in random_programs(7, 1500):
        for strict in (True, False):
            steps, _ = Machine(data.decode("latin-1"), strict).run()
            stopped = steps[-1]["state"] in ("refused", "error")
            behind = unrun(data.decode("latin-1"), steps[-1]["at"]) if stopped else []
            found = []
            try:
                for code, _, place in pickletools.genops(data):
                    found.append((code.name, place))
            except Exception:
                continue
            shown = [(one["name"], one["at"]) for one in [*steps, *behind]]
            if not any(name.startswith("code ") for name, _ in shown):
                assert shown == found[: len(shown)], written(data)
                seen += bool(behind)
    assert seen > 200


def test_an_old_file_begins_with_a_magic_number():
    file = io.BytesIO()
    torch.save(torch.ones(1), file, _use_new_zipfile_serialization=False)
    say = FIGURE.result(program="own", bytes=written(file.getvalue()).replace("'", "\\'"))["say"]
    assert f"LONG1 {torch.serialization.MAGIC_NUMBER}" in say[1] and "a file of several pickles" in say[1]
    assert say[-1].endswith(f"; {len(file.getvalue()) - 15} bytes behind it belong to something else.")


# ---- the machines, with classes that do nothing in place of those that a program names


METHODS = collections.defaultdict(lambda: None, dict.fromkeys(("append", "extend", "add"), lambda *args: None))


def nothing(name):
    methods = {"__new__": lambda cls, *args: object.__new__(cls), "__init__": lambda self, *args: None}
    methods["__setitem__"] = lambda self, *args: None
    methods["__getattr__"] = lambda self, name: METHODS[name]  # objects have these, their class has not
    return type(name.split(".")[-1].replace("\0", "0"), (), methods)


def counting(name):
    """A function, or a class, that takes as many arguments as the real one, and does nothing with them."""
    least, most = ARGUMENTS.get(name, (0, 99))
    made = nothing(name)

    def check(*args):
        if not least <= len(args) <= most:
            raise TypeError(name)
        if name.startswith("torch._utils._rebuild_tensor") and not isinstance(args[0], STUBS[STORAGE]):
            raise TypeError("no storage")

    def function(*args):
        check(*args)
        return made()

    if not is_class(name):
        return function
    made.__init__ = lambda self, *args: check(*args)
    return made


class NotCalled:
    """A dtype, or the name of a storage: an object that is neither a class nor a function."""


STORAGE = "torch.storage.TypedStorage"
REAL = {
    "collections.OrderedDict": collections.OrderedDict,
    "collections.Counter": collections.Counter,
    "builtins.set": set,
}
STUBS = {
    name: REAL.get(name) or (NotCalled() if NOT_CALLED.fullmatch(name) else counting(name)) for name in sorted(ALLOWED)
}
STUBS[STORAGE] = type("TypedStorage", (), {"__setitem__": lambda self, *args: None})


def meant(pid):
    """What the reader of a checkpoint makes of a persistent id."""
    kind, _, _, _, _ = pid
    assert isinstance(pid, tuple)
    return STUBS["torch.storage.TypedStorage"]()


def torchs(data, monkeypatch):
    """Outcome and message of torch.load's machine."""
    monkeypatch.setattr(_weights_only_unpickler, "_get_allowed_globals", lambda: STUBS)
    machine = _weights_only_unpickler.Unpickler(io.BytesIO(data), encoding="utf-8")
    machine.persistent_load = meant
    try:
        machine.load()
    except pickle.UnpicklingError as error:
        return "refused", str(error)
    except Exception:
        return "error", ""
    return "done", ""


class Pythons(pickle.Unpickler):
    def find_class(self, module, name):
        return STUBS.get(f"{module}.{name}") or nothing(name)

    def persistent_load(self, pid):
        return meant(pid)


def same_refusal(mine, theirs):
    """The same words; what stands in for a class has another name, and advice follows the first sentence."""
    for cut in (" but got ", "function ", " Please use"):
        mine, theirs = mine.partition(cut)[0], theirs.partition(cut)[0]
    return mine == theirs


def builds_objects(data, strict):
    """Whether the state of an object is set for which a stub stands here; those of real classes are compared below."""
    reader, kinds = Machine(data.decode("latin-1"), strict), []

    def build(machine):
        kinds.extend(value.kind for value in machine.stack[-2:])
        return Machine.build(machine)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(pickle_machine.COMMON, "b", ("BUILD", build))
        reader.run()
    return bool({"object", "storage", "global"} & set(kinds))


def random_programs(seed, count):
    generator = random.Random(seed)
    for _ in range(count):
        yield read_bytes(FIGURE.read(FIGURE.random_inputs(generator))["bytes"]).encode("latin-1")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(4))
def test_it_stops_where_torch_load_stops(seed, monkeypatch):
    seen = collections.Counter()
    for data in random_programs(seed, 1500):
        outcome, reason = torchs(data, monkeypatch)
        mine, sentence = run(data, strict=True)
        if mine != outcome and "error" in (mine, outcome) and builds_objects(data, strict=True):
            continue
        assert mine == outcome, f"{written(data)}: {outcome} {reason}"
        assert same_refusal(sentence, reason), f"{written(data)}: {sentence!r} and {reason!r}"
        seen[outcome] += 1
    assert min(seen[outcome] for outcome in ("done", "refused", "error")) > 50, seen


def puts_far(data):
    """Whether it writes to a place of the memo so far off that the C machine, whose memo is an array, asks for gigabytes."""
    with contextlib.suppress(Exception):  # of what cannot be read, as far as it can
        for code, place, _ in pickletools.genops(data):
            if code.name in ("PUT", "BINPUT", "LONG_BINPUT") and place > 100_000:
                return True
    return False


@pytest.mark.parametrize("seed", range(4))
def test_it_ends_where_pythons_machine_ends(seed):
    seen = collections.Counter()
    for data in random_programs(100 + seed, 1500):
        if puts_far(data):
            continue
        try:
            Pythons(io.BytesIO(data), encoding="utf-8").load()
            outcome = "done"
        except Exception:
            outcome = "error"
        mine, _ = run(data, strict=False)
        if mine != outcome and builds_objects(data, strict=False):
            continue
        assert mine == outcome, written(data)
        seen[outcome] += 1
    assert min(seen.values()) > 50, seen


# ---- BUILD, with the real classes


STORAGE_0 = "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0" + "0X\3\0\0\0cpuK\2tQ"
TENSOR = f"ctorch._utils\n_rebuild_tensor_v2\n({STORAGE_0}K\0K\2\x85K\1\x85\x89NtR"
OF_A = "X\1\0\0\0a"
BUILT = {
    "OrderedDict": "ccollections\nOrderedDict\n)R",
    "Counter": "ccollections\nCounter\n)R",
    "set": "cbuiltins\nset\n)R",
    "dict": "}",
    "list": "]",
    "text": OF_A,
    "number": "K\1",
    "storage": STORAGE_0,
    "tensor": TENSOR,
    "new tensor": "ctorch\nTensor\n)\x81",
    "parameter": f"ctorch._utils\n_rebuild_parameter\n({TENSOR}\x89NtR",
}
STATES = {
    "None": "N",
    "0": "K\0",
    "1": "K\1",
    "()": ")",
    "[]": "]",
    "{}": "}",
    "''": "X\0\0\0\0",
    "'ab'": "X\2\0\0\0ab",
    "['ab']": "](X\2\0\0\0abe",
    "['abc']": "](X\3\0\0\0abce",
    "{'a': 1}": f"}}({OF_A}K\1u",
    "{1: 1}": "}(K\1K\1u",
    "[('a', 1)]": f"]({OF_A}K\1\x86e",
    "[([], 1)]": "](]K\1\x86e",
    "[{'a': 1, 'b': 2}]": f"](}}({OF_A}K\1X\1\0\0\0bK\2ue",
    "(('a', 1), ('b', 2))": f"{OF_A}K\1\x86{OF_A}K\1\x86\x86",
    "({'a': 1}, {'b': 2})": f"}}({OF_A}K\1u}}({OF_A}K\1u\x86",
    "(None, {1: 2})": "N}(K\1K\1u\x86",
    "(None, None)": "NN\x86",
    "({}, {})": "}}\x86",
    "(None, {})": "N}\x86",
    "an OrderedDict": "ccollections\nOrderedDict\n)R",
    "(storage,)": f"{STORAGE_0}\x85",
    "storage": STORAGE_0,
    "(storage, 0)": f"{STORAGE_0}K\0\x86",
    "(storage, 0, (2,))": f"{STORAGE_0}K\0K\2\x85\x87",
    "(storage, 0, (2,), (1,))": f"({STORAGE_0}K\0K\2\x85K\1\x85t",
    "(tensor,)": f"{TENSOR}\x85",
    "(False, None, {})": "\x89N}\x87",
    "(tensor, 0, {}, False, None)": f"({TENSOR}N}}\x89Nt",
}


def real_outcome(data, strict):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in {"data.pkl": data, "data/0": bytes(8), "version": b"3\n"}.items():
            archive.writestr(f"archive/{name}", content)
    file.seek(0)
    try:
        torch.load(file, weights_only=strict)
    except pickle.UnpicklingError as error:
        return "refused" if "Can only build" in str(error) else "error"
    except Exception:
        return "error"
    return "done"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("state", STATES)
def test_build_takes_the_states_that_pytorch_takes(state, strict):
    for name, instance in BUILT.items():
        data = f"\x80\x02{instance}{STATES[state]}b.".encode("latin-1")
        assert run(data, strict)[0] == real_outcome(data, strict), (name, state)


def test_build_of_a_tensor_is_set_():
    data = f"{TENSOR})b.".encode("latin-1")
    _, say = Machine(data.decode("latin-1"), strict=True).run()
    assert say[-2].endswith("BUILD: Call set_ of the tensor with ().") and say[-1].endswith(" after set_.")


KEYS = [
    "K\x01",
    "\x88",
    "G?\xf0\0\0\0\0\0\0",
    "G\x7f\xf8\0\0\0\0\0\0",
    "X\1\0\0\0" + "1",
    "K\x01\x85",
    "\x88\x85",
    ")",
    "N",
]
KEYS += ["X" + chr(50) + "\0\0\0" + "a" * 49 + last for last in "bc"]


def test_equal_keys_are_one():
    for first in KEYS:
        for second in KEYS:
            data = f"}}({first}K\x05{second}K\x07u.".encode("latin-1")
            steps, say = Machine(data.decode("latin-1"), strict=True).run()
            theirs = pickle.loads(data)
            assert say[-1].count(": ") - 1 == len(theirs), (data, say[-1])
            assert (": 5" in say[-1]) == (5 in theirs.values())


@pytest.mark.parametrize(
    "value", [[1, -2, 10**30, True, False, None], {"a": 1.5, "größe": -0.0}, (), ("x\ny'\"\\",), float("inf"), b"a"]
)
def test_protocol_0_is_read(value):
    data = pickle.dumps(value, 0)
    theirs = [(code.name, place) for code, _, place in pickletools.genops(data)]
    steps, say = Machine(data.decode("latin-1"), strict=False).run()
    assert [(step["name"], step["at"]) for step in steps] == theirs and steps[-1]["state"] in ("done", "runs")


@pytest.mark.parametrize(
    "line",
    [
        "I01",
        "I-7",
        "I0x1f",
        "I+0o17",
        "L123L",
        "F-1.5e3",
        "Finf",
        "F.5",
        "S'a\\x41\\101\\n\\q'",
        "Va\\u20ac\\\\u0041",
        "S''",
    ],
)
def test_lines_are_read_as_python_reads_them(line):
    data = f"{line}\n.".encode("latin-1")
    _, say = Machine(data.decode("latin-1"), strict=False).run()
    assert say[-1].endswith(
        f"Done. The result is {pickle.loads(data)!r}.".replace("\\\\", "\\").replace("\\n", "\\x0a")
    )


@pytest.mark.parametrize(
    "line",
    [
        "I",
        "I09",
        "Ix",
        "L1.5",
        "F1e",
        "F",
        "Sa",
        "S'a",
        "S'\\'",
        "S'\\x4'",
        "V\\u20",
        "V\\U00110000",
        "p-1",
        "px",
        "g9",
    ],
)
def test_lines_that_python_does_not_read(line):
    data = f"K\x01{line}\n.".encode("latin-1")
    with pytest.raises((ValueError, KeyError, pickle.UnpicklingError)):
        Pythons(io.BytesIO(data), encoding="utf-8").load()
    assert run(data, strict=False)[0] == "error"


def test_real_checkpoints_are_read_to_their_end():
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Embedding(9, 2))
    optimizer = torch.optim.Adam(net.parameters())
    sum(p.sum() for p in net.parameters()).backward()
    optimizer.step()
    data = program_of({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "half": torch.ones(2).half()})
    for strict in (True, False):
        assert run(data, strict)[0] == "done"
    assert run(program_of(net), True)[0] == "refused"


def test_attacks_are_not_run(tmp_path):
    class Attack:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path}/ran",)

    data = pickle.dumps(Attack(), 2)
    assert run(data, True)[0] == "refused"
    steps, say = Machine(data.decode("latin-1"), strict=False).run()
    assert [step["state"] for step in steps].count("runs") == 1 and "it runs" in " ".join(say)
    assert not (tmp_path / "ran").exists()


def test_long_programs_end(monkeypatch):
    monkeypatch.setattr(pickle_machine, "MOST_STEPS", 5)
    steps, say = Machine("N" * 9, strict=True).run()
    assert len(steps) == 5 and "no more than 5 instructions" in say[-1]


# ---- in a browser: files that a reader opens


DROP = """async ([selector, data]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([Uint8Array.from(data)], "dropped.pt"));
    document.querySelector(selector).dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
}"""


def repacked(data, compression, before=b""):
    """The archive, written by Python's zipfile, with something in front of its records."""
    source, file = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("archive/first", before)
        for name in source.namelist():
            archive.writestr(name, source.read(name))
    return file.getvalue()


@pytest.mark.browser
@pytest.mark.slow
def test_files_are_opened(visit, page_with, tmp_path):
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    torch.save(net.state_dict(), tmp_path / "net.pt")
    data = (tmp_path / "net.pt").read_bytes()
    program = written(zipfile.ZipFile(io.BytesIO(data)).read("net/data.pkl")).replace("\\'", "'")
    plain = pickle.dumps({"a": " "}, 4)
    files = {
        "net.pt": (data, program),
        "deflated.pt": (repacked(data, zipfile.ZIP_DEFLATED), program),
        "padded.pt": (repacked(data, zipfile.ZIP_STORED, bytes(100_000)), program),
        "plain.pkl": (plain, written(plain)),
    }
    with visit(page_with(viz.figure("pickle_machine"))) as seen:
        figure = seen.page.locator(".rt-fig")
        area, note = figure.locator("textarea"), figure.locator(".rt-pm-note")
        for name, (content, expected) in files.items():
            (tmp_path / name).write_bytes(content)
            figure.get_by_role("button", name="Reset").click()
            figure.locator("input[type=file]").set_input_files(tmp_path / name)
            seen.page.wait_for_function(
                "text => document.querySelector('.rt-pm textarea').value === text", arg=expected
            )
        figure.get_by_role("button", name="Reset").click()
        seen.page.evaluate(DROP, [".rt-pm", list(data)])
        seen.page.wait_for_function("text => document.querySelector('.rt-pm textarea').value === text", arg=program)
        assert "bytes=" in seen.page.evaluate("new Promise((done) => setTimeout(() => done(location.href), 600))")
        large = io.BytesIO()
        torch.save({str(i): torch.zeros(1) for i in range(50)}, large)
        (tmp_path / "large.pt").write_bytes(large.getvalue())
        figure.locator("input[type=file]").set_input_files(tmp_path / "large.pt")
        seen.page.wait_for_function("() => document.querySelector('.rt-pm textarea').value.length > 4000")
        seen.page.wait_for_function("() => !location.href.includes('bytes=')")
        figure.get_by_role("button", name="Copy a link").click()
        seen.page.wait_for_function("() => document.querySelector('.rt-refusal').textContent.includes('too long')")
        figure.get_by_role("button", name="Undo").click()
        seen.page.wait_for_function("text => document.querySelector('.rt-pm textarea').value === text", arg=program)
        for content, said in ((data[:-30], "no index"), (data[:60], "no index")):
            (tmp_path / "bad.pt").write_bytes(content)
            figure.locator("input[type=file]").set_input_files(tmp_path / "bad.pt")
            seen.page.wait_for_function(
                "text => document.querySelector('.rt-pm-note').textContent.includes(text)", arg=said
            )
        assert note.inner_text() and area.input_value() == program
        area.fill(r"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.")
        area.blur()
        figure.locator("[data-focus='step-1']").click()
        assert "module os is blocked" in figure.locator(".rt-now").inner_text()
        figure.locator("[data-focus='input-reader']").select_option("all")
        figure.locator("[data-focus='step-4']").click()
        assert "it runs" in figure.locator(".rt-now").inner_text()
        assert seen.problems == []


@pytest.mark.browser
@pytest.mark.slow
def test_arrows_step_from_anywhere_but_fields(visit, page_with):
    with visit(page_with(viz.figure("pickle_machine", program="views"))) as seen:
        page, figure = seen.page, seen.page.locator(".rt-fig")
        count = figure.locator(".rt-count")
        figure.get_by_role("button", name="Forward one step").click()
        for key, step in (("ArrowRight", 2), ("ArrowRight", 3), ("ArrowLeft", 2)):
            page.keyboard.press(key)
            assert count.inner_text() == f"step {step} of 69"
        figure.locator(".rt-pm-step").first.click()
        for key in ["ArrowDown"] * 12 + ["ArrowUp"] + ["ArrowRight"] * 9:  # the first instructions scroll out of sight
            page.keyboard.press(key)
        assert count.inner_text() == "step 20 of 69"
        figure.locator(".rt-title").click()
        page.keyboard.press("ArrowRight")
        assert count.inner_text() == "step 21 of 69"
        for field in ("select >> nth=1", "textarea"):
            figure.locator(field).focus()
            page.keyboard.press("ArrowRight")
            assert count.inner_text() == "step 21 of 69"


@pytest.mark.browser
@pytest.mark.slow
def test_addresses_name_steps_that_are_there_and_bytes_that_are_read(visit, page_with):
    with visit(page_with(viz.figure("pickle_machine", program="attack"))) as seen:
        page, figure = seen.page, seen.page.locator(".rt-fig")
        count = figure.locator(".rt-count")
        for step, shown in (("9999", 1), ("-3", 0), ("x", 0)):
            page.evaluate("hash => { location.hash = hash }", f"#fig=pickle_machine&step={step}")
            page.wait_for_function(
                "text => document.querySelector('.rt-count').textContent === text", arg=f"step {shown} of 1"
            )
        assert figure.locator(".rt-pm-unrun").all_inner_texts()[-1].split() == ["31", "STOP"]
        figure.locator("textarea").fill(r"K\x05.")
        figure.locator("textarea").blur()
        page.wait_for_function(r"location.hash.endsWith('&bytes=K%5Cx05.')")
        figure.get_by_label("program").select_option("call")
        page.wait_for_function("location.hash.includes('program=call')")
        assert "bytes" not in page.evaluate("location.hash") and count.inner_text() == "step 0 of 3"
        figure.get_by_label("program").select_option("own")
        page.wait_for_function("location.hash.includes('bytes=K')")
