"""The result file and the tables that the book makes of it."""

import json

import pytest
import torch

from tests.conformance import catalog, page, report


@pytest.fixture(scope="module")
def results():
    return page.Results()


def test_the_file_is_of_this_reference_and_complete(results):
    assert results.data["versions"]["torch"] == torch.__version__
    names = [[row["name"] for row in results.data[kind]] for kind in page.KINDS]
    assert names == [catalog.all_names(), catalog.module_names(), list(catalog.optimizer_infos())]
    assert all(row["state"] in page.STATES for kind in page.KINDS for row in results.data[kind])


def test_every_difference_has_a_reason(results):
    for kind in page.KINDS:
        assert all(page.reason(row) for row in results.data[kind] if row["state"] != "same")


def test_every_operator_stands_in_one_place_of_the_page(results):
    listed = [results.names("same"), results.differences("operators"), results.left_out(), results.not_yet()]
    for row in results.data["operators"]:
        assert sum(page.code(row["name"]) in text for text in listed) == 1, row["name"]


def test_one_row_as_it_is_written():
    row = report.operator_row("clone", limit=1)
    assert row["state"] == "same" and row["samples"] == 4 and row["group"] and not row["exact"]
    assert report.operator_row("jiterator_unary", limit=1)["state"] == "absent"
    assert report.module_row("ReLU", limit=1)["state"] == "same"


def test_rows_are_lines():
    result = {"date": "today", "operators": [{"name": "add"}, {"name": "mul"}], "modules": []}
    text = report._in_lines(result)
    assert json.loads(text) == result
    assert '\n  {"name": "mul"}\n' in text


def test_what_is_quoted_cannot_break_a_table():
    table = page.table(("A", "B"), [("`x|y`", "a_b|c <d>"), ("`z`", "1")])
    assert table.splitlines()[2] == r"| `x\|y` | a\_b\|c \<d\> |"
    assert page.table(("N",), [(1,), ("2,000",)]).splitlines()[1] == "| ---: |"
