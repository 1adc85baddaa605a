"""Chinese templates of the held-out text: other sentences for the same kinds of scene.

No sentence of it, with its names and keywords blanked out, stands in the training text. The answer
takes up the words of the question, as all answers of the training text do.
"""

from __future__ import annotations

from explorer.starter.phrasebook import Ask, Phrasebook, Story

_FACTS = {
    "owns": (
        "你看，{A}手里拿着{x.a}。",
        "{x.a}放在{A}的书桌上，那是{A.he}的。",
    ),
    "counts": (
        "{A}带来了{g}。",
        "{g}都是{A}的。",
    ),
    "lives": (
        "要找{A}的家，就要去{h.in}。",
        "{h.in}的那间屋子，就是{A}的家。",
    ),
    "is_at": (
        "你可以在{p.in}找到{A}。",
        "{A}这会儿正在{p.in}散步。",
    ),
    "likes": (
        "只要有{f}吃，{A}就很开心。",
        "对{A}来说，没有什么比{f}更好吃。",
    ),
    "pet": (
        "{A}家里有{n.a}，大家叫它{v}。",
        "{A}常常带着{n.a}散步，它叫{v}。",
    ),
    "friend": ("{A}和谁最好？当然是和{B}最好。",),
    "wears": (
        "你看，{A}身上{y.wear}的是{y.a}。",
        "{A}来的时候{y.wear}着{y.a}，很好看。",
    ),
}
_ASKS = {
    "owns": (
        Ask(kind="who", question="谁手里有{x.a}？", answer="{A}手里有{x.a}。", value="A"),
        Ask(
            kind="colour",
            question="{A}拿的{x.noun}是什么颜色？",
            answer="{A}拿的{x.noun}是{x.colour}。",
            value="x.colour",
        ),
    ),
    "counts": (
        Ask(
            kind="count",
            question="{A}带来了几{g.measure}{g.noun}？",
            answer="{A}带来了{g}。",
            value="g",
        ),
        Ask(kind="who", question="谁带来了{g}？", answer="{A}带来了{g}。", value="A"),
    ),
    "lives": (
        Ask(
            kind="where",
            question="去哪里可以找到{A}的家？",
            answer="去{h.in}可以找到{A}的家。",
            value="h",
        ),
        Ask(kind="who", question="谁家在{h.in}？", answer="{A}家在{h.in}。", value="A"),
    ),
    "is_at": (
        Ask(kind="where", question="{A}在哪里散步？", answer="{A}在{p.in}散步。", value="p"),
        Ask(kind="who", question="谁在{p.in}散步？", answer="{A}在{p.in}散步。", value="A"),
    ),
    "likes": (
        Ask(kind="what", question="{A}觉得什么最好吃？", answer="{A}觉得{f}最好吃。", value="f"),
        Ask(kind="who", question="谁觉得{f}最好吃？", answer="{A}觉得{f}最好吃。", value="A"),
    ),
    "pet": (
        Ask(kind="name", question="{A}家里的{n}叫什么？", answer="{A}家里的{n}叫{v}。", value="v"),
        Ask(kind="who", question="谁家里有{n.a}？", answer="{A}家里有{n.a}。", value="A"),
    ),
    "friend": (Ask(kind="who", question="{A}和谁最要好？", answer="{A}和{B}最要好。", value="B"),),
    "wears": (
        Ask(kind="who", question="谁{y.wear}了{y.a}？", answer="{A}{y.wear}了{y.a}。", value="A"),
    ),
}
_STORIES = (
    Story(
        plot="the bridge of stones",
        steps=(
            "有一次，{A}和{B}在{p.in}的水边玩，{A}把{x.a}忘在了对面。",
            "水涨高了，怎么才能走过去呢？",
            "“我们用石块铺一条路吧。”{B}看了看四周说。",
            "他们把石块一块一块放进水里，直到可以走过去为止。",
            "{B}走在前面，拿到了{x.noun}，又把它交给{A}。",
            "“没有你，我就再也看不到它了。”{A}说完，拉着{B}回家吃{f}去了。",
        ),
        asks=(
            Ask(kind="who", question="谁拿到了{x.noun}？", answer="{B}拿到了{x.noun}。", value="B"),
            Ask(
                kind="what",
                question="他们回家吃什么去了？",
                answer="他们回家吃{f}去了。",
                value="f",
            ),
        ),
        openings=("who",),
        endings=(),
    ),
    Story(
        plot="the lost pet",
        steps=(
            "{A}家的{n}叫{v}，门一开，它就喜欢往外跑。",
            "这一回，{v}一直跑到了{p.in}，家里谁也不知道。",
            "{A}在每条街上喊它的名字，它都没有回来。",
            "一位老人说，他看见{n.a}和一个叫{B}的孩子在一块儿。",
            "原来{B}给了{v}水喝，还一直在等人来接它。",
            "“你对我的{n}这么好，一定要来我家做客。”{A}拉着{B}的手说。",
        ),
        asks=(
            Ask(kind="who", question="谁给了{v}水喝？", answer="{B}给了{v}水喝。", value="B"),
            Ask(
                kind="where",
                question="{v}一直跑到了哪里？",
                answer="{v}一直跑到了{p.in}。",
                value="p",
            ),
        ),
        openings=("who",),
        endings=("feel",),
    ),
    Story(
        plot="the snow",
        steps=(
            "雪下了一整夜，{p.in}白白的，静静的。",
            "{A}{z.wear}着{z.a}出来了，{B}带着{g}也出来了。",
            "他们先堆了一个大雪人，用石块做它的眼睛。",
            "后来{B}分了一些{g.noun}给{A}，因为玩雪的孩子容易饿。",
            "{m.a}远远地看着他们，等着也分到一点。",
            "夜深了，雪人独自站在那里，可是它还在笑。",
        ),
        asks=(
            Ask(kind="who", question="谁带着{g}出来了？", answer="{B}带着{g}出来了。", value="B"),
            Ask(
                kind="who",
                question="谁{z.wear}着{z.a}出来了？",
                answer="{A}{z.wear}着{z.a}出来了。",
                value="A",
            ),
        ),
        openings=("friends",),
        endings=("tell",),
    ),
)


_OPENINGS = {
    "who": (
        "你听说过{A}吗？{A.he}家就在{h.in}。",
        "{h.in}的人都认识一个叫{A}的{A.kind}。",
    ),
    "friends": ("看见{A}的人，也一定会看见{B}，因为他们做什么都在一起。",),
}
_ENDINGS = {
    "feel": ("夜里，{A}想：今天我的运气真不错！",),
    "tell": ("“明天你要多讲一些给我听。”睡觉以前，{G}在{A}耳边说。",),
}
_DIALOGUES = (
    Story(
        plot="the way",
        steps=(
            "“请问，{A}，去{p}怎么走？”{B}很想知道。",
            "“一直往前走，看到一棵大树再往左走。”{A}指着前面说。",
            "“你为什么拿着{x.a}？”“我想把它送给{C}。”{B}笑着告诉{A}。",
            "“那你要快一点，{C}就要走了！”{A}提醒说。",
        ),
        asks=(
            Ask(
                kind="who",
                question="{B}想把{x.noun}送给谁？",
                answer="{B}想把{x.noun}送给{C}。",
                value="C",
            ),
        ),
    ),
)
_SONGS = (
    Story(
        plot="clap",
        steps=(
            "拍拍手，{A}和{B}，\n拍拍手，一二三。",
            "飞上去，飞下来，\n大家一起飞起来。",
            "跺跺脚，{c}和{n}，\n跺跺脚，再来玩。",
        ),
    ),
)
_CHANGES = (
    Story(
        plot="basket",
        steps=("{A}先在桌上放了{k}，{B}又放了{l.count}，桌上就有了{s}。",),
        asks=(
            Ask(
                kind="count",
                question="桌上有了几{k.measure}{k.noun}？",
                answer="桌上有了{s}。",
                value="s",
            ),
        ),
    ),
)


def held_out_phrasebook() -> Phrasebook:
    """All Chinese templates of the held-out text."""
    return Phrasebook(
        openings=_OPENINGS,
        endings=_ENDINGS,
        stories=_STORIES,
        facts=_FACTS,
        asks=_ASKS,
        frames=("看看今天都有谁来了。", "说说我们街上的孩子吧。"),
        dialogues=_DIALOGUES,
        games=("这一行，一个一个念：", "我念一遍，你也念一遍："),
        again=("这个故事真好，我们讲两遍：",),
        songs=_SONGS,
        sums=(
            "把{k.number}和{l.number}合起来，就得到{s.number}。",
            "从{s.number}里拿走{k.number}，剩下{l.number}。",
        ),
        changes=_CHANGES,
        list_heads=("{A}旅行要带的东西：", "路上丢了这些东西："),
        list_asks=(
            Ask(kind="what", question="最上面是什么？", answer="最上面是{first}。", value="first"),
            Ask(kind="what", question="最下面是什么？", answer="最下面是{last}。", value="last"),
        ),
        pair_heads=("说一说，谁和谁是一对：",),
    )
