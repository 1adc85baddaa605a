"""How fresh weights are drawn: one law per value of `ModelConfig.initialisation`.

    value              linear weights                        biases          embeddings
    torch_default      U(-1/√in, 1/√in)                      U(-1/√in, ..)   N(0, 1)
    normal_scaled      N(0, 0.02²); the two projections      0               N(0, 0.02²)
                       that write to the stream N(0, 0.02²/(2 L))
    fan_in             N(0, 1/in); the head N(0, 1/(4 in))   0               N(0, 1/(4 width))
    truncated_normal   N(0, 2/(in + out)), cut at 3 std      0               same law, in = rows
    unit_normal        N(0, 1)                               0               N(0, 1)

`torch_default` is what `nn.Linear` and `nn.Embedding` do by themselves (He et al. 2015 with a = √5
comes to U(±1/√in)), drawn in the same order, so that a generator with seed s gives the weights that
`torch.manual_seed(s)` gave. `normal_scaled` is GPT-2's (Radford et al. 2019, section 2.3): each of
the 2 L layers adds to the stream, and the scaling keeps its variance from growing with depth.
0.02 was chosen for a width of 768; `fan_in` (LeCun et al. 1998, "Efficient BackProp", section 4.6)
follows the width: a sum over `in` inputs is as large as each of them. Tokens start as vectors of
length about 1/2, in the head too, so that scores spread by 1/2 and the first loss is near
ln(vocabulary). In a narrow model ten steps of AdamW at 0.004 outgrow weights of 0.02: what all
tokens have in common drowns what tells them apart, and the loss jumps.
`unit_normal` scales nothing: a sum over `in` inputs grows by √in in every layer, which shows what
the other laws are for. Norm weights start at 1 and norm biases at 0.
"""

import math

import torch
from torch import nn

from models.config import Initialisation, ModelConfig
from models.decoder import Decoder
from models.encoder_decoder import EncoderDecoder
from models.encoder_decoder_config import EncoderDecoderConfig
from models.norms import LayerNorm, RMSNorm, UnitOffsetRMSNorm

GPT2_STD = 0.02  # Radford et al. 2018 (GPT-1), section 4.1


def build_decoder(
    config: ModelConfig, generator: torch.Generator, *, device: torch.device | str = "cpu"
) -> Decoder:
    """A decoder with fresh weights.

    Args:
        config: What to build, and by which law.
        generator: Source of every draw, on the CPU whatever the device, so that a seed gives the
            same weights everywhere.
        device: Where the weights end up.
    """
    with torch.device("meta"):  # no draw from the process-wide generator
        model = Decoder(config)
    _fill(model, config, generator)
    return model.to(device)


def build_encoder_decoder(
    config: EncoderDecoderConfig,
    generator: torch.Generator,
    *,
    device: torch.device | str = "cpu",
) -> EncoderDecoder:
    """An encoder-decoder with fresh weights, by the law of its decoder.

    Args:
        config: What to build.
        generator: Source of every draw, on the CPU.
        device: Where the weights end up.
    """
    with torch.device("meta"):
        model = EncoderDecoder(config)
    _fill(model, config.decoder, generator)
    return model.to(device)


def _fill(model: nn.Module, config: ModelConfig, generator: torch.Generator) -> None:
    model.to_empty(device="cpu")
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            _draw(module, name, config, generator)
        elif isinstance(module, UnitOffsetRMSNorm):
            nn.init.zeros_(module.weight)
        elif isinstance(module, LayerNorm | RMSNorm):
            nn.init.ones_(module.weight)
            if isinstance(module, LayerNorm):
                nn.init.zeros_(module.bias)


def _draw(
    module: nn.Linear | nn.Embedding, name: str, config: ModelConfig, generator: torch.Generator
) -> None:
    law: Initialisation = config.initialisation
    bias = module.bias if isinstance(module, nn.Linear) else None
    if law == "torch_default":
        _draw_torch_default(module, generator)
        return
    if law == "truncated_normal":
        std = math.sqrt(2 / sum(module.weight.shape))
        nn.init.trunc_normal_(module.weight, 0, std, -3 * std, 3 * std, generator=generator)
    else:
        nn.init.normal_(
            module.weight, 0, _normal_std(name, module.weight.shape[1], config), generator=generator
        )
    if bias is not None:
        nn.init.zeros_(bias)


def _normal_std(name: str, columns: int, config: ModelConfig) -> float:
    if config.initialisation == "unit_normal":
        return 1.0
    if config.initialisation == "fan_in":
        stands_for_tokens = name.endswith(("embed", "head"))
        return columns**-0.5 / (2 if stands_for_tokens else 1)
    writes_to_stream = name.endswith(("o_proj", "down_proj"))
    return GPT2_STD / math.sqrt(2 * config.n_layers) if writes_to_stream else GPT2_STD


def _draw_torch_default(module: nn.Linear | nn.Embedding, generator: torch.Generator) -> None:
    if isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, generator=generator)
        return
    bound = 1 / math.sqrt(module.in_features)
    nn.init.uniform_(module.weight, -bound, bound, generator=generator)
    if module.bias is not None:
        nn.init.uniform_(module.bias, -bound, bound, generator=generator)
