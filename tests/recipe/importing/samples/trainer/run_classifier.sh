#!/bin/bash
# two cards, one machine
LR=3e-5
OUT=out/reviews
export CUDA_VISIBLE_DEVICES=0,1

torchrun --nproc_per_node=2 --master_port 29501 run_classification.py \
  --model_name_or_path some-owner/some-encoder \
  --train_file data/train.csv \
  --validation_file data/dev.csv \
  --text_column_name review \
  --label_column_name stars \
  --max_seq_length 256 \
  --per_device_train_batch_size 16 \
  --learning_rate $LR --num_train_epochs 3 \
  --evaluation_strategy epoch --save_strategy epoch \
  --fp16 \
  --lr_scheduler_type cosine_with_restarts \
  --overwrite_output_dir \
  --output_dir ${OUT} > log.txt 2>&1 &
