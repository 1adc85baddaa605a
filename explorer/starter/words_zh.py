"""Chinese words of the world, for the training text and for the held-out text."""

from __future__ import annotations

from dataclasses import replace

from explorer.starter.lexicon import (
    Lexicon,
    Name,
    read_measured,
    read_names,
    read_places,
    read_words,
)

COLOURS = ("红", "蓝", "绿", "黄", "白", "黑", "棕", "粉", "紫", "橙", "灰", "金")
NUMBERS = (
    "零", "一", "二", "三", "四", "五", "六", "七", "八", "九", "十",
    "十一", "十二", "十三", "十四", "十五", "十六", "十七", "十八", "十九", "二十",
)  # fmt: skip
WEATHER = ("晴朗", "暖和", "凉爽", "温暖")
# Frequent characters outside the words of the world: rows of them are repeated in echoes, so that
# a copy is learned as a rule and not as a list of words.
CHARACTERS = (
    "的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可"
    "里后小么心多天而能好都然没日于起还发成事只作当想看文无开手用主行方又如前所本见经头面公同三已老从"
    "动两长知民样现分将外但身些与高意进把法此实回二理美点月明其种声全工己话儿者向情部正名定女力气加给"
    "位叫今四门山路真水书白海木火石土金雨风云雷电花竹米茶羽虫鸟鱼牛羊洋葡萄柠檬核桃西瓜番茄洋葱酸奶锅"
    "灯笼壶罐箱针钱包信封锤剪刀望远镜弹珠偶铃琴板喇叭夹克背心围裙靴刺猬壁虎骡驼鸽甲飞蛾天鹅熊猫丛林沙"
    "漠溪井崖码头剧院旅馆作坊室郊区塔首都机场医磨年糕火布丁"
)
RELATIVES = (
    Name(word="妈妈", is_girl=True),
    Name(word="奶奶", is_girl=True),
    Name(word="姐姐", is_girl=True),
    Name(word="阿姨", is_girl=True),
    Name(word="爸爸", is_girl=False),
    Name(word="爷爷", is_girl=False),
    Name(word="哥哥", is_girl=False),
    Name(word="叔叔", is_girl=False),
)


def training_lexicon() -> Lexicon:
    """The words of the training and validation text."""
    return Lexicon(
        names=read_names(
            "小红 小丽 小琴 小雪 小云 小月 小梅 小玲 小芳 小玉 小燕 小美 小娟 小兰 小英 小霞 "
            "丽丽 芳芳 玲玲 婷婷 欣欣 雪儿 月月 朵朵 倩倩 颖颖 晓梅 秀英 春兰 佳佳 思思 琪琪",
            "小明 小刚 小军 小强 小华 小龙 小虎 小东 小海 小亮 小勇 小杰 小波 小林 小峰 小飞 "
            "斌斌 亮亮 强强 辉辉 乐乐 冬冬 阳阳 浩浩 大伟 志强 建国 家明 涛涛 磊磊 鹏鹏 凯凯",
        ),
        toys=read_measured(
            "个: 皮球, 风筝, 布娃娃, 机器人, 气球, 陀螺\n面: 小鼓\n辆: 玩具车\n列: 玩具火车\n"
            "只: 玩具熊, 纸船\n架: 纸飞机\n支: 笛子\n根: 跳绳\n副: 拼图"
        ),
        clothes=read_measured(
            "顶: 帽子>戴\n条: 围巾>戴, 短裤, 裤子, 腰带>系\n件: 大衣, 衬衫, 毛衣, 雨衣\n"
            "双: 手套>戴, 袜子, 鞋子"
        ),
        household=read_measured(
            "个: 杯子, 盘子, 篮子, 盒子, 书包, 瓶子, 枕头, 水桶\n只: 碗\n把: 勺子, 雨伞, 椅子, "
            "钥匙, 梳子, 刷子\n本: 故事书, 本子\n支: 铅笔, 蜡烛\n面: 镜子\n盏: 台灯\n条: 毯子\n"
            "枚: 戒指"
        ),
        pets=read_measured("只: 小猫, 兔子, 仓鼠, 乌龟, 豚鼠, 龙猫\n条: 小狗"),
        farm_animals=read_measured(
            "头: 奶牛, 小猪, 驴\n匹: 小马\n只: 山羊, 绵羊, 母鸡, 公鸡, 鸭子, 白鹅"
        ),
        small_animals=read_measured(
            "只: 青蛙, 松鼠, 猫头鹰, 老鼠, 蜗牛, 乌鸦, 麻雀, 蝴蝶, 蜜蜂, 螃蟹"
        ),
        big_animals=read_measured(
            "只: 狐狸, 小鹿, 猴子, 老虎, 灰狼, 长颈鹿\n头: 狮子, 大象, 黑熊\n匹: 斑马"
        ),
        pet_names=read_words("点点, 球球, 豆豆, 毛毛, 糖糖, 团团, 黑黑, 花花"),
        gardens=read_places("里: 公园, 花园, 果园, 操场, 动物园, 院子\n上: 沙滩, 小桥, 广场, 市场"),
        wilds=read_places("里: 森林, 田野\n: 河边, 湖边, 池塘边, 老树下\n上: 山坡, 草地"),
        indoors=read_places("里: 厨房, 图书馆, 谷仓, 面包店, 博物馆, 玩具店, 教室, 客厅"),
        homes=read_places(
            "里: 村子, 小镇, 城市, 山谷, 城堡, 红房子, 白房子\n: 海边\n上: 小岛\n"
            "旁边: 车站, 学校, 风车"
        ),
        fruits=read_measured(
            "个: 苹果, 梨, 桃子, 橘子, 鸡蛋, 土豆, 包子\n根: 香蕉, 胡萝卜\n"
            "颗: 草莓, 樱桃, 糖果\n块: 饼干"
        ),
        trinkets=read_measured(
            "颗: 扣子, 珠子\n块: 石头\n张: 邮票, 卡片, 贴纸\n个: 贝壳\n片: 树叶"
        ),
        foods=read_words(
            "面条, 米饭, 蛋糕, 饺子, 面包, 粥, 汤圆, 冰淇淋, 鱼汤, 蛋饼, 炒饭, 蔬菜汤"
        ),
        colours=COLOURS,
        numbers=NUMBERS,
        weather=WEATHER,
        relatives=RELATIVES,
    )


def held_out_lexicon() -> Lexicon:
    """Words that no training text contains; colours, numbers and weather are the same."""
    return replace(
        training_lexicon(),
        names=read_names(
            "丽云 雪梅 玉兰 月英 红霞 春燕 美玲 芳琴 佳雪 思云 秀丽 玉芳",
            "志明 建军 海龙 海波 家强 伟杰 国华 志华 建华 大林 天龙 东明",
        ),
        toys=read_measured("个: 弹珠, 木偶, 铃铛\n把: 小提琴\n辆: 滑板车\n支: 喇叭"),
        clothes=read_measured("件: 夹克, 背心\n条: 围裙>系\n双: 靴子"),
        household=read_measured(
            "盏: 灯笼\n个: 茶壶, 罐子, 行李箱, 指南针, 钱包, 信封\n把: 锤子, 剪刀\n台: 望远镜"
        ),
        pets=read_measured("只: 鹦鹉, 刺猬, 壁虎, 雪貂"),
        farm_animals=read_measured("头: 骡子, 羊驼\n只: 火鸡, 鸽子"),
        small_animals=read_measured("只: 癞蛤蟆, 飞蛾, 甲虫, 蜥蜴"),
        big_animals=read_measured("只: 水獭, 河狸, 天鹅, 浣熊, 熊猫\n头: 骆驼"),
        pet_names=read_words("果果, 米米, 多多, 毛球, 小黑点"),
        gardens=read_places("里: 葡萄园\n: 井边\n上: 码头"),
        wilds=read_places("里: 丛林, 沙漠, 竹林\n: 瀑布下, 溪边\n上: 悬崖"),
        indoors=read_places("里: 地下室, 剧院, 作坊, 旅馆"),
        homes=read_places("里: 郊区, 高塔, 首都\n旁边: 机场, 医院, 磨坊"),
        fruits=read_measured("个: 柠檬, 西瓜, 洋葱, 番茄, 核桃\n颗: 葡萄"),
        trinkets=read_measured("片: 羽毛\n枚: 硬币\n条: 丝带"),
        foods=read_words("咖喱, 布丁, 酸奶, 爆米花, 火锅, 年糕, 馄饨"),
    )
