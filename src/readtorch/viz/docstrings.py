"""What a docstring says first."""

from __future__ import annotations

import re


def first_sentence(text: str) -> str:
    """Of the first paragraph, without quoting marks and without the module's own name in front."""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    sentence = re.sub(
        r"^`?[\w./]+`?: (.)", lambda first: first[1].upper(), re.split(r"(?<=[.!?])\s(?=[A-Z])", paragraph)[0]
    )
    return sentence.replace("`", "")
