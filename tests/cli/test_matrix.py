"""`launcher matrix`: every cell once, for people and for programs."""

import json
from typing import Any

from launcher.adapters.options import METHODS
from launcher.backends.options import BACKENDS
from launcher.cli.matrix import Row, table


def test_every_method_stands_beside_every_backend(run_verb: Any) -> None:
    code, out, _ = run_verb("matrix", "--json")
    found = json.loads(out)
    assert code == 0
    assert [(each["method"], each["backend"]) for each in found] == [
        (method, backend) for method in METHODS.names() for backend in BACKENDS.names()
    ]
    assert all(each["detail"] and each["gpu_proof"] == "" for each in found)


def test_people_see_the_same_in_columns(run_verb: Any) -> None:
    lines = run_verb("matrix")[1].splitlines()
    assert lines[0].split() == [
        "method",
        "backend",
        "standing",
        "on",
        "cards",
        "test,",
        "warning",
        "or",
        "reason",
    ]
    assert len(lines) == 1 + len(METHODS.names()) * len(BACKENDS.names())
    assert any(line.split()[:4] == ["lora", "zero2", "proven", "-"] for line in lines)


def test_a_refusal_names_its_way_out() -> None:
    row = Row(method="m", backend="b", standing="refused", gpu_proof="", detail="why", alternative="zero2")
    assert table([row]).splitlines()[-1].endswith("why; use zero2")
