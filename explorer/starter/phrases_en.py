"""English facts, questions, games and sums of the training text. Roles: see `phrasebook`."""

from __future__ import annotations

from explorer.starter.more_stories_en import MORE_STORIES
from explorer.starter.phrasebook import Ask, Phrasebook, Story
from explorer.starter.stories_en import ENDINGS, FIRST_STORIES, OPENINGS

_FACTS = {
    "owns": (
        "{A} has {x.a}.",
        "{x.The} belongs to {A}.",
        "{A} owns {x.a}.",
        "[On the table|On the floor|On the shelf|Near the door] there is {x.a}. It belongs to {A}.",
        "{A} got {x.a} from {A.his} {G}.",
        "{A} is playing with {A.his} {x}.",
        "{A} keeps {x.a} [in {A.his} room|under {A.his} bed].",
    ),
    "counts": (
        "{A} has {g}.",
        "{A} [found|bought|got] {g}.",
        "There are {g.s} in {A}'s bag. {A} counts them: {g}.",
        "{A} [carries|keeps] {g} in a bag.",
    ),
    "lives": (
        "{A} lives {h.in}.",
        "{A}'s home is {h.in}.",
        "{A} has a [small|big|nice|bright] room {h.in}, where {A.he} lives.",
        "{A} and {A.his} {G} live {h.in}.",
    ),
    "is_at": (
        "{A} is {p.in}.",
        "[Today|Now|Right now] {A} is {p.in}.",
        "{A} is sitting {p.in}.",
        "{A} went {p.to} and is still there.",
    ),
    "likes": (
        "{A} likes {f}.",
        "{A} loves {f}.",
        "{A}'s favourite food is {f}.",
        "{A} [could eat|eats] {f} every day, because {A.he} likes it.",
    ),
    "pet": (
        "{A} has {n.a} called {v}.",
        "{A}'s {n} is called {v}.",
        "{A} has {n.a}. Its name is {v}.",
        "{v} is {A}'s {n}.",
    ),
    "friend": (
        "{A}'s best friend is {B}.",
        "{A} and {B} are best friends.",
        "{B} is {A}'s best friend.",
    ),
    "wears": (
        "{A} is wearing {y.a}.",
        "{A} wears {y.a} today.",
        "{A} put on {y.a} this morning.",
    ),
}
_ASKS = {
    "owns": (
        Ask(kind="who", question="Who has {x.the}?", answer="{A} has {x.the}.", value="A"),
        Ask(kind="who", question="Who owns {x.the}?", answer="{A} owns {x.the}.", value="A"),
        Ask(kind="who", question="Whose is {x.the}?", answer="{x.The} is {A}'s.", value="A"),
        Ask(
            kind="colour",
            question="What colour is {A}'s {x.noun}?",
            answer="{A}'s {x.noun} is {x.colour}.",
            value="x.colour",
        ),
    ),
    "counts": (
        Ask(
            kind="count",
            question="How many {g.s} does {A} have?",
            answer="{A} has {g}.",
            value="g.count",
        ),
        Ask(kind="who", question="Who has {g}?", answer="{A} has {g}.", value="A"),
    ),
    "lives": (
        Ask(kind="where", question="Where does {A} live?", answer="{A} lives {h.in}.", value="h"),
        Ask(
            kind="where", question="Where is {A}'s home?", answer="{A}'s home is {h.in}.", value="h"
        ),
        Ask(kind="who", question="Who lives {h.in}?", answer="{A} lives {h.in}.", value="A"),
    ),
    "is_at": (
        Ask(kind="where", question="Where is {A}?", answer="{A} is {p.in}.", value="p"),
        Ask(kind="who", question="Who is {p.in}?", answer="{A} is {p.in}.", value="A"),
    ),
    "likes": (
        Ask(kind="what", question="What does {A} like?", answer="{A} likes {f}.", value="f"),
        Ask(
            kind="what",
            question="What does {A} like to eat?",
            answer="{A} likes to eat {f}.",
            value="f",
        ),
        Ask(kind="who", question="Who likes {f}?", answer="{A} likes {f}.", value="A"),
    ),
    "pet": (
        Ask(
            kind="name",
            question="What is {A}'s {n} called?",
            answer="{A}'s {n} is called {v}.",
            value="v",
        ),
        Ask(
            kind="what", question="Which animal does {A} have?", answer="{A} has {n.a}.", value="n"
        ),
        Ask(kind="who", question="Who has {n.a}?", answer="{A} has {n.a}.", value="A"),
    ),
    "friend": (
        Ask(
            kind="who",
            question="Who is {A}'s best friend?",
            answer="{A}'s best friend is {B}.",
            value="B",
        ),
    ),
    "wears": (
        Ask(
            kind="what", question="What is {A} wearing?", answer="{A} is wearing {y.a}.", value="y"
        ),
        Ask(
            kind="who", question="Who is wearing {y.a}?", answer="{A} is wearing {y.a}.", value="A"
        ),
    ),
}
_FRAMES = (
    "",
    "",
    "It is a {w} {time}.",
    "[Here are|Look at|These are] some children.",
    "[Let me tell you|I will tell you] about some friends.",
    "It is {time}, and the weather is {w}.",
    "[Listen|Listen well|Read this]!",
)
_DIALOGUES = (
    Story(
        plot="what do you have",
        steps=(
            '"[Hello|Good morning|Hi], {B}!" [said|called] {A}. "[Hello|Good morning|Hi], {A}! [How are you|How nice to see you]!" said {B}.',
            '"[What do you have there|What is in your bag|What is that]?" asked {A}. "[It is|This is] {x.a}," said {B}. "[My {G} gave it to me|I found it in the attic|I got it yesterday]."',
            '"[May I look at it|Can I see it|May I hold it]?" "[Of course|Sure|Yes, but be careful]!"',
            '{A} [looked at|took] the {x.noun} [for a while|with care]. "[It is beautiful|I like the colour|I want one too]," said {A}.',
            '"[Let us play with it|Come, let us go {p.to} and play]," said {B}. And [they went off together|so they did].',
        ),
        asks=(
            Ask(
                kind="who",
                question="Whose {x.noun} is it?",
                answer="It is {B}'s {x.noun}.",
                value="B",
            ),
            Ask(
                kind="colour",
                question="What colour is the {x.noun}?",
                answer="The {x.noun} is {x.colour}.",
                value="x.colour",
            ),
        ),
    ),
    Story(
        plot="where are you going",
        steps=(
            '"Where are you going, {A}?" asked {B}. "I am going {p.to}," said {A}. "[Do you want to come with me|Will you come too]?"',
            '"[What will you do there|Why do you go there]?" asked {B}. "I [want to see the {m.s}|want to look for {t.s}|have to meet {C}]," said {A}.',
            '"[I cannot come|I have no time], I have to help my {G}," said {B}. "[What a pity|That is a pity]! [Then we will meet tomorrow|Maybe another day]."',
            '"[Goodbye|See you tomorrow], {A}!" "[Goodbye|See you], {B}!" {A} [waved|smiled] and walked on.',
        ),
        asks=(
            Ask(
                kind="where",
                question="Where is {A} going?",
                answer="{A} is going {p.to}.",
                value="p",
            ),
            Ask(kind="who", question="Who has no time?", answer="{B} has no time.", value="B"),
        ),
    ),
    Story(
        plot="what do you like",
        steps=(
            '"What do you like best?" {A} asked. "I like {f} best," said {B}. "And you?"',
            '"I like {g.s}," said {A}. "[Do you like animals too|And which animal do you like]?" "[Oh yes|Of course], I like the {c} best," said {B}.',
            '"[Why|Why is that]?" "[Because it is so funny|Because it is so friendly|Because we have one at home]." "I like the {b}," said {A}. "[It is strong|It is so big|It is beautiful]."',
            "[They talked until it was dark.|They talked and laughed all {time}.|Then {B} had to go home.]",
        ),
        asks=(
            Ask(
                kind="what",
                question="What does {B} like best?",
                answer="{B} likes {f} best.",
                value="f",
            ),
            Ask(
                kind="what",
                question="Which animal does {A} like?",
                answer="{A} likes the {b}.",
                value="b",
            ),
        ),
    ),
    Story(
        plot="a guessing game",
        steps=(
            '"[I am thinking of an animal|Let us play a game. I am thinking of an animal]," said {A}. "[Can you guess it|What is it]?"',
            '"Is it {c.a}?" asked {B}. "No, it is not {c.a}." "Is it {b.a}?" "No, [it is smaller|not that big]."',
            '"[Does it live here|Do I know it]?" "Yes, [you see it often|you know it well]." "Then it is {n.a}!" said {B}. "Yes, that is right! It is {n.a}!" said {A}.',
            '"[Now it is my turn|Now you guess]," said {B}[| and thought for a moment].',
        ),
        asks=(
            Ask(kind="what", question="Which animal was it?", answer="It was {n.a}.", value="n"),
            Ask(kind="who", question="Who guessed right?", answer="{B} guessed right.", value="B"),
        ),
    ),
)
_SONGS = (
    Story(
        plot="hop along",
        steps=(
            "[Run|Hop|Come|Dance], little {m}, [run|hop|come|dance] with me,\n{p.in}, under the [old|tall|big] tree.",
            "La la la, the sun is high,\nla la la, we wave goodbye.",
            "Sleep, little {n}, sleep so tight,\n[the moon|a star] is shining through the night.",
        ),
    ),
    Story(
        plot="colours",
        steps=(
            "{x.The} is for {A},\n{y.the} is for {B},\n[and what is|tell me what is] for me?",
            "Round and round and round we go,\nnow go fast and now go slow.",
            "{A} has {x.the},\n{B} has {y.the},\n[and all of us are free|and that is good for me].",
        ),
    ),
    Story(
        plot="the farm",
        steps=(
            "The {c} on the farm, the {c} on the farm,\nthe {c} on the farm says hello to {A}.",
            "Hello, hello, good morning to you,\nhello, hello, good morning to you.",
            "The {b} in the zoo, the {b} in the zoo,\nthe {b} in the zoo says hello to {B}.",
        ),
    ),
)
_CHANGES = (
    Story(
        plot="more",
        steps=("{A} has {k}. {B} gives {A} {l.count} more. Now {A} has {s}.",),
        asks=(
            Ask(
                kind="count",
                question="How many {k.s} does {A} have now?",
                answer="{A} has {s} now.",
                value="s",
            ),
        ),
    ),
    Story(
        plot="found",
        steps=(
            "{A} [found|got] {k} [in the morning and {l.count} in the evening|first and {l.count} later]. [That makes|All in all that is] {s}.",
        ),
        asks=(
            Ask(kind="count", question="How many {k.s} is that?", answer="That is {s}.", value="s"),
        ),
    ),
    Story(
        plot="fewer",
        steps=("{A} had {s}. {A} gave {k.count} of them to {B}. Now {A} has {l} left.",),
        asks=(
            Ask(
                kind="count",
                question="How many {k.s} does {A} have left?",
                answer="{A} has {l} left.",
                value="l",
            ),
        ),
    ),
)


def training_phrasebook() -> Phrasebook:
    """All English templates of the training and validation text."""
    return Phrasebook(
        openings=OPENINGS,
        endings=ENDINGS,
        stories=(*FIRST_STORIES, *MORE_STORIES),
        facts=_FACTS,
        asks=_ASKS,
        frames=_FRAMES,
        dialogues=_DIALOGUES,
        games=(
            "[Say it after me:|Repeat:|Echo:|Again and again:|]",
            "[{A} says, and {B} says it too:|Everyone says it:|The echo game:|]",
        ),
        again=(
            "[Once more|Again|Tell it again|One more time], [please!|from the start:|said {B}.]",
            "[{B} wanted to hear it again:|Here is the same story again:|And again:]",
        ),
        songs=_SONGS,
        sums=(
            "{k.Number} and {l.number} make {s.number}.",
            "{k.Number} and {l.number} are {s.number}.",
            "{k.digits} + {l.digits} = {s.digits}.",
            "{s.Number} take away {k.number} is {l.number}.",
            "{s.digits} - {k.digits} = {l.digits}.",
        ),
        changes=_CHANGES,
        list_heads=(
            "On {A}'s list:",
            "{A} [wrote a list|made a list]:",
            "[Things|Some things] in {A}'s room:",
            "{A} packed a bag:",
        ),
        list_asks=(
            Ask(
                kind="what",
                question="What comes first?",
                answer="{first} comes first.",
                value="first",
            ),
            Ask(
                kind="what", question="What comes last?", answer="{last} comes last.", value="last"
            ),
            Ask(
                kind="count",
                question="How many things are there?",
                answer="There are {number} things.",
                value="number",
            ),
        ),
        pair_heads=("[Remember|Learn this|Who has what]:", "[Pairs|A memory game|Look]:"),
    )
