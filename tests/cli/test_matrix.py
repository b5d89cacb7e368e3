"""`launcher matrix`: every cell once, for people and for programs."""

import json
from typing import Any

from launcher.adapters.options import METHODS
from launcher.backends.options import BACKENDS
from launcher.backends.support import PRECISIONS
from launcher.cli.matrix import PACKED, Row, table


def test_every_method_stands_beside_every_backend_and_precision(run_verb: Any) -> None:
    code, out, _ = run_verb("matrix", "--json")
    found = json.loads(out)
    assert code == 0
    assert [(each["method"], each["backend"], each["precision"]) for each in found] == [
        (method, backend, precision)
        for method in (*METHODS.names(), PACKED)
        for backend in BACKENDS.names()
        for precision in PRECISIONS
    ]
    assert all(each["detail"] and each["gpu_proof"] == "" for each in found)


def test_people_see_the_same_in_columns(run_verb: Any) -> None:
    lines = run_verb("matrix")[1].splitlines()
    assert lines[0].split() == [
        *("method", "backend", *PRECISIONS),
        *["on", "cards", "test,", "warning", "or", "reason"],
    ]
    assert len(lines) == 1 + (len(METHODS.names()) + 1) * len(BACKENDS.names())
    words = [line.split()[:6] for line in lines]
    assert ["lora", "zero2", "proven", "proven", "upstream", "-"] in words
    assert ["qlora", "zero3", "refused", "refused", "refused", "-"] in words


def test_a_refusal_names_its_way_out() -> None:
    row = Row(
        method="m",
        backend="b",
        precision="fp32",
        standing="refused",
        gpu_proof="",
        detail="why",
        alternative="zero2",
    )
    assert table([row]).splitlines()[-1].endswith("why; use zero2")
