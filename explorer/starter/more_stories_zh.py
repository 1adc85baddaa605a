"""More Chinese plots of the training text. Roles: see `phrasebook`."""

from __future__ import annotations

from explorer.starter.phrasebook import Ask, Story

_SEEK = Story(
    plot="hide and seek",
    steps=(
        "{A}、{B}和{C}在{p.in}玩捉迷藏。“我来数数。”{A}说着，闭上了眼睛。",
        "“一、二、三、四、五、六、七、八、九、十！[我来了|我要找了]！”{A}喊道。",
        "{A.he}先看了看[石头|大门|墙]后面，[那里只有{m.a}|一个人也没有]。",
        "接着，{A.he}听见[有人在笑|一点声音]。“{B}，我看见你了！”{A}说。{B}从[草丛里|箱子后面]走了出来。",
        "他们一起找{C}，[找了很久|找了又找]，[终于|最后]在[大树上|毯子下面]找到了{C}。",
        "“{C}赢了！”{A}说，“[你藏得真好|谁也没有你藏得好]！”[接着他们又玩了一次。|大家都笑了。]",
    ),
    asks=(
        Ask(kind="who", question="谁数到了十？", answer="{A}数到了十。", value="A"),
        Ask(kind="who", question="谁赢了？", answer="{C}赢了。", value="C"),
        Ask(
            kind="where",
            question="他们在哪里玩捉迷藏？",
            answer="他们在{p.in}玩捉迷藏。",
            value="p",
        ),
    ),
)
_BROKEN = Story(
    plot="the broken toy",
    endings=("feel",),
    steps=(
        "{A}在[家里|房间里]玩{x.a}，那是{B}的。",
        "[忽然|一不小心]，{x.noun}掉在地上，摔坏了！[{A}吓了一跳。|{A}不知道怎么办才好。]",
        "“[如果我不说，没有人会知道|我可以把它藏起来]。”{A}想。[可是{A.he}心里很难受。|可是{A.he}怎么也睡不着。]",
        "于是{A}去找{B}，说：“[对不起|真对不起]，我把你的{x.noun}弄坏了。”",
        "{B}[一开始很生气|有点难过]，[但是|可是]看到{A}这么难过，就说：“[谢谢你告诉我|你说了真话，这很好]。”",
        "{A}的{G}帮他们修好了{x.noun}，[看起来像新的一样|又可以玩了]。",
    ),
    asks=(
        Ask(kind="who", question="谁弄坏了{x.noun}？", answer="{A}弄坏了{x.noun}。", value="A"),
        Ask(kind="who", question="{x.noun}是谁的？", answer="{x.noun}是{B}的。", value="B"),
        Ask(
            kind="colour",
            question="{x.noun}是什么颜色的？",
            answer="{x.noun}是{x.colour}的。",
            value="x.colour",
        ),
    ),
)
_ERRAND = Story(
    plot="the errand",
    endings=("feel",),
    steps=(
        "“{A}，[你去商店买点东西好吗|请帮我去一次商店]？”{G}说，“我们要{g}和{y.a}。”",
        "“{g}和{y.a}，{g}和{y.a}。”{A}一路上[念着|说着]，怕自己忘了。",
        "路上，{A.he}遇见了{B}。“[来和我玩吧|一起玩吧]！”{B}说。“现在不行，我要去买{g}和{y.a}。”{A}说。",
        "到了商店，{A}说：“我要{g}和{y.a}。”[店里的人把东西装进袋子里。|老板笑着把东西递给{A.he}。]",
        "{A}[提着袋子|拿着东西]回家，[袋子有点重，可是{A.he}很高兴|{A.he}走得很小心，一样也没有丢]。",
        "“[你什么都没忘|你真能干]！”{G}说，“[现在去和{B}玩吧|来吃{f}吧]。”",
    ),
    asks=(
        Ask(
            kind="count",
            question="{A}买了几{g.measure}{g.noun}？",
            answer="{A}买了{g}。",
            value="g",
        ),
        Ask(kind="who", question="{A}在路上遇见了谁？", answer="{A}在路上遇见了{B}。", value="B"),
        Ask(
            kind="colour",
            question="{y.noun}是什么颜色的？",
            answer="{y.noun}是{y.colour}的。",
            value="y.colour",
        ),
    ),
)
_NOISE = Story(
    plot="the noise at night",
    openings=("who",),
    endings=(),
    steps=(
        "夜里，{A}躺在床上。[月亮很亮。|屋子里静静的。|外面很黑。][忽然|这时]，{A.he}听见一个声音。",
        "“[咚，咚，咚|沙沙，沙沙]。”{A}[用被子蒙住了头|坐了起来|不敢动]。“谁在那里？”{A.he}小声问。",
        "没有人回答。{A}[有点害怕，可是也很好奇|虽然害怕，还是下了床]。{A.he}拿着{y.a}，走到门口。",
        "声音是从[门后|桌子下面]传来的。{A}[慢慢地|一步一步地]走过去，打开了灯。",
        "原来是{n.a}，是{v}！{v}[闻到了{f}的香味|想吃{f}]。{A}[笑了起来|松了一口气]。",
        "{G}也来了，说：“[不用怕|黑夜里，东西看起来总是更可怕]。”[大家又去睡觉了。|不久，屋子里又安静了。]",
    ),
    asks=(
        Ask(kind="what", question="{v}是什么动物？", answer="{v}是{n.a}。", value="n"),
        Ask(
            kind="what",
            question="{A}拿着什么走到门口？",
            answer="{A}拿着{y.a}走到门口。",
            value="y",
        ),
    ),
)
_SEED = Story(
    plot="the seed",
    openings=("who",),
    endings=("feel",),
    steps=(
        "{G}给了{A}一粒种子，说：“把它种在[土里|地里]，每天给它浇水。”",
        "{A}在[屋子后面|门前|墙边]挖了一个小洞，把种子放进去，[再盖上土|然后浇了一点水]。",
        "[第二天|过了几天]，什么也没有长出来。“[它怎么还不长|它是不是睡着了]？”{A}问。“[别着急|再等一等]。”{G}说。",
        "{A}就[耐心地等着|天天去看它]。[{m.a}想来吃它，{A}把它赶走了。|天热的时候，{A.he}给它多浇一点水。]",
        "[一天{time}|后来有一天]，地上长出了绿色的小芽。它[越长越高|一天比一天大]。",
        "夏天，它开出了一朵{y.colour}的花。“[这是我种的|我的花开了]！”{A}说。{B}来看花，说：“[真漂亮|这朵花真美]！”",
    ),
    asks=(
        Ask(
            kind="colour",
            question="花是什么颜色的？",
            answer="花是{y.colour}的。",
            value="y.colour",
        ),
        Ask(kind="who", question="谁种了种子？", answer="{A}种了种子。", value="A"),
        Ask(kind="who", question="谁来看花？", answer="{B}来看花。", value="B"),
    ),
)
_SWAP = Story(
    plot="the swap",
    openings=("friends",),
    endings=("feel",),
    steps=(
        "{A}有{x.a}，{B}有{y.a}。[有一天，|这天{time}，]他们在{p.in}见面了。",
        "“你的{y.noun}真[好看|漂亮]。”{A}说。“你的{x.noun}也很[好看|漂亮]。”{B}说。",
        "“我们[换一换|交换]，好吗？”{A}问。“[好啊|好主意]！”{B}说。",
        "于是，{A}把{x.noun}给了{B}，{B}把{y.noun}给了{A}。现在{A}有{y.a}，{B}有{x.a}。",
        "[两个人都很满意。|{B}跑回家给大家看。|他们都笑了。]{G}说：“[好的交换让两个人都高兴|好朋友什么都可以分享]。”",
    ),
    asks=(
        Ask(kind="who", question="现在谁有{x.noun}？", answer="现在{B}有{x.noun}。", value="B"),
        Ask(kind="who", question="现在谁有{y.noun}？", answer="现在{A}有{y.noun}。", value="A"),
        Ask(
            kind="colour",
            question="{x.noun}是什么颜色的？",
            answer="{x.noun}是{x.colour}的。",
            value="x.colour",
        ),
    ),
)
_FABLE = Story(
    plot="the two animals",
    openings=(),
    endings=(),
    steps=(
        "{p.in}住着{b.a}和{m.a}。{b}[又高大又强壮|力气很大]，{m}[又小又聪明|个子很小]。",
        "一天，{b}对{m}说：“[你这么小，能做什么|你太小了，没有用]？”{m}[没有说话|听了很难过|只是笑了笑]。",
        "[过了几天|第二天]，{b}[掉进了一个深坑|被网住了|被夹在两棵树中间]。“救命啊！[谁来帮帮我|我出不去了]！”它喊道。",
        "只有{m}听见了。“[别急，我来帮你|我来了]！”{m}说。[它跑去叫来了大家。|它想出了一个好办法。]",
        "[不久|过了很久]，{b}得救了。“[对不起，我错了|是我不对]，”{b}说，“[你虽然小，心却很大|小朋友也能帮大忙]。”",
        "从此，{b}和{m}成了[好朋友|最好的朋友]，[天天一起玩|一起吃{g.noun}]。",
    ),
    asks=(
        Ask(kind="who", question="谁帮助了{b}？", answer="{m}帮助了{b}。", value="m"),
        Ask(kind="where", question="它们住在哪里？", answer="它们住在{p.in}。", value="p"),
        Ask(kind="who", question="谁要别人帮忙？", answer="{b}要别人帮忙。", value="b"),
    ),
)
_PICNIC = Story(
    plot="the picnic",
    steps=(
        "{A}、{B}和{C}要去{p}野餐。[每个人都要带一样东西。|“我们带什么好呢？”他们想。]",
        "{A}带了{f}，{B}带了{g}，{C}带了{x.a}。",
        "他们[坐在树下|找了一个好地方坐下]。[小鸟在唱歌。|阳光暖暖的。|微风轻轻地吹着。]",
        "[正在吃的时候|这时候]，来了{m.a}。[“它也饿了！”{B}说。|它也想吃东西。]{B}给了它一点吃的。",
        "吃完以后，他们一起玩{x.noun}，[一直玩到太阳下山|玩得满头大汗]。[“下次再来！”{C}说。|]",
    ),
    asks=(
        Ask(kind="who", question="谁带了{f}？", answer="{A}带了{f}。", value="A"),
        Ask(kind="who", question="谁带了{x.noun}？", answer="{C}带了{x.noun}。", value="C"),
        Ask(
            kind="count",
            question="{B}带了几{g.measure}{g.noun}？",
            answer="{B}带了{g}。",
            value="g",
        ),
        Ask(kind="what", question="来了什么动物？", answer="来了{m.a}。", value="m"),
    ),
)
_BEDTIME = Story(
    plot="a story at bedtime",
    openings=("who",),
    endings=(),
    steps=(
        "天黑了，{A}躺在床上，[可是睡不着|一点也不困]。“[给我讲个故事吧|讲个故事好吗]？”{A}对{G}说。",
        "“好吧，”{G}说，“从前，在{q.in}住着{b.a}。”",
        "“它[很大吗|有朋友吗|可爱吗]？”{A}问。“[是的|当然]，它最好的朋友是{m.a}。”",
        "“它们每天一起[散步|找{g.noun}吃|唱歌]，[从来不吵架|没有人比它们更快乐]。”",
        "“[后来呢|然后呢]？”{A}问，[眼睛已经快闭上了|打了个哈欠]。“后来，它们睡着了，就像你一样。”{G}说。",
        "{A}[没有听到最后|慢慢闭上了眼睛]。{G}[关了灯|给{A.he}盖好被子]，轻轻地走了出去。",
    ),
    asks=(
        Ask(
            kind="what",
            question="{b}最好的朋友是什么动物？",
            answer="{b}最好的朋友是{m.a}。",
            value="m",
        ),
        Ask(kind="who", question="谁听了故事？", answer="{A}听了故事。", value="A"),
    ),
)
_RACE = Story(
    plot="the race",
    openings=("who", "friends"),
    steps=(
        "一天{time}，{A}、{B}和{C}比赛跑步，从{p}跑到{q}。“[预备，跑|一、二、三，跑]！”{G}喊道。",
        "{A}跑得最快，{B}跟在后面，{C}跑在最后。[风吹在他们脸上。|大家都在喊加油。|]",
        "{A}[觉得自己一定会赢，就|心想：“我有的是时间。”于是{A.he}]停下来看{m.a}。",
        "{B}[被石头绊了一下|鞋子掉了]，也停了下来。只有{C}[一直在跑|一步一步往前跑]，没有停。",
        "结果，{C}得了第一名！“[你是怎么做到的|你怎么会赢]？”{A}问。“[我只是没有停下来|我没有放弃]。”{C}笑着说。",
    ),
    asks=(
        Ask(kind="who", question="谁得了第一名？", answer="{C}得了第一名。", value="C"),
        Ask(kind="what", question="{A}停下来看什么？", answer="{A}停下来看{m.a}。", value="m"),
    ),
)
MORE_STORIES = (
    _SEEK, _BROKEN, _ERRAND, _NOISE, _SEED, _SWAP, _FABLE, _PICNIC, _BEDTIME, _RACE,
)  # fmt: skip
