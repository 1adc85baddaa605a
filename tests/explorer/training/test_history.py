"""What a page is told about a run while it goes on."""

from explorer.training.event_log import EventLog
from explorer.training.events import Started, Step
from explorer.training.history import RunHistory, choose_points


def write_run(path, *, peak, n_steps=4):
    with EventLog(path) as log:
        log.append(
            Started(
                step=0,
                at=0.0,
                n_steps=10,
                n_parameters=7,
                n_training_tokens=70,
                n_validation_tokens=30,
                tokens_per_step=50,
                steps_per_epoch=3,
                flops_per_token=6.0,
                peak_flops_per_s=peak,
                device="cpu",
            )
        )
        for step in range(1, n_steps + 1):
            log.append(
                Step(
                    step=step,
                    at=float(step),
                    epoch=0.1,
                    tokens=50 * step,
                    loss=2.0 - 0.1 * step,
                    learning_rate=0.1,
                    gradient_norm=1.0,
                    duration_s=0.5,
                )
            )
    history = RunHistory(path)
    history.refresh()
    return history


def test_speed_share_and_time_left_follow_from_the_events(tmp_path):
    history = write_run(tmp_path / "events.jsonl", peak=1_200.0)
    assert history.compute_tokens_per_s() == 100.0
    assert history.compute_mfu() == 0.5
    assert history.compute_seconds_left() == 6.0


def test_a_share_above_one_is_not_told(tmp_path):
    """The machine was busy when its peak was measured: 271 % of it means nothing."""
    assert write_run(tmp_path / "events.jsonl", peak=200.0).compute_mfu() is None


def test_a_later_beginning_takes_lost_steps_back(tmp_path):
    path = tmp_path / "events.jsonl"
    history = write_run(path, peak=1.0)
    with EventLog(path) as log:
        log.append(
            Started(
                step=2,
                at=9.0,
                n_steps=10,
                n_parameters=7,
                n_training_tokens=70,
                n_validation_tokens=30,
                tokens_per_step=50,
                steps_per_epoch=3,
                flops_per_token=6.0,
                peak_flops_per_s=1.0,
                device="cpu",
                lost_steps=2,
            )
        )
    history.refresh()
    assert [event.step for event in history.steps] == [1, 2]
    assert history.lost_steps == 2


def test_of_a_long_curve_lowest_and_highest_of_each_block_stay():
    values = [0.0] * 1_000
    values[501], values[777] = 9.0, -9.0
    places = choose_points(values, 100)
    assert len(places) <= 100
    assert {501, 777} <= set(places)
    assert places == sorted(places)
