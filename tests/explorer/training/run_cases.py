"""Small runs for tests: a text, its tokenizer, and a model that trains in milliseconds."""

from dataclasses import replace
from pathlib import Path

from explorer.training.new_translation import make_translation_run
from explorer.training.prepare import RunText, make_run
from explorer.training.run_config import (
    DataConfig,
    OptimiserConfig,
    RunConfig,
    ScheduleConfig,
    WatchConfig,
)
from explorer.training.run_folder import RunFolder
from explorer.training.translation_setup import TranslationSetup
from models.config import AttentionConfig, DropoutConfig, FfnConfig, ModelConfig, NormConfig
from models.rope_config import RopeConfig
from models.tokenizers.characters import train_character_tokenizer

TEXT = "".join(
    f"{name} has {number} {thing}. {name} likes the {thing}.\n"
    for name in ("Ada", "Ben", "Cleo", "Dan", "Eve")
    for number in ("two", "three", "seven")
    for thing in ("red balls", "blue kites", "old maps", "green cups")
)


def tiny_model(vocab_size: int, *, dropout: float = 0.1) -> ModelConfig:
    return ModelConfig(
        vocab_size=vocab_size,
        context_length=24,
        d_model=20,
        layer_types=("full",) * 2,
        attention=AttentionConfig(n_heads=2, n_kv_heads=1, d_head=10),
        ffn=FfnConfig(d_ff=28, activation="silu", gated=True),
        norm=NormConfig(kind="rmsnorm"),
        positions="rope",
        rope={"full": RopeConfig(theta=10_000.0)},
        tied_head=True,
        dropout=DropoutConfig(embedding=dropout, attention=dropout, residual=dropout),
    )


def tiny_config(vocab_size: int, **changes: object) -> RunConfig:
    config = RunConfig(
        name="tiny",
        model=tiny_model(vocab_size),
        data=DataConfig(context=16, batch_size=4),
        optimiser=OptimiserConfig(learning_rate=3e-3),
        schedule=ScheduleConfig(kind="cosine", warmup_steps=2),
        watch=WatchConfig(
            evaluate_every=4,
            evaluation_batches=2,
            sample_every=8,
            prompts=("Ada has",),
            sample_tokens=6,
            save_every=5,
        ),
        n_steps=13,
        tokenizer="characters",
    )
    return replace(config, **changes)  # type: ignore[arg-type]


def make_tiny_run(folder: Path, text: str = TEXT, **changes: object) -> RunFolder:
    tokenizer = train_character_tokenizer(text)
    *_, run = make_run(
        folder,
        RunText(text=text),
        tokenizer,
        lambda vocab_size, *_: tiny_config(vocab_size, **changes),
        {"owner": "ann"},
    )
    assert isinstance(run, RunFolder)
    return run


TINY_TRANSLATION = TranslationSetup(
    task="reversal", n_steps=20, n_training=200, n_layers=1, d_model=32
)


def make_tiny_translation(folder):
    """A small run: few pairs in a batch, little to look at."""
    run = make_translation_run(folder, TINY_TRANSLATION, {"owner": "somebody"})
    config = run.read_config()
    assert config.translation is not None
    config = replace(
        config,
        data=replace(config.data, batch_size=5),
        watch=replace(config.watch, evaluate_every=10, sample_every=20, save_every=20),
        n_steps=12,
        translation=replace(config.translation, n_validation=20),
    )
    run.write_config(config)
    return run
