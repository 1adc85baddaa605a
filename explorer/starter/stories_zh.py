"""Chinese plots of the training text. Roles: see `phrasebook`."""

from __future__ import annotations

from explorer.starter.phrasebook import Ask, Story

OPENINGS = {
    "who": (
        "[从前|很久以前]，有一个[可爱|善良|聪明|活泼]的{A.kind}，名叫{A}。",
        "{A}是一个[善良|聪明|勇敢|爱笑|好奇]的{A.kind}，住在{h.in}。",
        "这是{A}的故事。{A.he}住在{h.in}，[最爱吃{f}|喜欢听故事|每天都很开心]。",
        "{A}和{A.he}的{G}住在{h.in}。{A.he}[最喜欢吃{f}|很爱笑|喜欢画画]。",
    ),
    "friends": (
        "{A}和{B}是[好朋友|最好的朋友|老朋友]。[他们都住在{h.in}。|他们几乎每天见面。|他们常常一起玩。]",
        "{A}有个朋友叫{B}，他们[从小就认识|住得很近|常常一起玩]。",
    ),
    "day": (
        "[有一天|一天{time}|一个{w}的{time}]，{A}[心情很好|没有事情做|想出去玩]。",
        "那是一个{w}的{time}，{A}[看着窗外|准备出门|想找人一起玩]。",
    ),
}
ENDINGS = {
    "feel": (
        "从那天起，{A}[更爱笑了|再也不害怕了|每天都很快乐]。",
        "[最后|就这样]，大家都[很高兴|开心地笑了]。",
        "[真是美好的一天|这一天过得真快]！",
        "那天晚上，{A}[睡得很香|很快就睡着了|梦见了{p}]。",
        "{A}[一直记得这一天|永远不会忘记这一天]。",
    ),
    "outside": (
        "{A}[高高兴兴地|开开心心地|蹦蹦跳跳地]回家了。",
        "回到家，{A}吃了[一些|很多]{f}，[觉得很满足|心里暖暖的]。",
    ),
    "tell": (
        "{A}把这件事告诉了{G}。{G}说：“[你做得真好|真是个好孩子|真有意思]！”",
        "后来，{G}问：“[今天过得怎么样|今天做了什么]？”“[今天真开心|今天很有意思]！”{A}说。",
    ),
}

_LOST = Story(
    plot="lost and found",
    openings=("who", "friends"),
    steps=(
        "{A}有{x.a}，[这是{A.he}最喜欢的玩具|那是{G}送给{A.he}的|{A.he}走到哪里都带着它]。",
        "[一天{time}|有一天]，{A}带着{x.noun}去{p}玩。[玩着玩着，{A.he}忘了时间。|那里有很多人。|{A.he}玩得很开心。]",
        "[可是|但是]，[要回家的时候|到了家里]，{A}发现{x.noun}不见了。",
        "“[糟糕|哎呀]！我的{x.noun}[到哪里去了|不见了|丢了]！”{A}[难过地说|着急地喊道|哭了起来]。",
        "{A}在[大石头后面|长椅下面|草丛里]找了找，[没有找到|什么也没有]。[{A.he}又看了看四周，还是没有。|]",
        "这时候，{B}走了过来，问：“[你怎么了|你为什么不高兴|要我帮忙吗]？”“我的{x.noun}丢了。”{A}说。",
        "他们一起[找了又找|找了很久|到处找]。[最后|终于]，{B}在[墙后面|树下|草丛里]找到了{x.that}。",
        "“[看，在这里|我找到了]！”{B}[大声说|高兴地喊]。“[谢谢你|太谢谢你了]，{B}！”{A}[笑了|高兴得跳了起来|紧紧地抱住了它]。",
    ),
    asks=(
        Ask(kind="who", question="谁找到了{x.noun}？", answer="{B}找到了{x.noun}。", value="B"),
        Ask(kind="who", question="谁的{x.noun}丢了？", answer="{A}的{x.noun}丢了。", value="A"),
        Ask(
            kind="colour",
            question="{x.noun}是什么颜色的？",
            answer="{x.noun}是{x.colour}的。",
            value="x.colour",
        ),
        Ask(kind="where", question="{A}去哪里玩了？", answer="{A}去{p}玩了。", value="p"),
    ),
)
_GIFT = Story(
    plot="a present",
    steps=(
        "[明天|今天]是{B}的生日。{A}想[送{B}一份礼物|给{B}一个惊喜]。",
        "“送什么好呢？”{A}问{G}。{G}说：“[想一想{B}喜欢什么|用心准备的礼物就是最好的]。”",
        "{A}[想了很久|想来想去]，[最后买了|决定送{B}]{x.a}。",
        "{A.he}把礼物[放进盒子里|用纸包好]，[还写了一张贺卡|又系上一根漂亮的绳子]。",
        "生日会上，大家一起吃{f}，[还唱了歌|还做了游戏]。{B}打开礼物，[高兴得跳了起来|开心地笑了]。",
        "“[我一直想要它|这正是我想要的|真漂亮]！”{B}说，“[谢谢你|你真好]，{A}！”",
    ),
    asks=(
        Ask(kind="what", question="{A}送给{B}什么？", answer="{A}送给{B}{x.a}。", value="x"),
        Ask(kind="who", question="是谁的生日？", answer="是{B}的生日。", value="B"),
        Ask(
            kind="what",
            question="大家在生日会上吃了什么？",
            answer="大家在生日会上吃了{f}。",
            value="f",
        ),
    ),
)
_RAIN = Story(
    plot="the rain",
    openings=("who",),
    endings=("feel",),
    steps=(
        "{A}养了{n.a}，名字叫{v}。[每天{time}|每天]，{A.he}都[带{v}出去玩|和{v}一起出门]。",
        "[这一天|有一天]，他们来到{p.in}。[天上飘来了乌云。|天慢慢变黑了。|风有点冷。]",
        "[忽然|突然|不一会儿]，下雨了。[雨越下越大。|雨点落在{A}的头上。|地上很快就湿了。]",
        "“[快跑|快来]，{v}！”{A}喊道。他们跑到[屋檐下|大伞下|亭子里]躲雨。",
        "{v}[冷得发抖|全身都湿了|有点害怕打雷]，{A}就[用大衣把它包起来|把它抱在怀里|轻轻地安慰它]。",
        "[过了一会儿|后来]，雨停了，太阳[又出来了|从云后面出来了]。[天上有一道彩虹。|空气真新鲜。|]",
        "回到家，{G}[给{A}做了{f}|端来了{f}]，{v}[在地毯上睡着了|舒服地洗了个澡]。",
    ),
    asks=(
        Ask(kind="name", question="{A}的{n}叫什么名字？", answer="{A}的{n}叫{v}。", value="v"),
        Ask(kind="where", question="他们来到了哪里？", answer="他们来到了{p.in}。", value="p"),
        Ask(kind="what", question="{v}是什么动物？", answer="{v}是{n.a}。", value="n"),
    ),
)
_RESCUE = Story(
    plot="the hungry animal",
    openings=("who",),
    endings=("feel", "tell"),
    steps=(
        "在去{p}的路上，{A}[看见了|遇见了|发现了]{m.a}。[它一动也不动。|它看着{A}。|它看起来很小。]",
        "{m.this}[又饿又累|饿坏了|没有力气]，[因为它一天没吃东西了|因为它找不到吃的]。",
        "“[别怕|你好，小家伙]，”{A}说，“[我来帮你|我不会伤害你]。”",
        "{A}的[口袋|袋子]里有{g}。{A.he}拿出一点，[轻轻地放在地上|给它吃]，它[很快就吃完了|吃得很香]。",
        "[慢慢地|吃完以后]，它[有力气了|又活泼起来了]，[高兴地看着{A}|好像在说谢谢]。",
        "[从那以后|后来]，它[每天都来看{A}|成了{A}的好朋友]，{A}叫它{v}。",
    ),
    asks=(
        Ask(kind="what", question="{A}遇见了什么动物？", answer="{A}遇见了{m.a}。", value="m"),
        Ask(kind="count", question="{A}有几{g.measure}{g.noun}？", answer="{A}有{g}。", value="g"),
        Ask(kind="name", question="{A}叫它什么？", answer="{A}叫它{v}。", value="v"),
    ),
)
_SHARE = Story(
    plot="sharing",
    steps=(
        "{A}有{g}，{B}一{g.measure}也没有。[{B}看着{A}的{g.noun}。|{B}的肚子饿了。]",
        "“可以给我一{g.measure}吗？”{B}问。[{A}一开始不愿意。|{A}想了想。|{A}看了看手里的{g.noun}。]",
        "[{A.he}想起{B}以前帮过自己。|{A.he}看到{B}很饿，心里也不好受。|{A.he}想：“一起吃更香。”]",
        "“[当然可以|好吧|没问题]，”{A}说，“[我们一起吃吧|我们分着吃吧]。”",
        "他们坐在{p.in}，[一起吃{g.noun}|把{g.noun}分着吃了]。[{g.noun}真好吃。|两个人都笑了。]",
        "“[你真好|谢谢你]，”{B}说，“[下次我请你吃|下次我也会和你分享]。”",
    ),
    asks=(
        Ask(kind="count", question="{A}有几{g.measure}{g.noun}？", answer="{A}有{g}。", value="g"),
        Ask(kind="where", question="他们坐在哪里？", answer="他们坐在{p.in}。", value="p"),
        Ask(kind="who", question="谁有{g.noun}？", answer="{A}有{g.noun}。", value="A"),
    ),
)
_COOK = Story(
    plot="cooking",
    endings=("feel",),
    steps=(
        "{G}在厨房里忙着。“[你在做什么|今天吃什么]？”{A}问。“我在做{f}，”{G}说，“你想[帮忙|一起做]吗？”",
        "“[好啊|当然想]！”{A}说。{A.he}先洗了手[，又穿上一件旧衣服|]。",
        "桌上有{y.a}，{A}把它[收好|拿走]，这样就有地方做饭了。",
        "他们一边做，一边[唱歌|聊天|讲故事]。[不一会儿，屋子里就香喷喷的。|“慢一点，”{G}说，“别着急。”]",
        "{f}做好了。这时{B}来[玩|找{A}]，他们请{B}一起吃。",
        "“[真好吃|这是世界上最好吃的{f}]！”{B}说。{A}[心里美滋滋的|听了很高兴]。",
    ),
    asks=(
        Ask(kind="what", question="他们做了什么？", answer="他们做了{f}。", value="f"),
        Ask(kind="who", question="谁来了？", answer="{B}来了。", value="B"),
    ),
)
_TURNS = Story(
    plot="taking turns",
    openings=("friends", "day"),
    steps=(
        "{A}和{B}在{p.in}发现了{x.a}。",
        "“[这是我的|是我先看见的]！”{A}说。“不，[这是我的|是我先看见的]！”{B}说。[两个人都不肯放手。|他们吵了起来。]",
        "{C}[听见了|走了过来]，说：“[别吵了|不要吵]，你们可以轮流玩。”",
        "{A}和{B}[你看看我，我看看你|都不好意思了]。“[你说得对|好主意]。”{A}说。",
        "于是{A}先玩，然后轮到{B}。[这样比吵架开心多了。|他们还请{C}一起玩。|大家都不生气了。]",
    ),
    asks=(
        Ask(kind="who", question="谁说可以轮流玩？", answer="{C}说可以轮流玩。", value="C"),
        Ask(kind="who", question="谁先玩？", answer="{A}先玩。", value="A"),
        Ask(
            kind="colour",
            question="{x.noun}是什么颜色的？",
            answer="{x.noun}是{x.colour}的。",
            value="x.colour",
        ),
    ),
)
_FRIEND = Story(
    plot="a new friend",
    openings=("who",),
    endings=("feel", "tell"),
    steps=(
        "{A}刚搬到{h.in}，[一个人也不认识|还没有朋友]。",
        "[一天{time}|第一天]，{A.he}[一个人|独自]坐在{p.in}，[看着天上的云|觉得有点孤单]。",
        "忽然，{n.a}跑到{A.he}身边，[看着{A.he}不肯走|转来转去|好像想和{A.he}玩]。{A}笑了。",
        "“{v}，[快回来|你在这里呀]！”一个{B.kind}跑过来说，“[对不起|不好意思]，它喜欢新朋友。我叫{B}。”",
        "“我叫{A}。[你的{n}真可爱。|我很喜欢你的{n}。]”[他们聊了很久。|他们很快就玩到了一起。]",
        "现在，{A}[不再孤单了|有朋友了]。",
    ),
    asks=(
        Ask(kind="name", question="{B}的{n}叫什么名字？", answer="{B}的{n}叫{v}。", value="v"),
        Ask(kind="where", question="{A}坐在哪里？", answer="{A}坐在{p.in}。", value="p"),
        Ask(kind="who", question="谁成了{A}的朋友？", answer="{B}成了{A}的朋友。", value="B"),
    ),
)
FIRST_STORIES = (_LOST, _GIFT, _RAIN, _RESCUE, _SHARE, _COOK, _TURNS, _FRIEND)
