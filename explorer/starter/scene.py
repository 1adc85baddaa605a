"""A scene: who is who and what belongs to whom, drawn anew for each document.

A story has a cast: one word for each role, all different. A description has facts, and no two of
them can be confused: a person has one home, a thing of one colour has one owner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from explorer.starter.dice import Dice
from explorer.starter.lexicon import Lexicon, Name, Noun, Place
from explorer.starter.phrasebook import Phrasebook

Forms = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """The functions that turn words into the forms that templates ask for."""

    person: Callable[[str, Name], Forms]
    thing: Callable[[str, Noun, str], Forms]
    animal: Callable[[str, Noun], Forms]
    place: Callable[[str, Place], Forms]
    counted: Callable[[str, Noun, int], Forms]
    joiner: str


@dataclass(frozen=True, kw_only=True)
class Voice:
    """All that is needed to write in one language for one split."""

    language: str
    lexicon: Lexicon
    phrasebook: Phrasebook
    grammar: Grammar
    times: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One thing that is true in a scene.

    Attributes:
        relation: owns, counts, lives, is_at, likes, pet, friend or wears.
        person: Whom it is about.
        value: The thing, place, food, animal or friend, as the lexicon writes it.
        colour: Of a thing owned or worn.
        count: How many of them.
        name: Of a pet.
    """

    relation: str
    person: str
    value: str
    colour: str = ""
    count: int = 1
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class StatedFact:
    """A fact with the forms of its words."""

    fact: Fact
    words: Mapping[str, str]


def draw_cast(dice: Dice, voice: Voice) -> Forms:
    """One word for each role of a story; all people, animals and places differ."""
    lexicon, grammar = voice.lexicon, voice.grammar
    a, b, c = dice.sample(lexicon.names, 3)
    toy, other = dice.pick(lexicon.toys), dice.pick(lexicon.household)
    first, second, third = dice.sample(lexicon.colours, 3)
    place, other_place = dice.sample(lexicon.outdoors, 2)
    words = {
        **grammar.person("A", a),
        **grammar.person("B", b),
        **grammar.person("C", c),
        "G": dice.pick(lexicon.relatives).word,
        **grammar.thing("x", toy, first),
        **grammar.thing("y", other, second),
        **grammar.thing("z", dice.pick(lexicon.clothes), third),
        **grammar.animal("n", dice.pick(lexicon.pets)),
        **grammar.animal("m", dice.pick(lexicon.small_animals)),
        **grammar.animal("b", dice.pick(lexicon.big_animals)),
        **grammar.animal("c", dice.pick(lexicon.farm_animals)),
        **grammar.place("p", place),
        **grammar.place("q", other_place),
        **grammar.place("o", dice.pick(lexicon.wilds)),
        **grammar.place("i", dice.pick(lexicon.indoors)),
        **grammar.place("h", dice.pick(lexicon.homes)),
        **grammar.counted("g", dice.pick(lexicon.fruits), dice.between(2, 10)),
        **grammar.counted("t", dice.pick(lexicon.trinkets), dice.between(2, 10)),
    }
    words["f"] = dice.pick(lexicon.foods)
    words["v"] = dice.pick(lexicon.pet_names)
    return words | draw_weather(dice, voice)


def draw_weather(dice: Dice, voice: Voice) -> Forms:
    """The weather and the time of day."""
    return {"w": dice.pick(voice.lexicon.weather), "time": dice.pick(voice.times)}


def draw_facts(dice: Dice, voice: Voice, count: int) -> list[StatedFact]:
    """Facts about two to four people that do not contradict each other.

    A person has at most one fact of a relation, and no two people have the same value of it;
    things and numbers of fruits may be of one kind where colour or number tells them apart.
    """
    people = dice.sample(voice.lexicon.names, dice.between(2, 4))
    pairs = [(relation, person) for relation in _MAKERS for person in people]
    facts: list[StatedFact] = []
    for relation, person in dice.shuffled(pairs):
        if len(facts) == count:
            break
        others = [entry.fact for entry in facts if entry.fact.relation == relation]
        if relation == "friend" and others:
            continue
        companion = dice.pick([other for other in people if other is not person])
        facts.append(_draw_fact(relation, person, companion, others, dice, voice))
    return facts


def _draw_fact(
    relation: str, person: Name, companion: Name, others: list[Fact], dice: Dice, voice: Voice
) -> StatedFact:
    """A fact that agrees with the others of its relation."""
    entry = _MAKERS[relation](person, companion, others, dice, voice)
    relative = {"G": dice.pick(voice.lexicon.relatives).word}
    words = voice.grammar.person("A", person) | relative | draw_weather(dice, voice)
    return StatedFact(fact=entry.fact, words={**words, **entry.words})


def _pick_new(dice: Dice, items: Sequence[Noun], others: list[Fact]) -> Noun:
    """A noun that none of the other facts uses."""
    used = {fact.value for fact in others}
    return dice.pick([item for item in items if item.word not in used])


def _pick_like(dice: Dice, items: Sequence[Noun], others: list[Fact]) -> Noun:
    """Half of the time the noun of another fact, which colour or number then tells apart."""
    if others and dice.chance(0.5):
        word = dice.pick(others).value
        return next(item for item in items if item.word == word)
    return _pick_new(dice, items, others)


def _owned(
    person: Name, companion: Name, others: list[Fact], dice: Dice, voice: Voice
) -> StatedFact:
    lexicon = voice.lexicon
    noun = _pick_like(dice, (*lexicon.toys, *lexicon.household), others)
    used = {fact.colour for fact in others}
    colour = dice.pick([colour for colour in lexicon.colours if colour not in used])
    fact = Fact(relation="owns", person=person.word, value=noun.word, colour=colour)
    return StatedFact(fact=fact, words=voice.grammar.thing("x", noun, colour))


def _worn(
    person: Name, companion: Name, others: list[Fact], dice: Dice, voice: Voice
) -> StatedFact:
    noun = _pick_like(dice, voice.lexicon.clothes, others)
    used = {fact.colour for fact in others}
    colour = dice.pick([colour for colour in voice.lexicon.colours if colour not in used])
    fact = Fact(relation="wears", person=person.word, value=noun.word, colour=colour)
    return StatedFact(fact=fact, words=voice.grammar.thing("y", noun, colour))


def _counted(
    person: Name, companion: Name, others: list[Fact], dice: Dice, voice: Voice
) -> StatedFact:
    noun = _pick_like(dice, (*voice.lexicon.fruits, *voice.lexicon.trinkets), others)
    used = {fact.count for fact in others}
    count = dice.pick([number for number in range(2, 13) if number not in used])
    fact = Fact(relation="counts", person=person.word, value=noun.word, count=count)
    return StatedFact(fact=fact, words=voice.grammar.counted("g", noun, count))


def _placed(relation: str, role: str) -> _Maker:
    def make(
        person: Name, companion: Name, others: list[Fact], dice: Dice, voice: Voice
    ) -> StatedFact:
        places = voice.lexicon.homes if relation == "lives" else voice.lexicon.outdoors
        if relation == "is_at":
            places = (*places, *voice.lexicon.indoors)
        used = {fact.value for fact in others}
        place = dice.pick([place for place in places if place.word not in used])
        fact = Fact(relation=relation, person=person.word, value=place.word)
        return StatedFact(fact=fact, words=voice.grammar.place(role, place))

    return make


def _liked(
    person: Name, companion: Name, others: list[Fact], dice: Dice, voice: Voice
) -> StatedFact:
    used = {fact.value for fact in others}
    food = dice.pick([food for food in voice.lexicon.foods if food not in used])
    return StatedFact(
        fact=Fact(relation="likes", person=person.word, value=food), words={"f": food}
    )


def _pet(person: Name, companion: Name, others: list[Fact], dice: Dice, voice: Voice) -> StatedFact:
    noun = _pick_new(dice, voice.lexicon.pets, others)
    used = {fact.name for fact in others}
    name = dice.pick([name for name in voice.lexicon.pet_names if name not in used])
    fact = Fact(relation="pet", person=person.word, value=noun.word, name=name)
    return StatedFact(fact=fact, words=voice.grammar.animal("n", noun) | {"v": name})


def _friend(
    person: Name, companion: Name, others: list[Fact], dice: Dice, voice: Voice
) -> StatedFact:
    fact = Fact(relation="friend", person=person.word, value=companion.word)
    return StatedFact(fact=fact, words=voice.grammar.person("B", companion))


_Maker = Callable[[Name, Name, list[Fact], Dice, Voice], StatedFact]
_MAKERS: Mapping[str, _Maker] = {
    "owns": _owned,
    "counts": _counted,
    "lives": _placed("lives", "h"),
    "is_at": _placed("is_at", "p"),
    "likes": _liked,
    "pet": _pet,
    "friend": _friend,
    "wears": _worn,
}
