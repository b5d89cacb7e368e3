"""Hub, LFS and Xet are asked apart, on real servers of this machine, and the switch that works is named."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from launcher.doctor.reach import Hosts, Reach, advise, answers_at, from_modelscope, reach
from launcher.hardware.platform_facts import find_platform
from launcher.models.options import ModelOptions
from launcher.models.source import HUB
from tests import instance
from tests.serving import Handler, serving

NOBODY = "http://127.0.0.1:1"


@contextmanager
def answering(status: int) -> Iterator[str]:
    class Answer(Handler):
        def do_HEAD(self) -> None:
            self.send_response(status)
            self.end_headers()

    with serving(Answer) as url:
        yield url


@pytest.mark.parametrize(
    ("status", "counts"), [(200, True), (403, True), (404, True), (500, False), (503, False)]
)
def test_b077_a_refusal_is_an_answer_and_a_failure_is_none(status: int, counts: bool) -> None:
    with answering(status) as url:
        assert answers_at(url, 60.0) is counts


@pytest.mark.parametrize("url", [NOBODY, "nonsense", "http://no.such.host.invalid"])
def test_b077_nobody_there_is_no_answer_and_no_exception(url: str) -> None:
    assert answers_at(url, 60.0) is False


def test_b077_each_host_is_asked_by_itself() -> None:
    with ExitStack() as stack:
        hub, xet = stack.enter_context(answering(200)), stack.enter_context(answering(503))
        found = reach(Hosts(hub=hub, lfs=hub, xet=xet, mirror=NOBODY, modelscope=hub), timeout_s=60.0)
    assert found == Reach(hub=True, lfs=True, xet=False, mirror=False, modelscope=True)


@pytest.mark.parametrize(
    ("found", "environ", "works", "typed"),
    [
        (Reach(hub=True, lfs=True, xet=True, mirror=True), {}, True, ""),
        (Reach(hub=True, lfs=True, xet=False, mirror=True), {}, False, "export HF_HUB_DISABLE_XET=1"),
        (Reach(hub=True, lfs=True, xet=False, mirror=True), {"HF_HUB_DISABLE_XET": "1"}, True, ""),
        (
            Reach(hub=True, lfs=False, xet=True, mirror=True),
            {"HF_HUB_DISABLE_XET": "1"},
            False,
            "unset HF_HUB_DISABLE_XET",
        ),
        (Reach(hub=True, lfs=False, xet=True, mirror=False), {}, True, ""),
        (
            Reach(hub=True, lfs=False, xet=False, mirror=True),
            {},
            False,
            "export HF_ENDPOINT=https://hf-mirror.com HF_HUB_DISABLE_XET=1",
        ),
        (
            Reach(hub=False, lfs=True, xet=True, mirror=True),
            {},
            False,
            "export HF_ENDPOINT=https://hf-mirror.com HF_HUB_DISABLE_XET=1",
        ),
        (Reach(hub=False, lfs=False, xet=False, mirror=False), {}, False, "model_name_or_path=FOLDER"),
    ],
)
def test_b077_the_switch_that_works_follows_from_who_answers(
    found: Reach, environ: dict[str, str], works: bool, typed: str
) -> None:
    advice = advise(found, Hosts(), environ, None)
    assert advice.works is works
    assert advice.type.startswith(typed) and bool(advice.type) == bool(typed)


def test_b077_beside_a_mirror_the_xet_store_is_switched_off() -> None:
    hosts = Hosts(hub="https://hf-mirror.com")
    found = Reach(hub=True, lfs=False, xet=False, mirror=True)
    assert advise(found, hosts, {"HF_HUB_DISABLE_XET": "1"}, None).works
    assert advise(found, hosts, {}, None).type == "export HF_HUB_DISABLE_XET=1"


def test_b077_where_nothing_answers_an_instance_has_its_proxy_script(tmp_path: Path) -> None:
    platform = find_platform(instance.make(tmp_path / "i").environ)
    found = Reach(hub=False, lfs=False, xet=False, mirror=False)
    advice = advise(found, Hosts(hub="https://hf-mirror.com"), {}, platform)
    assert advice.type == f"source {tmp_path / 'i/etc/network_turbo'} ; unset HF_ENDPOINT"
    assert HUB in advise(found, Hosts(), {}, platform).found


def test_b077_modelscope_is_named_where_only_that_answers_and_the_id_is_known() -> None:
    llama = ModelOptions(model_name_or_path="meta-llama/Llama-3.1-8B-Instruct")
    alone = Reach(hub=False, lfs=False, xet=False, mirror=False, modelscope=True)
    assert from_modelscope(alone, llama, "mine") == (
        "launcher prepare mine   (takes LLM-Research/Meta-Llama-3.1-8B-Instruct)"
    )
    assert not from_modelscope(alone, ModelOptions(model_name_or_path="some/model"), "mine")
    assert not from_modelscope(
        Reach(hub=True, lfs=False, xet=False, mirror=False, modelscope=True), llama, ""
    )
    assert not from_modelscope(Reach(hub=False, lfs=False, xet=False, mirror=False), llama, "mine")
