"""English plots of the training text. Roles: see `phrasebook`."""

from __future__ import annotations

from explorer.starter.phrasebook import Ask, Story

OPENINGS = {
    "who": (
        "[Once upon a time|Once|Long ago] there was a [little|young|kind|clever|cheerful] {A.kind} [called|named] {A}.",
        "[There once lived|In a small house there lived] a [little|curious|friendly] {A.kind} [called|named] {A}.",
        "{A} was a [little|kind|clever|curious|brave|quiet] {A.kind} who lived {h.in}.",
        "[This is|Here is] a story about {A}[|, a {A.kind} who lived {h.in}].",
        "{A} lived {h.in} with {A.his} {G}. {A.He} [liked {f} more than anything|loved stories|laughed a lot|was never bored].",
        "{A}'s home was {h.in}. {A.He} was a [kind|cheerful|curious] {A.kind} and liked {f}.",
    ),
    "friends": (
        "{A} and {B} were [good|best|old] friends. [They lived {h.in}.|They met almost every day.|They liked to play together.]",
        "{A} had a friend [called|named] {B}. [They knew each other well.|They lived in the same street.|They often played together.]",
    ),
    "day": (
        "[One {time}|On a {w} {time}], {A} [was in a good mood|had nothing to do|was full of joy].",
        "It was a {w} {time}, and {A} [wanted to go out|was ready to play|was full of ideas|looked out of the window].",
    ),
}
ENDINGS = {
    "feel": (
        "[That {time}|From that day on], {A} [smiled a lot|felt happy|was not afraid any more].",
        "[And so|In the end] [everyone was happy|they all laughed|all was well].",
        "[It was a good day|What a lovely day it was|It had been a long day]. [|The end.]",
        "{A} [never forgot that day|often thought of that day|remembered it for a long time].",
        "[At night|That night], {A} [slept well|fell asleep quickly|dreamed of {p}].",
    ),
    "outside": (
        "{A} [went home|walked home|ran home] with a [happy|light|warm] heart.",
        "[Then|At last] {A} went home, [ate some {f}|had some {f}] and [went to bed|was happy]. [The end.|]",
    ),
    "tell": (
        '{A} told {A.his} {G} [all about it|the whole story]. "[What a day|Well done|How nice]!" said {A.his} {G}.',
        '"[What did you do today|How was your day]?" asked {A}\'s {G} later. "[It was a wonderful day|I had a good day]," said {A}[| and smiled].',
    ),
}

_LOST = Story(
    plot="lost and found",
    openings=("who", "friends"),
    steps=(
        "{A} had {x.a}. [It was {A.his} favourite toy.|{A.He} took it everywhere.|It was a present from {A.his} {G}.|{A.He} loved it very much.]",
        "[One {time}|One day|On a {w} {time}], {A} [took|carried] the {x.noun} {p.to}[| and played there for a long time|, because the weather was so nice].",
        "[But when|When] {A.he} [wanted to go home|got home|was hungry and turned to go], the {x.noun} was [gone|nowhere to be seen|not there any more].",
        '"[Oh no|Oh dear]! [Where is my {x.noun}?|I have lost my {x.noun}!]" [cried|said] {A}. [{A.He} was very sad.|{A.He} began to cry.|Tears ran down {A.his} face.]',
        "{A} looked [under|behind] [a bench|the bushes|a big stone], but it was not there. [Then {A.he} looked in the grass, but found nothing.|{A.He} looked everywhere.|]",
        '[Then|Soon] {B} came [along|by]. "[Why are you sad?|What is wrong?|Can I help you?]" asked {B}. "I [cannot find|have lost] my {x.noun}," said {A}.',
        "[Together they looked|They looked together|The two friends looked] [again|once more|for a long time], and {B} found {x.the} [in a bush|behind a wall|in the tall grass|next to a tree].",
        '"[Here it is|Look, here it is|I have it]!" [called|said|shouted] {B}. "[Thank you|Thank you so much|Oh, thank you], {B}!" said {A}. [{A.He} was so happy that {A.he} danced.|{A.He} hugged {A.his} friend.|{A.He} held it tight.]',
    ),
    asks=(
        Ask(
            kind="who",
            question="Who found the {x.noun}?",
            answer="{B} found the {x.noun}.",
            value="B",
        ),
        Ask(
            kind="who",
            question="Who lost the {x.noun}?",
            answer="{A} lost the {x.noun}.",
            value="A",
        ),
        Ask(
            kind="colour",
            question="What colour was the {x.noun}?",
            answer="The {x.noun} was {x.colour}.",
            value="x.colour",
        ),
        Ask(
            kind="where",
            question="Where did {A} take the {x.noun}?",
            answer="{A} took the {x.noun} {p.to}.",
            value="p",
        ),
    ),
)
_GIFT = Story(
    plot="a present",
    steps=(
        "[Today|The next day] was {B}'s birthday[, and {A} wanted to give {B.him} something|, and {A} was invited].",
        '"What [would {B} like|can I give {B}|will make {B} happy]?" {A} asked {A.his} {G}. "[Think of what {B} likes|Give {B.him} something from the heart]," said {A.his} {G}.',
        "{A} [thought for a while|thought and thought|had an idea]. Then {A.he} [went {q.to} and bought|took {A.his} money and bought|opened the cupboard and found] {x.a}.",
        "{A.He} [put it in a box|wrapped it in paper|put it in a bag] and tied it with a [long|thin|nice] string. [Then {A.he} wrote a card.|It looked very nice.|]",
        "At the party there was {f}, and [everyone sang|the children played games|there was music]. {B} [opened the present|looked inside|untied the string] and [laughed|clapped {B.his} hands|jumped for joy].",
        '"{x.A}! [I always wanted one|It is just what I wanted|How lovely]!" said {B}. "[You are a good friend|Thank you], {A}."',
    ),
    asks=(
        Ask(
            kind="what",
            question="What did {A} give to {B}?",
            answer="{A} gave {B} {x.a}.",
            value="x",
        ),
        Ask(
            kind="who",
            question="Whose birthday was it?",
            answer="It was {B}'s birthday.",
            value="B",
        ),
        Ask(
            kind="what",
            question="What did they eat at the party?",
            answer="They ate {f} at the party.",
            value="f",
        ),
    ),
)
_RAIN = Story(
    plot="the rain",
    openings=("who",),
    endings=("feel",),
    steps=(
        "{A} had {n.a} called {v}. [Every day|Each {time}] {A.he} went for a walk with {v}.",
        "[One {time}|One day] they walked {p.to}. [The sky was grey.|Dark clouds came over the hills.|The wind was cold.]",
        "[Suddenly|All at once|Then] it began to rain. [At first it rained a little, then more and more.|Big drops fell on {A}'s head.|Soon everything was wet.]",
        '"[Quick, {v}|Come, {v}|Run, {v}]!" [called|cried] {A}. They ran [as fast as they could|through the rain] and [hid|waited] under a [big tree|roof|bench].',
        "{v} was [wet and cold|wet from head to tail|afraid of the thunder], so {A} [put {A.his} coat around the {n}|held the {n} close|spoke softly to the {n}].",
        "[After a while|At last|Soon] the rain stopped, and the sun came out [again|behind the clouds]. [There was a rainbow in the sky.|The grass shone in the light.|The air smelled fresh.]",
        "At home, {A.his} {G} [gave {A.him}|made] some {f}, and {v} [lay down by the fire|fell asleep on the rug|had a warm bath].",
    ),
    asks=(
        Ask(
            kind="name",
            question="What was the {n} called?",
            answer="The {n} was called {v}.",
            value="v",
        ),
        Ask(
            kind="where",
            question="Where did {A} and {v} walk?",
            answer="They walked {p.to}.",
            value="p",
        ),
        Ask(
            kind="what", question="What kind of animal was {v}?", answer="{v} was {n.a}.", value="n"
        ),
    ),
)
_RESCUE = Story(
    plot="the hungry animal",
    openings=("who",),
    endings=("feel", "tell"),
    steps=(
        "[On the way {p.to}|On a path near {p}], {A} [saw|met|found] {m.a}. [It sat on a stone.|It was very small.|It looked at {A.him} with big eyes.]",
        "The {m} [looked sad|was hungry|was weak and tired] [because it had not eaten all day|because it had found no food|and did not move].",
        '"[Do not be afraid|Hello, little {m}|You poor little {m}]," said {A}. [{A.He} sat down next to it.|{A.He} spoke very softly.|{A.He} waited until it came closer.]',
        "{A} had {g} in {A.his} [bag|pocket]. {A.He} [gave the {m} a small piece|broke off a small piece for the {m}], and [it ate everything|it ate and ate|soon the piece was gone].",
        "The {m} [felt better|grew strong again|was happy now]. [It jumped up and down.|It came close and said thank you in its own way.|It looked back at {A} once more.]",
        "[After that|From then on], the {m} came [every {time}|every day], and {A} [always had something for it|was never alone|called it {v}].",
    ),
    asks=(
        Ask(kind="what", question="Which animal did {A} meet?", answer="{A} met {m.a}.", value="m"),
        Ask(kind="who", question="Who fed the {m}?", answer="{A} fed the {m}.", value="A"),
    ),
)
_SHARE = Story(
    plot="sharing",
    steps=(
        "{A} had {g}, but {B} had none. [{B} looked at them.|{B} was hungry.|{B} was sad about it.]",
        '"[May I have|Can I have] one?" asked {B}. [At first {A} did not want to share.|{A} thought about it.|{A} looked at the {g.s}.]',
        '[Then {A.he} thought of a day when {B} had helped {A.him}.|Then {A.he} saw {B}\'s face.|"It is more fun to eat together," {A.he} thought.]',
        '"[Of course|Yes, of course|Yes], {B}," said {A}. "[We can share them|You can have some|Let us eat them together]."',
        "[So they|The two friends] sat down {p.in} and [ate the {g.s}|shared the {g.s}]. [They tasted good.|They tasted sweet.|Both of them laughed.]",
        '"[Next time I will bring something for you|Tomorrow I will share with you|You are kind]," said {B}.',
    ),
    asks=(
        Ask(
            kind="count",
            question="How many {g.s} did {A} have?",
            answer="{A} had {g}.",
            value="g.count",
        ),
        Ask(
            kind="where",
            question="Where did they sit down?",
            answer="They sat down {p.in}.",
            value="p",
        ),
        Ask(kind="who", question="Who had the {g.s}?", answer="{A} had the {g.s}.", value="A"),
    ),
)
_COOK = Story(
    plot="cooking",
    endings=("feel",),
    steps=(
        '{A}\'s {G} was in the kitchen. "[What are you making|What are you doing]?" asked {A}. "I am making {f}," said {A.his} {G}. "[Do you want to help|Would you like to help]?"',
        '[Of course {A} wanted to help.|"Yes!" said {A}.|{A} nodded.] [First|So first] {A.he} washed {A.his} hands[| and put on an old shirt].',
        "{A} took {y.a} from the [table|shelf] and [put it away|moved it to the side], so that there was [room|enough room] to work.",
        'They [mixed|stirred] [for a long time|slowly and carefully] and [sang a song|talked about {p}|laughed a lot]. [A little fell on the floor, but nobody minded.|Soon the whole house smelled good.|"Not too fast," said {A.his} {G}.]',
        "[When it was ready|At last], they sat down at the table. {B} came [too|to visit], and they gave {B.him} some {f}.",
        '"[This is the best {f} in the world!|It tastes wonderful!|May I have more?]" said {B}. {A} was [proud|very proud|happy].',
    ),
    asks=(
        Ask(kind="what", question="What did they make?", answer="They made {f}.", value="f"),
        Ask(kind="who", question="Who came to visit?", answer="{B} came to visit.", value="B"),
    ),
)
_TURNS = Story(
    plot="taking turns",
    openings=("friends", "day"),
    steps=(
        "{A} and {B} were {p.in}. There they [saw|found] {x.a}.",
        '"[It is mine|I saw it first|I want it]!" said {A}. "No, [it is mine|I saw it first|I want it]!" said {B}. [They both pulled.|They became angry.|Neither of them let go.]',
        '[An old {c} stood near them and {c.called}.|{C} heard the noise and came over.|Then {C} came by.] {C} [said|told them], "[You can take turns|Why don\'t you take turns]. [First {A}, then {B}.|That is fair.]"',
        '[{A} and {B} looked at each other.|The two were quiet for a moment.|{A} was a little ashamed.] "[You are right|That is a good idea]," said {A}.',
        "So {A} played with the {x.noun} first, and then it was {B}'s turn. [It was much more fun than fighting.|Soon nobody was angry any more.|They even let {C} play.]",
    ),
    asks=(
        Ask(
            kind="who",
            question="Who said that they can take turns?",
            answer="{C} said that they can take turns.",
            value="C",
        ),
        Ask(
            kind="who",
            question="Who played with the {x.noun} first?",
            answer="{A} played with the {x.noun} first.",
            value="A",
        ),
        Ask(
            kind="colour",
            question="What colour was the {x.noun}?",
            answer="The {x.noun} was {x.colour}.",
            value="x.colour",
        ),
    ),
)
_FRIEND = Story(
    plot="a new friend",
    openings=("who",),
    endings=("feel", "tell"),
    steps=(
        "{A} was new {h.in}. [{A.He} did not know anybody.|{A.He} had no friends there yet.|Everything was strange.]",
        "[On the first day|One {time}], {A} [went|walked] {p.to} and sat down [alone|by {A.him}self|on a stone]. {A.He} [watched the clouds|felt lonely|counted the birds].",
        "Then {n.a} [ran|came] up to {A.him}. It {n.called}[ and looked at {A.him}| and would not go away|]. {A} [smiled|had to laugh].",
        '"[There you are|Come back], {v}!" [called|shouted] a {B.kind}. "[Sorry|I am sorry]! {v} likes new people. My name is {B}."',
        '"I am {A}," said {A}. "[Your {n} is very sweet.|I like your {n}.|What a nice {n}!]" [They talked until it was dark.|They began to talk and to laugh.|Soon the three of them were playing.]',
        "[Now|After that] {A} [was not alone any more|had a friend|had two friends: {B} and {v}].",
    ),
    asks=(
        Ask(kind="who", question="Who is {v}?", answer="{v} is {B}'s {n}.", value="n"),
        Ask(
            kind="where",
            question="Where did {A} sit down?",
            answer="{A} sat down {p.in}.",
            value="p",
        ),
        Ask(
            kind="who",
            question="Who became {A}'s friend?",
            answer="{B} became {A}'s friend.",
            value="B",
        ),
    ),
)
FIRST_STORIES = (_LOST, _GIFT, _RAIN, _RESCUE, _SHARE, _COOK, _TURNS, _FRIEND)
