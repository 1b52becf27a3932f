"""Chapters that name others by number: the numbers are those of `_toc.yml`."""

import re

import yaml

from tests.test_laws import PACKAGE
from tools import chapter_numbers as tool

ROOT = PACKAGE.parents[1]
TOC = (ROOT / "_toc.yml").read_text(encoding="utf8")
NUMBER_OF = tool.numbers(TOC)


def test_every_number_is_that_of_the_table_of_contents():
    chapters = sorted((ROOT / "book").glob("*.md"))
    assert [
        line for file in chapters for line in tool.problems(file.name, file.read_text(encoding="utf8"), NUMBER_OF)
    ] == []


def test_chapters_stand_in_the_order_of_their_numbers():
    in_order = [entry for part in yaml.safe_load(TOC)["parts"] for entry in part["chapters"] if "title" in entry]
    found = [match[1] for entry in in_order if (match := re.match(r"(\w+)\. ", entry["title"]))]
    assert list(NUMBER_OF.values()) == found, "each is read from the file"
    digits = [int(number) for number in found if number.isdigit()]
    letters = [number for number in found if number.isalpha()]
    assert digits == sorted(set(digits)) and letters == sorted(set(letters)), "none twice, and none before a lower one"
    assert found == [*map(str, digits), *letters]


def test_links_get_their_numbers():
    text = "[chapter 3](autograd.md), [3](autograd.md#hooks), appendix [A](optim.md); [3](other.md), [chapter 9](https://a.md), chapter 3"
    right = "[chapter 6](autograd.md), [6](autograd.md#hooks), appendix [17](optim.md); [3](other.md), [chapter 9](https://a.md), chapter 3"
    assert tool.numbered(text, {"autograd": "6", "optim": "17"}) == right


def test_wrong_numbers_are_named():
    text = "[chapter 3](autograd.md)\nchapter 6, and chapter 8\n[chapter 6](autograd.md)"
    assert tool.problems("x.md", text, {"autograd": "6"}) == [
        "x.md:1: a link has another number than _toc.yml",
        "x.md:2: _toc.yml has no chapter 8",
    ]
