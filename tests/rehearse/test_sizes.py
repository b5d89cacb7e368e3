"""Tiny sizes keep the kind of the architecture."""

import pytest

from launcher.rehearse.sizes import NUM_LAYERS, WIDTH, heads, tiny


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ((12, None), (4, 4)),  # BERT
        ((32, 32), (4, 4)),
        ((32, 8), (8, 2)),  # Llama 3: four query heads share one
        ((28, 4), (14, 2)),  # Qwen2.5-7B: seven
        ((9, 3), (6, 2)),  # SmolLM2-135M: three
        ((71, 1), (8, 1)),  # Falcon-7B: one for all
        ((None, None), (4, 4)),
    ],
)
def test_grouped_heads_stay_grouped(given: tuple[int | None, int | None], made: tuple[int, int]) -> None:
    assert heads(*given) == made


def test_width_is_a_multiple_of_the_heads_and_never_below_the_usual() -> None:
    for num_heads, num_key_values in ((28, 4), (9, 3), (12, 12), (71, 1)):
        fields = {
            "hidden_size": 4096,
            "num_attention_heads": num_heads,
            "num_key_value_heads": num_key_values,
        }
        made = tiny(fields | {"head_dim": 128})
        assert made["hidden_size"] == made["num_attention_heads"] * made["head_dim"] >= WIDTH
        assert made["head_dim"] % 8 == 0
        assert made["head_dim"] * made["num_key_value_heads"] % 32 == 0  # 4-bit weights are packed so


def test_each_family_is_shrunk_by_its_own_names() -> None:
    gpt2 = tiny({"n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": None, "n_positions": 1024})
    assert gpt2 == {"n_embd": WIDTH, "n_layer": NUM_LAYERS, "n_head": 4, "n_inner": None, "n_positions": 1024}
    distilbert = tiny({"dim": 768, "n_layers": 6, "n_heads": 12, "hidden_dim": 3072, "activation": "gelu"})
    assert distilbert["dim"] == WIDTH and distilbert["hidden_dim"] == 2 * WIDTH
    assert distilbert["activation"] == "gelu"


def test_what_follows_from_depth_or_belongs_to_weights_or_task_is_left_out() -> None:
    fields = {"layer_types": ["full_attention"] * 28, "quantization_config": {}, "id2label": {0: "a"}}
    assert tiny(fields | {"num_hidden_layers": 28}) == {"num_hidden_layers": NUM_LAYERS}
