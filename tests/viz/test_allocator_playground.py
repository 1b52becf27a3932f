"""The figure "The allocator, statement by statement": what its program says, and what the chapter says of it."""

import pytest

from readtorch import viz
from readtorch.viz.figures import allocator_playground as figure
from readtorch.viz.inputs import Refusal


def last(code, **inputs):
    result = figure.FIGURE.result(code=code, **inputs)
    return result["steps"][-1], result["say"][-1]


def test_what_the_chapter_says():
    step, say = last(figure.FRAGMENTED)
    assert (
        step["failed"]
        and "The free blocks have 30 MiB together, the largest 5 MiB" in say
        and "the driver has 20 MiB" in say
    )
    assert last(figure.FRAGMENTED, expandable=True)[0]["failed"]
    step, say = last("a,b,c,d,e,f,g,h,i,j,k,l = 5; del a,b,c,d,e,f; x = 24")
    assert not step["failed"] and say.startswith("Memory is short: 20 MiB go back to the driver")
    waited = figure.FIGURE.result(code="a = 8; use a @1; del a; b = 8; wait @1; c = 8; d = 8")
    assert [one["pending"] >> 20 for one in waited["steps"]] == [0, 0, 8, 8, 8, 0, 0]


def test_what_is_missing_is_counted_in_pages_where_segments_grow():
    for memory, room in ((84, 1), (96, 1), (80, 1), (62, 0)):
        step, say = last(figure.FRAGMENTED, memory=memory, expandable=True)
        assert step["failed"] and f"pages of 20 MiB, and the driver has room for {room}: too few for 24 MiB" in say
    assert not last(figure.FRAGMENTED, memory=100, expandable=True)[0]["failed"]
    assert (
        "pages of 2 MiB, and the driver has room for 0: too few for 512 KiB"
        in last("a = 20; b = 512K", memory=20, expandable=True)[1]
    )


def early(code, **inputs):
    """By step, the names that have memory which another stream may still read."""
    steps = figure.FIGURE.result(code=code, **inputs)["steps"]
    return [
        "".join(block["name"] for segment in step["segments"] for block in segment["blocks"] if block["early"])
        for step in steps
    ]


def test_a_block_that_is_read_in_secret_is_handed_out_too_early():
    result = figure.FIGURE.result(code="a = 8; read a @1; del a; b = 8; wait @1")
    assert early("a = 8; read a @1; del a; b = 8; wait @1") == ["", "", "", "b", ""]
    assert "Stream 1 may still read a there" in result["say"][3] and "It read b where a had been" in result["say"][4]
    assert early("a = 8; read a @1; del a; b = 4; c = 8; del b; d = 2")[-4:] == ["b", "bc", "c", "dc"]


@pytest.mark.parametrize(
    "code",
    [
        "a = 8; read a @1; b = 8",  # a is still there
        "a = 8; read a @1; use a @1; del a; b = 8; wait @1; c = 8",  # the allocator was told
        "a = 8; read a @1; del a; wait @1; b = 8",  # done in time
        "a = 8; read a @0; del a; b = 8",  # the same stream: one after the other
        "a = 8 @1; read a @1; del a; b = 8 @1",
        "a = 30; read a @1; del a; b = 60",  # cudaFree waits for the device
        "a = 30; read a @1; del a; empty; b = 30",
        "a = 8; b = 8; read b @1; use b @1; del b; c = 70; d = 8",  # the allocator has waited for b's event
    ],
)
def test_what_is_not_too_early(code):
    assert "".join(early(code)) == ""


def test_a_name_that_is_taken_is_freed_last():
    result = figure.FIGURE.result(code="a = 50; a = 50", memory=80)
    assert result["steps"][1]["failed"]
    assert figure.FIGURE.result(code="a = 50; del a; a = 50", memory=80)["steps"][2]["failed"] is False


def test_what_was_not_made_is_neither_freed_nor_used():
    result = figure.FIGURE.result(code="a = 500; use a @1; del a")
    assert result["say"][1:] == ["There is no a: it was not made."] * 2


@pytest.mark.parametrize(
    "code, said",
    [
        ("", "This one has 0"),
        ("a = 1; del b", "there is no b at that point"),
        ("a = 1; del a; use a @1", "there is no a at that point"),
        ("a = 0", "1 byte to 64 GiB"),
        ("a = 65G", "at most 64 GiB"),
        ("a = 1 @7", "there are streams 0 to 3"),
        ("A = 1", "is none of"),
        ("a = 1 M B", "is none of"),
        ("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p = 1; del a; " * 4, "This one has 68"),
    ],
)
def test_refusals(code, said):
    with pytest.raises(Refusal, match=said):
        figure.FIGURE.result(code=code)


def test_a_setting_that_pytorch_refuses():
    with pytest.raises(Refusal, match="max_split_size_mb too small, must be >= 20"):
        figure.FIGURE.result(max_split=19)


@pytest.mark.browser
@pytest.mark.slow
def test_a_step_is_chosen_and_a_program_typed(visit, page_with):
    with visit(page_with(viz.figure("allocator_playground"))) as seen:
        seen.page.get_by_role("button", name="x = 24 MiB").click()
        assert "Out of memory" in seen.page.locator(".rt-fig").inner_text()
        field = seen.page.get_by_label("program").first
        field.fill("a = 3; del a")
        field.press("Enter")
        assert seen.page.locator(".rt-step").all_inner_texts() == ["a = 3 MiB", "del a"]
        assert seen.problems == []


@pytest.mark.browser
@pytest.mark.slow
def test_the_picture_is_grey_while_it_is_not_the_programs(visit, page_with):
    with visit(page_with(viz.figure("allocator_playground"))) as seen:
        grey = seen.page.locator(".rt-stale")
        program = seen.page.get_by_label("program").first
        program.fill("a = 3; del b")
        program.press("Enter")
        assert grey.count() == 1
        memory = seen.page.get_by_label("memory").first
        memory.fill("90")  # is taken, and the program still is not
        memory.press("Enter")
        assert grey.count() == 1 and "there is no b" in seen.page.locator(".rt-refusal").inner_text()
        program.fill("a = 3; del a")
        program.press("Enter")
        assert grey.count() == 0 and seen.problems == []
