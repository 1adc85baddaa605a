"""What we save, `transformers` opens and computes alike."""

import pytest
import torch

from models import save_model
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
