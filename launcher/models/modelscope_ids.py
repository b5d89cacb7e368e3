"""The ids on ModelScope of public models, by their ids on the hub, for machines that reach only the former.

A mirror's owner is often another: `meta-llama` is LLM-Research there, older models are AI-ModelScope's. Only
ids that public model tables or model pages name stand here; nothing is guessed from a name. No torch.
"""

# Owners who publish under the same id on both.
_SAME = ("Qwen/Qwen2.5-", "Qwen/Qwen3-")
_OTHER = {
    "FacebookAI/roberta-large": "AI-ModelScope/roberta-large",
    "bigscience/bloom-7b1": "AI-ModelScope/bloom-7b1",
    "google-bert/bert-base-uncased": "AI-ModelScope/bert-base-uncased",
    "google/gemma-3-1b-it": "LLM-Research/gemma-3-1b-it",
    "hfl/chinese-macbert-base": "dienstag/chinese-macbert-base",
    "meta-llama/Llama-3.1-8B": "LLM-Research/Meta-Llama-3.1-8B",
    "meta-llama/Llama-3.1-8B-Instruct": "LLM-Research/Meta-Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.2-1B": "LLM-Research/Llama-3.2-1B",
    "meta-llama/Llama-3.2-1B-Instruct": "LLM-Research/Llama-3.2-1B-Instruct",
    "meta-llama/Llama-3.2-3B": "LLM-Research/Llama-3.2-3B",
    "meta-llama/Llama-3.2-3B-Instruct": "LLM-Research/Llama-3.2-3B-Instruct",
    "meta-llama/Llama-3.3-70B-Instruct": "LLM-Research/Llama-3.3-70B-Instruct",
    "mistralai/Mistral-7B-Instruct-v0.3": "LLM-Research/Mistral-7B-Instruct-v0.3",
    "mistralai/Mistral-Nemo-Instruct-2407": "AI-ModelScope/Mistral-Nemo-Instruct-2407",
    "mistralai/Mistral-Small-24B-Instruct-2501": "mistralai/Mistral-Small-24B-Instruct-2501",
    "sentence-transformers/all-MiniLM-L6-v2": "sentence-transformers/all-MiniLM-L6-v2",
}


def known_id(hub_id: str) -> str | None:
    """The same model's id on ModelScope; None where it is not known."""
    return hub_id if hub_id.startswith(_SAME) else _OTHER.get(hub_id)
