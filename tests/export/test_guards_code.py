"""Guards of exported programs are walked, not executed: what they give is what Python would."""

import math

import pytest

import readtorch as rt
from readtorch._export.guards_code import guard_function, shown_guard

from .test_hostile import HOSTILE_GUARDS

ARGS = (rt.ones(4, 6).t(), rt.ones(3), 7, 2.5)
SOURCES = ["L['x']", "L['y']['a'][0]", "L['n']", "L['f']"]
GUARDS = """
L['x'].size()[0] == 6
L['x'].size()[0] + 2 * L['x'].size()[1] - 1 != 13
L['x'].stride()[1] < L['x'].size()[0] <= 6
3 <= L['y']['a'][0].size()[0] < L['x'].size()[1] < 4
-L['n'] // 2 == -4 and L['n'] % 4 == 3
L['n'] / 2 == 3.5 or 1 // 0
not L['n'] == 7
L['x'].storage_offset() == 0
max(L['n'], L['x'].size()[0], 3) == 7
min(L['n'], 3) ** 2 == 9
math.floor(L['f']) + math.ceil(L['f']) == 5
math.trunc(-L['f']) == -2
float(L['n']) == 7.0
L['f'] < math.inf
L['f'] == -math.inf
math.isnan(L['f'])
L['n'] == 'seven'
L['x'].size()[-1] == 4
""".strip().splitlines()


@pytest.mark.parametrize("text", GUARDS)
def test_what_a_guard_gives(text):
    inputs = {"x": ARGS[0], "y": {"a": [ARGS[1]]}, "n": ARGS[2], "f": ARGS[3]}
    assert guard_function(text, SOURCES)(ARGS) == eval(text, {"L": inputs, "math": math})


REFUSED = [text for text in HOSTILE_GUARDS if text not in ("9**9**9 == 1", "'a' == 'a'")]
REFUSED += [
    "L['z'] == 1",
    "L['x'].size(0) == 1",
    "L['x'][0] == 1",
    "max(1, 2, key=abs) == 1",
    "1 is 1",
    "~1 == 1",
    "1 << 9 == 1",
    "'a'.upper()",
]


@pytest.mark.parametrize("text", REFUSED)
def test_other_code_has_no_function(text):
    with pytest.raises((ValueError, SyntaxError)):
        guard_function(text, SOURCES)


def test_how_a_guard_is_shown():
    assert shown_guard("L['y']['a'][0].size()[0] + L['x'].size()[1] == 7") == "y['a'][0].size()[0] + x.size()[1] == 7"
