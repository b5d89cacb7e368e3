"""Keys of Hugging Face TrainingArguments, and of the example scripts and TRL around them."""

from typing import Any

from launcher.recipe.importing.table import Nothing, Row, left, needless, read, same, together
from launcher.recipe.importing.values import (
    above_zero,
    attention,
    dtype,
    number,
    optimizer,
    share,
    targets,
    trackers,
    truth,
    whole,
    whole_above_zero,
    yes,
)

_BATCH = "rows of one card x accumulation x processes; accumulation is worked out again for the cards found"


def _warmup(value: Any) -> Any:
    """Steps from 1; below 1 a share of all steps, as in transformers 5."""
    return above_zero(value)


def _peft_type(value: Any) -> str:
    """PEFT's own names, as text or as an enumeration's member."""
    name = str(value).rpartition(".")[2].upper()
    known = {"LORA": "lora", "IA3": "ia3", "PREFIX_TUNING": "prefix", "PROMPT_TUNING": "prompt"}
    if name not in (known := {**known, "P_TUNING": "p_tuning"}):
        raise ValueError(f"one of {', '.join(known)} is known here")
    return known[name]


def _sampling(value: Any) -> bool:
    if value in (None, "random", "sequential"):
        raise Nothing
    if value == "group_by_length":
        return True
    raise ValueError("random or group_by_length is known here")


def _metric(value: Any) -> str:
    """Without the prefix that the Trainer accepts."""
    name = str(value).removeprefix("eval_") if value else ""
    if not name:
        raise Nothing
    return {
        "f1": "macro_f1",
        "f1_macro": "macro_f1",
        "f1_weighted": "weighted_f1",
        "f1_micro": "micro_f1",
    }.get(name, name)


def _resume(value: Any) -> str:
    if value in (None, False, "False", "false", ""):
        raise Nothing
    if value in (True, "True", "true"):
        return "auto"
    raise ValueError("a checkpoint of the Trainer's cannot be continued here")


TRAINING_ROWS: tuple[Row, ...] = (
    together(
        "per_device_train_batch_size per_gpu_train_batch_size", "training.per_device_train_batch_size", _BATCH
    ),
    together("gradient_accumulation_steps", "training.global_batch_size", _BATCH),
    read(
        "per_device_eval_batch_size per_gpu_eval_batch_size",
        "training.per_device_eval_batch_size",
        whole_above_zero,
    ),
    read("num_train_epochs", "training.num_train_epochs", above_zero),
    read("max_steps", "training.max_steps", whole_above_zero, "-1 there, absent here"),
    read("learning_rate", "training.learning_rate", above_zero),
    same("lr_scheduler_type", "training.lr_scheduler_type", nearest="cosine or linear"),
    read("warmup_steps", "training.warmup", _warmup, "below 1 a share of all steps, from 1 steps"),
    read("warmup_ratio", "training.warmup", share, "a share of all steps"),
    read("weight_decay", "training.weight_decay", number, "none on biases and norms, as there"),
    read("adam_beta1", "training.adam_beta1", number),
    read("adam_beta2", "training.adam_beta2", number),
    read("adam_epsilon", "training.adam_epsilon", number),
    read("max_grad_norm", "training.max_grad_norm", number),
    read("optim", "training.optim", optimizer, nearest="adamw_torch_fused"),
    read("seed", "training.seed", whole),
    together("bf16", "training.precision", "bf16"),
    together("fp16", "training.precision", "fp16, with a scaler"),
    read("tf32", "training.tf32", truth),
    read("activation_checkpointing gradient_checkpointing", "training.activation_checkpointing", yes(True)),
    read("logging_steps", "training.logging_steps", whole, "a share of the run is not taken"),
    together("eval_strategy evaluation_strategy", "training.eval_steps", "no, steps or epoch"),
    together("eval_steps", "training.eval_steps", "an interval with its unit: 200 steps, 0.5 epochs"),
    together("save_strategy", "training.save_steps", "no, steps, epoch or best"),
    together("save_steps", "training.save_steps", "an interval with its unit"),
    read("save_total_limit", "training.save_total_limit", whole_above_zero, "2 here where it is not said"),
    read("load_best_model_at_end", "training.load_best_model_at_end", yes(True)),
    read("metric_for_best_model", "training.metric_for_best_model", _metric, "f1 becomes macro_f1"),
    read("resume_from_checkpoint", "training.resume_from_checkpoint", _resume, nearest="--resume"),
    read("report_to", "tracking.report_to", trackers, nearest="tensorboard; metrics.jsonl is always written"),
    same("output_dir", "output_dir", "the folder that holds run folders: one level more here"),
    read("dataloader_num_workers", "data.dataloader_num_workers", whole),
    read("group_by_length", "data.group_by_length", truth, "true here where it is not said"),
    read("train_sampling_strategy", "data.group_by_length", _sampling),
    read("use_cpu no_cuda", "hardware.device", yes("cpu")),
    read("ddp_bucket_cap_mb", "backend.bucket_cap_mb", whole_above_zero, "of backend multi_gpu"),
    together("deepspeed", "backend.name", "the JSON is read for its stage and offload"),
    together("fsdp", "backend.name", "fsdp2, or fsdp2_offload"),
    together(
        "fsdp_config", "backend.wrap_classes", "wrap classes and checkpointing; the rest by backend fsdp2"
    ),
    needless(
        "do_train do_eval do_predict overwrite_output_dir remove_unused_columns logging_strategy "
        "prediction_loss_only "
        "local_rank ddp_find_unused_parameters ddp_timeout ddp_backend ddp_broadcast_buffers "
        "ddp_static_graph "
        "logging_dir logging_nan_inf_filter logging_first_step disable_tqdm log_level log_level_replica "
        "log_on_each_node dataloader_pin_memory dataloader_persistent_workers dataloader_prefetch_factor "
        "dataloader_in_order dataloader_multiprocessing_context skip_memory_metrics "
        "save_safetensors save_on_each_node save_only_model eval_accumulation_steps "
        "eval_do_concat_batches eval_use_gather_object batch_eval_metrics include_num_input_tokens_seen "
        "include_inputs_for_metrics include_for_metrics average_tokens_across_devices accelerator_config "
        "greater_is_better gradient_checkpointing_kwargs activation_checkpointing_kwargs "
        "half_precision_backend "
        "fp16_backend ignore_data_skip restore_callback_states_from_checkpoint length_column_name "
        "use_legacy_prediction_loop mp_parameters past_index ray_scope run_name jit_mode_eval use_ipex "
        "fsdp_min_num_params fsdp_transformer_layer_cls_to_wrap fp16_full_eval bf16_full_eval "
        "evaluate_during_training "
        "use_cache overwrite_cache preprocessing_num_workers torch_empty_cache_steps xpu_backend "
        "enable_jit_checkpoint "
        "project",
        "decided here, or without meaning here",
    ),
    left("label_smoothing_factor", "the losses have no label smoothing", "training.weight_decay"),
    left("neftune_noise_alpha", "no noise is added to embeddings", "adapter.lora_dropout"),
    left("lr_scheduler_kwargs", "schedules have no further settings", "training.lr_scheduler_type"),
    left("optim_args optim_target_modules", "optimizers have no further settings", "training.optim"),
    read("adafactor", "training.optim", yes("adafactor")),
    left("data_seed", "one seed decides order, dropout and new weights", "training.seed", harmless=(42,)),
    left("full_determinism", "operators are not made deterministic", "training.seed"),
    left(
        "auto_find_batch_size",
        "rows are taken from per_device_train_batch_size, and halved after running out of memory",
        "launcher plan FILE",
    ),
    left("torch_compile torch_compile_backend torch_compile_mode torchdynamo", "models are not compiled"),
    left("use_liger_kernel liger_kernel_config", "Liger's kernels are not used", "training.loss_chunk_bytes"),
    left("eval_delay eval_on_start", "evaluation starts after the first interval", "training.eval_steps"),
    left("dataloader_drop_last", "every row is trained on; the last step of an epoch may be short"),
    left(
        "push_to_hub hub_model_id hub_strategy hub_token hub_private_repo hub_always_push hub_revision "
        "push_to_hub_model_id push_to_hub_organization push_to_hub_token",
        "nothing is uploaded",
        "docs/after.md",
        harmless=("every_save",),
    ),
    left(
        "parallelism_config tpu_num_cores tpu_metrics_debug",
        "tensor, context and TPU parallelism are not offered",
        "backend: fsdp2",
    ),
    left(
        "fp16_opt_level",
        "Apex is gone; mixed precision has fp32 weights",
        "precision: fp16",
        harmless=("O1",),
    ),
    left("sharded_ddp", "FairScale is gone", "backend: zero2"),
    left("label_names", "columns are given by role", "data.columns"),
    left("debug", "no debug mode", harmless=([], "")),
    left(
        "trackio_space_id trackio_bucket_id trackio_static_space_id",
        "not configured by recipe",
        harmless=("trackio",),
    ),
)

SCRIPT_ROWS: tuple[Row, ...] = (
    same("model_name_or_path base_model_name_or_path", "model.model_name_or_path"),
    same("model_revision", "model.revision", "main says nothing"),
    read("torch_dtype dtype", "model.dtype", dtype),
    read("attn_implementation", "model.attn_implementation", attention),
    read("trust_remote_code", "model.trust_remote_code", yes(True)),
    read("load_in_4bit q_lora", "model.load_in_4bit", yes(True)),
    read("load_in_8bit", "model.load_in_8bit", yes(True)),
    same("bnb_4bit_quant_type", "model.bnb_4bit_quant_type"),
    read("bnb_4bit_use_double_quant use_bnb_nested_quant", "model.bnb_4bit_use_double_quant", truth),
    needless("bnb_4bit_compute_dtype", "follows training.precision"),
    together("use_peft", "adapter.method", "lora"),
    read("peft_type", "adapter.method", _peft_type, "as an adapter_config.json has it"),
    read("lora_r lora_rank r", "adapter.lora_r", whole_above_zero),
    read("lora_alpha", "adapter.lora_alpha", above_zero),
    read("lora_dropout", "adapter.lora_dropout", number),
    read("lora_target_modules target_modules", "adapter.lora_target_modules", targets),
    read("use_rslora", "adapter.use_rslora", truth),
    read("use_dora", "adapter.use_dora", truth),
    together("train_file data_path", "data.train_file", "data_path as in Alpaca's and FastChat's scripts"),
    together("validation_file eval_file eval_data_path", "data.eval_file"),
    together("test_file", "data.eval_file", "only where there is no validation_file"),
    together(
        "dataset_name dataset_config_name dataset_config",
        "data.train_file",
        "hf://OWNER/NAME and data.subset",
    ),
    together("dataset_train_split train_split", "data.train_split"),
    together("dataset_test_split eval_split", "data.eval_split"),
    together("task_name", "data.train_file", "GLUE: hf://nyu-mll/glue, data.subset"),
    together("validation_split_percentage", "data.eval_fraction", "percent there, a share here"),
    read(
        "max_seq_length max_length block_size cutoff_len model_max_length",
        "data.max_length",
        whole_above_zero,
    ),
    read("max_train_samples", "data.max_train_rows", whole_above_zero),
    read("max_eval_samples max_val_samples", "data.max_eval_rows", whole_above_zero),
    read("packing", "data.packing", yes(True)),
    read(
        "completion_only_loss assistant_only_loss",
        "data.train_on",
        lambda value: "completions" if truth(value) else "all",
    ),
    same("dataset_text_field text_column_name", "data.columns.text"),
    same("label_column_name", "data.columns.label"),
    needless(
        "pad_to_max_length streaming use_fast_tokenizer low_cpu_mem_usage cache_dir use_auth_token token "
        "keep_linebreaks ignore_mismatched_sizes dataset_num_proc trust_remote_code_dataset task_type bias "
        "lora_task_type inference_mode lazy_preprocess auto_mapping peft_version fan_in_fan_out",
        "decided here, or without meaning here",
    ),
    left(
        "config_name tokenizer_name config_overrides model_type",
        "model, configuration and tokenizer come from one folder or hub id",
        "model.model_name_or_path",
    ),
    left("max_predict_samples", "there is no third file", "launcher predict RUN --file FILE"),
    left("lora_modules_to_save modules_to_save", "only the pairs and a classifier's head are trained"),
    left(
        "eos_token pad_token chat_template_path", "tokens and template are the model's own", "data.template"
    ),
    left("max_prompt_length", "the whole row has one length: prompt and answer together", "data.max_length"),
)
