"""A tiny model that fine-tunings begin from."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from models.initialise import build_decoder
from models.saving import save_model
from models.tokenizers.bpe_trainer import train_bpe
from tests.explorer.training.run_cases import TEXT, tiny_model


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    tokenizer = train_bpe(TEXT, vocab_size=280, special_tokens=("<|endoftext|>",)).to_tokenizer(
        "tiny"
    )
    config = replace(tiny_model(tokenizer.vocab_size, dropout=0.0), context_length=96)
    model = build_decoder(config, torch.Generator().manual_seed(1))
    save_model(folder, model, tokenizer=tokenizer)
    return folder
