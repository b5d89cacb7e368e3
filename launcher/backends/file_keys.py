"""Data: the keys that DeepSpeed 0.19's JSON and Accelerate 1.15's YAML know, block by block.

DeepSpeed ignores unknown top-level keys and Accelerate unknown keys inside its blocks, both without
a word, so the lists stand here; a test compares them with the installed parsers.
"""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


DS_BLOCKS: dict[str, frozenset[str]] = {
    "": _names(
        "train_batch_size train_micro_batch_size_per_gpu gradient_accumulation_steps gradient_clipping "
        "managed_gradient_accumulation optimizer scheduler fp16 bf16 torch_autocast zero_optimization "
        "zero_allow_untested_optimizer zero_force_ds_cpu_optimizer steps_per_print wall_clock_breakdown "
        "memory_breakdown dump_state prescale_gradients gradient_predivide_factor gradient_allreduce_op "
        "communication_data_type seq_parallel_communication_data_type sequence_parallel_size "
        "disable_allgather disable_python_gc activation_checkpointing comms_logger tensorboard wandb "
        "csv_monitor comet flops_profiler autotuning hybrid_engine pipeline data_efficiency checkpoint "
        "data_types aio dataloader_drop_last log_level datastates_ckpt weight_quantization compile timers "
        "tensor_parallel expert_parallel use_data_before_expert_parallelism vocabulary_size "
        "checkpoint_writer $schema"
    ),
    "zero_optimization": _names(
        "stage contiguous_gradients reduce_scatter reduce_bucket_size use_multi_rank_bucket_allreduce "
        "allgather_partitions allgather_bucket_size overlap_comm compute_grad_norm load_from_fp32_weights "
        "elastic_checkpoint offload_param offload_optimizer zenflow sub_group_size cpu_offload_param "
        "cpu_offload_use_pin_memory cpu_offload stage3_prefetch_bucket_size "
        "stage3_param_persistence_threshold stage3_model_persistence_threshold stage3_max_live_parameters "
        "stage3_max_reuse_distance stage3_gather_16bit_weights_on_model_save "
        "stage3_module_granularity_threshold stage3_use_all_reduce_for_fetch_params "
        "stage3_allgather_sequential stage3_gather_fp16_weights_on_model_save ignore_unused_parameters "
        "legacy_stage1 round_robin_gradients parameter_alignment zero_hpz_partition_size "
        "zero_quantized_weights zero_quantized_nontrainable_weights zero_quantized_gradients "
        "memory_efficient_linear pipeline_loading_checkpoint override_module_apply "
        "log_trace_cache_warnings enable_sanity_checks save_muon_momentum_buffer_in_memory "
        "leaf_module"
    ),
    "zero_optimization.offload_param": _names(
        "buffer_count buffer_size device max_in_cpu nvme_path pin_memory"
    ),
    "zero_optimization.offload_optimizer": _names(
        "buffer_count cpuadam_cores_perc device fast_init nvme_path pin_memory pipeline_read pipeline_write "
        "ratio super_offload"
    ),
    "fp16": _names(
        "enabled auto_cast loss_scale initial_scale_power loss_scale_window hysteresis "
        "consecutive_hysteresis min_loss_scale fp16_master_weights_and_grads"
    ),
    "bf16": _names(
        "enabled check_grad_overflow immediate_grad_update bf16_master_weights_and_grads "
        "bf16_optimizer_states"
    ),
    "torch_autocast": frozenset({"enabled", "dtype", "lower_precision_safe_modules"}),
    "optimizer": frozenset({"type", "params", "legacy_fusion"}),
    "scheduler": frozenset({"type", "params"}),
    "activation_checkpointing": _names(
        "partition_activations number_checkpoints contiguous_memory_optimization "
        "synchronize_checkpoint_boundary profile cpu_checkpointing"
    ),
}

# Blocks that only watch or tune: `launcher import` needs no word about what stands in them.
DS_WATCHING_BLOCKS: dict[str, frozenset[str]] = {
    "tensorboard": _names("enabled output_path job_name"),
    "csv_monitor": _names("enabled output_path job_name"),
    "wandb": _names("enabled group team project"),
    "comet": _names(
        "enabled samples_log_interval project workspace api_key experiment_name experiment_key online mode"
    ),
    "comms_logger": _names("enabled prof_all prof_ops verbose debug"),
    "flops_profiler": _names(
        "enabled recompute_fwd_factor profile_step module_depth top_modules detailed output_file"
    ),
    "aio": _names("block_size queue_depth intra_op_parallelism single_submit overlap_events use_gds"),
}

DS_OTHER_NAMES: dict[str, str] = {
    "bfloat16": "bf16",
    "stage3_gather_fp16_weights_on_model_save": "stage3_gather_16bit_weights_on_model_save",
    "cpu_offload": "offload_optimizer",
    "cpu_offload_param": "offload_param",
    "cpu_offload_use_pin_memory": "offload_optimizer.pin_memory",
    "queue_size": "queue_depth",
    "thread_count": "intra_op_parallelism",
}

DS_REMOVED: dict[str, str] = {
    "amp": "fp16, bf16 or torch_autocast; here the recipe's precision",
    "nebula": "nothing: checkpoints are written by the launcher",
    "compression_training": "nothing: the compression library is gone",
    "quantize_training": "nothing: Mixture-of-Quantization is gone",
    "sparse_gradients": "nothing: gradients of nn.Embedding(sparse=True) are sparse without a flag",
    "eigenvalue": "nothing: it belonged to Mixture-of-Quantization",
    "sparse_attention": "nothing: choose model.attn_implementation in the recipe",
    "elasticity": "nothing: the recipe's global_batch_size is kept on any number of cards",
    "graph_harvesting": "nothing: graph harvesting is gone",
    "curriculum_learning": "data_efficiency.data_sampling.curriculum_learning",
    "progressive_layer_drop": "nothing: progressive layer dropping is gone",
    "zero_optimization.mics_shard_size": "zero_hpz_partition_size",
    "zero_optimization.mics_hierarchical_params_gather": "nothing: MiCS is gone",
    "zero_optimization.zeropp_loco_param": "nothing: quantized gradients work without it",
}

ACCELERATE_BLOCKS: dict[str, frozenset[str]] = {
    "": _names(
        "command_file commands compute_environment debug deepspeed_config distributed_type downcast_bf16 "
        "dynamo_config dynamo_backend enable_cpu_affinity fp16 fp8_config fsdp_config gpu_ids machine_rank "
        "main_process_ip main_process_port main_training_function megatron_lm_config mixed_precision "
        "mpirun_config num_machines num_processes parallelism_config rdzv_backend same_network tpu_env "
        "tpu_name tpu_use_cluster tpu_use_sudo tpu_vm tpu_zone use_cpu"
    ),
    "deepspeed_config": _names(
        "deepspeed_config_file deepspeed_exclusion_filter deepspeed_hostfile deepspeed_inclusion_filter "
        "deepspeed_moe_layer_cls_names deepspeed_multinode_launcher gradient_accumulation_steps "
        "gradient_clipping offload_optimizer_device offload_optimizer_nvme_path offload_param_device "
        "offload_param_nvme_path zero3_init_flag zero3_save_16bit_model zero_stage"
    ),
    "fsdp_config": _names(
        "fsdp_activation_checkpointing fsdp_activation_checkpointing_offload fsdp_auto_wrap_policy "
        "fsdp_backward_prefetch fsdp_cpu_ram_efficient_loading fsdp_forward_prefetch fsdp_min_num_params "
        "fsdp_offload_params fsdp_reshard_after_forward fsdp_sharding_strategy fsdp_state_dict_type "
        "fsdp_sync_module_states fsdp_transformer_layer_cls_to_wrap fsdp_use_orig_params "
        "fsdp_version"
    ),
}
