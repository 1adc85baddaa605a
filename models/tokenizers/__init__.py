"""Tokenizers and chat templates: text to ids and back, for every file format we read.

Start with tokenizer.py (what each of them can do). Then the formats: files.py (Hugging Face
folders), gguf_vocabulary.py, rank_files.py (GPT-2, tiktoken, Llama 3), sentencepiece_folder.py
(Llama 2, Mistral, Gemma), and fitting.py (whether it belongs to a model); chat.py (how a
conversation becomes one text), chat_format.py (for models that do not say it themselves) and
streaming.py (how an answer becomes text token by token). To make one: bpe_trainer.py,
characters.py; to write one: saving.py. Nothing here needs torch.
"""

from models.tokenizers.bpe_merger import MergeStep, PairCount
from models.tokenizers.bpe_trainer import (
    BpeVocabulary,
    iterate_merges,
    train_bpe,
)
from models.tokenizers.characters import train_character_tokenizer
from models.tokenizers.chat import ChatTemplate
from models.tokenizers.chat_files import (
    default_chat_template,
    gguf_chat_template,
    load_chat_template,
)
from models.tokenizers.chat_format import CHATML, ChatFormat
from models.tokenizers.files import load_tokenizer
from models.tokenizers.fitting import fit_tokenizer
from models.tokenizers.gguf_vocabulary import load_gguf_tokenizer
from models.tokenizers.rank_files import load_gpt2_tokenizer, load_llama3_tokenizer, load_tiktoken
from models.tokenizers.saving import save_tokenizer
from models.tokenizers.sentencepiece_folder import load_sentencepiece_folder
from models.tokenizers.streaming import StreamDecoder
from models.tokenizers.tokenizer import Tokenizer

__all__ = [
    "CHATML",
    "ChatFormat",
    "BpeVocabulary",
    "ChatTemplate",
    "MergeStep",
    "PairCount",
    "StreamDecoder",
    "Tokenizer",
    "default_chat_template",
    "fit_tokenizer",
    "gguf_chat_template",
    "iterate_merges",
    "load_chat_template",
    "load_gguf_tokenizer",
    "load_gpt2_tokenizer",
    "load_llama3_tokenizer",
    "load_sentencepiece_folder",
    "load_tiktoken",
    "load_tokenizer",
    "save_tokenizer",
    "train_bpe",
    "train_character_tokenizer",
]
