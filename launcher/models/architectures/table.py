"""Which function reads which `model_type`. The files are imported when they are needed: starting is cheap."""

_HERE = "launcher.models.architectures"

READERS: dict[str, str] = {
    "baichuan": f"{_HERE}.remote:baichuan",
    "bert": f"{_HERE}.encoder:encoder",
    "bloom": f"{_HERE}.pre_norm:bloom",
    "chatglm": f"{_HERE}.remote:chatglm",
    "deberta-v2": f"{_HERE}.deberta:deberta",
    "distilbert": f"{_HERE}.distilbert:distilbert",
    "electra": f"{_HERE}.encoder:encoder",
    "gemma": f"{_HERE}.decoder:decoder",
    "gemma2": f"{_HERE}.decoder:decoder",
    "gemma3_text": f"{_HERE}.decoder:decoder",
    "gpt2": f"{_HERE}.pre_norm:gpt2",
    "gpt_bigcode": f"{_HERE}.pre_norm:gpt2",
    "gpt_neox": f"{_HERE}.pre_norm:gpt_neox",
    "granite": f"{_HERE}.decoder:decoder",
    "internlm2": f"{_HERE}.remote:internlm2",
    "llama": f"{_HERE}.decoder:decoder",
    "mistral": f"{_HERE}.decoder:decoder",
    "mixtral": f"{_HERE}.decoder:decoder",
    "modernbert": f"{_HERE}.modernbert:modernbert",
    "olmo2": f"{_HERE}.decoder:decoder",
    "opt": f"{_HERE}.pre_norm:opt",
    "phi": f"{_HERE}.pre_norm:phi",
    "phi3": f"{_HERE}.decoder:decoder",
    "qwen": f"{_HERE}.remote:qwen",
    "qwen2": f"{_HERE}.decoder:decoder",
    "qwen3": f"{_HERE}.decoder:decoder",
    "roberta": f"{_HERE}.encoder:encoder",
    "xlm-roberta": f"{_HERE}.encoder:encoder",
}

# Known by name and not planned: why, in words that finish "this model ...".
REFUSED: dict[str, str] = {
    "gemma3": "has a vision tower beside its language model (the text models are of type gemma3_text)",
    "qwen2_moe": "routes tokens to experts of two kinds, whose memory depends on the routing",
    "qwen3_moe": "routes tokens to many small experts, whose memory depends on the routing",
    "t5": "has an encoder and a decoder, for which there is no task here",
    "mt5": "has an encoder and a decoder, for which there is no task here",
    "bart": "has an encoder and a decoder, for which there is no task here",
}
