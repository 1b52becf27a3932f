"""The first sentence of a docstring, as figures and lists show it."""

from readtorch.viz.docstrings import first_sentence


def test_sentences():
    text = "`Size`: what `x.shape` is, e.g. here. And more.\n\nNot this."
    assert first_sentence(text) == "What x.shape is, e.g. here."
    assert first_sentence("") == ""
