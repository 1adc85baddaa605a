"""Rows that all objectives can learn from."""

from explorer.datasets.examples import Example, Prompt
from explorer.datasets.splits import Parts


def draw_parts(n: int = 12) -> Parts:
    examples = [
        Example(
            row=i,
            text=f"Ada has {'red' if i % 2 else 'blue'} {i}",
            label="red" if i % 2 else "blue",
            prompt=Prompt(instruction=f"Who has {i}?"),
            answer=f"Ada has {i}.",
            rejected=f"Not {i}!",
        )
        for i in range(n)
    ]
    return Parts(
        training=tuple(examples[: n - 6]),
        validation=tuple(examples[n - 6 : n - 3]),
        test=tuple(examples[n - 3 :]),
    )
