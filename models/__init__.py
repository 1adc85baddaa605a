"""The model core: configurations, parts, weights, tokenizers, generation.

One `Decoder` serves every family; what differs is values in a frozen `ModelConfig`. Read in this
order: config, norms, rope, attention, ffn, block, decoder, cache, sampling, generation; then trace
(how to look inside) and weight_rules, families, loading (how checkpoints come in).

Axis letters, here and in every shape:

    B batch    T query positions (new tokens)    S key positions    D model width (d_model)
    H query heads    K key/value heads    d width of a head (d_head)    F feed-forward width (d_ff)
    V vocabulary    L layers

Names are imported when first used: listing presets or tokenizing needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from models.beam import BeamConfig, beam_search
    from models.cache import KVCache
    from models.config import ModelConfig
    from models.counting import ParameterCount, count_parameters
    from models.decoder import Decoder
    from models.encoder_decoder import EncoderDecoder
    from models.generation import Token, generate
    from models.initialise import build_decoder
    from models.interventions import Interventions
    from models.loading import LoadedModel, load_model
    from models.registry import get_preset
    from models.sampling import SamplingConfig
    from models.saving import SavedModel, save_model
    from models.trace import Trace

_HOME = {
    "BeamConfig": "beam",
    "Decoder": "decoder",
    "EncoderDecoder": "encoder_decoder",
    "Interventions": "interventions",
    "KVCache": "cache",
    "LoadedModel": "loading",
    "ModelConfig": "config",
    "ParameterCount": "counting",
    "SavedModel": "saving",
    "SamplingConfig": "sampling",
    "Token": "generation",
    "Trace": "trace",
    "beam_search": "beam",
    "build_decoder": "initialise",
    "count_parameters": "counting",
    "generate": "generation",
    "get_preset": "registry",
    "load_model": "loading",
    "save_model": "saving",
}

__all__ = [
    "BeamConfig",
    "Decoder",
    "EncoderDecoder",
    "Interventions",
    "KVCache",
    "LoadedModel",
    "ModelConfig",
    "ParameterCount",
    "SamplingConfig",
    "SavedModel",
    "Token",
    "Trace",
    "beam_search",
    "build_decoder",
    "count_parameters",
    "generate",
    "get_preset",
    "load_model",
    "save_model",
]


def __getattr__(name: str) -> Any:
    """Import the module of a public name on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'models' has no attribute {name!r}")
    value = getattr(import_module(f"models.{_HOME[name]}"), name)
    globals()[name] = value
    return value
