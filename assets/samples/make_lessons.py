"""Writes the data sets of the lessons on fine-tuning.

python assets/samples/make_lessons.py
"""

import sys
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent.parent))

if __name__ == "__main__":
    from explorer.starter.lessons import SIZES, choice_lines, lesson_lines

    for name in SIZES:
        (FOLDER / f"{name}.jsonl").write_text(lesson_lines(name), encoding="utf-8", newline="\n")
    (FOLDER / "choices.jsonl").write_text(choice_lines(), encoding="utf-8", newline="\n")
