"""Keys of LLaMA-Factory besides those of TrainingArguments, which it takes too."""

from typing import Any

from launcher.recipe.importing.table import Nothing, Row, Several, left, needless, read, same, together
from launcher.recipe.importing.tables.trainer import TRAINING_ROWS
from launcher.recipe.importing.values import (
    above_zero,
    attention,
    dtype,
    number,
    targets,
    truth,
    whole_above_zero,
    yes,
)


def _bits(value: Any) -> Several:
    bits = whole_above_zero(value)
    if bits not in (4, 8):
        raise ValueError("4 or 8 bits are offered")
    return Several({f"model.load_in_{bits}bit": True})


def _template(value: Any) -> str:
    """A family's name means the model's own template here."""
    text = str(value)
    if text in ("None", "none", "", "null"):
        raise Nothing
    return {"alpaca": "alpaca", "empty": "plain", "default": "chatml"}.get(text, "chat")


def _held_out(value: Any) -> float:
    share = above_zero(value)
    if share >= 1:
        raise ValueError("a number of rows cannot be held out, only a share")
    return share


ROWS: tuple[Row, ...] = (
    same("model_name_or_path", "model.model_name_or_path"),
    same("model_revision", "model.revision"),
    read("trust_remote_code", "model.trust_remote_code", yes(True)),
    read("flash_attn", "model.attn_implementation", attention, "fa2, sdpa, disabled"),
    read(
        "quantization_bit",
        "model.load_in_4bit, model.load_in_8bit",
        _bits,
        "4 or 8",
        nearest="load_in_4bit: true",
    ),
    same("quantization_type", "model.bnb_4bit_quant_type"),
    read("double_quantization", "model.bnb_4bit_use_double_quant", truth),
    read("infer_dtype", "model.dtype", dtype),
    together("stage", "task", "sft and pt: causal_lm; preference stages are refused"),
    together("finetuning_type", "adapter.method", "lora (also where nothing is said) or full"),
    read("lora_rank", "adapter.lora_r", whole_above_zero),
    read(
        "lora_alpha",
        "adapter.lora_alpha",
        above_zero,
        "twice the rank there where it is not said: written out",
    ),
    read("lora_dropout", "adapter.lora_dropout", number),
    read("lora_target", "adapter.lora_target_modules", targets, "all: all-linear"),
    read("loraplus_lr_ratio", "adapter.loraplus_lr_ratio", above_zero),
    read("use_rslora", "adapter.use_rslora", truth),
    read("use_dora", "adapter.use_dora", truth),
    together("dataset", "data.train_file", "by dataset_info.json where it is found, else data/NAME.json"),
    together("eval_dataset", "data.eval_file", "as dataset"),
    together("dataset_dir", "data.train_file", "where dataset_info.json lies"),
    read("val_size", "data.eval_fraction", _held_out, "a share below 1", nearest="eval_fraction: 0.1"),
    read("cutoff_len", "data.max_length", whole_above_zero, "2048 there where it is not said: written out"),
    read("template", "data.template", _template, "a family's name: chat, the model's own template"),
    read("train_on_prompt", "data.train_on", lambda value: "all" if truth(value) else "completions"),
    read(
        "packing neat_packing", "data.packing", yes(True), "samples never see one another here (neat_packing)"
    ),
    read("max_samples", "data.max_train_rows", whole_above_zero, "drawn by seed here, the first ones there"),
    needless(
        "preprocessing_batch_size plot_loss cache_dir "
        "use_fast_tokenizer "
        "tokenized_path data_shared_file_system print_param_status low_cpu_mem_usage upcast_layernorm "
        "upcast_lmhead_output disable_gradient_checkpointing use_reentrant_gc ignore_pad_token_for_loss "
        "include_tokens_per_second include_effective_tokens_per_second quantization_method "
        "quantization_device_map "
        "compute_accuracy ref_model pref_loss offload_folder use_kv_cache predict_with_generate "
        "max_new_tokens do_sample temperature top_p top_k num_beams repetition_penalty length_penalty "
        "generation_max_length generation_num_beams default_system use_modelscope_hub use_openmind_hub "
        "split_special_tokens infer_backend ray_run_name ray_num_workers resources_per_worker "
        "placement_strategy "
        "ray_storage_path",
        "decided here, or said at `launcher predict`",
    ),
    left(
        "adapter_name_or_path",
        "an adapter trained elsewhere is not continued",
        "launcher merge, then train it",
    ),
    left("additional_target modules_to_save", "only the pairs and a classifier's head are trained"),
    left(
        "freeze_trainable_layers freeze_trainable_modules freeze_extra_modules",
        "no counterpart of this form",
        "adapter: full, or lora",
    ),
    left(
        "pissa_init pissa_iter pissa_convert create_new_adapter",
        "pairs start at zero, in the usual way",
        "adapter.lora_r",
    ),
    left(
        "use_galore galore_rank galore_target galore_update_interval galore_scale use_apollo apollo_rank "
        "apollo_target use_badam badam_mode use_adam_mini use_muon",
        "this optimizer is not offered",
        "adapter: lora",
    ),
    left(
        "use_llama_pro freeze_vision_tower freeze_multi_modal_projector freeze_language_model "
        "image_max_pixels "
        "image_min_pixels video_max_pixels media_dir train_mm_proj_only",
        "text alone is trained here",
        harmless=(True, "${DATASET_DIR}"),
    ),
    left(
        "use_unsloth use_unsloth_gc enable_liger_kernel",
        "other kernels are not used",
        "training.loss_chunk_bytes",
    ),
    left(
        "rope_scaling shift_attn mixture_of_depths moe_aux_loss_coef",
        "the model's architecture is left as it is",
    ),
    left("resize_vocab new_special_tokens add_tokens", "no tokens are added"),
    left(
        "mix_strategy interleave_probs streaming buffer_size",
        "one file, or a folder of files with the same columns",
        "data.train_file: FOLDER",
        harmless=("concat",),
    ),
    left("mask_history", "every answer of a conversation is learned", "data.train_on"),
    left("reserved_label_len cutoff_share", "the prompt is shortened before the answer", "data.overflow"),
    left("tool_format enable_thinking", "tools are rendered by the model's own template", "data.template"),
    together("use_swanlab", "tracking.report_to", "swanlab, with what report_to names"),
    together("swanlab_project", "tracking.project", "where use_swanlab is on"),
    needless("swanlab_run_name", "a run is named as its folder is"),
    left("swanlab_mode swanlab_workspace swanlab_logdir", "by its own variables", "tracking.tracker_mode"),
    left("neat_packing_length eval_num_beams", "no counterpart"),
    left("pure_bf16", "weights that are trained stay fp32", "dtype: bfloat16 for frozen ones"),
    left("ddp_timeout_s", "no counterpart"),
    *TRAINING_ROWS,
)
