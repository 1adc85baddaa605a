"""What the starter model can do, in numbers.

loss        nats a token on texts of the world that it has not seen (validation), and on texts
with other names, things and sentences (held out), for each language
questions   share of questions about a text that it answers word for word, greedily
heads       the best previous-token and induction heads on random tokens
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from explorer.head_scores import HeadPlace, compute_head_scores
from explorer.starter.documents import generate_questions
from explorer.starter.records import Question

if TYPE_CHECKING:
    from models.loading import LoadedModel

LANGUAGES = ("en", "zh")
SPLITS = ("validation", "held_out")
N_QUESTIONS = 200
LOSS_TOKENS = 20_000
QUESTION_SEED = 7  # of neither the training nor the validation text


@dataclass(frozen=True, kw_only=True)
class StarterScores:
    """All scores.

    Args:
        losses: Split -> language -> nats a token.
        questions: Split -> language -> share answered word for word.
        previous_token: The head that most looks one token back.
        induction: The head that most looks behind an earlier copy of its token.
    """

    losses: dict[str, dict[str, float]]
    questions: dict[str, dict[str, float]]
    previous_token: HeadPlace
    induction: HeadPlace

    def to_json(self) -> dict[str, Any]:
        """The same as plain JSON values."""
        return asdict(self)


def score_starter(loaded: LoadedModel, *, n_questions: int = N_QUESTIONS) -> StarterScores:
    """Score a model of the starter's world.

    Args:
        loaded: The model with its tokenizer.
        n_questions: Questions for each language and split.
    """
    heads = compute_head_scores(loaded)
    return StarterScores(
        losses={
            split: {lang: compute_world_loss(loaded, split, lang) for lang in LANGUAGES}
            for split in SPLITS
        },
        questions={
            split: {lang: share_right(loaded, split, lang, n_questions) for lang in LANGUAGES}
            for split in SPLITS
        },
        previous_token=heads.best_previous_token,
        induction=heads.best_induction,
    )


def compute_world_loss(loaded: LoadedModel, split: str, language: str) -> float:
    """Mean loss of the next token, in nats, over texts of one split and language.

    Args:
        loaded: The model with its tokenizer.
        split: validation or held_out.
        language: en or zh.
    """
    import numpy as np

    from explorer.datasets.text import tokenize_text
    from explorer.datasets.windows import TokenWindows
    from explorer.starter.build import write_world
    from explorer.training.evaluate import compute_mean_loss
    from explorer.training.objectives.pretrain import OBJECTIVE, WindowExamples

    text = write_world(split, LOSS_TOKENS, language)
    ids = np.asarray(tokenize_text(loaded.tokenizer, text, special=True))
    examples = WindowExamples(TokenWindows(ids, loaded.config.context_length))
    return compute_mean_loss(
        loaded.model, examples, OBJECTIVE.compute_loss_sum, batch_size=16, most_batches=None
    )


def is_right(loaded: LoadedModel, question: Question) -> bool:
    """Whether the greedy continuation of the prompt begins with the answer."""
    from models.generation import generate
    from models.sampling import SamplingConfig

    tokenizer = loaded.tokenizer
    ids = tokenizer.encode(question.prompt)
    wanted = question.continuation
    n_tokens = len(tokenizer.encode(wanted)) + 4  # the model may cut the same text otherwise
    room = loaded.config.context_length - n_tokens
    written = [
        token.id
        for token in generate(
            loaded.model,
            ids[-room:],
            max_new_tokens=n_tokens,
            sampling=SamplingConfig(temperature=0.0),
            n_alternatives=0,
        )
    ]
    return tokenizer.decode(written).startswith(wanted)


def share_right(loaded: LoadedModel, split: str, language: str, n: int = N_QUESTIONS) -> float:
    """Share of questions that are answered word for word.

    Args:
        loaded: The model with its tokenizer.
        split: validation or held_out.
        language: en or zh.
        n: How many questions.
    """
    questions = generate_questions(QUESTION_SEED, n, language=language, split=split)
    return sum(is_right(loaded, question) for question in questions) / n
