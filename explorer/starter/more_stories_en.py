"""More English plots of the training text. Roles: see `phrasebook`."""

from __future__ import annotations

from explorer.starter.phrasebook import Ask, Story

_SEEK = Story(
    plot="hide and seek",
    steps=(
        '{A}, {B} and {C} [played|wanted to play] hide and seek {p.in}. "I will count," said {A}, and closed {A.his} eyes.',
        '"One, two, three, four, five, six, seven, eight, nine, ten! [Here I come|I am coming]!" [called|shouted] {A}.',
        "[First {A.he} looked|{A} looked first] behind [a wall|a big stone|a fence]. [There was only {m.a}.|Nobody was there.|There was nothing but grass.]",
        'Then {A.he} heard [someone laugh|a small noise|a sneeze]. It came from [behind a tree|under the leaves|behind a box]. "I see you, {B}!" said {A}.',
        "Now they looked for {C} together. [It took a long time.|{C} was very good at hiding.|They looked and looked.] At last they found {C} [up in a tree|under a blanket|behind a big bush].",
        '"You win, {C}!" said {A}. "[Nobody hides as well as you|You hid so well]." [Then they played again.|Then they all sat down and ate {g.s}.|{C} laughed and laughed.]',
    ),
    asks=(
        Ask(kind="who", question="Who counted to ten?", answer="{A} counted to ten.", value="A"),
        Ask(kind="who", question="Who won the game?", answer="{C} won the game.", value="C"),
        Ask(
            kind="who",
            question="Whom did {A} find first?",
            answer="{A} found {B} first.",
            value="B",
        ),
        Ask(kind="where", question="Where did they play?", answer="They played {p.in}.", value="p"),
    ),
)
_BROKEN = Story(
    plot="the broken toy",
    endings=("feel",),
    steps=(
        "{A} [played|was playing] with {x.a} [in {A.his} room|at home|on the floor]. It belonged to {B}.",
        "[Suddenly|Then] it fell down, and [crack|bang], it was broken! [{A} was shocked.|{A} did not know what to do.|{A}'s heart beat fast.]",
        '"[If I say nothing, nobody will know|Maybe I can hide it]," thought {A}. [But that did not feel right.|But {A.he} could not sleep.|But {A.his} stomach hurt when {A.he} thought of it.]',
        'So {A} [went|walked|ran] to {B} and told the truth. "[I am so sorry|I am sorry]," {A.he} said. "I broke your {x.noun}."',
        '{B} was [sad|angry] at first. [Then {B.he} took a deep breath.|But then {B.he} saw how sorry {A} was.] "[Thank you for telling me the truth|It is good that you told me]," said {B}.',
        "{A}'s {G} had [some glue|tools], and together they mended the {x.noun}. [Soon it looked like new.|It even worked better than before.|You could see a small line, but nobody minded.]",
    ),
    asks=(
        Ask(
            kind="who",
            question="Who broke the {x.noun}?",
            answer="{A} broke the {x.noun}.",
            value="A",
        ),
        Ask(
            kind="who",
            question="Whose {x.noun} was it?",
            answer="It was {B}'s {x.noun}.",
            value="B",
        ),
        Ask(
            kind="colour",
            question="What colour was the {x.noun}?",
            answer="The {x.noun} was {x.colour}.",
            value="x.colour",
        ),
    ),
)
_ERRAND = Story(
    plot="the errand",
    endings=("feel",),
    steps=(
        '"[Please go to the shop|I need your help], {A}[|, my dear]," said {A.his} {G}. "[We need|Please bring] {g} and {y.a}."',
        '"{g.Phrase} and {y.a}, {g} and {y.a}," {A} said to {A.him}self [all the way|again and again], so that {A.he} would not forget.',
        '[On the way|In the street] {A.he} met {B}. "[Do you have time to play|Come and play with me]!" said {B}. "[Not now|Later], {B}. I have to buy {g} and {y.a}," said {A}.',
        'In the shop {A} said: "{g.Phrase} and {y.a}, please." [The woman|The man|The old man] behind the table put everything in a bag.',
        "{A} [carried the bag home|went home with the bag]. [It was heavy, but {A.he} was proud.|The bag was heavy.|{A.He} walked carefully.]",
        '"You forgot nothing!" said {A.his} {G}. "[Now go and play with {B}|Here is some {f} for you]."',
    ),
    asks=(
        Ask(
            kind="count",
            question="How many {g.s} did {A} buy?",
            answer="{A} bought {g}.",
            value="g.count",
        ),
        Ask(kind="who", question="Who wanted to play?", answer="{B} wanted to play.", value="B"),
        Ask(
            kind="colour",
            question="What colour was the {y.noun}?",
            answer="The {y.noun} was {y.colour}.",
            value="y.colour",
        ),
    ),
)
_NOISE = Story(
    plot="the noise at night",
    openings=("who",),
    endings=(),
    steps=(
        "It was night, and {A} was in bed. [The moon was shining.|The house was dark.|Everything was quiet.] [Then|Suddenly] {A.he} heard a noise.",
        '[Knock, knock, knock|Scratch, scratch|Bump, bump], it went. {A} [pulled the blanket over {A.his} head|sat up in bed|held {A.his} breath]. "[Who is there|What is that]?" {A.he} [whispered|asked].',
        "[Nobody answered.|There was no answer.] {A} was afraid, but {A.he} was also curious. {A.He} took {y.a} in {A.his} hand and went to the door.",
        "The noise came from [behind the door|the kitchen|under the stairs]. [Very slowly|Step by step] {A} went [closer|nearer] and [turned on the light|looked].",
        "It was only {v}, the {n}! {v} had [found|smelled] some {f} and wanted to [get it|eat it]. {A} [laughed out loud|had to laugh|was so glad].",
        '{A.His} {G} came too. "[There is no need to be afraid|Things look bigger in the dark]," said {A.his} {G}. [Then they all went back to bed.|Soon everyone was asleep again.]',
    ),
    asks=(
        Ask(kind="who", question="Who made the noise?", answer="{v} made the noise.", value="v"),
        Ask(
            kind="what", question="What kind of animal was {v}?", answer="{v} was {n.a}.", value="n"
        ),
        Ask(
            kind="what",
            question="What did {A} take to the door?",
            answer="{A} took {y.a} to the door.",
            value="y",
        ),
    ),
)
_SEED = Story(
    plot="the seed",
    openings=("who",),
    endings=("feel",),
    steps=(
        '{A}\'s {G} gave {A.him} a [small|tiny] seed. "[Put it in the ground|Plant it] and give it water every day," said {A.his} {G}.',
        "{A} [dug a hole|made a small hole] [behind the house|near the wall|by the gate] and put the seed in. [Then {A.he} covered it with earth.|Then {A.he} gave it some water.]",
        '[The next day|On the second day] there was nothing to see. [After a week there was still nothing.|"It is not growing!" said {A}.] "[Be patient|Wait a little longer]," said {A.his} {G}.',
        "So {A} waited. [When it was dry, {A.he} gave the seed water.|Every {time} {A.he} gave it water.] [When {m.a} came too close, {A.he} sent it away.|{A.He} even sang a song for it.|]",
        "[Then one {time}|One {time}] there was something green! [It grew and grew.|It became taller every day.|First there was one leaf, then two, then many.]",
        'In summer there was a big {y.colour} flower. "[I made that|That is my flower]!" said {A}. {B} came to [see|look at] it. "[It is the most beautiful flower of all|How tall it is]," said {B}.',
    ),
    asks=(
        Ask(
            kind="colour",
            question="What colour was the flower?",
            answer="The flower was {y.colour}.",
            value="y.colour",
        ),
        Ask(
            kind="who", question="Who planted the seed?", answer="{A} planted the seed.", value="A"
        ),
        Ask(
            kind="who",
            question="Who came to see the flower?",
            answer="{B} came to see the flower.",
            value="B",
        ),
    ),
)
_SWAP = Story(
    plot="the swap",
    openings=("friends",),
    endings=("feel",),
    steps=(
        "{A} had {x.a}, and {B} had {y.a}. [They sat {p.in} and looked at their things.|One day they met {p.in}.]",
        '"[I like your {y.noun}|Your {y.noun} is so nice]," said {A}. "[And I like your {x.noun}|Your {x.noun} is nice too]," said {B}.',
        '[They both thought for a moment.|They looked at each other and laughed.] "[Shall we swap|Do you want to swap|Let us swap]?" [asked|said] {A}. "[Good idea|Yes|Why not]!" said {B}.',
        "So {A} gave {B} the {x.noun}, and {B} gave {A} the {y.noun}. Now {A} has {y.the}, and {B} has {x.the}.",
        '[Both of them were happy.|{A} showed the {y.noun} to {A.his} {G}.|{B} ran home to show it to everyone.] "[A good swap makes two people happy|Friends can share everything]," said {A}\'s {G}.',
    ),
    asks=(
        Ask(
            kind="who",
            question="Who has the {x.noun} now?",
            answer="{B} has the {x.noun} now.",
            value="B",
        ),
        Ask(
            kind="who",
            question="Who has the {y.noun} now?",
            answer="{A} has the {y.noun} now.",
            value="A",
        ),
        Ask(
            kind="colour",
            question="What colour is the {x.noun}?",
            answer="The {x.noun} is {x.colour}.",
            value="x.colour",
        ),
    ),
)
_FABLE = Story(
    plot="the two animals",
    openings=(),
    endings=(),
    steps=(
        "[A big {b}|A proud {b}|A young {b}] and a [little|small] {m} lived {o.in}. The {b} was [strong|big and strong], and the {m} was [small but clever|small and quick].",
        'One {time} the {b} said to the {m}, "[You are so small|You are much too small]. [What can you do?|Nobody needs you.]" The {m} [said nothing|was sad|only smiled].',
        '[A few days later|The next day] the {b} [fell into a deep hole|was caught in a net|got stuck between two trees]. "Help! [Help me|I cannot get out]!" [cried|called] the {b}.',
        'Nobody heard it but the {m}. ["Wait, I will help you," said the little {m}.|The little {m} came at once.] [It called all the other animals.|It ran for help.|It thought of a way.]',
        '[Soon the {b} was free.|It took a long time, but then the {b} was free.] "[I was wrong|I am sorry]," said the {b}. "[You are small, but you have a big heart|Even a small friend can be a great friend]."',
        "From that day on, the {b} and the {m} were [friends|the best of friends]. They [shared|ate] {g.s} together [every day|{q.in}|in the sun].",
    ),
    asks=(
        Ask(kind="who", question="Who needed help?", answer="The {b} needed help.", value="b"),
        Ask(
            kind="who", question="Who helped the {b}?", answer="The {m} helped the {b}.", value="m"
        ),
        Ask(
            kind="where",
            question="Where did the two animals live?",
            answer="The two animals lived {o.in}.",
            value="o",
        ),
    ),
)
_PICNIC = Story(
    plot="the picnic",
    steps=(
        '{A}, {B} and {C} wanted to have a picnic {p.in}. [Everyone had to bring something.|"What shall we bring?" they asked.]',
        "{A} brought {f}. {B} brought {g}. {C} brought {x.a}, so that they could play.",
        "[They sat down under a tree.|They put a cloth on the grass.|They found a good place in the sun.] [The birds were singing.|It was warm and quiet.|A soft wind was blowing.]",
        '[Just then|While they were eating,|Then] {m.a} came. ["Look, it is hungry too!" said {B}.|It wanted to eat with them.|It looked at the food.] {B} gave it a little to eat.',
        'After the meal they played with the {x.noun} [until the sun went down|until they were tired|all {time}]. ["Let us do this again," said {C}.|Then they cleaned up and went home.|Nobody wanted to go home.]',
    ),
    asks=(
        Ask(kind="who", question="Who brought {f}?", answer="{A} brought {f}.", value="A"),
        Ask(kind="who", question="Who brought {x.a}?", answer="{C} brought {x.a}.", value="C"),
        Ask(
            kind="count",
            question="How many {g.s} did {B} bring?",
            answer="{B} brought {g}.",
            value="g.count",
        ),
        Ask(
            kind="what",
            question="Which animal came to the picnic?",
            answer="{m.A} came to the picnic.",
            value="m",
        ),
    ),
)
_BEDTIME = Story(
    plot="a story at bedtime",
    openings=("who",),
    endings=(),
    steps=(
        'It was late. {A} lay in bed, but {A.he} was not tired. "[Please tell me a story!|Can you tell me a story?]" {A.he} said to {A.his} {G}.',
        '"[Well|All right|Good]," said {A.his} {G}, and [sat down on the bed|turned down the light]. "Once there was {b.a} that lived {o.in}."',
        '"[Was it big|Was it friendly|Was it alone]?" asked {A}. "[It was the biggest of all|It was very friendly|It had only one friend], and its best friend was {m.a}."',
        '"Every {time} the {b} and the {m} [went for a walk|looked for {g.s}|sat by the water and sang]. [Nobody was as happy as they were.|They never had a fight.|]"',
        '"[And then|What happened then]?" asked {A}. [{A.His} eyes were already small.|{A.He} yawned.] "Then they went to sleep, just like you," said {A.his} {G}.',
        "{A} [did not hear the end|closed {A.his} eyes|was asleep]. {A.His} {G} [gave {A.him} a kiss|put out the light] and closed the door.",
    ),
    asks=(
        Ask(
            kind="what",
            question="What was the best friend of the {b}?",
            answer="The best friend of the {b} was {m.a}.",
            value="m",
        ),
        Ask(kind="who", question="Who could not sleep?", answer="{A} could not sleep.", value="A"),
    ),
)
_RACE = Story(
    plot="the race",
    openings=("who", "friends"),
    steps=(
        '[One {time}|On a {w} {time}] {A}, {B} and {C} had a race from {p} to {q}. "[Ready, steady, go|One, two, three, go]!" [called|said] {A}\'s {G}.',
        "{A} was [very fast|the fastest of the three] and ran ahead. {B} came next, and {C} was last. [The wind blew in their faces.|Everyone shouted.|]",
        '[But {A} was so sure of winning that {A.he} stopped to look at {m.a}.|But then {A} saw {m.a} and stopped to look at it.] ["I have so much time," {A.he} thought.|{A.He} sat down and looked and looked.]',
        "{B} [fell over a stone|lost a shoe] and had to [stop too|sit down]. Only {C} [ran on and on, slowly but without a rest|went on step by step and did not stop].",
        'So {C} came first! "[How did you do that|You were so slow]!" said {A}. "[I just did not stop|I never gave up]," said {C} and [smiled|laughed].',
    ),
    asks=(
        Ask(kind="who", question="Who won the race?", answer="{C} won the race.", value="C"),
        Ask(
            kind="what", question="What did {A} look at?", answer="{A} looked at {m.a}.", value="m"
        ),
        Ask(
            kind="who",
            question="Who was last at first?",
            answer="{C} was last at first.",
            value="C",
        ),
    ),
)
MORE_STORIES = (
    _SEEK, _BROKEN, _ERRAND, _NOISE, _SEED, _SWAP, _FABLE, _PICNIC, _BEDTIME, _RACE,
)  # fmt: skip
