"""What type checkers are told: the stubs are those of today's schemas, and mypy reads a user's program with them."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = """
import readtorch as rt


class Net(rt.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = rt.nn.Linear(3, 2)

    def forward(self, x: rt.Tensor) -> rt.Tensor:
        return rt.nn.functional.relu(self.linear(x))


net = Net()
x = rt.randn(4, 3, requires_grad=True)
reveal_type(x.sum(dim=1).max(0).values)
reveal_type(1 - x @ x.T)
reveal_type(rt.linalg.norm(x))
reveal_type(x.shape)
reveal_type(rt.float32)
reveal_type(net.parameters())
loss = rt.nn.functional.cross_entropy(net(x), rt.tensor([0, 1, 0, 1]))
reveal_type(loss)
rt.optim.SGD(net.parameters(), lr=0.1).step()
rt.add(x, "1")
x.nothing()
"""


def test_stubs_are_written_from_these_schemas():
    done = subprocess.run([sys.executable, ROOT / "tools/gen_pyi.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_stubs_have_no_errors_of_their_own(tmp_path):
    """Asked for by name: what lies in site-packages is not reported otherwise."""
    stubs = sorted((ROOT / "src/readtorch").rglob("*.pyi"))
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", "--cache-dir", tmp_path / "cache", *stubs]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "src")
    assert done.returncode == 0, done.stdout + done.stderr


def test_mypy_reads_a_program(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf8")
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", "--cache-dir", tmp_path / "cache", program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={"MYPYPATH": str(ROOT / "src")})
    revealed = re.findall(r'Revealed type is "(?:\w+\.)*(\w+)', done.stdout)
    assert revealed == ["Tensor", "Tensor", "Tensor", "Size", "dtype", "Iterator", "Tensor"], done.stdout + done.stderr
    errors = re.findall(r":(\d+): error: (.*)", done.stdout)
    lines = PROGRAM.split("\n")
    assert [lines[int(n) - 1] for n, _ in errors] == ['rt.add(x, "1")', "x.nothing()"], done.stdout
