"""The recipe's `model` section."""

from typing import Literal

from pydantic import Field

from launcher.models.modelscope_ids import known_id
from launcher.options import Options

Dtype = Literal["auto", "float32", "bfloat16", "float16"]
Attention = Literal["auto", "eager", "sdpa", "flash_attention_2"]


class ModelOptions(Options):
    """Which pretrained model, and how its weights are read."""

    @property
    def is_quantised(self) -> bool:
        """Whether frozen weights are packed into 4 or 8 bits."""
        return self.load_in_4bit or self.load_in_8bit

    @property
    def on_modelscope(self) -> str | None:
        """Its id on ModelScope: the one given, or a known one of the same whole model, newest revision."""
        if self.modelscope_id is not None or self.revision is not None or self.gguf_file is not None:
            return self.modelscope_id
        return known_id(self.model_name_or_path)

    model_name_or_path: str = Field(min_length=1, description="A folder in Hugging Face layout, or a hub id.")
    revision: str | None = Field(None, description="Hub commit, tag or branch.")
    modelscope_id: str | None = Field(
        None,
        description="Its id on ModelScope, taken where the hub does not answer; for many models it is known.",
    )
    pip_package: str | None = Field(
        None, description="Distribution/folder that carries this model; used where it is installed."
    )
    gguf_file: str | None = Field(None, description="GGUF file in the model's folder, dequantised on load.")
    dtype: Dtype = Field("auto", description="Type of the weights in memory; auto: by method and precision.")
    attn_implementation: Attention = Field(
        "auto", description="Attention kernel; auto: what the model supports."
    )
    load_in_4bit: bool = Field(False, description="Hold the frozen linear layers in 4 bits (QLoRA).")
    load_in_8bit: bool = Field(False, description="Hold the frozen linear layers in 8 bits.")
    bnb_4bit_quant_type: Literal["nf4", "fp4"] = Field("nf4", description="The 4-bit type.")
    bnb_4bit_use_double_quant: bool = Field(True, description="Quantise the 4-bit blocks' scales too.")
    trust_remote_code: bool = Field(False, description="Run Python code that comes with the model.")
