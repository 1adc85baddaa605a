"""Mistral: Llama's shape with a sliding window over all layers in its first version.

Jiang et al. 2023, arXiv 2310.06825, section 2. The window of 4,096 counts the query; version 0.3
dropped it and has a larger vocabulary.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from models.config import (
    FULL,
    WINDOW,
    AttentionConfig,
    FfnConfig,
    ModelConfig,
    NormConfig,
)
from models.family import Family, Settings
from models.hf_layout import (
    UsualValues,
    hf_rules,
    read_heads,
    read_hf_config,
    write_hf_config,
)
from models.hf_rope import write_rope
from models.rope_config import RopeConfig
from models.tokenizers.chat_format import ChatFormat

# huggingface.co/mistralai/Mistral-7B-v0.1/blob/main/config.json
MISTRAL_7B_V01 = ModelConfig(
    vocab_size=32_000,
    context_length=32_768,
    d_model=4_096,
    layer_types=(WINDOW,) * 32,
    attention=AttentionConfig(n_heads=32, n_kv_heads=8, d_head=128, window=4_096),
    ffn=FfnConfig(d_ff=14_336, activation="silu", gated=True),
    norm=NormConfig(kind="rmsnorm", eps=1e-5),
    positions="rope",
    rope={WINDOW: RopeConfig(theta=10_000.0)},
)
# huggingface.co/mistralai/Mistral-7B-v0.3/blob/main/config.json
MISTRAL_7B_V03 = replace(
    MISTRAL_7B_V01,
    vocab_size=32_768,
    layer_types=(FULL,) * 32,
    attention=AttentionConfig(n_heads=32, n_kv_heads=8, d_head=128),
    rope={FULL: RopeConfig(theta=1_000_000.0)},
)

PRESETS: Mapping[str, ModelConfig] = {
    "mistral-7b-v0.1": MISTRAL_7B_V01,
    "mistral-7b-v0.3": MISTRAL_7B_V03,
}


USUAL = UsualValues(context_length=131_072)


def config_from_hf(values: Mapping[str, Any]) -> ModelConfig:
    """Read config.json; `sliding_window` null or absent means full attention.

    Raises:
        ConfigError: A key is missing, or a setting changes the numbers in a way we do not compute.
    """
    settings = Settings(values)
    window = None if values.get("sliding_window") is None else settings.whole("sliding_window")
    layer_types = (FULL if window is None else WINDOW,) * settings.layers("num_hidden_layers")
    heads = read_heads(settings, window=window)
    return read_hf_config(settings, USUAL, layer_types, attention=heads)


def config_to_hf(config: ModelConfig) -> dict[str, Any] | None:
    """Write config.json; the reference has no biases, whatever the file says."""
    window = config.attention.window if WINDOW in config.layer_types else None
    return write_hf_config(
        config,
        "MistralForCausalLM",
        "mistral",
        USUAL,
        sliding_window=window,
        **write_rope(config),
    )


# Three generations of one format: as text with spaces; `[INST]` as a token, where SentencePiece
# needs a space before a word; the same without. The system message goes in front of a message of
# the user's: the first one, later the last one.
_CHAT = """\
{%- set first = 1 if messages[0].role == 'system' else 0 -%}
{%- set turns = messages[first:] -%}
{{- bos_token -}}
{%- for message in turns -%}
{%- if message.role != ('assistant' if loop.index0 % 2 else 'user') -%}
{{- raise_exception('After an optional system message, user and assistant take turns') -}}
{%- endif -%}
{%- if message.role == 'assistant' -%}
{{- AFTER + message.content + eos_token -}}
{%- else -%}
{{- '[INST]' + BEFORE -}}
{%- if first and HOLDS_SYSTEM -%}{{- messages[0].content + '\n\n' -}}{%- endif -%}
{{- message.content + END -}}
{%- endif -%}
{%- endfor -%}
"""


def _chat_template(before: str, end: str, after: str, holds_system: str) -> str:
    return (
        _CHAT.replace("BEFORE", repr(before))
        .replace("END", repr(end))
        .replace("AFTER", repr(after))
        .replace("HOLDS_SYSTEM", holds_system)
    )


CHAT_FORMATS = (
    ChatFormat(
        name="Mistral v1",
        source="mistral-common, instruct tokenizer v1 (2023)",
        template=_chat_template(" ", " [/INST]", " ", "loop.first"),
        lacks=("[INST]",),
        marks_word_starts=True,
    ),
    ChatFormat(
        name="Mistral v3",
        source="mistral-common, instruct tokenizer v3 (2024)",
        template=_chat_template(" ", "[/INST]", " ", "loop.last"),
        needs=("[INST]", "[/INST]"),
        lacks=("[SYSTEM_PROMPT]",),
        marks_word_starts=True,
    ),
    ChatFormat(
        name="Mistral v3 (tekken)",
        source="mistral-common, instruct tokenizer v3 with tekken (2024)",
        template=_chat_template("", "[/INST]", "", "loop.last"),
        needs=("[INST]", "[/INST]"),
        lacks=("[SYSTEM_PROMPT]",),
        marks_word_starts=False,
    ),
)

FAMILY = Family(
    name="Mistral",
    source="Jiang et al. 2023, arXiv 2310.06825",
    model_types=("mistral",),
    presets=PRESETS,
    config_from_hf=config_from_hf,
    config_to_hf=config_to_hf,
    rules=hf_rules,
    chat_formats=CHAT_FORMATS,
)
