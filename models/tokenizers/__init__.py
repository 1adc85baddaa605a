"""Tokenizers and chat templates: text to ids and back, for every file format we read.

Start with tokenizer.py (what each of them can do). Then the formats: files.py (Hugging Face
folders), gguf_vocabulary.py, rank_files.py (GPT-2, tiktoken); chat.py (how a conversation becomes
one text) and streaming.py (how an answer becomes text token by token). Nothing here needs torch.
"""

from models.tokenizers.chat import ChatTemplate
from models.tokenizers.chat_files import gguf_chat_template, load_chat_template
from models.tokenizers.files import load_tokenizer
from models.tokenizers.gguf_vocabulary import load_gguf_tokenizer
from models.tokenizers.rank_files import load_gpt2_tokenizer, load_tiktoken
from models.tokenizers.streaming import StreamDecoder
from models.tokenizers.tokenizer import Tokenizer

__all__ = [
    "ChatTemplate",
    "StreamDecoder",
    "Tokenizer",
    "gguf_chat_template",
    "load_chat_template",
    "load_gguf_tokenizer",
    "load_gpt2_tokenizer",
    "load_tiktoken",
    "load_tokenizer",
]
