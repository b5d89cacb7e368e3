"""Secrets are taken out of texts, variables and streams; what only looks like one stays."""

from collections.abc import Iterable

import pytest

from launcher.redact import HIDDEN, Stream, is_secret_name, redact, redacted_data, redacted_value, secrets_of

ENVIRON = {
    "HF_TOKEN": "hf_abcdefghijklmnopqrstuv",
    "AutodlAutoPanelToken": "jupyter-auto-x91z",
    "WANDB_API_KEY": "0123456789abcdef0123",
    "http_proxy": "http://me:hunter22@proxy:80",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_TOKEN_PATH": "/root/.cache/huggingface/token",
    "MAX_TOKENS": "1000000",
}
SECRET = ("hf_abcdefghijklmnopqrstuv", "jupyter-auto-x91z", "0123456789abcdef0123", "hunter22")


@pytest.mark.parametrize("secret", SECRET)
def test_values_of_secret_variables_are_taken_out_wherever_they_stand(secret: str) -> None:
    assert redact(f"before{secret}after", secrets_of(ENVIRON)) == f"before{HIDDEN}after"


@pytest.mark.parametrize(
    "text",
    [
        "cloned https://user:secret99@host/x",
        "token: hf_ABCDEFGHIJKLMNOPQRST",
        "OPENAI_API_KEY=sk-abcdefghijklmnopqrstuvwx",
        'api_key="secret99"',
        "{'password': 'secret99'}",
        "--password secret99",
        "hub_token=secret99",
        "Authorization: Bearer secret99secret99",
        "AKIAABCDEFGHIJKLMNOP",
        "ghp_abcdefghijklmnopqrstuv",
    ],
)
def test_what_looks_like_a_secret_is_taken_out_without_knowing_it(text: str) -> None:
    hidden = redact(text, ())
    assert HIDDEN in hidden
    assert not any(part in hidden for part in ("secret99", "ABCDEFGHIJ", "abcdefghij"))


@pytest.mark.parametrize(
    "text",
    [
        "micro_batch_tokens: 4096000",
        "num_tokens: 1234567",
        "tokenizer: bert-base-uncased",
        "TOKENIZERS_PARALLELISM=false",
        "pad_token: <|endoftext|>",
        "token_type_ids are dropped",
        "https://huggingface.co/a/b",
        "keys=1234567",
        "learning_rate=1e-5",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text, secrets_of(ENVIRON)) == text


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("HF_TOKEN", True),
        ("HUGGING_FACE_HUB_TOKEN", True),
        ("AutodlAutoPanelToken", True),
        ("WANDB_API_KEY", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("MY_PASSWORD", True),
        ("PGPASSWORD", True),
        ("AutoDLServiceURL", True),
        ("HF_TOKEN_PATH", False),
        ("MAX_TOKENS", False),
        ("TOKENIZERS_PARALLELISM", False),
        ("CUDA_VISIBLE_DEVICES", False),
        ("HOME", False),
    ],
)
def test_names_of_secrets(name: str, is_secret: bool) -> None:
    assert is_secret_name(name) is is_secret


def test_variables_by_name_and_by_content() -> None:
    assert redacted_value("HF_TOKEN", "short") == HIDDEN
    assert redacted_value("https_proxy", "http://10.0.0.1:8080") == HIDDEN
    assert redacted_value("HF_ENDPOINT", "https://me:pw@mirror") == f"https://{HIDDEN}@mirror"
    assert redacted_value("CUDA_VISIBLE_DEVICES", "0,1") == "0,1"
    assert redacted_data({"a": [{"api_key": "k"}], "n": 1}) == {"a": [{"api_key": HIDDEN}], "n": 1}


def _through(chunks: Iterable[str]) -> str:
    stream = Stream(ENVIRON)
    return "".join([*(stream.feed(chunk) for chunk in chunks), stream.rest()])


@pytest.mark.parametrize("secret", SECRET)
def test_a_secret_cut_at_any_place_is_taken_out_of_a_stream(secret: str) -> None:
    text = f"said {secret} loudly\n"
    cuts = [_through((text[:cut], text[cut:])) for cut in range(len(text))]
    assert set(cuts) == {f"said {HIDDEN} loudly\n"}
    assert _through(text) == f"said {HIDDEN} loudly\n"


def test_a_progress_bar_is_shown_at_once() -> None:
    bar = "\r 45%|####      | 5/10 [00:01<00:02,  3.1 it/s]"
    assert Stream(ENVIRON).feed(bar) == bar
