"""A whole chat model in memory, too small to be wise: random weights, one token for each byte.

Beyond ASCII its characters are several tokens. `TinyStore` hands it out as the real store would.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from explorer.errors import Stopped
from explorer.store_records import ModelSummary
from models.config import AttentionConfig, FfnConfig, ModelConfig, NormConfig, RopeConfig
from models.initialise import build_decoder
from models.loading import LoadedModel, ModelInfo
from models.tokenizers import ChatTemplate
from models.tokenizers.tokenizer import Tokenizer
from tests.components.fake_store import FakeStore, make_summary

SPECIAL = {"<|end|>": 0, "<|user|>": 1, "<|model|>": 2}
CONFIG = ModelConfig(
    vocab_size=259,
    context_length=200,
    d_model=44,
    layer_types=("full",) * 2,
    attention=AttentionConfig(n_heads=6, n_kv_heads=3, d_head=10),
    ffn=FfnConfig(d_ff=52, activation="silu", gated=True),
    norm=NormConfig(kind="rmsnorm"),
    positions="rope",
    rope={"full": RopeConfig(theta=5_000.0)},
    initialisation="torch_default",
)
TEMPLATE = (
    "{% for m in messages %}"
    "{% if m.content.startswith('refuse') %}{{ raise_exception('no such talk') }}"
    "{% endif %}<|{{ 'model' if m.role == 'assistant' else 'user' }}|>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<|model|>{% endif %}"
)
# as Qwen3 writes it: without thinking, an empty thought stands before the answer
THINKING_TEMPLATE = TEMPLATE.replace(
    "<|model|>{% endif %}",
    "<|model|>{% if enable_thinking is defined and enable_thinking is false %}"
    "<think></think>{% endif %}{% endif %}",
)


class ByteTokenizer(Tokenizer):
    """A token for each byte, after the special ones."""

    def __init__(self) -> None:
        super().__init__(name="bytes", vocab_size=259, special_tokens=SPECIAL, eos_id=0)

    def _encode(self, text: str, special: bool) -> list[int]:
        pieces = self.split_special(text) if special else [text]
        return [
            token
            for piece in pieces
            for token in (
                [SPECIAL[piece]]
                if special and piece in SPECIAL
                else [3 + byte for byte in piece.encode()]
            )
        ]

    def _token_bytes(self, token: int) -> bytes | None:
        if token < 3:
            return next(text for text, id_ in SPECIAL.items() if id_ == token).encode()
        return bytes([token - 3])


def build_tiny_chat(*, chat: bool = True, template: str = TEMPLATE) -> LoadedModel:
    """Build the model; it never stops by itself, so that a test says when an answer ends."""
    decoder = build_decoder(CONFIG, torch.Generator().manual_seed(5))
    decoder.requires_grad_(False)
    tokenizer = ByteTokenizer()
    return LoadedModel(
        model=decoder,
        config=CONFIG,
        chat=ChatTemplate(template, tokenizer) if chat else None,
        stop_ids=frozenset(),
        info=ModelInfo("tiny", "Tiny", "Llama", 1, 4, "float32", "folder"),
        tokenizer_or_error=tokenizer,
    )


class TinyStore(FakeStore):
    """Hands out the tiny model under every name; `slow` waits in `lease` until it is let go.

    After each forward pass `after_pass` is called, so that a test can act between two tokens.
    """

    def __init__(self) -> None:
        super().__init__()
        self.chats = {
            "base": build_tiny_chat(chat=False),
            "thinker": build_tiny_chat(template=THINKING_TEMPLATE),
        }
        self.usual = build_tiny_chat()
        self.begin()
        for loaded in (self.usual, *self.chats.values()):
            loaded.model.register_forward_hook(self._count)

    def begin(self) -> None:
        """Be as at first, for the next test."""
        self.slow_arrived, self.slow_let_go = threading.Event(), threading.Event()
        self.passes = 0
        self.after_pass: Callable[[int], None] = lambda passes: None

    def _count(self, *_: object) -> None:
        self.passes += 1
        self.after_pass(self.passes)

    def summary(self, source: str, owner: str) -> ModelSummary | None:
        if source == "slow" and not self.slow_let_go.is_set():
            return None
        return make_summary(
            source,
            source,
            has_chat=source != "base",
            knows_thinking=source == "thinker",
            chat_format="Mistral v1" if source == "formatted" else None,
        )

    def tokenizer(self, source: str, owner: str) -> Tokenizer:
        return self.usual.tokenizer

    @contextmanager
    def lease(
        self, source: str, owner: str, *, cancelled: Callable[[], bool] = lambda: False
    ) -> Iterator[LoadedModel]:
        if source == "broken":
            raise RuntimeError("a fault of ours")
        if source == "slow":
            self.slow_arrived.set()
            while not self.slow_let_go.wait(0.01):
                if cancelled():
                    raise Stopped("cancelled while it was loaded")
        yield self.chats.get(source, self.usual)
