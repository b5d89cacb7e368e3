"""`launcher run`'s watch: the ranks' own exit code, one message, and no process left, however it ends."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from launcher.process.command import Command
from launcher.process.supervise import Outcome, short_place, supervise
from tests.process.families import HERE, ROOT, STARTERS, left_after

SUPERVISE = """
import os, sys
sys.path.insert(0, sys.argv[1])
from launcher.process.command import Command
from launcher.process.supervise import supervise
outcome = supervise(Command(argv=tuple(sys.argv[2:]), environment={}, files={}), os.environ)
sys.exit(outcome.exit_code)
"""


def run(*argv: str, **variables: str) -> tuple[Outcome, str, str]:
    """Supervise to the end; the outcome with what was shown."""
    stdout, stderr = io.StringIO(), io.StringIO()
    command = Command(argv=argv, environment=variables, files={})
    return supervise(command, os.environ, stdout=stdout, stderr=stderr), stdout.getvalue(), stderr.getvalue()


def python(code: str) -> tuple[Outcome, str, str]:
    """A one-process run of that code."""
    return run(sys.executable, "-c", code)


def test_output_goes_where_it_was_written() -> None:
    outcome, stdout, stderr = python("import sys; print('result'); print('told', file=sys.stderr)")
    assert (outcome.exit_code, stdout, stderr) == (0, "result\n", "told\n")


def test_variables_of_the_command_are_set() -> None:
    _, stdout, _ = run(sys.executable, "-c", "import os; print(os.environ['X'])", X="1")
    assert stdout == "1\n"


def test_temporary_files_go_with_the_run() -> None:
    """As torchrun's folder for logs, which torchrun leaves."""
    _, stdout, _ = python("import tempfile; print(tempfile.mkdtemp())")
    assert "launcher-" in stdout
    assert not Path(stdout.strip()).exists()


def test_a_deep_temporary_folder_leaves_room_for_sockets(tmp_path: Path) -> None:
    """A data worker whose socket's path is too long fails, and the run would wait for it for ever."""
    assert short_place("/tmp") == "/tmp"
    assert short_place(str(tmp_path / ("deep" * 20))) == "/tmp"
    bind = "socket.socket(socket.AF_UNIX).bind(tempfile.mkdtemp() + '/listener-12345678')"
    outcome, _, stderr = python(f"import socket, tempfile; {bind}")
    assert outcome.exit_code == 0, stderr


def test_a_ranks_own_code_is_kept_through_a_starter_that_changes_it() -> None:
    path = "os.environ['LAUNCHER_EXIT_FILE']"
    outcome, _, _ = python(
        f"import os; open({path}, 'w').write('{{\"exit_code\": 75}}'); raise SystemExit(1)"
    )
    assert outcome.exit_code == 75
    assert "--resume" in outcome.words


def test_a_killed_child_is_explained() -> None:
    outcome, _, _ = python("import os; os.kill(os.getpid(), 9)")
    assert outcome.exit_code == 1
    assert "SIGKILL" in outcome.words


def test_what_a_starter_leaves_behind_is_killed(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    grandchild = f"import os, time; open({str(pid_file)!r}, 'w').write(f'{{os.getpid()}}'); time.sleep(1800)"
    code = (
        "import subprocess, sys, time, pathlib\n"
        f"subprocess.Popen([sys.executable, '-c', {grandchild!r}], start_new_session=True)\n"
        f"path = pathlib.Path({str(pid_file)!r})\n"
        "while not path.exists() or not path.stat().st_size: time.sleep(0.02)"
    )
    outcome, _, _ = python(code)
    pid = int(pid_file.read_text())
    assert outcome.killed == (pid,)
    assert left_after([pid]) == []


@pytest.mark.parametrize("name", [pytest.param("accelerate", marks=pytest.mark.slow), "accelerate x2"])
def test_a_mistake_is_told_once_without_the_starters_traceback(name: str) -> None:
    command, _ = STARTERS[name]
    outcome, _, stderr = run(*command, str(ROOT / "launcher/run.py"), "--recipe", "nosuch")
    assert outcome.exit_code == 2
    assert stderr.count("there is no recipe 'nosuch'") == 1
    assert "Traceback" not in stderr
    assert "ChildFailedError" not in stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGHUP])
def test_a_signal_to_launcher_run_ends_everything_below_it(tmp_path: Path, number: int) -> None:
    chain = [sys.executable, str(HERE / "middle.py"), str(HERE / "middle.py"), str(HERE / "rank.py")]
    variables = {"CROSS_RANK": "0", "RANK": "0", "WORLD_SIZE": "2"}
    watch = subprocess.Popen(
        [sys.executable, "-c", SUPERVISE, str(ROOT), *chain, str(tmp_path), "deaf"],
        env=os.environ | variables,
        # background jobs inherit an ignored SIGINT, those of nohup an ignored SIGHUP, and so would this chain
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None,
    )
    deadline = time.monotonic() + 600
    while not (found := list(tmp_path.glob("*.rank"))) and time.monotonic() < deadline:
        assert watch.poll() is None
        time.sleep(0.05)
    pids = [int(path.stem) for path in found]
    assert pids
    watch.send_signal(number)
    assert left_after(pids) == []
    code = watch.wait(timeout=600)
    assert code == (-9 if number == signal.SIGKILL else 75)


def test_an_ignored_hangup_stays_ignored() -> None:
    """`nohup launcher run ... &` goes on after the terminal closed."""
    code = "import os, signal, time; os.kill(os.getppid(), signal.SIGHUP); time.sleep(0.3); print('went on')"
    done = subprocess.run(
        [
            "sh",
            "-c",
            'trap "" HUP; exec "$@"',
            "sh",
            sys.executable,
            "-c",
            SUPERVISE,
            str(ROOT),
            sys.executable,
            "-c",
            code,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "went on\n")
