"""Losses of preferences against TRL's own trainers, on the batches that these collate themselves.

TRL cuts the text into tokens, appends the end token, fills up and marks the answers; our losses
then read the same rows, and our own writer of rows has to write the same ones.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from explorer.datasets.examples import Prompt
from explorer.training.answer_rows import AnswerRow, RowWriter
from explorer.training.objectives.objective import Batch
from explorer.training.objectives.preference import make_loss, score_answers
from explorer.training.objectives.row_examples import collate_rows
from explorer.training.tuning_config import TuningConfig
from models.decoder import Decoder
from models.initialise import build_decoder
from models.saving import save_model
from models.tokenizers import Tokenizer, save_tokenizer
from models.tokenizers.bpe_trainer import train_bpe
from tests.explorer.training.run_cases import TEXT
from tests.explorer.training.tiny_models import LLAMA

END = "<|endoftext|>"
NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eve")
BETA, GAMMA = 0.3, 0.7

pytestmark = pytest.mark.slow


class Setting:
    """A policy, a reference and pairs, as files that TRL opens, and as ours.

    Args:
        folder: Where the files go.
    """

    def __init__(self, folder: Path) -> None:
        self.tokenizer: Tokenizer = train_bpe(
            TEXT, vocab_size=290, special_tokens=(END,)
        ).to_tokenizer("tiny")
        config = replace(LLAMA, vocab_size=self.tokenizer.vocab_size, context_length=256)
        self.policy, self.reference = (
            build_decoder(config, torch.Generator().manual_seed(seed)) for seed in (3, 4)
        )
        self.folder = folder
        for name, model in (("policy", self.policy), ("reference", self.reference)):
            save_model(folder / name, model)
        (folder / "tokenizer").mkdir()
        save_tokenizer(self.tokenizer, folder / "tokenizer")
        self.writer = RowWriter(self.tokenizer, "alpaca", None, 256)
        asked = [Prompt(instruction=f"Who has {i + 2} balls?") for i in range(5)]
        self.rows = [
            {
                "prompt": self.writer.write_prompt(prompt),
                "chosen": f"{name} has " + "the red balls " * (1 + i % 3),
                "rejected": f"{name}? " + "No. " * (1 + (2 * i) % 5),
            }
            for i, (prompt, name) in enumerate(zip(asked, NAMES, strict=True))
        ]
        self.asked = asked

    def theirs(self, name: str) -> Any:
        from transformers import AutoModelForCausalLM

        return AutoModelForCausalLM.from_pretrained(self.folder / name, dtype=torch.float32)

    def trainer(self, kind: Any, config: Any, **more: Any) -> Any:
        from datasets import Dataset
        from transformers import PreTrainedTokenizerFast

        file = str(self.folder / "tokenizer" / "tokenizer.json")
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=file, eos_token=END, pad_token=END)
        return kind(
            model=self.theirs("policy"),
            args=config,
            train_dataset=Dataset.from_list(self.rows),
            processing_class=tokenizer,
            **more,
        )


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    for name in ("trl", "datasets"):
        pytest.importorskip(name)
    return Setting(tmp_path_factory.mktemp("trl"))


def options(setting: Setting, **more: Any) -> dict[str, Any]:
    return {
        "output_dir": str(setting.folder / "out"),
        "per_device_train_batch_size": 5,
        "max_length": 256,
        "beta": BETA,
        "report_to": "none",
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        **more,
    }


def rows_of(ids: torch.Tensor, valid: torch.Tensor, answers: torch.Tensor) -> list[AnswerRow]:
    """Their rows of a batch as ours, without the padding."""
    found = []
    for row, is_real, is_answer in zip(ids, valid.bool(), answers.bool(), strict=True):
        found.append(
            AnswerRow(ids=tuple(row[is_real].tolist()), learned=tuple(is_answer[is_real].tolist()))
        )
    return found


def our_batch(
    chosen: list[AnswerRow],
    rejected: list[AnswerRow],
    other: list[AnswerRow],
    reference: Decoder,
    pad: int,
) -> Batch:
    texts = {
        name: collate_rows(rows, pad)
        for name, rows in (("chosen", chosen), ("rejected", rejected), ("other", other))
    }
    with torch.no_grad():
        numbers = {f"reference_{n}": score_answers(reference, b)[0] for n, b in texts.items()}
    first = texts.pop("chosen")
    return Batch(first.ids, first.targets, first.valid, numbers, texts, "rows")


def our_loss(setting: Setting, name: str, batch: Batch) -> float:
    tuning = TuningConfig(base="", loss=name, beta=BETA, gamma=GAMMA)  # type: ignore[arg-type]
    with torch.no_grad():
        return float(make_loss(tuning)(setting.policy, batch, None, False)) / len(batch.ids)


def first_batch(trainer: Any) -> Any:
    batch = next(iter(trainer.get_train_dataloader()))
    return {k: v.cpu() if isinstance(v, torch.Tensor) else v for k, v in batch.items()}


def test_dpo_and_ipo_are_those_of_trl(setting: Setting) -> None:
    import trl

    assert trl.__version__ == "1.16.0"
    for ours, theirs in (("dpo", "sigmoid"), ("ipo", "ipo")):
        config = trl.DPOConfig(**options(setting, loss_type=theirs))
        trainer = setting.trainer(trl.DPOTrainer, config, ref_model=setting.theirs("reference"))
        batch = first_batch(trainer)
        rows = rows_of(batch["input_ids"], batch["attention_mask"], batch["completion_mask"])
        written = {
            setting.writer.write_row(prompt, row[side]).ids
            for prompt, row in zip(setting.asked, setting.rows, strict=True)
            for side in ("chosen", "rejected")
        }
        assert {row.ids for row in rows} == written  # the end token among them
        found = our_batch(rows[:5], rows[5:], rows[:5], setting.reference, 0)
        with torch.no_grad():
            wanted = float(trainer.compute_loss(trainer.model, batch))
        assert our_loss(setting, ours, found) == pytest.approx(wanted, rel=1e-5), ours


def test_orpo_and_simpo_are_those_of_trl(setting: Setting) -> None:
    from trl.experimental.cpo import CPOConfig, CPOTrainer
    from trl.experimental.orpo import ORPOConfig, ORPOTrainer

    simpo = options(setting, loss_type="simpo", cpo_alpha=0.0, simpo_gamma=GAMMA)
    for ours, kind, config in (
        ("orpo", ORPOTrainer, ORPOConfig(**options(setting))),
        ("simpo", CPOTrainer, CPOConfig(**simpo)),
    ):
        trainer = setting.trainer(kind, config)
        batch = first_batch(trainer)
        sides = [
            rows_of(
                batch[f"{side}_input_ids"],
                batch[f"{side}_attention_mask"],
                batch[f"{side}_labels"] != -100,
            )
            for side in ("chosen", "rejected")
        ]
        assert all(row.ids[-1] == setting.tokenizer.eos_id for rows in sides for row in rows)
        found = our_batch(*sides, sides[0], setting.reference, 0)
        with torch.no_grad():
            wanted = float(trainer.compute_loss(trainer.model, batch))
        assert our_loss(setting, ours, found) == pytest.approx(wanted, rel=1e-5), ours


def test_kto_is_that_of_trl(setting: Setting) -> None:
    import trl

    config = trl.KTOConfig(**options(setting, per_device_train_batch_size=10))
    trainer = setting.trainer(trl.KTOTrainer, config, ref_model=setting.theirs("reference"))
    batch = first_batch(trainer)
    rows = rows_of(batch["input_ids"], batch["attention_mask"], batch["completion_mask"])
    others = rows_of(batch["KL_input_ids"], batch["KL_attention_mask"], batch["KL_completion_mask"])
    good = [bool(label) for label in batch["label"]]
    chosen = [row for row, is_good in zip(rows, good, strict=True) if is_good]
    rejected = [row for row, is_good in zip(rows, good, strict=True) if not is_good]
    found = our_batch(chosen, rejected, others, setting.reference, 0)
    with torch.no_grad():
        wanted = float(trainer.compute_loss(trainer.model, batch))
    assert our_loss(setting, "kto", found) == pytest.approx(wanted, rel=1e-5)
    tuning = TuningConfig(base="", loss="kto", beta=BETA)
    with torch.no_grad():  # where nothing has moved, each answer counts one half
        still = float(make_loss(tuning)(setting.reference, found, None, False))
    assert still == pytest.approx(2.5)
