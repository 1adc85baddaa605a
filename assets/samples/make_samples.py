"""Writes the sample texts: short stories of one small village, from a seeded generator.

    python assets/samples/make_samples.py

The grammar is small on purpose: a model of under a million parameters learns it within a minute,
and whether it did can be read at a glance. Who owns what stays the same within a story, so that a
model that only knows which word follows which is found out.
"""

import random
from pathlib import Path

FOLDER = Path(__file__).parent
N_STORIES = {"village": 240, "village-zh": 300}

NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ivo", "Juno")
ANIMALS = ("cat", "dog", "goat", "hen", "pony", "duck", "frog", "mouse")
COLOURS = ("red", "blue", "green", "yellow", "white", "black", "brown", "grey")
THINGS = ("ball", "boat", "kite", "drum", "lamp", "book", "cup", "hat", "bell", "key")
PLACES = ("garden", "market", "river", "forest", "school", "mill", "bridge", "hill")
WEATHER = ("sunny", "rainy", "windy", "snowy", "foggy")
FEELINGS = ("happy", "sad", "tired", "proud", "hungry", "curious")
NUMBERS = ("two", "three", "four", "five", "six")

NAMES_ZH = ("小明", "小红", "阿宝", "安安", "乐乐", "豆豆", "天天", "晓月")
ANIMALS_ZH = ("猫", "狗", "山羊", "母鸡", "小马", "鸭子", "青蛙", "老鼠")
COLOURS_ZH = ("红色", "蓝色", "绿色", "黄色", "白色", "黑色")
THINGS_ZH = ("球", "小船", "风筝", "鼓", "灯", "书", "杯子", "帽子", "铃铛", "钥匙")
PLACES_ZH = ("花园", "市场", "河边", "森林", "学校", "磨坊", "桥上", "山上")
WEATHER_ZH = ("晴朗", "下雨", "刮风", "下雪", "起雾")
FEELINGS_ZH = ("高兴", "难过", "累了", "骄傲", "饿了", "好奇")


def tell_story(draw: random.Random) -> str:
    """One story in English."""
    one, two = draw.sample(NAMES, 2)
    animal, colour, thing = draw.choice(ANIMALS), draw.choice(COLOURS), draw.choice(THINGS)
    place, other_place = draw.sample(PLACES, 2)
    count = draw.choice(NUMBERS)
    middle = [
        f"{two} has a {animal} and takes it to the {place} every day.",
        f"The {animal} looks at the {colour} {thing} and wants to play.",
        f'"Is that your {thing}?" asks {two}. "Yes, the {colour} {thing} is mine," says {one}.',
        f"At the {place} {one} meets {two}, who is {draw.choice(FEELINGS)}.",
        f"{one} counts {count} birds over the {place}.",
        f"They walk from the {place} to the {other_place} and sing.",
        f"Then the {colour} {thing} falls into the grass near the {other_place}.",
        f"{two} looks for it under {count} trees, and the {animal} helps.",
    ]
    kept = [s for s in middle if draw.random() < 0.6] or middle[:2]
    lines = [
        f"{one} lives near the {other_place} and has a {colour} {thing}.",
        f"It is a {draw.choice(WEATHER)} day, and {one} goes to the {place}.",
        *kept,
        f"In the evening {one} takes the {colour} {thing} home and is {draw.choice(FEELINGS)}.",
        f"Who has the {colour} {thing}? {one} has it.",
    ]
    return " ".join(lines)


def tell_story_zh(draw: random.Random) -> str:
    """One story in Chinese."""
    one, two = draw.sample(NAMES_ZH, 2)
    animal, colour, thing = draw.choice(ANIMALS_ZH), draw.choice(COLOURS_ZH), draw.choice(THINGS_ZH)
    place, other_place = draw.sample(PLACES_ZH, 2)
    middle = [
        f"{two}有一只{animal}，每天带它去{place}。",
        f"{animal}看着{colour}的{thing}，想一起玩。",
        f"{two}问：“这是你的{thing}吗？”{one}说：“是的，{colour}的{thing}是我的。”",
        f"在{place}，{one}遇见了{two}，{two}今天很{draw.choice(FEELINGS_ZH)}。",
        f"他们从{place}走到{other_place}，一路唱歌。",
        f"后来{colour}的{thing}掉在{other_place}的草里。",
        f"{two}到处找，{animal}也来帮忙。",
    ]
    kept = [s for s in middle if draw.random() < 0.6] or middle[:2]
    lines = [
        f"{one}有一个{colour}的{thing}。",
        f"今天{draw.choice(WEATHER_ZH)}，{one}去了{place}。",
        *kept,
        f"晚上{one}带着{colour}的{thing}回家，心里很{draw.choice(FEELINGS_ZH)}。",
        f"{colour}的{thing}是谁的？是{one}的。",
    ]
    return "".join(lines)


def write_text(name: str) -> str:
    """The whole text of a sample, one story a line."""
    draw = random.Random(123)
    tell = tell_story_zh if name.endswith("-zh") else tell_story
    return "\n".join(tell(draw) for _ in range(N_STORIES[name])) + "\n"


if __name__ == "__main__":
    for name in N_STORIES:
        (FOLDER / f"{name}.txt").write_text(write_text(name), encoding="utf-8", newline="\n")
