"""A tuned model on the memory of the model that it was made from.

    base in memory ─► the same memory ─► + adapter beside its matrices ─► tuned model

Ten adapters of one base so take the memory of one model and ten adapters, each about a hundredth
of it (Hu et al. 2021, arXiv 2106.09685, section 4.1). A pass costs a little more than with merged
matrices.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from models.decoder import Decoder
from models.loading import LoadedModel, load_model
from models.lora import MergedWeights, add_lora_of, lora_layers, share_base
from models.lora_files import load_adapter
from models.sources import ResolvedSource

# How far base + correction may be from what the checkpoint holds, in roundings of a matrix's
# largest number: other processors add up in another order.
_MOST_ROUNDINGS = 16


def load_adapted(source: ResolvedSource, base: LoadedModel, adapter: Path) -> LoadedModel | None:
    """Open a checkpoint as its adapter on the memory of its base.

    The checkpoint's own weights, which hold the adapter already, are mapped and compared, every
    one: a base that has been exchanged since then would give wrong answers without a word.

    Args:
        source: The checkpoint.
        base: The model to stand on, in float32; it may be an adapter on another one itself.
        adapter: Folder of the checkpoint's adapter.

    Returns:
        None where base and adapter together are not what the checkpoint holds.

    Raises:
        WeightError: Files are damaged.
        ConfigError: The adapter asks for something that we do not have.
    """
    stored = load_model(source, base.info.dtype, base.model.device)
    try:
        model = share_base(base.model, stored.config)
    except RuntimeError:  # other names or shapes
        return None
    load_adapter(adapter, model)
    add_lora_of(model, base.model)
    if not _hold_the_same(model, stored.model):
        return None
    own = (p for _, layer in lora_layers(model) for p in (layer.lora_a, layer.lora_b))
    info = replace(
        stored.info,
        n_bytes=sum(p.nbytes for p in own),
        base_name=base.info.base_name or base.info.name,
        n_base_bytes=stored.info.n_bytes,
    )
    return replace(stored, model=model.eval().requires_grad_(False), info=info)


def _hold_the_same(model: Decoder, other: Decoder) -> bool:
    ours, theirs = MergedWeights(model), MergedWeights(other)
    most = _MOST_ROUNDINGS * torch.finfo(model.dtype).eps
    return all(
        torch.equal(tensor, theirs[name])
        or float((tensor - theirs[name]).abs().max()) <= most * float(tensor.abs().max())
        for name, tensor in ours.items()
    )
