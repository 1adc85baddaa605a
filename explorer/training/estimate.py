"""What a run will cost, from one step of it on this machine.

    minutes   steps x time of a step + evaluations + samples + checkpoints, each measured once
    memory    the most that the process took during a step, an evaluation and a sample
    disk      checkpoints: 4 bytes a weight, and twice that for the moments of the newest two
    energy    time x power of the machine; money by a price an hour

The probe runs in the process that would train, so that the page stays quick and the memory counted
is the run's alone.
"""

from __future__ import annotations

import math
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from explorer.training.run_config import RunConfig
from models.errors import ExplorerError

# A step longer than this is timed once more instead of three times.
LONG_STEP_S = 2.0
SAMPLED_TOKENS = 4
WRITTEN_BYTES = 8 * 10**6
BYTES_PER_NUMBER = 4
BUSY_SHARE = 0.2  # of all processors, taken by others
# Touvron et al. 2023 (arXiv 2307.09288), table 2: A100 hours of Llama 2 7B, 2 trillion tokens.
LLAMA2_7B_GPU_HOURS = 184_320
GPUS_PER_MACHINE = 8


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One step, measured.

    Args:
        step_s: An optimiser step.
        evaluation_batch_s: A forward pass of a batch.
        token_s: A token of a sample.
        peak_bytes: The most memory that the process took.
        write_bytes_per_s: How fast the disk takes what is flushed to it.
        others_share: Of this machine's processors, what other programs took meanwhile, 0 to 1.
    """

    step_s: float
    evaluation_batch_s: float
    token_s: float
    peak_bytes: int
    write_bytes_per_s: float
    others_share: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What a run will cost.

    Args:
        duration_s: From Start to the end.
        step_s: Of each optimiser step.
        n_parameters: Numbers that are trained.
        peak_bytes: Memory of the process at most.
        available_bytes: Memory that is free now.
        disk_bytes: All its files at the end.
        tokens: Tokens that it reads.
        flops: Floating-point operations of all passes.
        energy_kwh: At the given power.
        price: At the given price an hour.
        others_share: What other programs took of the processors while the step was measured.
    """

    duration_s: float
    step_s: float
    n_parameters: int
    peak_bytes: int
    available_bytes: int
    disk_bytes: int
    tokens: int
    flops: float
    energy_kwh: float
    price: float
    others_share: float = 0.0

    @property
    def was_busy(self) -> bool:
        """Whether other programs made the measured step slower than the run may be."""
        return self.others_share >= BUSY_SHARE

    @property
    def tokens_per_parameter(self) -> float:
        """Hoffmann et al. 2022 (arXiv 2203.15556) found about 20 to be the best use of compute."""
        return self.tokens / self.n_parameters

    @property
    def fits(self) -> bool:
        """Whether the memory is free now."""
        return self.peak_bytes <= self.available_bytes


def estimate_run(
    config: RunConfig,
    probe: Probe,
    *,
    n_evaluation_batches: int,
    available_bytes: int,
    watts: float,
    price_per_hour: float,
) -> Estimate:
    """Scale a probe up to the whole run.

    Args:
        config: The run.
        probe: One step of it.
        n_evaluation_batches: Batches of both parts that one evaluation reads.
        available_bytes: Memory that is free now.
        watts: Power of the machine under load.
        price_per_hour: What the machine costs, in any currency.
    """
    from models.costs import count_operations
    from models.counting import count_parameters

    n_parameters = count_parameters(config.model).unique
    watch = config.watch
    n_saved = _times(watch.save_every, config.n_steps)
    weight_bytes = n_parameters * BYTES_PER_NUMBER
    saved_bytes = n_saved * 3 * weight_bytes  # each is written with both moments
    duration_s = (
        config.n_steps * probe.step_s
        + _times(watch.evaluate_every, config.n_steps)
        * n_evaluation_batches
        * probe.evaluation_batch_s
        + _times(watch.sample_every, config.n_steps)
        * len(watch.prompts)
        * watch.sample_tokens
        * probe.token_s
        + saved_bytes / probe.write_bytes_per_s
    )
    kept = n_saved if watch.keep is None else min(watch.keep, n_saved)
    tokens = config.n_steps * config.data.tokens_per_step
    forward = count_operations(config.model, (config.data.context + 1) // 2).total
    return Estimate(
        duration_s=duration_s,
        step_s=probe.step_s,
        n_parameters=n_parameters,
        peak_bytes=probe.peak_bytes,
        available_bytes=available_bytes,
        disk_bytes=weight_bytes * (kept + 2 * min(2, kept)),
        tokens=tokens,
        flops=3.0 * forward * tokens,
        energy_kwh=watts * duration_s / 3_600_000,
        price=price_per_hour * duration_s / 3_600,
        others_share=probe.others_share,
    )


def price_llama2_7b(price_per_machine_hour: float) -> float:
    """What pretraining Llama 2 7B costs at a price for an hour of a machine with eight GPUs."""
    return LLAMA2_7B_GPU_HOURS / GPUS_PER_MACHINE * price_per_machine_hour


def answer_probe(request: Mapping[str, Any]) -> dict[str, Any]:
    """Measure a step of the configuration in a request; a fault becomes a message.

    Args:
        request: `config`: as in config.json of a run.
    """
    from explorer.training.run_config_json import run_config_from_json

    try:
        return {"probe": asdict(measure_step(run_config_from_json(request["config"])))}
    except ExplorerError as error:
        return {"error": error.message, "code": error.code, "facts": _texts(error.facts)}
    except (MemoryError, RuntimeError) as error:
        return {"error": f"one step could not be taken: {error}", "code": "probe-failed"}


def measure_step(config: RunConfig) -> Probe:
    """Take a few steps of a run on random tokens.

    Args:
        config: The run; its files are not needed.
    """
    from explorer.training.devices import choose_device
    from explorer.training.distributed import Processes
    from explorer.training.objectives import objective_of
    from explorer.training.objectives.objective import TrainingData
    from explorer.training.steps import take_step
    from explorer.training.training_state import make_state

    objective = objective_of(config)
    examples = _random_examples(config)
    others = _OthersClock()
    with _watch_memory() as peak:
        device = choose_device(config.device)
        state = make_state(
            config, TrainingData(examples, examples), Processes(device_type=device.type)
        )

        def step() -> None:
            take_step(state, config, objective.compute_loss_sum, 1e-9)

        first_s = _time(step)  # also makes the optimiser's moments
        n_timed = 1 if first_s > LONG_STEP_S else 3
        step_s = min(_time(step) for _ in range(n_timed))
        batch = examples.batch(range(config.data.batch_size)).to(state.model.device)
        evaluation_batch_s = _time(lambda: _forward(objective.compute_loss_sum, state.model, batch))
        token_s = _time_token(state.model)
        others_share = others.share()
    return Probe(
        step_s=step_s,
        evaluation_batch_s=evaluation_batch_s,
        token_s=token_s,
        peak_bytes=max(peak),
        write_bytes_per_s=_measure_disk(),
        others_share=others_share,
    )


def _random_examples(config: RunConfig) -> Any:
    from explorer.datasets.windows import TokenWindows
    from explorer.training.objectives.pretrain import WindowExamples

    n_tokens = config.data.context * config.data.batch_size * 2 + 1
    ids = np.random.default_rng(0).integers(0, config.model.vocab_size, n_tokens)
    return WindowExamples(TokenWindows(ids, config.data.context))


def _forward(compute_loss_sum: Any, model: Any, batch: Any) -> None:
    import torch

    with torch.no_grad():
        float(compute_loss_sum(model, batch, None, False))


def _time_token(model: Any) -> float:
    import torch

    from models.generation import generate

    n_tokens = min(SAMPLED_TOKENS, model.config.context_length - 1)
    if n_tokens < 1:
        return 0.0
    generator = torch.Generator(model.device).manual_seed(0)
    with torch.no_grad():
        return (
            _time(lambda: list(generate(model, [0], max_new_tokens=n_tokens, generator=generator)))
            / n_tokens
        )


def _time(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


@contextmanager
def _watch_memory() -> Iterator[list[int]]:
    """Memory of this process, looked at every 5 ms: a step is over before the next look at it."""
    process = psutil.Process()
    seen = [process.memory_info().rss]
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(0.005):
            seen.append(process.memory_info().rss)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()
        seen.append(process.memory_info().rss)


class _OthersClock:
    """Counts what processes other than this one take of the processors."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._begun_at, self._own_s = time.perf_counter(), self._read_own()
        psutil.cpu_percent()  # counts from here on

    def share(self) -> float:
        """Of all processors, since the clock was made."""
        busy = psutil.cpu_percent() / 100
        seconds = (time.perf_counter() - self._begun_at) * (psutil.cpu_count() or 1)
        return max(0.0, busy - (self._read_own() - self._own_s) / seconds)

    def _read_own(self) -> float:
        times = self._process.cpu_times()
        return times.user + times.system


def _measure_disk() -> float:
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "probe").open("wb") as file:
        begun = time.perf_counter()
        file.write(bytes(WRITTEN_BYTES))
        file.flush()
        os.fsync(file.fileno())
        return WRITTEN_BYTES / (time.perf_counter() - begun)


def _times(every: int, n_steps: int) -> int:
    """How often something happens: at the start, at intervals, at the end."""
    return 2 if every == 0 else 1 + math.ceil(n_steps / every)


def _texts(facts: Mapping[str, object]) -> dict[str, str]:
    return {key: str(value) for key, value in facts.items()}
