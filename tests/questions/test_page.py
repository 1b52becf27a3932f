"""The page "Questions": each question has its anchor, its answer, a link to more, and a test or a reason for none."""

import re

import pytest
from docutils.nodes import make_id

from tests.test_laws import PACKAGE

ROOT = PACKAGE.parents[1]
PAGE = (ROOT / "book/questions.md").read_text(encoding="utf8")
ANSWER_OF = dict(re.findall(r"^### (.+)\n\n(.+(?:\n.+)*)$", PAGE, re.M))
LINK = re.compile(
    r"→ \[.+\]\((?:(?P<file>\w+)\.md(?:#(?P<section>[^)]+))?|https://docs\.pytorch\.org/docs/stable/\S+)\)$"
)

A_GPU = "needs a GPU"
SOURCE = "read in the source, or asserted in the chapter that the answer links to"
MACHINE = "depends on the machine"
NOT_RUN = {
    "Why is a loop over elements so slow?": MACHINE,
    "Why does memory grow with the number of workers?": MACHINE,
    "Why do activations need so much memory?": SOURCE,
    "Why are my timings of GPU code wrong?": A_GPU,
    "Why does a CUDA error name the wrong line?": A_GPU,
    "What does `non_blocking=True` do?": A_GPU,
    "What is a stream?": A_GPU,
    "When do I need `record_stream`?": SOURCE,
    "Why are neighbouring threads to read neighbouring addresses?": A_GPU,
    "`DataParallel` or `DistributedDataParallel`?": A_GPU,
    "Are gradients summed or averaged over the ranks?": SOURCE,
    "Why does my distributed program hang?": SOURCE,
    "What does `find_unused_parameters` do?": SOURCE,
    "What does FSDP shard?": SOURCE,
    "Why can fusing operators make a program faster?": MACHINE,
    "What does an exported ONNX model have fixed?": SOURCE,
    "Why does `import torch` take so long?": MACHINE,
}


def anchor(question):
    """As Sphinx makes it of a heading."""
    return make_id(question.replace("`", ""))


def names_of_tests():
    here = ROOT / "tests/questions"
    return {name for file in here.glob("test_*.py") for name in re.findall(r"^def test_(\w+)", file.read_text(), re.M)}


def anchors_of(file):
    """The anchors of a chapter's sections, as Markdown's readers make them."""
    text = re.sub(r"^(`{3,}).*?^\1$", "", (ROOT / f"book/{file}.md").read_text(encoding="utf8"), flags=re.M | re.S)
    titles = re.findall(r"^#{1,3} (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_there_are_more_than_a_hundred():
    assert len(ANSWER_OF) == PAGE.count("\n### ") > 100
    assert len({anchor(question) for question in ANSWER_OF}) == len(ANSWER_OF)


@pytest.mark.parametrize("question", ANSWER_OF)
def test_an_answer_is_short_and_leads_on(question):
    answer = ANSWER_OF[question]
    found = LINK.search(answer)
    assert found
    if found["section"]:
        assert found["section"] in anchors_of(found["file"])
    told = answer[: found.start()].strip()
    sentences = re.split(r"[.?]\s+(?=[A-Z`])", told)
    assert len(sentences) <= 2 and len(told.split()) <= 60


def test_every_answer_is_run_or_says_why_not():
    names = {question: anchor(question).replace("-", "_") for question in ANSWER_OF}
    assert [
        question for question, name in names.items() if name not in names_of_tests() and question not in NOT_RUN
    ] == []
    assert [question for question in NOT_RUN if names[question] in names_of_tests()] == []
    strangers = (
        names_of_tests() - set(names.values()) - set(re.findall(r"^def test_(\w+)", open(__file__).read(), re.M))
    )
    assert strangers == set(), "a question has been renamed"
