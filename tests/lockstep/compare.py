#!/usr/bin/env python3
"""Run every script of a folder with the reference and with readtorch, and say where their output parts.

usage: compare.py [FOLDER] [--python PYTHON] [--only NAME] [--rtol 1e-4] [--atol 5e-5]
Exit status: the number of scripts that differ or crash (at most 100).
"""

import argparse
import pathlib
import re
import subprocess
import sys

NOT_SCRIPTS = {"compare.py", "forked.py", "report.py", "test_lockstep.py", "__init__.py"}
NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?|\bnan\b|\binf\b")


def run(command, script, limit):
    try:
        p = subprocess.run([*command, str(script)], capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None, f"no answer in {limit} s"
    return (p.stdout if p.returncode == 0 else None), (p.stderr.strip().splitlines() or ["no message"])[-1]


def first_difference(a, b, rtol, atol):
    """The first pair of lines that differ in text or in a number, or None."""
    la, lb = a.splitlines(), b.splitlines()
    for i, (x, y) in enumerate(zip(la, lb)):
        same_text = NUMBER.sub("#", x).split() == NUMBER.sub("#", y).split()
        nx, ny = NUMBER.findall(x), NUMBER.findall(y)
        if not same_text or len(nx) != len(ny):
            return i + 1, x, y
        for p, q in zip(nx, ny):
            exact = not any(c in p + q for c in ".en")
            if (exact and p != q) or not (p == q or abs(float(p) - float(q)) <= atol + rtol * abs(float(p))):
                return i + 1, x, y
    if len(la) != len(lb):
        return min(len(la), len(lb)) + 1, f"{len(la)} lines", f"{len(lb)} lines"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default=pathlib.Path(__file__).parent, type=pathlib.Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only")
    parser.add_argument("--rtol", type=float, default=1e-4)
    parser.add_argument("--atol", type=float, default=5e-5)
    parser.add_argument("--limit", type=int, default=300, help="seconds a script may take")
    o = parser.parse_args()
    scripts = [
        s for s in sorted(o.folder.glob("*.py")) if s.name not in NOT_SCRIPTS and (not o.only or o.only in s.name)
    ]
    failed = 0
    for s in scripts:
        want, why = run([o.python, "-W", "ignore"], s, o.limit)
        if want is None:
            print(f"{s.stem}: the reference itself failed: {why}")
            failed += 1
            continue
        got, why = run([o.python, "-W", "ignore", "-m", "readtorch", "run"], s, o.limit)
        if got is None:
            print(f"{s.stem}: crashes: {why}")
            failed += 1
            continue
        d = first_difference(want, got, o.rtol, o.atol)
        if d:
            failed += 1
            print(f"{s.stem}: differs at line {d[0]}\n    reference  {d[1][:160]}\n    readtorch  {d[2][:160]}")
        else:
            print(f"{s.stem}: same ({len(want.splitlines())} lines)")
    print(f"{len(scripts) - failed} of {len(scripts)} scripts in lockstep")
    return min(failed, 100)


if __name__ == "__main__":
    sys.exit(main())
