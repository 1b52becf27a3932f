"""Why ranks failed, and that they are started again."""

import json
import os

import pytest
import torch.distributed.elastic.multiprocessing.errors as reference

from readtorch.distributed.elastic.multiprocessing import errors
from tests.distributed.launch import readtorchrun, run

PROGRAM = """
import os, sys
from readtorch.distributed.elastic.multiprocessing.errors import record

@record
def main():
    count = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    sys.stdout.write(f"{os.environ['RANK']} {count} {os.environ['TORCHELASTIC_RUN_ID']}\\n")
    if os.environ["RANK"] == "1" and count < int(sys.argv[1]):
        raise ValueError(f"number {count}")

main()
"""


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


def test_restarts(program):
    done = run(readtorchrun(2, "--max-restarts", 1, "--rdzv-id", "job", program, 1))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["0 0 job", "0 1 job", "1 0 job", "1 1 job"]
    assert "rank 1 failed, 1 attempts left; will restart the ranks" in done.stderr


def test_the_error_of_a_rank_is_shown_and_passed_on(program, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))
    done = run(readtorchrun(2, program, 9))
    assert done.returncode == 1 and "Root Cause (first observed failure):" in done.stderr
    assert "rank      : 1 (local_rank: 1)" in done.stderr
    written = json.loads((tmp_path / "error.json").read_text())["message"]
    assert written["message"] == "ValueError: number 0" and written["errorCode"] == 1


def failures(api, folder):
    file = folder / "error.json"
    extra = {"py_callstack": "Traceback\n  there", "timestamp": "12345"}
    file.write_text(json.dumps({"message": {"message": "ValueError: x", "extraInfo": extra}}))
    made = {3: api.ProcessFailure(1, 997, 1, str(file)), 2: api.ProcessFailure(0, 998, -9, str(folder / "absent"))}
    made[2].timestamp = 99999
    return made


def test_messages_are_pytorchs(tmp_path):
    ours, theirs = (api.ChildFailedError("train.py", failures(api, tmp_path)) for api in (errors, reference))
    assert str(ours) == str(theirs)
    assert ours.get_first_failure()[0] == theirs.get_first_failure()[0] == 3


def test_error_files_are_pytorchs(tmp_path, monkeypatch):
    written = []
    for api in (errors, reference):
        monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / api.__name__))

        @api.record
        def fail():
            raise KeyError("absent")

        with pytest.raises(KeyError):
            fail()
        written.append(json.loads((tmp_path / api.__name__).read_text())["message"])
    ours, theirs = written
    assert ours["message"] == theirs["message"] and set(ours["extraInfo"]) == set(theirs["extraInfo"])
    assert os.path.basename(__file__) in ours["extraInfo"]["py_callstack"]
