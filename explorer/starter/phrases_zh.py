"""Chinese facts, questions, games and sums of the training text. Roles: see `phrasebook`."""

from __future__ import annotations

from explorer.starter.more_stories_zh import MORE_STORIES
from explorer.starter.phrasebook import Ask, Phrasebook, Story
from explorer.starter.stories_zh import ENDINGS, FIRST_STORIES, OPENINGS

_FACTS = {
    "owns": (
        "{A}有{x.a}。",
        "{x.that}是{A}的。",
        "[桌上|地上|架子上|门边]有{x.a}，是{A}的。",
        "{A}的{G}送给{A.he}{x.a}。",
        "{A}把{x.a}放在[自己的房间里|床下面]。",
        "{A}[买了|得到了]{x.a}。",
    ),
    "counts": (
        "{A}有{g}。",
        "{A}[买了|找到了|得到了]{g}。",
        "{A}的[袋子|口袋]里有{g}。",
        "{A}数了数自己的{g.noun}，一共有{g}。",
    ),
    "lives": (
        "{A}住在{h.in}。",
        "{A}的家在{h.in}。",
        "{A}和{A.he}的{G}住在{h.in}。",
    ),
    "is_at": (
        "{A}在{p.in}。",
        "[现在|这时候]，{A}在{p.in}。",
        "{A}坐在{p.in}。",
        "{A}正在{p.in}玩。",
    ),
    "likes": (
        "{A}喜欢吃{f}。",
        "{A}最爱吃{f}。",
        "{A}每天都想吃{f}，因为{A.he}喜欢。",
    ),
    "pet": (
        "{A}养了{n.a}，名字叫{v}。",
        "{A}有{n.a}，叫{v}。",
        "{v}是{A}养的{n}。",
    ),
    "friend": (
        "{A}最好的朋友是{B}。",
        "{A}和{B}是最好的朋友。",
        "{B}是{A}最好的朋友。",
    ),
    "wears": (
        "{A}今天{y.wear}着{y.a}。",
        "{A}{y.wear}着{y.a}。",
        "今天，{A}{y.wear}上了{y.a}。",
    ),
}
_ASKS = {
    "owns": (
        Ask(kind="who", question="谁有{x}？", answer="{A}有{x}。", value="A"),
        Ask(kind="who", question="{x.that}是谁的？", answer="{x.that}是{A}的。", value="A"),
        Ask(
            kind="colour",
            question="{A}的{x.noun}是什么颜色的？",
            answer="{A}的{x.noun}是{x.colour}的。",
            value="x.colour",
        ),
    ),
    "counts": (
        Ask(kind="count", question="{A}有几{g.measure}{g.noun}？", answer="{A}有{g}。", value="g"),
        Ask(kind="who", question="谁有{g}？", answer="{A}有{g}。", value="A"),
    ),
    "lives": (
        Ask(kind="where", question="{A}住在哪里？", answer="{A}住在{h.in}。", value="h"),
        Ask(kind="where", question="{A}的家在哪里？", answer="{A}的家在{h.in}。", value="h"),
        Ask(kind="who", question="谁住在{h.in}？", answer="{A}住在{h.in}。", value="A"),
    ),
    "is_at": (
        Ask(kind="where", question="{A}在哪里？", answer="{A}在{p.in}。", value="p"),
        Ask(kind="who", question="谁在{p.in}？", answer="{A}在{p.in}。", value="A"),
    ),
    "likes": (
        Ask(kind="what", question="{A}喜欢吃什么？", answer="{A}喜欢吃{f}。", value="f"),
        Ask(kind="who", question="谁喜欢吃{f}？", answer="{A}喜欢吃{f}。", value="A"),
    ),
    "pet": (
        Ask(kind="name", question="{A}的{n}叫什么名字？", answer="{A}的{n}叫{v}。", value="v"),
        Ask(kind="what", question="{A}养了什么动物？", answer="{A}养了{n.a}。", value="n"),
        Ask(kind="who", question="谁养了{n.a}？", answer="{A}养了{n.a}。", value="A"),
    ),
    "friend": (
        Ask(kind="who", question="{A}最好的朋友是谁？", answer="{A}最好的朋友是{B}。", value="B"),
    ),
    "wears": (
        Ask(kind="who", question="谁{y.wear}着{y.a}？", answer="{A}{y.wear}着{y.a}。", value="A"),
        Ask(
            kind="colour",
            question="{A}今天{y.wear}的{y.noun}是什么颜色的？",
            answer="{A}今天{y.wear}的{y.noun}是{y.colour}的。",
            value="y.colour",
        ),
    ),
}
_FRAMES = (
    "",
    "",
    "今天天气很{w}。",
    "这里有几个孩子。",
    "[我来说一说|我来介绍]几个小朋友。",
    "现在是{time}，天气很{w}。",
    "[请听好|听一听]！",
)
_DIALOGUES = (
    Story(
        plot="what do you have",
        steps=(
            "“[你好|嗨]，{B}！”{A}说。“[你好|嗨]，{A}！[见到你真高兴|你好吗]？”{B}说。",
            "“[你手里拿的是什么|那是什么]？”{A}问。“[是|这是]{x.a}，”{B}说，“[是{G}给我的|是我昨天得到的]。”",
            "“[可以给我看看吗|我能看一看吗]？”“[当然可以|可以，不过要小心]！”",
            "{A}看了看，说：“[真漂亮|我喜欢这个颜色|我也想要一{x.measure}]！”",
            "“[我们一起玩吧|我们去{p}玩吧]。”{B}说。",
        ),
        asks=(
            Ask(kind="who", question="{x.noun}是谁的？", answer="{x.noun}是{B}的。", value="B"),
            Ask(
                kind="colour",
                question="{x.noun}是什么颜色的？",
                answer="{x.noun}是{x.colour}的。",
                value="x.colour",
            ),
        ),
    ),
    Story(
        plot="where are you going",
        steps=(
            "“{A}，你去哪里？”{B}问。“我去{p}，”{A}说，“[你想一起去吗|你也来吗]？”",
            "“[你去那里做什么|你为什么去那里]？”{B}问。“我[想去找{C}|要去找{t.noun}]。”{A}说。",
            "“我今天不能去，我要帮{G}[做饭|打扫屋子]。”{B}说。“[真可惜|没关系]，那明天见！”",
            "“[再见|明天见]，{A}！”“[再见|明天见]，{B}！”{A}[挥挥手|笑了笑]，走了。",
        ),
        asks=(
            Ask(kind="where", question="{A}要去哪里？", answer="{A}要去{p}。", value="p"),
            Ask(kind="who", question="谁今天不能去？", answer="{B}今天不能去。", value="B"),
        ),
    ),
    Story(
        plot="what do you like",
        steps=(
            "“你最喜欢吃什么？”{A}问。“我最喜欢吃{f}，”{B}说，“你呢？”",
            "“我喜欢吃{g.noun}，”{A}说，“[你喜欢动物吗|你喜欢哪种动物]？”“我最喜欢{c}。”{B}说。",
            "“为什么？”“[因为它很有趣|因为它很可爱|因为我家里就有]。”“我喜欢{b}，”{A}说，“[它很厉害|它真好看]。”",
            "[他们聊到天黑。|他们说说笑笑，很开心。|后来{B}要回家了。]",
        ),
        asks=(
            Ask(kind="what", question="{B}最喜欢吃什么？", answer="{B}最喜欢吃{f}。", value="f"),
            Ask(kind="what", question="{A}喜欢什么动物？", answer="{A}喜欢{b}。", value="b"),
        ),
    ),
    Story(
        plot="a guessing game",
        steps=(
            "“我们来猜谜，”{A}说，“我在想一种动物，[你猜是什么|你来猜猜看]。”",
            "“是{c}吗？”{B}问。“不是{c}。”“是{b}吗？”“不是，[它小一点|没有那么大]。”",
            "“[我认识它吗|我见过它吗]？”“[你常常看见它|当然见过]。”“那就是{n}！”{B}说。“对了，就是{n}！”{A}说。",
            "“[现在轮到我了|现在你来猜]。”{B}说。",
        ),
        asks=(
            Ask(kind="what", question="{A}想的是什么动物？", answer="{A}想的是{n}。", value="n"),
            Ask(kind="who", question="谁猜对了？", answer="{B}猜对了。", value="B"),
        ),
    ),
)
_SONGS = (
    Story(
        plot="hop along",
        steps=(
            "{m}，{m}，[跑一跑|跳一跳]，\n{p.in}，[真热闹|真美妙]。",
            "啦啦啦，太阳高高照，\n啦啦啦，我们哈哈笑。",
            "{n}，{n}，快睡觉，\n[月亮|星星]陪你到明朝。",
        ),
    ),
    Story(
        plot="colours",
        steps=(
            "{x}给{A}，\n{y}给{B}，\n什么给我呢？",
            "转一圈，再转一圈，\n快一点，又慢一点。",
            "{A}有{x}，\n{B}有{y}，\n[我们大家都开心|我有好朋友]。",
        ),
    ),
    Story(
        plot="the farm",
        steps=(
            "{c}{c}早上好，\n{c}{c}见了{A}就笑。",
            "你好，你好，大家好，\n你好，你好，早上好。",
            "{b}{b}早上好，\n{b}{b}见了{B}就笑。",
        ),
    ),
)
_CHANGES = (
    Story(
        plot="more",
        steps=("{A}有{k}。{B}又给了{A}{l.count}。现在{A}有{s}。",),
        asks=(
            Ask(
                kind="count",
                question="{A}现在有几{k.measure}{k.noun}？",
                answer="{A}现在有{s}。",
                value="s",
            ),
        ),
    ),
    Story(
        plot="found",
        steps=("{A}[早上|先]得到{k}，[晚上|后来]又得到{l.count}，一共是{s.count}。",),
        asks=(
            Ask(
                kind="count",
                question="{A}一共得到几{k.measure}{k.noun}？",
                answer="{A}一共得到{s}。",
                value="s",
            ),
        ),
    ),
    Story(
        plot="fewer",
        steps=("{A}原来有{s}，给了{B}{k.count}，还剩{l.count}。",),
        asks=(
            Ask(
                kind="count",
                question="{A}还剩几{k.measure}{k.noun}？",
                answer="{A}还剩{l}。",
                value="l",
            ),
        ),
    ),
)


def training_phrasebook() -> Phrasebook:
    """All Chinese templates of the training and validation text."""
    return Phrasebook(
        openings=OPENINGS,
        endings=ENDINGS,
        stories=(*FIRST_STORIES, *MORE_STORIES),
        facts=_FACTS,
        asks=_ASKS,
        frames=_FRAMES,
        dialogues=_DIALOGUES,
        games=("[跟我念：|再念一次：|大家一起念：|]", "[{A}念，{B}也念：|我说，你也说：|]"),
        again=("[再讲一次|再来一次]！", "[{B}还想听一次：|从头再讲：]"),
        songs=_SONGS,
        sums=(
            "{k.number}加{l.number}等于{s.number}。",
            "{k.number}加{l.number}是{s.number}。",
            "{s.number}减{k.number}等于{l.number}。",
            "{s.number}减{k.number}是{l.number}。",
        ),
        changes=_CHANGES,
        list_heads=("{A}的清单：", "{A}写下了：", "{A}的房间里有：", "{A}的背包里有："),
        list_asks=(
            Ask(kind="what", question="第一个是什么？", answer="第一个是{first}。", value="first"),
            Ask(
                kind="what", question="最后一个是什么？", answer="最后一个是{last}。", value="last"
            ),
            Ask(
                kind="count",
                question="一共有几样东西？",
                answer="一共有{number}样东西。",
                value="number",
            ),
        ),
        pair_heads=("[记一记|一起来记]：", "[一对一对|记忆游戏]："),
    )
