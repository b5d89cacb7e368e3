"""Whether two names of a model mean the same one: a run goes on where its model lies elsewhere."""

import pytest

from launcher.train.checkpoint import _same_name


@pytest.mark.parametrize(
    ("then", "now", "same"),
    [
        ("/root/autodl-tmp/Qwen2.5-7B", "/data/Qwen2.5-7B", True),
        ("Qwen/Qwen2.5-7B", "/data/Qwen2.5-7B/", True),
        ("/a/Qwen2.5-7B", "/a/Qwen2.5-14B", False),
        ("/a/run_1/final", "/a/run_2/final", False),
        ("/a/checkpoint-4", "/b/checkpoint-4", False),
    ],
)
def test_the_folder_around_a_model_says_nothing_of_it(then: str, now: str, same: bool) -> None:
    assert _same_name(then, now) is same
