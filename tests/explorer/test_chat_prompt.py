"""From messages to what a model reads: roles that templates refuse, thoughts, a full context."""

import jinja2.sandbox
import pytest

from explorer.chat_prompt import make_prompt
from explorer.conversation import stop_ids_of
from explorer.errors import TokenizerError
from explorer.thoughts import begins_inside, split_thoughts
from models.loading import LoadedModel
from models.tokenizers import ChatTemplate
from tests.components.tiny_chat import ByteTokenizer, build_tiny_chat

# The rules of the families' own templates, written anew in their shape.
STRICT = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate') }}{% endif %}"
)
FAMILIES = {
    "gemma2": STRICT + "<start_of_turn>{{ m['role'] | replace('assistant', 'model') }}\n"
    "{{ m['content'] | trim }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}",
    "mistral": STRICT + "{% if m['role'] == 'user' %}[INST] {{ m['content'] }} [/INST]"
    "{% else %} {{ m['content'] }}</s>{% endif %}{% endfor %}",
    "chatml": "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    "llama3": "{% for m in messages %}<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n"
    "{{ m['content'] | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}",
    "silent": "{% for m in messages if m['role'] != 'system' %}[{{ m['role'] }}]{{ m['content'] }}"
    "{% endfor %}",
}
ENDS = {
    "gemma2": "<end_of_turn>",
    "mistral": "</s>",
    "chatml": "<|im_end|>",
    "llama3": "<|eot_id|>",
    "silent": None,
}
REFUSES = ("gemma2", "mistral")


class SpecialBytes(ByteTokenizer):
    """Bytes, and the special tokens of all these families."""

    def __init__(self) -> None:
        super().__init__()
        ends = [end for end in ENDS.values() if end]
        self.special_tokens = {text: id_ for id_, text in enumerate(ends, start=300)}
        self.vocab_size = 400

    def _token_bytes(self, token: int) -> bytes | None:
        names = {id_: text.encode() for text, id_ in self.special_tokens.items()}
        return names.get(token) or super()._token_bytes(token)

    def _encode(self, text: str, special: bool) -> list[int]:
        pieces = self.split_special(text) if special else [text]
        return [
            id_
            for i, piece in enumerate(pieces)
            for id_ in (
                [self.special_tokens[piece]] if i % 2 else [3 + byte for byte in piece.encode()]
            )
        ]


def build(family: str) -> LoadedModel:
    loaded, tokenizer = build_tiny_chat(), SpecialBytes()
    object.__setattr__(loaded, "chat", ChatTemplate(FAMILIES[family], tokenizer))
    object.__setattr__(loaded, "tokenizer_or_error", tokenizer)
    return loaded


def say(*turns: tuple[str, str]) -> list[dict[str, str]]:
    names = {"s": "system", "u": "user", "a": "assistant"}
    return [{"role": names[role], "content": text} for role, text in turns]


def render_plainly(family: str, messages: list[dict[str, str]]) -> str:
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(FAMILIES[family])
    return template.render(
        messages=messages, add_generation_prompt=True, raise_exception=lambda text: 1 / 0
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_roles_that_a_template_refuses_are_handled_and_told(family: str) -> None:
    loaded = build(family)
    joins, merges = family in (*REFUSES, "silent"), family in REFUSES
    cases = (
        (say(("u", "hi")), say(("u", "hi")), ()),
        (
            say(("s", "Be brief."), ("u", "hi")),
            say(("u", "Be brief.\n\nhi")) if joins else None,
            ("system_joined",) if joins else (),
        ),
        (
            say(("u", "one"), ("u", "two")),
            say(("u", "one\n\ntwo")) if merges else None,
            ("turns_merged",) if merges else (),
        ),
        (
            say(("s", "S"), ("u", "one"), ("u", "two"), ("a", "x"), ("u", "three")),
            say(("u", "S\n\none\n\ntwo"), ("a", "x"), ("u", "three")) if merges else None,
            ("system_joined", "turns_merged") if merges else None,
        ),
        (say(("u", ""), ("a", "x"), ("u", "hi")), None, ()),
        (say(("s", "S"), ("u", ""), ("a", "x"), ("u", "hi")), None, None),
    )
    for messages, changed, notes in cases:
        prompt = make_prompt(loaded, messages)
        if changed is not None or family not in (*REFUSES, "silent"):
            expected = render_plainly(family, changed or messages)
            assert loaded.tokenizer.decode(prompt.ids) == expected
        if notes is not None:
            assert prompt.notes == notes


def test_a_template_that_joins_by_itself_is_told_too() -> None:
    template = (
        "{% set system = messages[0].content if messages[0].role == 'system' else '' %}"
        "{% for m in messages if m.role != 'system' %}<|user|>"
        "{{ system + '\n\n' if loop.first and system }}{{ m.content }}{% endfor %}"
    )
    loaded = build_tiny_chat(template=template)
    assert make_prompt(loaded, say(("s", "S"), ("u", "hi"))).notes == ("system_joined",)
    assert make_prompt(loaded, say(("u", "hi"))).notes == ()


def test_a_template_that_raises_whatever_is_changed_says_its_own_words() -> None:
    loaded = build_tiny_chat(template="{{ raise_exception('never') }}")
    with pytest.raises(TokenizerError, match="never"):
        make_prompt(loaded, say(("s", "S"), ("u", "one"), ("u", "two")))


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_template_writes_behind_an_answer_ends_it(family: str) -> None:
    loaded = build(family)
    end = ENDS[family]
    expected = {loaded.tokenizer.special_tokens[end]} if end else set()
    assert stop_ids_of(loaded) == loaded.stop_ids | expected


def test_when_the_context_is_full_the_oldest_turns_go() -> None:
    """Context 200, a quarter of it free for the answer; each turn here has 42 tokens."""
    loaded = build_tiny_chat()
    turns = [pair for n in range(4) for pair in (("u", f"{n}" * 20), ("a", f"{n}" * 20))]
    messages = say(("s", "sys"), *turns, ("u", "last"))
    prompt = make_prompt(loaded, messages, max_new_tokens=100)
    kept = [messages[0], *messages[1 + prompt.n_dropped :]]
    assert list(prompt.ids) == loaded.chat.encode(kept)
    assert prompt.n_dropped == 2
    assert len(prompt.ids) <= 150 < len(loaded.chat.encode(messages))
    assert make_prompt(loaded, messages, max_new_tokens=1).n_dropped == 0
    long = say(*turns, ("u", "x" * 160))
    assert make_prompt(loaded, long, max_new_tokens=100).n_dropped == 8
    alone = say(("u", "x" * 500))
    assert make_prompt(loaded, alone, max_new_tokens=100).n_dropped == 0


def test_a_prompt_that_leaves_the_model_thinking_is_seen() -> None:
    for ending, inside in (("<think>\n", True), ("<think></think>\n\n", False), ("", False)):
        loaded = build_tiny_chat(template="{{ messages[-1].content }}<|model|>" + ending)
        assert make_prompt(loaded, say(("u", "what is <think>"))).starts_inside is inside
    assert begins_inside("<|model|><think>\n")


@pytest.mark.parametrize(
    ("text", "how", "expected"),
    [
        ("Paris.", {}, ("", "Paris.", False)),
        ("<think>\nHm\n</think>\n\nParis.", {}, ("Hm", "Paris.", False)),
        ("Hm\n</think>\n\nParis.", {}, ("Hm", "Paris.", False)),
        ("Hm", {"starts_inside": True}, ("Hm", "", True)),
        ("<think>Hm</think>A<think>Hm 2</think>B", {}, ("Hm\n\nHm 2", "AB", False)),
        ("A</thi", {"growing": True, "starts_inside": True}, ("A", "", True)),
        ("A</thi", {}, ("", "A</thi", False)),
        ("1 < 2 <", {"growing": True}, ("", "1 < 2 ", False)),
        ("</think>", {}, ("", "", False)),
        ("", {"growing": True}, ("", "", False)),
    ],
)
def test_thoughts_are_taken_out(text: str, how: dict, expected: tuple[str, str, bool]) -> None:
    parts = split_thoughts(text, **how)
    assert (parts.thought, parts.answer, parts.is_open) == expected
