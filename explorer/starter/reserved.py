"""Forms that the pretraining text never contains, because fine-tuning is to teach them.

A base model that had seen them would make a lesson on fine-tuning prove nothing.
"""

from __future__ import annotations

RESERVED_FORMS = (
    # the separator between documents belongs to the tokenizer
    "<|",
    # instructions and their answers
    "###",
    "Instruction",
    "Response",
    "Input:",
    "Output:",
    "Question:",
    "Answer:",
    "指令",
    "回答：",
    "输入",
    "输出",
    "问题：",
    # turns of a chat
    "User",
    "Assistant",
    "System:",
    "Human:",
    "用户",
    "助手",
    "系统",
    # tasks
    "Translate",
    "translation",
    "polite",
    "Rewrite",
    "Summar",
    "Classify",
    "翻译",
    "礼貌",
    "改写",
    "总结",
    "分类",
    # labels
    "positive",
    "negative",
    "sentiment",
    "spam",
    "Label",
    "正面",
    "负面",
    "情感",
    "标签",
    # other languages of a lesson on tasks: a language model that speaks like a pirate
    "pirate",
    "Yoda",
)
