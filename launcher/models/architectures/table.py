"""Which function reads which `model_type`. The files are imported when they are needed: starting is cheap."""

_HERE = "launcher.models.architectures"

READERS: dict[str, str] = {
    "bert": f"{_HERE}.encoder:encoder",
    "llama": f"{_HERE}.decoder:decoder",
    "mistral": f"{_HERE}.decoder:decoder",
    "qwen2": f"{_HERE}.decoder:decoder",
    "roberta": f"{_HERE}.encoder:encoder",
}
