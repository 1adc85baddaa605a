"""Speed and quality of int8 weights beside float32, on SmolLM2-135M-Instruct.

    python tests/benchmarks/int8.py [text file]

Prints milliseconds a token, bytes, and with a text file the perplexity of its first 1,024 tokens.
Run it on a quiet machine. Recorded on 2 shared cores of a Xeon (1 thread, torch 2.13; other work
made all times about 3 times longer than alone, so read them as ratios), best of 3:

    format     MB   ms a token   256 at once   perplexity of the-verdict
    float32   538        271.3       2151 ms       39.006
    bfloat16  269        221.5        719 ms       39.000
    int8      135        266.4       2996 ms       38.949
"""

import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

N_TOKENS = 24


def best_of(times, work):
    """Seconds of the fastest run."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def measure(dtype, text):
    import torch

    from explorer.perplexity import compute_perplexity
    from models import SamplingConfig, generate, load_model

    loaded = load_model("smollm2-135m-instruct", dtype=dtype)
    prompt = loaded.chat.encode([{"role": "user", "content": "Tell me a story."}])
    greedy = SamplingConfig(temperature=0.0)
    ids = torch.arange(256)[None] + 1_000

    def answer(n_tokens):
        return lambda: list(
            generate(loaded.model, prompt, max_new_tokens=n_tokens, sampling=greedy)
        )

    reading = best_of(3, answer(1))
    token = (best_of(3, answer(N_TOKENS)) - reading) / (N_TOKENS - 1)
    many = best_of(3, lambda: loaded.model(ids))
    quality = ""
    if text:
        quality = f"{compute_perplexity(loaded, text, most_tokens=1_024).perplexity:12.3f}"
    megabytes = loaded.info.n_bytes / 1e6
    print(f"    {dtype:9} {megabytes:5.0f} {token * 1e3:12.1f} {many * 1e3:15.0f} ms {quality}")


def main():
    text = Path(sys.argv[1]).read_text(encoding="utf-8") if len(sys.argv) > 1 else ""
    for dtype in ("float32", "bfloat16", "int8"):
        measure(dtype, text)


if __name__ == "__main__":
    main()
