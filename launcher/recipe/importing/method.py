"""Which method trains, where the file says it by switches: PEFT's, or packed weights without one."""

from launcher.recipe.importing.draft import Draft
from launcher.recipe.importing.values import is_on

LORA = "adapter.method"
_PAIRS = (
    "lora_r",
    "lora_rank",
    "r",
    "lora_alpha",
    "lora_dropout",
    "lora_target_modules",
    "target_modules",
    "use_rslora",
    "use_dora",
)


def settle_peft(draft: Draft) -> None:
    """`use_peft` or LoRA's own keys mean LoRA; switched off, LoRA's keys say nothing."""
    key, _ = draft.find("use_peft")
    given = draft.take("use_peft")
    pairs = [name for name in _PAIRS if draft.has(name)]
    if given is not None and not is_on(given):
        draft.quiet.append(key)
        for name in pairs:
            found, _ = draft.find(name)
            draft.leave(
                found, draft.take(name), "use_peft is off, so it has no effect there", "adapter: lora"
            )
    elif given is not None:
        draft.put(key, given, {LORA: "lora"})
    elif pairs:
        draft.say(LORA, "lora", "LoRA's keys are given")
    packed = [name for name in ("load_in_4bit", "load_in_8bit", "q_lora") if is_on(draft.peek(name))]
    if packed and LORA not in draft.values:
        draft.say(LORA, "lora", f"{packed[0]}: packed weights cannot be trained themselves")
