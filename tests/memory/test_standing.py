"""Standing: validated where measurements are held, derived elsewhere."""

from launcher.memory.estimate import estimate
from launcher.memory.standing import FILE, key_of
from tests.memory.shapes import full, mistral, shape, sharded, with_lora


def test_measured_kinds_say_on_how_many_and_how_far() -> None:
    found = estimate(with_lora(mistral())).standing
    assert found.kind == "validated"
    assert found.num_measurements >= 5
    assert 0 < found.p90_error < 0.1


def test_what_no_one_measured_is_derived() -> None:
    encoder = full(shape("bert-base-uncased", task="classification"))
    for setting in (encoder, sharded(full(mistral())), full(mistral(), checkpointing="none")):
        assert estimate(setting).standing.kind == "derived", key_of(setting)


def test_the_file_holds_numbers_only() -> None:
    assert all(ord(letter) < 128 for letter in FILE.read_text("utf-8"))
