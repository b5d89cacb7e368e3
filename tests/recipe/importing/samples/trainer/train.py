from peft import LoraConfig
from transformers import TrainingArguments

learning_rate = float(input())
args = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=2,
    gradient_accumulation_steps=16,
    learning_rate=learning_rate,
    num_train_epochs=1,
    bf16=True,
    gradient_checkpointing=True,
    logging_steps=5,
)
lora = LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05, target_modules=["q_proj", "v_proj"])
