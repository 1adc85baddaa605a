"""English words of the world, for the training text and for the held-out text."""

from __future__ import annotations

from dataclasses import replace

from explorer.starter.lexicon import (
    Lexicon,
    Name,
    read_english,
    read_names,
    read_places,
    read_words,
)

COLOURS = (
    "red", "blue", "green", "yellow", "white", "black",
    "brown", "pink", "purple", "orange", "grey", "golden",
)  # fmt: skip
NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen", "twenty",
)  # fmt: skip
WEATHER = ("sunny", "cloudy", "windy", "warm", "cool", "bright", "misty")
RELATIVES = (
    Name(word="mother", is_girl=True),
    Name(word="grandmother", is_girl=True),
    Name(word="aunt", is_girl=True),
    Name(word="big sister", is_girl=True),
    Name(word="father", is_girl=False),
    Name(word="grandfather", is_girl=False),
    Name(word="uncle", is_girl=False),
    Name(word="big brother", is_girl=False),
)
_OUTDOORS = (
    "in the: park, garden, forest, field, meadow, playground, orchard, square\n"
    "by the: river, lake, pond, fountain, old tree\n"
    "on the: hill, beach, bridge, farm\n"
    "at the: market, zoo, bus stop"
)
_HOMES = (
    "in the: village, town, city, valley, castle, red house, white house\n"
    "by the: sea, windmill\n"
    "near the: station, church, school\n"
    "on the: island, mountain"
)


def training_lexicon() -> Lexicon:
    """The words of the training and validation text."""
    return Lexicon(
        names=read_names(
            "Mia Lily Anna Emma Zoe Ruby Lucy Ella Sofia Alice Clara Nina Eva Ivy Rosa Amy Kate "
            "Jane Molly Hannah Julia Maria Leah Sara Tina Wendy Tara Lena Elsa Mona Penny Sally "
            "Betty Vera Susan Helen",
            "Tom Ben Sam Max Leo Jack Noah Oscar Paul Peter Adam Luke Finn Hugo Theo Henry David "
            "Simon Toby Alex Eric Felix Ivan Jacob Kevin Martin Oliver Victor Dan Nick Owen Carl "
            "George Harry Joe Tim",
        ),
        toys=read_english(
            "ball, kite, doll, drum, toy boat, toy train, toy car, robot, puzzle, balloon, "
            "teddy bear, yo-yo, flute, skipping rope, toy rocket, paper plane"
        ),
        clothes=read_english(
            "hat, scarf=scarves, coat, shirt, cap, sweater, raincoat, belt, jumper, hoodie"
        ),
        household=read_english(
            "cup, bowl, spoon, basket, box, bag, bottle, book, pencil, notebook, brush, umbrella, "
            "blanket, pillow, candle, clock, key, ring, mirror, bucket, chair, lamp, plate, comb"
        ),
        pets=read_english(
            "cat>meowed, dog>barked, rabbit>squeaked, hamster>squeaked, kitten>meowed, "
            "puppy>barked, turtle>blinked, pony>neighed, guinea pig>squeaked"
        ),
        farm_animals=read_english(
            "cow>mooed, horse>neighed, sheep=sheep>bleated, pig>grunted, goat>bleated, "
            "hen>clucked, duck>quacked, donkey>brayed, goose=geese>honked, rooster>crowed"
        ),
        small_animals=read_english(
            "frog>croaked, squirrel>squeaked, owl>hooted, mouse=mice>squeaked, snail>blinked, "
            "crow>cawed, sparrow>chirped, mole>squeaked, butterfly>blinked"
        ),
        big_animals=read_english(
            "fox>yelped, bear>growled, deer=deer>blinked, monkey>chattered, lion>roared, "
            "tiger>roared, elephant>trumpeted, wolf=wolves>howled, giraffe>blinked, zebra>neighed"
        ),
        pet_names=read_words(
            "Spot, Rex, Coco, Biscuit, Fluffy, Pepper, Lucky, Honey, Shadow, Bingo"
        ),
        outdoors=read_places(_OUTDOORS),
        indoors=read_places(
            "in the: kitchen, library, barn, bakery, museum, toy shop, classroom, attic"
        ),
        homes=read_places(_HOMES),
        fruits=read_english(
            "apple, pear, banana, peach, plum, cherry, strawberry, egg, cookie, nut, carrot, "
            "potato=potatoes, sandwich, pancake"
        ),
        trinkets=read_english("shell, flower, stamp, sticker, button, pebble, bead, leaf=leaves"),
        foods=read_words(
            "soup, bread, rice, cake, porridge, pasta, salad, jam, ice cream, honey cake, pizza, "
            "apple pie, fish soup, fried rice"
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
            "Nora Freya Greta Bella Olga Paula Iris Hilda Fiona Linda Maud Esther",
            "Arthur Bruno Conrad Dylan Edgar Frank Gavin Hector Igor Jonas Rupert Stefan",
        ),
        toys=read_english("marble, trumpet, puppet, wagon, scooter, violin"),
        clothes=read_english("jacket, apron, vest, bonnet"),
        household=read_english(
            "lantern, kettle, jar, suitcase, hammer, compass, telescope, purse, envelope, teapot"
        ),
        pets=read_english("ferret, poodle, canary, gecko, parrot"),
        farm_animals=read_english("lamb, calf=calves, llama, turkey, mule"),
        small_animals=read_english("hedgehog, toad, moth, beetle, lizard"),
        big_animals=read_english("otter, badger, beaver, swan, raccoon, panda, camel"),
        pet_names=read_words("Ziggy, Waffle, Domino, Patch, Mango"),
        outdoors=read_places(
            "in the: jungle, vineyard, courtyard, desert\nby the: waterfall, canal, stream\n"
            "on the: cliff, pier\nat the: circus, harbour"
        ),
        indoors=read_places("in the: cellar, theatre, workshop, hotel"),
        homes=read_places("in the: suburb, tower, capital\nnear the: airport, hospital, mill"),
        fruits=read_english("lemon, melon, fig, walnut, onion, tomato=tomatoes, radish"),
        trinkets=read_english("acorn, feather, coin, ribbon"),
        foods=read_words("noodles, curry, pudding, yoghurt, stew, popcorn"),
    )
