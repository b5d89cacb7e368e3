"""Keys of Axolotl."""

from typing import Any

from launcher.recipe.importing.table import Row, left, needless, read, same, together
from launcher.recipe.importing.values import (
    above_zero,
    attention,
    dtype,
    number,
    optimizer,
    share,
    targets,
    truth,
    whole,
    whole_above_zero,
    yes,
)

_BATCH = "rows of one card x accumulation x processes"


def _loggings(value: Any) -> int:
    return whole(above_zero(value))


ROWS: tuple[Row, ...] = (
    same("base_model", "model.model_name_or_path"),
    same("revision_of_model", "model.revision"),
    read("trust_remote_code", "model.trust_remote_code", yes(True)),
    read("torch_dtype", "model.dtype", dtype),
    read("flash_attention flash_attn attn_implementation", "model.attn_implementation", attention),
    read("sdp_attention", "model.attn_implementation", yes("sdpa")),
    read("eager_attention", "model.attn_implementation", yes("eager")),
    together("adapter", "adapter.method", "lora; qlora: lora over 4 bits; absent: full"),
    read("load_in_4bit", "model.load_in_4bit", yes(True)),
    read("load_in_8bit", "model.load_in_8bit", yes(True)),
    read("lora_r", "adapter.lora_r", whole_above_zero),
    read("lora_alpha", "adapter.lora_alpha", above_zero),
    read("lora_dropout", "adapter.lora_dropout", number),
    read("lora_target_linear", "adapter.lora_target_modules", yes("all-linear")),
    read("lora_target_modules", "adapter.lora_target_modules", targets),
    read("loraplus_lr_ratio", "adapter.loraplus_lr_ratio", above_zero),
    read("peft_use_rslora", "adapter.use_rslora", truth),
    read("peft_use_dora", "adapter.use_dora", truth),
    together("datasets", "data.train_file", "the first one; a hub's becomes hf://OWNER/NAME"),
    together("test_datasets", "data.eval_file", "the first one"),
    read("val_set_size", "data.eval_fraction", share, "a share below 1", nearest="eval_fraction: 0.05"),
    read("sequence_len", "data.max_length", whole_above_zero, "512 in both where it is not said"),
    read("sample_packing", "data.packing", yes(True)),
    read("train_on_inputs", "data.train_on", lambda value: "all" if truth(value) else "completions"),
    together("chat_template", "data.template", "chat; alpaca and chatml by name"),
    read("group_by_length", "data.group_by_length", truth, "true here where it is not said"),
    read("dataloader_num_workers", "data.dataloader_num_workers", whole),
    together("micro_batch_size", "training.per_device_train_batch_size", _BATCH),
    together("gradient_accumulation_steps", "training.global_batch_size", _BATCH),
    together("batch_size", "training.global_batch_size", "the product there: rows of all cards"),
    read("eval_batch_size", "training.per_device_eval_batch_size", whole_above_zero),
    together("num_epochs", "training.num_train_epochs", "1 there where it is not said: written out"),
    read("max_steps", "training.max_steps", whole_above_zero),
    read("learning_rate", "training.learning_rate", above_zero),
    together("lr_scheduler", "training.lr_scheduler_type", "cosine there where it is not said: written out"),
    read("optimizer", "training.optim", optimizer, nearest="adamw_torch_fused"),
    read("warmup_steps", "training.warmup", above_zero),
    read("warmup_ratio", "training.warmup", share, "a share of all steps"),
    read("weight_decay", "training.weight_decay", number),
    read("adam_beta1", "training.adam_beta1", number),
    read("adam_beta2", "training.adam_beta2", number),
    read("adam_epsilon", "training.adam_epsilon", number),
    read("max_grad_norm", "training.max_grad_norm", number),
    read("seed", "training.seed", whole),
    together("bf16 bfloat16", "training.precision", "auto: as the card can"),
    together("fp16 float16", "training.precision"),
    read("tf32", "training.tf32", truth),
    read(
        "gradient_checkpointing activation_checkpointing",
        "training.activation_checkpointing",
        lambda value: yes(True)("true" if value in ("unsloth", "offload") else value),
        "also unsloth's and offload's",
    ),
    read("logging_steps", "training.logging_steps", _loggings),
    together("eval_strategy evaluation_strategy", "training.eval_steps"),
    together("eval_steps", "training.eval_steps", "below 1 a share of all steps"),
    read("evals_per_epoch", "training.eval_steps", lambda value: f"{1 / above_zero(value):g} epochs"),
    together("save_strategy", "training.save_steps"),
    together("save_steps", "training.save_steps", "below 1 a share of all steps"),
    read("saves_per_epoch", "training.save_steps", lambda value: f"{1 / above_zero(value):g} epochs"),
    read("save_total_limit", "training.save_total_limit", whole_above_zero),
    read("load_best_model_at_end", "training.load_best_model_at_end", yes(True)),
    same("metric_for_best_model", "training.metric_for_best_model"),
    together("use_tensorboard use_swanlab use_trackio", "tracking.report_to"),
    together("wandb_project", "tracking.project", "turns wandb on, as there"),
    together("swanlab_project trackio_project_name", "tracking.project", "where that tracker is on"),
    needless("wandb_name wandb_run_id swanlab_run_name trackio_run_name", "a run is named as its folder is"),
    same("output_dir", "output_dir", "the folder that holds run folders: one level more here"),
    together("deepspeed", "backend.name", "the JSON is read for its stage and offload"),
    together("fsdp", "backend.name", "fsdp2, or fsdp2_offload"),
    together("fsdp_config", "backend.wrap_classes"),
    together("fsdp_version", "backend.name", "2 here"),
    needless(
        "model_type tokenizer_type base_model_config tokenizer_config strict dataset_prepared_path "
        "dataset_processes dataset_num_proc dataset_keep_in_memory shuffle_merged_datasets "
        "dataset_exact_deduplication gradient_checkpointing_kwargs activation_checkpointing_kwargs "
        "pad_to_sequence_len eval_sample_packing eval_table_size eval_max_new_tokens tokenizer_use_fast "
        "tokenizer_legacy is_llama_derived_model is_mistral_derived_model is_falcon_derived_model "
        "bnb_config_kwargs "
        "local_rank ddp_timeout ddp_broadcast_buffers ddp dataloader_pin_memory dataloader_prefetch_factor "
        "save_safetensors save_only_model hf_use_auth_token low_cpu_mem_usage device device_map world_size "
        "overrides_of_model_config_defaults skip_prepare_dataset profiler_steps use_cache greater_is_better",
        "decided here, or without meaning here",
    ),
    left("rl rl_beta", "training by preferences is not done here", "docs/not-here.md"),
    left(
        "relora relora_steps relora_prune_ratio cosine_min_lr_ratio lr_quadratic_warmup lr_scheduler_kwargs",
        "schedules have no further settings",
        "training.lr_scheduler_type",
    ),
    left("lora_model_dir", "an adapter trained elsewhere is not continued", "launcher merge, then train it"),
    left(
        "lora_modules_to_save lora_fan_in_fan_out peft_layers_to_transform lora_on_cpu peft lora_mlp_kernel "
        "lora_qkv_kernel lora_o_kernel",
        "only the pairs are trained, by the usual kernels",
        "adapter.lora_r",
    ),
    left("unfrozen_parameters", "parts of a full model are opened in another form", "adapter: full"),
    left(
        "special_tokens added_tokens_overrides tokens resize_token_embeddings_to_32x",
        "tokens are the model's own",
    ),
    left(
        "plugins liger_rope liger_rms_norm liger_glu_activation liger_layer_norm "
        "liger_fused_linear_cross_entropy "
        "liger_swiglu liger_cross_entropy cut_cross_entropy unsloth_cross_entropy_loss xformers_attention "
        "s2_attention flex_attention flash_attn_cross_entropy flash_attn_rms_norm flash_attn_fuse_qkv "
        "flash_attn_fuse_mlp",
        "other kernels are not used",
        "training.loss_chunk_bytes",
    ),
    left("overrides_of_model_config rope_scaling rope_theta", "the model's architecture is left as it is"),
    left("neftune_noise_alpha noisy_embedding_alpha", "no noise is added to embeddings"),
    read("early_stopping_patience", "training.early_stopping_patience", whole_above_zero),
    left(
        "wandb_entity wandb_watch wandb_log_model wandb_mode "
        "mlflow_tracking_uri "
        "mlflow_experiment_name mlflow_run_name use_comet use_mlflow use_wandb comet_project_name",
        "set up by the tracker's own variables",
        "tracking.report_to",
    ),
    left("hub_model_id hub_strategy push_dataset_to_hub", "nothing is uploaded", "docs/after.md"),
    left(
        "auto_resume_from_checkpoints resume_from_checkpoint",
        "a checkpoint of another tool cannot be continued",
        "--resume",
    ),
    left("pretraining_dataset streaming", "rows are read whole", "data.train_file"),
    left(
        "sequence_parallel_degree context_parallel_size tensor_parallel_size dp_shard_size dp_replicate_size",
        "sequence and tensor parallelism are not offered",
        "backend: fsdp2",
        harmless=(1,),
    ),
    left("torch_compile torch_compile_backend", "models are not compiled"),
    left("gptq", "packed models of GPTQ cannot be trained here", "load_in_4bit: true"),
    left("total_num_tokens total_supervised_tokens sample_packing_eff_est debug", "no counterpart"),
    left("image_size image_resize_algorithm processor_type", "text alone is trained here"),
    left("roles_to_train", "answers are learned", "data.train_on", harmless=(["assistant"],)),
)
