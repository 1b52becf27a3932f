"""The launcher: environment, exit codes, and that it stops the others."""

import os
import signal
import subprocess
import time

import pytest

from tests.distributed.launch import environment, readtorchrun, run

SHOW = """
import os, sys
names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE MASTER_ADDR".split()
sys.stdout.write(" ".join(os.environ[n] for n in names) + "\\n")  # one write: the ranks share the pipe
"""


def script(tmp_path, text):
    file = tmp_path / "program.py"
    file.write_text(text)
    return file


def test_environment(tmp_path):
    done = run(readtorchrun(3, script(tmp_path, SHOW)))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"{r} {r} 3 3 127.0.0.1" for r in range(3)]


def test_arguments_and_modules(tmp_path):
    (tmp_path / "its_module.py").write_text("import sys; print(sys.argv[1:])")
    command = readtorchrun(1, "-m", "its_module", "--nproc-per-node", "x", "-m")
    done = subprocess.run(command, env=environment(), cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "['--nproc-per-node', 'x', '-m']\n", done.stderr


def test_one_machine_of_several(tmp_path):
    command = readtorchrun(
        2,
        "--nnodes",
        "3",
        "--node-rank",
        "1",
        "--master-addr",
        "10.0.0.1",
        "--master-port",
        "5",
        script(tmp_path, SHOW),
    )
    assert sorted(run(command).stdout.splitlines()) == ["2 0 6 2 10.0.0.1", "3 1 6 2 10.0.0.1"]


def test_exit_code_of_the_first_that_fails(tmp_path):
    began = time.monotonic()
    done = run(
        readtorchrun(
            2, script(tmp_path, "import os, sys, time\nif os.environ['RANK'] == '1': sys.exit(7)\ntime.sleep(60)")
        )
    )
    assert done.returncode == 7 and "rank 1 failed with exit code 7" in done.stderr
    assert time.monotonic() - began < 30  # the other one was stopped


def test_a_rank_that_is_killed(tmp_path):
    done = run(readtorchrun(1, script(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")))
    assert done.returncode == 128 + signal.SIGKILL and "rank 0 failed with signal SIGKILL" in done.stderr


def test_stopping_the_launcher_stops_the_ranks(tmp_path):
    text = f"import os, time; open({str(tmp_path)!r} + '/' + os.environ['RANK'], 'w').write(str(os.getpid())); time.sleep(60)"
    launcher = subprocess.Popen(readtorchrun(2, script(tmp_path, text)), env=environment())
    deadline = time.monotonic() + 20
    while len([f for f in ("0", "1") if (tmp_path / f).exists() and (tmp_path / f).read_text()]) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(20) != 0
    for rank in ("0", "1"):
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / rank).read_text()), 0)


def test_several_machines_need_a_port(tmp_path):
    done = run(readtorchrun(1, "--nnodes", "2", script(tmp_path, "")))
    assert done.returncode != 0 and "--master-port must be given" in done.stderr
