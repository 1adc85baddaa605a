r"""How Llama's chat models write a conversation, for files in Meta's layout without a template.

Llama 3 gives every message a header of its own and an end; Llama 2 marks the user's turns with
plain text, and puts the system message inside the first of them:

    <|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>
    <s>[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\nHi [/INST] Hello! </s><s>[INST] ...

Source: the code released with Llama 2 (2023) and with Llama 3 (2024). The templates of Llama 3.1
and 3.2 add lines with dates; files that have those bring their template.
"""

from models.tokenizers.chat_format import CHATML, ChatFormat

LLAMA3 = ChatFormat(
    name="Llama 3",
    source="llama3, example of a dialog prompt (2024)",
    template=(
        "{{ bos_token }}"
        "{% for message in messages %}"
        "{{ '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' }}"
        "{{ message.content | trim + '<|eot_id|>' }}"
        "{% endfor %}"
        "{% if add_generation_prompt %}"
        "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}"
        "{% endif %}"
    ),
    needs=("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>"),
    ends=("<|eot_id|>",),
)
LLAMA2 = ChatFormat(
    name="Llama 2",
    source="llama, chat_completion (2023)",
    template=(
        "{% set first = 1 if messages[0].role == 'system' else 0 %}"
        "{% for message in messages[first:] %}"
        "{% if message.role != ('assistant' if loop.index0 % 2 else 'user') %}"
        "{{ raise_exception('After an optional system message, user and assistant take turns') }}"
        "{% endif %}"
        "{% if message.role == 'assistant' %}"
        "{{ ' ' + message.content | trim + ' ' + eos_token }}"
        "{% else %}"
        "{{ bos_token + '[INST] ' }}"
        "{% if loop.first and first %}"
        "{{ ('<<SYS>>\n' + messages[0].content + '\n<</SYS>>\n\n' + message.content) | trim }}"
        "{% else %}{{ message.content | trim }}{% endif %}"
        "{{ ' [/INST]' }}"
        "{% endif %}"
        "{% endfor %}"
    ),
    needs=("<s>", "</s>"),
    lacks=("[INST]", "<|im_start|>"),
    marks_word_starts=True,
)
CHAT_FORMATS = (LLAMA3, LLAMA2, CHATML)
