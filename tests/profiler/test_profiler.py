"""`torch.profiler.profile`: the same events, in the same nesting, in the same table and file as PyTorch's."""

import gzip
import json
import re
import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import readtorch as rt
from readtorch.c10.local_dispatch_key_set import threads_with_modes, tls
from tests.profiler.programs import (
    PROGRAMS,
    Both,
    add,
    assert_same_tree,
    collected,
    custom_function,
    in_place,
    joins,
    named,
    network_step,
    numbers,
    on_both_sides,
    products,
    roots,
    simple_backward,
    training_step,
    unary,
)

SIDES = pytest.mark.parametrize("T", [rt, torch], ids=["readtorch", "torch"])
CPU = {rt: rt.profiler.ProfilerActivity.CPU, torch: torch.profiler.ProfilerActivity.CPU}


def error_of(function, *arguments):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            function(*arguments)
            error = None
        except Exception as raised:
            error = type(raised).__name__, str(raised)
    return error, [(w.category, str(w.message)) for w in warned if w.category is not ResourceWarning]


def both_errors(function):
    ours, theirs = error_of(function, rt), error_of(function, torch)
    assert ours == theirs
    assert ours != (None, [])


# ---------------------------------------------------------------------------------------------------------------- events


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_events_are_nested_as_in_pytorch(program):
    ours, theirs = on_both_sides(program)
    facts = (lambda e: e.scope, lambda e: e.count, lambda e: e.is_async, lambda e: e.is_user_annotation)
    assert_same_tree(roots(ours.events()), roots(theirs.events()), facts=facts)


@pytest.mark.parametrize(
    "program", [add, numbers, products, joins, unary, in_place], ids=lambda program: program.__name__
)
def test_shapes_strides_and_types_of_arguments(program):
    ours, theirs = on_both_sides(program, record_shapes=True)
    facts = (
        lambda e: e.input_shapes,
        lambda e: e.structured_input_shapes,
        lambda e: e.structured_input_strides,
        lambda e: e.input_dtypes,
        lambda e: e.concrete_inputs,
    )
    assert_same_tree(roots(ours.events()), roots(theirs.events()), facts=facts)


def test_arguments_that_are_equal_are_told_apart():
    """1 == 1.0 == True, and 0.0 == -0.0: equal descriptions of arguments are one object."""

    def program(b):
        for alpha in (1, 1.0, 2.0, 2, 0, 0.0, -0.0):
            b.x.add(b.x, alpha=alpha)
        (
            b.x.sum(1, True),
            b.x.sum((1,), False),
            b.x.reshape(2, 6),
            b.x.reshape(6, 2),
            b.x.permute(0, 1),
            b.x.clamp(0, 1.0),
        )

    found = [
        [(e.name, [repr(value) for value in e.concrete_inputs], e.input_dtypes) for e in roots(prof.events())]
        for prof in on_both_sides(program, record_shapes=True)
    ]
    assert found[0] == found[1]


def test_shapes_of_what_the_engine_runs():
    """A node's gradients have shapes; to evaluate it is no call with arguments."""
    found = [
        [(e.name, e.input_shapes, e.input_dtypes) for e in prof.events() if "Backward" in e.name or e.name == "Triple"]
        for prof in on_both_sides(custom_function, record_shapes=True)
    ]
    assert found[0] == found[1]


def links(events):
    """(name of a node that ran, name of the call that made it)"""
    nodes = [e for e in events if e.scope == 1 and e.sequence_nr >= 0]
    made = {e.sequence_nr: e for e in events if e.scope == 0 and not e.name.startswith("autograd::")}
    return [
        (node.name, made[node.sequence_nr].name, node.fwd_thread == made[node.sequence_nr].thread) for node in nodes
    ]


@pytest.mark.parametrize("program", [simple_backward, training_step, network_step, custom_function])
def test_nodes_find_the_calls_that_made_them(program):
    ours, theirs = on_both_sides(program)
    assert links(ours.events()) == links(theirs.events())


def test_an_event_knows_its_time_and_thread():
    ours, _ = on_both_sides(training_step)
    for event in ours.events():
        assert 0 <= event.time_range.start <= event.time_range.end
        assert event.thread == ours.events()[0].thread
        inside = sum(child.cpu_time_total for child in event.cpu_children)
        assert event.self_cpu_time_total == pytest.approx(event.cpu_time_total - inside)


@SIDES
def test_backward_in_a_step_of_a_schedule_with_errors(T):
    """A call that raises is over when it has raised: what comes next is not inside it."""

    def program():
        with pytest.raises(RuntimeError):
            T.ones(2) + T.ones(3)
        T.ones(2).exp()

    names = [event.name for event in roots(collected(T, program).events())]
    assert names == ["aten::ones", "aten::ones", "aten::add", "aten::ones", "aten::exp"]


def test_nobody_is_observed_before_and_afterwards():
    before = set(threads_with_modes)  # a thread of another test may have ended in a mode
    with pytest.raises(ZeroDivisionError), rt.profiler.profile():
        assert tls.observers
        1 / 0
    assert not tls.observers and threads_with_modes == before


@SIDES
def test_a_profiler_inside_another_takes_its_place(T):
    x = T.ones(3)
    with T.profiler.profile(activities=[CPU[T]]) as outer:
        T.exp(x)
        with T.profiler.profile(activities=[CPU[T]]) as inner:
            T.sin(x)
        T.cos(x)
    assert [[event.name for event in prof.events()] for prof in (outer, inner)] == [[], ["aten::sin"]]
    assert not tls.observers


@SIDES
def test_other_threads_are_not_seen(T):
    import threading

    def program():
        thread = threading.Thread(target=lambda: T.ones(2).exp())
        thread.start()
        thread.join()
        T.ones(2)

    assert [event.name for event in roots(collected(T, program).events())] == ["aten::ones"]


@SIDES
def test_events_of_several_cycles(T):
    names = {}
    for acc_events in (False, True):
        prof = T.profiler.profile(activities=[CPU[T]], acc_events=acc_events)
        for function in (T.exp, T.sin):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                prof.start()
            function(T.zeros(2))
            prof.stop()
        names[acc_events] = [event.name for event in roots(prof.events()) if event.name != "aten::zeros"]
    assert names == {False: ["aten::sin"], True: ["aten::sin", "aten::exp"]}


@SIDES
def test_collection_can_be_switched_off_for_a_while(T):
    def program():
        T.ones(2)
        prof.toggle_collection_dynamic(False, [CPU[T]])
        T.exp(x)
        prof.toggle_collection_dynamic(True, [CPU[T]])
        T.sin(x)

    x = T.ones(3)
    with T.profiler.profile(activities=[CPU[T]]) as prof:
        program()
    assert [event.name for event in roots(prof.events())] == ["aten::ones", "aten::sin"]


# --------------------------------------------------------------------------------------------------- tables and averages


def cells(table):
    """The table's lines; in rows, what was measured is replaced by its unit."""
    lines = table.splitlines()
    ruler = next(line for line in lines if line.startswith("-"))
    spans = [found.span() for found in re.finditer("-+", ruler)]
    first, last = [i for i, line in enumerate(lines) if line == ruler][1:]
    titles = [lines[first - 1][a:b] for a, b in spans]
    rows = [[line[a:b] for a, b in spans] for line in lines[first + 1 : last]]
    measured = [re.search("CPU(?!.*Mem)", title) is not None for title in titles]
    rows = [[re.sub(r" *[\d.]+", "", cell) if m else cell for cell, m in zip(row, measured)] for row in rows]
    return lines[: first + 1], rows, lines[last], re.sub(r"[\d.]+", "", lines[last + 1])


@pytest.mark.parametrize("program", [add, numbers, named], ids=lambda program: program.__name__)
@pytest.mark.parametrize(
    "settings",
    [{}, {"record_shapes": True}, {"with_flops": True}, {"profile_memory": True}],
    ids=lambda settings: ", ".join(settings) or "plain",
)
def test_tables_are_laid_out_as_in_pytorch(program, settings):
    arguments = {"row_limit": 100, "header": "title", "time_unit": "us"}
    ours, theirs = [
        cells(prof.key_averages(group_by_input_shape="record_shapes" in settings).table(**arguments))
        for prof in on_both_sides(program, **settings)
    ]
    assert ours == theirs


@SIDES
def test_rows_can_be_sorted_and_limited(T):
    def program():
        for _ in range(3):
            T.exp(x)
        T.sin(x)

    x = T.ones(3)
    averages = collected(T, program).key_averages()
    by_count = averages.table(sort_by="count", row_limit=1)
    assert "aten::exp" in by_count and "aten::sin" not in by_count
    assert averages.table(row_limit=0).count("aten::") == 0
    assert {event.key: event.count for event in averages} == {"aten::exp": 3, "aten::sin": 1}
    assert averages[0].cpu_time == pytest.approx(averages[0].cpu_time_total / 3)
    assert collected(T, lambda: None).key_averages().table() == ""


@SIDES
def test_top_level_events_only(T):
    prof = collected(T, lambda: T.randn(3))
    table = prof.events().table(top_level_events_only=True)
    assert "aten::randn" in table and "aten::normal_" not in table
    assert "This report only display top-level ops statistics" in table


@pytest.mark.parametrize("what", ["group_by_input_shape", "group_by_overload_name"])
def test_averages_of_shapes_and_overloads(what):
    groups = []
    for T in (rt, torch):
        x, y = T.ones(3), T.ones(2, 3)

        def program(x=x, y=y):
            x + x, y + y, x + x, y * y

        config = (rt.profiler if T is rt else torch.profiler)._ExperimentalConfig(capture_overload_names=True)
        averages = collected(T, program, record_shapes=True, experimental_config=config).key_averages(**{what: True})
        groups.append([(event.key, event.count, event.input_shapes, event.overload_name) for event in averages])
    assert groups[0] == groups[1]


def test_flops():
    def program(b):
        products(b)
        numbers(b)
        b.T.nn.functional.conv2d(b.image, b.T.ones(2, 1, 3, 3), stride=2, padding=1)

    ours, theirs = [
        {e.key: e.flops for e in prof.key_averages() if e.flops} for prof in on_both_sides(program, with_flops=True)
    ]
    assert ours == theirs
    assert {"aten::mm", "aten::addmm", "aten::bmm", "aten::mul", "aten::conv2d"} <= ours.keys()


@SIDES
def test_totals(T):
    prof = collected(T, lambda: T.randn(3).exp())
    events = prof.events()
    total = events.total_average()
    assert (total.key, total.count) == ("Total", len(events))
    assert total.self_cpu_time_total == pytest.approx(events.self_cpu_time_total)
    assert prof.profiler.self_cpu_time_total == pytest.approx(events.self_cpu_time_total)


# ---------------------------------------------------------------------------------------------------------------- memory


def test_memory_of_operators():
    def program(b):
        y = b.x + b.x
        del y
        b.kept = b.T.exp(b.x)

    for prof in on_both_sides(program, profile_memory=True):
        used = {event.name: event.cpu_memory_usage for event in roots(prof.events())}
        assert used == {"aten::add": 48, "aten::exp": 48}
        freed = [event.cpu_memory_usage for event in prof.events() if event.name == "[memory]"]
        assert -48 in freed


def test_a_simulated_device_has_memory_and_a_thread_of_its_own():
    """There is no such device in the reference here: what is compared with is the same program on the CPU."""
    rt.cuda.simulate(1)
    try:
        found = []
        for device in ("cpu", "cuda"):
            layer, x = rt.nn.Linear(3, 2, device=device), rt.ones(4, 3, device=device)
            activities = [CPU[rt], rt.profiler.ProfilerActivity.CUDA]
            with rt.profiler.profile(activities=activities, profile_memory=True) as prof:
                layer(x).sum().backward()
            found.append({event.name: event for event in prof.events()})
        cpu, cuda = found
        for name in ("aten::linear", "aten::mm"):
            assert cuda[name].device_memory_usage == cpu[name].cpu_memory_usage > 0
            assert cuda[name].cpu_memory_usage == cpu[name].device_memory_usage == 0
        node = cuda["AddmmBackward0"]
        assert node.thread != node.fwd_thread == cuda["aten::linear"].thread == cpu["AddmmBackward0"].thread
        assert "CUDA Mem" in prof.key_averages().table(sort_by="self_cuda_memory_usage")
        with pytest.raises(AssertionError, match="Legacy CUDA profiling requires use_cpu=True"):
            rt.autograd.profiler.profile(use_cpu=False, use_device="cuda", use_kineto=True)
    finally:
        rt.cuda.simulate(0)


# ------------------------------------------------------------------------------------------------------------ stacks


def test_stacks_name_the_places_of_the_program():
    stacks = []
    for T in (rt, torch):
        b = Both(T)
        verbose = T.profiler._ExperimentalConfig(verbose=True)
        prof = collected(T, lambda b=b: add(b), with_stack=True, experimental_config=verbose)
        (event,) = [event for event in prof.events() if event.name == "aten::add"]
        stacks.append([entry for entry in event.stack if "profiler/programs.py" in entry])
    assert stacks[0] and [entry.split("/")[-1] for entry in stacks[0]] == [e.split("/")[-1] for e in stacks[1]]


def test_stacks_of_backward_are_those_of_forward():
    ours, _ = on_both_sides(simple_backward, with_stack=True)
    events = {event.name: event for event in ours.events()}
    assert events["MulBackward0"].stack == events["aten::mul"].stack
    assert any("simple_backward" in entry for entry in events["MulBackward0"].stack)


def test_stacks_are_exported(tmp_path):
    ours, _ = on_both_sides(add, with_stack=True)
    ours.export_stacks(tmp_path / "stacks.txt")
    (line,) = (tmp_path / "stacks.txt").read_text().splitlines()
    stack, microseconds = line.rsplit(" ", 1)
    assert int(microseconds) > 0 and ":_add" in stack.split(";")[-1]
    both_errors(lambda T: collected(T, lambda: T.ones(2)).export_stacks("nowhere"))
    both_errors(lambda T: collected(T, lambda: T.ones(2), with_stack=True).export_stacks("nowhere", "time"))


# ------------------------------------------------------------------------------------------------------------- traces


def trace_of(prof, path):
    prof.export_chrome_trace(str(path))
    return json.loads((gzip.open(path) if path.name.endswith("gz") else open(path)).read())


def kinds(trace):
    """(phase, category, name, keys, keys of args) of each entry but for names of threads, which PyTorch writes twice."""
    entries = [entry for entry in trace["traceEvents"] if not entry["name"].startswith("thread_")]
    return [
        (e["ph"], e.get("cat"), e["name"], sorted(e), sorted(e.get("args", {})))
        for e in entries
        if e["name"] != "[memory]"
    ]


@pytest.mark.parametrize("settings", [{}, {"record_shapes": True}], ids=["plain", "record_shapes"])
@pytest.mark.parametrize("program", [add, named], ids=lambda program: program.__name__)
def test_traces_have_the_keys_and_phases_of_pytorch(program, settings, tmp_path):
    ours, theirs = [trace_of(prof, tmp_path / "trace.json") for prof in on_both_sides(program, **settings)]
    assert ours.keys() == theirs.keys()
    assert (
        ours["schemaVersion"] == theirs["schemaVersion"]
        and ours["baseTimeNanoseconds"] == theirs["baseTimeNanoseconds"]
    )

    def numbered_alike(found):  # in PyTorch also a call of which nothing requires grad has the number of the next node
        return [(*kind[:4], [a for a in kind[4] if a not in ("Sequence number", "Fwd thread id")]) for kind in found]

    assert numbered_alike(kinds(ours)) == numbered_alike(kinds(theirs))


def test_arguments_in_a_trace(tmp_path):
    args = []
    for prof in on_both_sides(add, record_shapes=True):
        trace = trace_of(prof, tmp_path / "trace.json")
        (entry,) = [e for e in trace["traceEvents"] if e["name"] == "aten::add"]
        names = ("Concrete Inputs", "Input type", "Input Strides", "Input Dims", "Ev Idx", "Record function id")
        args.append({name: entry["args"][name] for name in names})
    assert args[0] == args[1]


def arrows(trace):
    """(phase, name of the event it begins or ends at), in order of their numbers"""
    bars = {(e["ts"], e["tid"]): e["name"] for e in trace["traceEvents"] if e["ph"] == "X"}
    ends = [e for e in trace["traceEvents"] if e["ph"] in "sf"]
    return sorted((e["id"], e["ph"], bars[e["ts"], e["tid"]]) for e in ends)


@pytest.mark.parametrize("program", [simple_backward, training_step, network_step])
def test_arrows_lead_from_calls_to_nodes(program, tmp_path):
    ours, theirs = [trace_of(prof, tmp_path / "trace.json") for prof in on_both_sides(program)]
    assert arrows(ours) == arrows(theirs)


def test_memory_in_a_trace(tmp_path):
    found = []
    for prof in on_both_sides(add, profile_memory=True):
        entries = trace_of(prof, tmp_path / "trace.json")["traceEvents"]
        found.append([(sorted(e), sorted(e["args"]), e["args"]["Bytes"]) for e in entries if e["name"] == "[memory]"])
    assert found[0] == found[1]


def test_metadata(tmp_path):
    def program(T):
        prof = T.profiler.profile(activities=[CPU[T]], with_stack=True, custom_trace_id_callback=lambda: "ID")
        prof.preset_metadata_json("preset", "[1, 2]")
        with prof:
            T.ones(2)
            prof.add_metadata("text", "a b")
            prof.add_metadata_json("number", "3.5")
        assert prof.get_trace_id() == "ID"
        trace = trace_of(prof, tmp_path / "trace.json.gz")
        return {key: trace[key] for key in ("preset", "text", "number", "with_stack", "trace_id", "displayTimeUnit")}

    assert program(rt) == program(torch)


# ---------------------------------------------------------------------------------------------------------- schedules

counts = st.integers(-1, 4)


@given(wait=counts, warmup=counts, active=counts, repeat=counts, skip_first=counts, skip_first_wait=st.integers(0, 1))
def test_schedules(**arguments):
    def actions(T):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            schedule = T.profiler.schedule(**arguments)
        return [schedule(step).name for step in range(25)]

    if (
        min(
            arguments["wait"],
            arguments["warmup"],
            arguments["active"] - 1,
            arguments["repeat"],
            arguments["skip_first"],
        )
        < 0
    ):
        both_errors(actions)
    else:
        assert actions(rt) == actions(torch)


def scheduled(T, steps, **arguments):
    """What is ready at the end of each cycle, and then."""
    ready = []
    with T.profiler.profile(
        activities=[CPU[T]],
        schedule=T.profiler.schedule(**arguments),
        on_trace_ready=lambda prof: ready.append((prof.step_num, [event.name for event in roots(prof.events())])),
    ) as prof:
        for step in range(steps):
            T.exp(T.full((2,), step))
            prof.step()
    return ready, prof.step_num


@pytest.mark.parametrize(
    "arguments",
    [
        {"wait": 1, "warmup": 1, "active": 2},
        {"wait": 1, "warmup": 1, "active": 2, "repeat": 1},
        {"wait": 0, "warmup": 1, "active": 1, "skip_first": 2},
        {"wait": 2, "warmup": 1, "active": 1, "skip_first_wait": 1},
    ],
    ids=str,
)
def test_cycles(arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert scheduled(rt, 9, **arguments) == scheduled(torch, 9, **arguments)


def test_traces_for_tensorboard(tmp_path):
    for name, use_gzip in (("plain", False), ("packed", True)):
        handler = rt.profiler.tensorboard_trace_handler(str(tmp_path / name), "worker", use_gzip)
        with rt.profiler.profile(on_trace_ready=handler):
            rt.ones(2)
        (file,) = (tmp_path / name).iterdir()
        assert re.fullmatch(r"worker\.\d+\.pt\.trace\.json" + (r"\.gz" if use_gzip else ""), file.name)


# ------------------------------------------------------------------------------------------------------------- errors

WRONG = {
    "no activities": lambda T: T.profiler.profile(activities=[]),
    "no activity": lambda T: T.profiler.profile(activities=[3]),
    "twice": lambda T: T.profiler.profile(activities=[CPU[T], CPU[T]]),
    "no events yet": lambda T: T.profiler.profile().events(),
    "no averages yet": lambda T: T.profiler.profile().key_averages(),
    "no trace yet": lambda T: T.profiler.profile().export_chrome_trace("x"),
    "entered twice": lambda T: [p.__enter__() for p in [T.autograd.profiler.profile()] * 2],
    "no activity at all": lambda T: T.autograd.profiler.profile(use_cpu=False),
    "no such device": lambda T: T.autograd.profiler.profile(use_device="sky"),
    "no GPU": lambda T: T.autograd.profiler.profile(use_device="cuda"),
    "stopped by a schedule": lambda T: T.profiler.profile(
        schedule=lambda step: T.profiler.ProfilerAction.DEVICE_STOPPED
    ),
    "negative timeout": lambda T: T.autograd.profiler.profile(post_processing_timeout_s=-1),
    "no events wanted": lambda T: collected(
        T, lambda: None, experimental_config=T.profiler._ExperimentalConfig(trace_only=True)
    ).events(),
    "stacks need events": lambda T: T.profiler.profile(
        with_stack=True, experimental_config=T.profiler._ExperimentalConfig(trace_only=True)
    ),
    "not entered": lambda T: T.profiler.record_function("x").__exit__(None, None, None),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_errors(wrong):
    try:
        both_errors(wrong)
    finally:
        for T, end in (
            (rt, rt.csrc.autograd.profiler_kineto.disable_profiler),
            (torch, torch.autograd._disable_profiler),
        ):
            del T
            end()


def test_unfinished():
    for T in (rt, torch):
        assert repr(T.autograd.profiler.profile()) == "<unfinished torch.autograd.profile>"
    assert rt.autograd.profiler.profile(enabled=False).__enter__() is None


def test_enumerations():
    for name in ("ProfilerActivity", "DeviceType", "RecordScope", "ProfilerAction"):
        ours, theirs = getattr(rt.profiler, name), getattr(torch.profiler, name)
        members = theirs.__members__
        assert {n: m.value for n, m in ours.__members__.items()} == {n: m.value for n, m in members.items()}
        assert [repr(m) for m in ours] == [repr(members[m.name]) for m in ours]
        assert [str(m) for m in ours] == [str(members[m.name]) for m in ours]


# -------------------------------------------------------------------------------------------------- names of one's own


@SIDES
def test_a_named_block_can_last_until_a_future_is_done(T):
    future = T.futures.Future()
    with T.profiler.profile(activities=[CPU[T]]) as prof:
        with T.profiler.record_function("waits") as record:
            done = record._call_end_callbacks_on_future(future)
        T.ones(2)
        future.set_result(7)
        assert done.wait() == 7
    events = prof.events()
    assert [event.name for event in roots(events)] == ["waits"]
    with pytest.raises(RuntimeError, match="can only be called once"):
        record._call_end_callbacks_on_future(future)


@SIDES
def test_steps_are_counted_by_all_who_count(T):
    tracker = T.autograd.profiler.KinetoStepTracker
    begin = tracker.current_step()
    tracker.init_step_count("first")
    tracker.init_step_count("second")
    assert tracker.increment_step("first") == tracker.increment_step("second") == begin + 1
    assert tracker.increment_step("first") == begin + 2
    assert tracker.erase_step_count("first") and tracker.erase_step_count("second")
    assert not tracker.erase_step_count("first")
