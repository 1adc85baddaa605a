"""What we save, `transformers` opens and computes alike."""

import pytest
import torch

from models import save_model
from models.tokenizers.characters import train_character_tokenizer
from tests.models.saving_cases import IN_TRANSFORMERS, random_ids, random_model


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_TRANSFORMERS)
def test_transformers_computes_the_same_logits(name, tmp_path):
    from transformers import AutoModelForCausalLM

    model = random_model(IN_TRANSFORMERS[name][0])
    saved = save_model(tmp_path, model)
    theirs, report = AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert theirs.config.model_type == saved.model_type
    assert not any(report.values()), report
    ids = random_ids()
    with torch.no_grad():
        expected = theirs.eval()(ids).logits
    scale = max(1.0, float(expected.abs().max()))
    torch.testing.assert_close(model(ids) / scale, expected / scale, atol=1e-5, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_transformers_opens_16_bits_as_such(dtype, tmp_path):
    from transformers import AutoModelForCausalLM

    save_model(tmp_path, random_model(IN_TRANSFORMERS["llama"][0]), dtype=dtype)
    assert AutoModelForCausalLM.from_pretrained(tmp_path).dtype == getattr(torch, dtype)


@pytest.mark.slow
def test_transformers_opens_the_tokenizer_and_stops_where_we_stop(tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = train_character_tokenizer("the quick brown fox")
    model = random_model(IN_TRANSFORMERS["llama"][0])
    save_model(tmp_path, model, tokenizer=tokenizer)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    assert theirs("the fox", add_special_tokens=False).input_ids == tokenizer.encode("the fox")
    assert theirs.eos_token_id == tokenizer.eos_id
    opened = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert opened.generation_config.eos_token_id == tokenizer.eos_id
    assert opened.config.pad_token_id is None
