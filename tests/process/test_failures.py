"""What torch says when ranks, ports and workers fail, told as a finding; real errors of gloo too."""

import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from launcher.errors import HardwareError
from launcher.process.failures import LostRank, LostWorker, explain, traceback_of
from launcher.process.siblings import missing_ranks
from launcher.process.symptoms import Symptoms, recognise
from tests.launching import ROOT

NCCL = (
    "[rank0]:[E915 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=42, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800005 ms\n"
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[../gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:4711", LostRank),
        (
            "[../gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation",
            LostRank,
        ),
        ("NCCL communicator was aborted on rank 1.", LostRank),
        ("DataLoader worker (pid 12) is killed by signal: Killed. ", LostWorker),
        ("DataLoader worker (pid 12) is killed by signal: Bus error. It is possible that ...", LostWorker),
        ("DataLoader worker (pid(s) 12) exited unexpectedly", LostWorker),
        ("DataLoader timed out after 300 seconds", LostWorker),
        (
            "The server socket has failed to listen on any local network address. port: 29500, EADDRINUSE",
            HardwareError,
        ),
    ],
)
def test_what_torch_says_is_told_in_words(text: str, kind: type) -> None:
    known = explain(RuntimeError(text), {})
    assert isinstance(known, kind)
    assert "type:" in str(known)


@pytest.mark.parametrize(
    "error", [RuntimeError("mat1 and mat2 shapes cannot be multiplied"), ValueError("x")]
)
def test_other_errors_are_not_explained(error: Exception) -> None:
    assert explain(error, {}) is None


def test_the_holder_of_a_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        known = explain(RuntimeError("EADDRINUSE"), {"MASTER_PORT": str(port)})
    assert f"PID {os.getpid()}" in str(known)


def test_a_traceback_hides_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_abcdefghijklmnopqrstuv")
    text = traceback_of(ValueError("401 for hf_abcdefghijklmnopqrstuv at https://me:pw12@host/"))
    assert "hf_abc" not in text
    assert "pw12" not in text
    assert "ValueError: 401 for (redacted)" in text


def test_a_symptom_is_found_across_pieces_of_a_stream() -> None:
    symptoms = Symptoms()
    for start in range(0, len(NCCL), 7):
        symptoms.feed(NCCL[start : start + 7])
    assert symptoms.first is recognise(NCCL)
    assert symptoms.first is not None
    assert symptoms.first.is_peer


def test_the_rank_that_is_missing_is_found_by_its_environment(tmp_path: Path) -> None:
    world = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3"}
    mine = world | {"RANK": "0", "LOCAL_RANK": "0"}
    other = subprocess.Popen(
        [sys.executable, "-c", "input()"], env=os.environ | world | {"RANK": "2"}, stdin=subprocess.PIPE
    )
    try:
        assert missing_ranks(mine) == [1]
    finally:
        other.communicate(b"\n")
    assert missing_ranks(mine) == [1, 2]
    assert missing_ranks({}) == []


@pytest.mark.long
def test_a_real_rank_that_is_gone_is_named(tmp_path: Path) -> None:
    """Two ranks of gloo; one leaves between two sums."""
    code = f"""
        import os, sys
        sys.path.insert(0, {str(ROOT)!r})
        import torch, torch.distributed as dist
        from launcher.process.failures import explain
        dist.init_process_group("gloo")
        dist.all_reduce(torch.ones(1))
        if os.environ["RANK"] == "1":
            os._exit(0)
        try:
            while True:
                dist.all_reduce(torch.ones(1))
        except RuntimeError as error:
            print(explain(error, os.environ), error)
        os._exit(0)
    """
    script = tmp_path / "ranks.py"
    script.write_text(textwrap.dedent(code))
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node=2",
        str(script),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert "rank 1 is missing: another rank is gone" in done.stdout, done.stdout + done.stderr[-2000:]
