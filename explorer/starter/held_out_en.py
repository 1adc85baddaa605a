"""English templates of the held-out text: other sentences for the same kinds of scene.

No sentence of it, with its names and keywords blanked out, stands in the training text. Questions
use verbs and forms that the training text knows from elsewhere; the answer takes up the words of
the question, as all answers there do.
"""

from __future__ import annotations

from explorer.starter.phrasebook import Ask, Phrasebook, Story

_FACTS = {
    "owns": (
        "In the hands of {A} you can see {x.a}.",
        "{A.His} {G} bought {x.a} for {A}.",
        "If you look for {x.the}, ask {A}, for it is {A}'s.",
    ),
    "counts": (
        "In the sack of {A} there are {g}.",
        "{A} put {g} on the table.",
    ),
    "lives": (
        "The house of {A} is {h.in}.",
        "When {A} goes home, {A.he} goes to a house {h.in}.",
    ),
    "is_at": (
        "You can find {A} {p.in}.",
        "{A} is playing {p.in} right now.",
    ),
    "likes": (
        "{A} is always happy when there is {f}.",
        "Nothing tastes better to {A} than {f}.",
    ),
    "pet": (
        "{A} goes for walks with {n.a}, and {v} is its name.",
        "At {A}'s house there is {n.a} that is called {v}.",
    ),
    "friend": ("{A} likes nobody better than {A.his} friend {B}.",),
    "wears": (
        "You can see {y.a} on {A} today.",
        "{A} came here in {y.a}.",
    ),
}
_ASKS = {
    "owns": (
        Ask(kind="who", question="Who took {x.the}?", answer="{A} took {x.the}.", value="A"),
        Ask(
            kind="colour",
            question="What colour is the {x.noun} of {A}?",
            answer="The {x.noun} of {A} is {x.colour}.",
            value="x.colour",
        ),
    ),
    "counts": (
        Ask(
            kind="count",
            question="How many {g.s} does {A} carry?",
            answer="{A} carries {g}.",
            value="g.count",
        ),
        Ask(kind="who", question="Who keeps {g}?", answer="{A} keeps {g}.", value="A"),
    ),
    "lives": (
        Ask(
            kind="where",
            question="Where is the house of {A}?",
            answer="The house of {A} is {h.in}.",
            value="h",
        ),
        Ask(
            kind="who",
            question="Who has a house {h.in}?",
            answer="{A} has a house {h.in}.",
            value="A",
        ),
    ),
    "is_at": (
        Ask(
            kind="where",
            question="Where is {A} playing?",
            answer="{A} is playing {p.in}.",
            value="p",
        ),
        Ask(kind="who", question="Who was seen {p.in}?", answer="{A} was seen {p.in}.", value="A"),
    ),
    "likes": (
        Ask(
            kind="what",
            question="What does {A} want to eat?",
            answer="{A} wants to eat {f}.",
            value="f",
        ),
        Ask(kind="who", question="Who is fond of {f}?", answer="{A} is fond of {f}.", value="A"),
    ),
    "pet": (
        Ask(
            kind="name",
            question="What is the {n} of {A} called?",
            answer="The {n} of {A} is called {v}.",
            value="v",
        ),
        Ask(
            kind="who", question="Who walks with {n.a}?", answer="{A} walks with {n.a}.", value="A"
        ),
    ),
    "friend": (
        Ask(
            kind="who",
            question="Who is the best friend of {A}?",
            answer="The best friend of {A} is {B}.",
            value="B",
        ),
    ),
    "wears": (
        Ask(kind="what", question="What did {A} put on?", answer="{A} put on {y.a}.", value="y"),
        Ask(kind="who", question="Who put on {y.a}?", answer="{A} put on {y.a}.", value="A"),
    ),
}
_STORIES = (
    Story(
        plot="the bridge of stones",
        steps=(
            "One time {A} and {B} were playing near the water {p.in}, where {A} had left {x.a}.",
            "The water had become deep, and the {x.noun} was on the other side.",
            '"We need a way across," said {B}, and looked around for big stones.',
            "They put one stone after the other into the water until they could walk over.",
            "{B} went first, took the {x.noun} and brought it back to {A}.",
            '"Without you I would have lost it," said {A}, and they ran home to eat {f}.',
        ),
        asks=(
            Ask(
                kind="who",
                question="Who brought the {x.noun} back?",
                answer="{B} brought the {x.noun} back.",
                value="B",
            ),
            Ask(
                kind="colour",
                question="Which colour did the {x.noun} have?",
                answer="The {x.noun} had the colour {x.colour}.",
                value="x.colour",
            ),
            Ask(
                kind="what",
                question="What did they run home to eat?",
                answer="They ran home to eat {f}.",
                value="f",
            ),
        ),
        openings=("who",),
        endings=(),
    ),
    Story(
        plot="the lost pet",
        steps=(
            "The {n} of {A} had a strange habit: {v} ran away whenever the door was open.",
            "This time {v} had gone as far as {p}, and nobody in the house knew it.",
            "{A} called the name of the {n} in every street, but it did not come.",
            "An old man told {A.him} that he had seen {n.a} with a child called {B}.",
            "And there they were: {B} had given {v} water and was waiting for somebody to come.",
            '"You were good to my {n}, so please visit us soon," said {A} to {B}.',
        ),
        asks=(
            Ask(
                kind="who",
                question="Who gave water to {v}?",
                answer="{B} gave water to {v}.",
                value="B",
            ),
            Ask(
                kind="where",
                question="How far had {v} gone?",
                answer="{v} had gone as far as {p}.",
                value="p",
            ),
        ),
        openings=("who",),
        endings=("feel",),
    ),
    Story(
        plot="the snow",
        steps=(
            "It had snowed all night, and {p} was white and silent.",
            "{A} came out in {z.a}, and {B} came out with {g} in a sack.",
            "First they made a big man of snow and gave him eyes of stone.",
            "Then {B} gave {A} some of the {g.s}, because snow makes children hungry.",
            "{m.A} watched them from a branch and waited for its part.",
            "When it got dark, the man of snow stood there alone, but he was smiling.",
        ),
        asks=(
            Ask(
                kind="who",
                question="Who came out with {g}?",
                answer="{B} came out with {g}.",
                value="B",
            ),
            Ask(
                kind="who",
                question="Who came out in {z.a}?",
                answer="{A} came out in {z.a}.",
                value="A",
            ),
        ),
        openings=("friends",),
        endings=("tell",),
    ),
    Story(
        plot="the old animal",
        steps=(
            "Far away {q.in} there was {b.a} that was old and could not see well.",
            "Every day {m.a} flew or climbed up to its ear and told it what the world looked like.",
            '"The sky is {x.colour} this evening," the {m} would say, "and the trees are full of light."',
            "Then the {b} could see it all, and it was not sad about its eyes.",
            "In return it carried the {m} on its back when the way was long.",
            "So each of the two gave what it had, and both had enough.",
        ),
        asks=(
            Ask(
                kind="what",
                question="Which animal carried the {m}?",
                answer="The {b} carried the {m}.",
                value="b",
            ),
            Ask(
                kind="colour",
                question="Which colour did the sky have?",
                answer="The sky had the colour {x.colour}.",
                value="x.colour",
            ),
        ),
        openings=(),
        endings=(),
    ),
)


_OPENINGS = {
    "who": (
        "Have you heard of {A}, the {A.kind} from the house {h.in}?",
        "Everybody {h.in} knew a {A.kind} whose name was {A}.",
    ),
    "friends": ("Whoever saw {A} also saw {B}, for the two did everything together.",),
}
_ENDINGS = {
    "feel": ("In the evening {A} thought: what luck I had today!",),
    "tell": ('"You must tell me more tomorrow," said {A}\'s {G} before the light went out.',),
}
_DIALOGUES = (
    Story(
        plot="the way",
        steps=(
            '"Excuse me, {A}, how do I get {p.to}?" {B} wanted to know.',
            '"Walk straight on until you see a tree, then turn left," said {A}.',
            '"And why do you carry {x.a}?" "I want to give it to {C}," said {B}.',
            '"Then hurry up, because {C} is leaving soon!" said {A}.',
        ),
        asks=(
            Ask(
                kind="who",
                question="Who will get the {x.noun}?",
                answer="{C} will get the {x.noun}.",
                value="C",
            ),
        ),
    ),
)
_SONGS = (
    Story(
        plot="clap",
        steps=(
            "Clap your hands for {A} and {B},\nclap your hands and count to three.",
            "Up and down and up we fly,\nbirds and children in the sky.",
            "Tap your feet for the {c} and the {n},\ntap your feet and start again.",
        ),
    ),
)
_CHANGES = (
    Story(
        plot="basket",
        steps=(
            "First {A} puts {k} on a tray, then {B} puts {l.count} more next to them. So there are {s} on the tray.",
        ),
        asks=(
            Ask(
                kind="count",
                question="How many {k.s} are on the tray?",
                answer="There are {s} on the tray.",
                value="s",
            ),
        ),
    ),
)


def held_out_phrasebook() -> Phrasebook:
    """All English templates of the held-out text."""
    return Phrasebook(
        openings=_OPENINGS,
        endings=_ENDINGS,
        stories=_STORIES,
        facts=_FACTS,
        asks=_ASKS,
        frames=(
            "Look around and see who is here today.",
            "Some facts about the children of our street:",
        ),
        dialogues=_DIALOGUES,
        games=("Now this row, word by word:", "What I say, you say after me:"),
        again=("And because it was so nice, we tell it twice:",),
        songs=_SONGS,
        sums=(
            "If you put {k.number} and {l.number} together, you get {s.number}.",
            "When {k.number} go away from {s.number}, then {l.number} stay.",
        ),
        changes=_CHANGES,
        list_heads=("What {A} wants to take on the journey:", "These things were lost on the way:"),
        list_asks=(
            Ask(
                kind="what",
                question="Which one is at the top?",
                answer="{first} is at the top.",
                value="first",
            ),
            Ask(
                kind="what",
                question="Which one is at the end?",
                answer="{last} is at the end.",
                value="last",
            ),
        ),
        pair_heads=("Say what goes together:",),
    )
