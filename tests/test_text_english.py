"""English as written to English as said."""

# ruff: noqa: RUF001

from __future__ import annotations

import random
import re

import pytest

from nightingale.text.english import expand
from nightingale.text.english.numbers import cardinal

SPOKEN = {
    "cardinals": [
        ("0", "zero"),
        ("7 cats", "seven cats"),
        ("13", "thirteen"),
        ("42", "forty-two"),
        ("100", "one hundred"),
        ("305", "three hundred five"),
        ("1,234", "one thousand two hundred thirty-four"),
        ("1234 apples", "one thousand two hundred thirty-four apples"),
        ("10000", "ten thousand"),
        ("1,000,000", "one million"),
        ("2,500,000,001", "two billion five hundred million one"),
        ("7,000,000,000,000,000,000", "seven quintillion"),
        ("1000000000000000000000", "one" + " zero" * 21),
        ("-5", "minus five"),
        ("It is −12 outside.", "It is minus twelve outside."),
        ("007", "zero zero seven"),
        ("1,2,3", "one, two, three"),
        ("a 20-year-old tree", "a twenty-year-old tree"),
        ("100+ people", "one hundred plus people"),
    ],
    "decimals and fractions": [
        ("3.14", "three point one four"),
        ("0.5", "zero point five"),
        (".5", "point five"),
        ("1,234.50", "one thousand two hundred thirty-four point five zero"),
        ("-0.25", "minus zero point two five"),
        ("1/2 a cup", "one half a cup"),
        ("3/4", "three quarters"),
        ("2/3 of it", "two thirds of it"),
        ("1 1/2 hours", "one and a half hours"),
        ("5 3/4", "five and three quarters"),
        ("5/16", "five sixteenths"),
        ("8/10", "eight out of ten"),
        ("120/80", "one hundred twenty over eighty"),
        ("½ mile", "one half mile"),
        ("2½", "two and a half"),
        ("x²", "x squared"),
        ("10^6", "ten to the power of six"),
        ("1½ lbs", "one and a half pounds"),
        ("1/2 tsp. of salt", "one half teaspoon of salt"),
        ("2e8", "two times ten to the eight"),
    ],
    "ordinals": [
        ("1st", "first"),
        ("the 2nd and 3rd", "the second and third"),
        ("11th", "eleventh"),
        ("12th", "twelfth"),
        ("20th", "twentieth"),
        ("22nd", "twenty-second"),
        ("100th", "one hundredth"),
        ("1,000th", "one thousandth"),
        ("21st-century art", "twenty-first-century art"),
    ],
    "years": [
        ("in 1999", "in nineteen ninety-nine"),
        ("since 2005", "since two thousand five"),
        ("by 2026", "by twenty twenty-six"),
        ("in 1905", "in nineteen oh five"),
        ("in 1900", "in nineteen hundred"),
        ("in 2000", "in two thousand"),
        ("in 1066", "in ten sixty-six"),
        ("in 1500", "in fifteen hundred"),
        ("44 BC", "forty-four B C"),
        ("1200 BC", "twelve hundred B C"),
        ("the 1990s", "the nineteen nineties"),
        ("the 1800s", "the eighteen hundreds"),
        ("the 2000s", "the two thousands"),
        ("the 2010s", "the twenty tens"),
        ("the '90s", "the nineties"),
        ("in his 20s", "in his twenties"),
        ("the class of '05", "the class of oh five"),
        ("1914–1918", "nineteen fourteen to nineteen eighteen"),
        ("1914-18", "nineteen fourteen to eighteen"),
        ("2,026 cars", "two thousand twenty-six cars"),
        ("1950 cars", "one thousand nine hundred fifty cars"),
        ("In 1950 cars were rare.", "In nineteen fifty cars were rare."),
        ("(1984)", "(nineteen eighty-four)"),
        ("mid-1990s", "mid-nineteen nineties"),
        ("70s music", "seventies music"),
        ("a 30s delay", "a thirty seconds delay"),
        ("the 2020 census", "the twenty twenty census"),
    ],
    "dates": [
        ("2026-11-15", "November fifteenth, twenty twenty-six"),
        ("2026-11-15T10:30:00Z", "November fifteenth, twenty twenty-six at ten thirty"),
        ("11/15/2026", "November fifteenth, twenty twenty-six"),
        ("15/11/2026", "November fifteenth, twenty twenty-six"),
        ("1/2/99", "January second, nineteen ninety-nine"),
        ("15.11.2026", "November fifteenth, twenty twenty-six"),
        ("15 November 2026", "the fifteenth of November, twenty twenty-six"),
        ("on the 3rd of May", "on the third of May"),
        ("on 3 May", "on the third of May"),
        ("Nov 15, 2026", "November fifteenth, twenty twenty-six"),
        ("Nov. 15", "November fifteenth"),
        ("November 15th, 2026", "November fifteenth, twenty twenty-six"),
        ("Nov 3-5", "November third to fifth"),
        ("November 2026", "November twenty twenty-six"),
        ("Mon, Nov 2", "Monday, November second"),
        ("It was in Nov. and it rained.", "It was in November and it rained."),
        ("It may 5 times", "It may five times"),
    ],
    "times": [
        ("10:30", "ten thirty"),
        ("10:00", "ten o'clock"),
        ("10:05", "ten oh five"),
        ("17:05", "seventeen oh five"),
        ("17:00", "seventeen hundred"),
        ("00:00", "midnight"),
        ("5pm", "five P M"),
        ("5 p.m. sharp", "five P M sharp"),
        ("at 5 p.m.", "at five P M."),
        ("10:30 AM", "ten thirty A M"),
        ("9am-5pm", "nine A M to five P M"),
        ("9:00–17:30", "nine o'clock to seventeen thirty"),
        ("9-11 am", "nine to eleven A M"),
        ("12:34:56", "twelve thirty-four and fifty-six seconds"),
        ("a 16:9 screen", "a sixteen to nine screen"),
        ("a time of 3:26.5", "a time of three:twenty-six point five"),
    ],
    "money": [
        ("$5", "five dollars"),
        ("$1", "one dollar"),
        ("$5.50", "five dollars and fifty cents"),
        ("$0.99", "ninety-nine cents"),
        ("$1.01", "one dollar and one cent"),
        ("$1,234.56", "one thousand two hundred thirty-four dollars and fifty-six cents"),
        ("£1m", "one million pounds"),
        ("£3.01", "three pounds and one penny"),
        ("€3 billion", "three billion euros"),
        ("$1.5 million", "one point five million dollars"),
        ("¥500", "five hundred yen"),
        ("5 €", "five euros"),
        ("$5k", "five thousand dollars"),
        ("$5-10", "five to ten dollars"),
        ("US$20", "twenty U S dollars"),
        ("20 USD", "twenty U S dollars"),
        ("EUR 7", "seven euros"),
        ("-$5", "minus five dollars"),
        ("a $20 bill", "a twenty dollar bill"),
        ("$20/hour", "twenty dollars per hour"),
        ("50¢", "fifty cents"),
        ("~$5", "about five dollars"),
        ("$1.5M-$2M", "one point five million dollars to two million dollars"),
    ],
    "units": [
        ("5%", "five percent"),
        ("10-20%", "ten to twenty percent"),
        ("5 km", "five kilometers"),
        ("1 km", "one kilometer"),
        ("5-km run", "five-kilometer run"),
        ("72kg", "seventy-two kilograms"),
        ("60 mph", "sixty miles per hour"),
        ("100 km/h", "one hundred kilometers per hour"),
        ("20°C", "twenty degrees Celsius"),
        ("-5 °F", "minus five degrees Fahrenheit"),
        ("a 90° turn", "a ninety degrees turn"),
        ("16GB", "sixteen gigabytes"),
        ("200 ms", "two hundred milliseconds"),
        ("44.1 kHz", "forty-four point one kilohertz"),
        ("5–10 m²", "five to ten square meters"),
        ("900 sq ft", "nine hundred square feet"),
        ("6 ft. tall", "six feet tall"),
        ("It is 6 ft.", "It is six feet."),
        ("6'2\"", "six feet two inches"),
        ("3x faster", "three times faster"),
        ("2x4", "two by four"),
        ("1920×1080", "nineteen twenty by one thousand eighty"),
        ("10k users", "ten thousand users"),
        ("4K video", "four K video"),
        ("500mg/day", "five hundred milligrams per day"),
        ("9.8 m/s²", "nine point eight meters per second squared"),
        ("4 x 100 m", "four by one hundred meters"),
        ("1.2B people", "one point two billion people"),
    ],
    "ranges": [
        ("10-20", "ten to twenty"),
        ("pages 3–5", "pages three to five"),
        ("a 3-2 win", "a three to two win"),
    ],
    "telephones and codes": [
        ("555-1234", "five five five, one two three four"),
        ("(555) 123-4567", "five five five, one two three, four five six seven"),
        ("+1 555 123 4567", "plus one, five five five, one two three, four five six seven"),
        ("1-800-555-0199", "one, eight hundred, five five five, zero one nine nine"),
        ("123-45-6789", "one two three, four five, six seven eight nine"),
        ("v1.2.3", "version one point two point three"),
        ("v2", "version two"),
        ("release 1.10.3", "release one point ten point three"),
        ("192.168.0.1", "one nine two dot one six eight dot zero dot one"),
        ("RTX4090", "R T X forty ninety"),
        ("an MP3 file", "an M P three file"),
        ("H2O", "H two O"),
        ("COVID-19", "COVID-nineteen"),
        ("GPT-4", "G P T four"),
        ("1080p", "ten eighty P"),
        ("5G", "five G"),
        ("iPhone15", "iPhone fifteen"),
        ("exit 12B", "exit twelve B"),
        ("(020) 7946 0958", "zero two zero, seven nine four six, zero nine five eight"),
    ],
    "Roman numerals": [
        ("Henry VIII", "Henry the eighth"),
        ("Henry VIII's wives", "Henry the eighth's wives"),
        ("Chapter IV", "Chapter Four"),
        ("World War II", "World War Two"),
        ("Elizabeth I of England", "Elizabeth the first of England"),
        ("With Elizabeth I went home.", "With Elizabeth I went home."),
        ("the XIX century", "the nineteenth century"),
        ("Rocky II", "Rocky Two"),
        ("vol. III", "volume Three"),
        ("I think so", "I think so"),
        ("Super Bowl LVIII", "Super Bowl Fifty-eight"),
        ("In this chapter I argue", "In this chapter I argue"),
        ("Appendix C", "Appendix C"),
        ("World War I began", "World War One began"),
        ("an IV drip", "an I V drip"),
        ("II. Introduction", "two. Introduction"),
    ],
    "abbreviations": [
        ("Dr. Smith", "Doctor Smith"),
        ("Mr. and Mrs. Brown", "Mister and Missus Brown"),
        ("Mr Brown met Ms. Green", "Mister Brown met Miz Green"),
        ("Prof. Lee", "Professor Lee"),
        ("St. Louis", "Saint Louis"),
        ("12 Main St. in Springfield", "twelve Main Street in Springfield"),
        ("on Main St.", "on Main Street."),
        ("on Elm Dr. today", "on Elm Drive today"),
        ("Fifth Ave.", "Fifth Avenue."),
        ("apples, etc.", "apples, et cetera."),
        ("apples, etc. and pears", "apples, et cetera and pears"),
        ("fruit, e.g. apples", "fruit, for example, apples"),
        ("fruit, i.e., apples", "fruit, that is, apples"),
        ("red vs. blue", "red versus blue"),
        ("Roe v. Wade", "Roe versus Wade"),
        ("No. 5", "Number five"),
        ("nos. 5 and 6", "numbers five and six"),
        ("p. 12 and pp. 3-4", "page twelve and pages three to four"),
        ("fig. 2", "figure two"),
        ("King Jr. spoke", "King Junior spoke"),
        ("Apple Inc. grew", "Apple Incorporated grew"),
        ("approx. 5", "approximately five"),
        ("c. 1500", "circa fifteen hundred"),
        ("J. R. R. Tolkien", "J R R Tolkien"),
        ("J.R.R. Tolkien", "J R R Tolkien"),
        ("a Ph.D. in art", "a P H D in art"),
        ("a.k.a. Bob", "also known as Bob"),
        ("in the U.S. today", "in the U S today"),
        ("I live in the U.S.", "I live in the U S."),
        ("in the U.S. The end", "in the U S. The end"),
        ("No. I will not.", "No. I will not."),
        ("Main St. and Elm St.", "Main Street and Elm Street."),
        ("Dr. and Mrs. Lee", "Doctor and Missus Lee"),
        ("Op. 67", "Opus sixty-seven"),
        ("Lt. Col. Smith", "Lieutenant Colonel Smith"),
        ("Smith et al. found", "Smith et al found"),
    ],
    "acronyms": [
        ("the FBI", "the F B I"),
        ("a USB stick", "a U S B stick"),
        ("PCs", "P Cs"),
        ("the FBI's files", "the F B I's files"),
        ("NASA and UNICEF", "NASA and UNICEF"),
        ("CD-ROM", "C D ROM"),
        ("It is NOT so.", "It is NOT so."),
        ("I AM SO HAPPY TODAY", "I AM SO HAPPY TODAY"),
        ("OK then", "OK then"),
        ("an HTML page", "an H T M L page"),
        ("the UK and the EU", "the U K and the E U"),
        ("A cat", "A cat"),
    ],
    "symbols": [
        ("salt & pepper", "salt and pepper"),
        ("AT&T", "A T and T"),
        ("R&D", "R and D"),
        ("#5", "number five"),
        ("#hashtag", "hashtag hashtag"),
        ("meet @ noon", "meet at noon"),
        ("1+1=2", "one plus one equals two"),
        ("5 - 3 = 2", "five minus three equals two"),
        ("C++ and C#", "C plus plus and C sharp"),
        ("and/or", "and or"),
        ("either/or", "either slash or"),
        ("24/7", "twenty-four seven"),
        ("w/o sugar", "without sugar"),
        ("< 5", "less than five"),
        ("± 3", "plus or minus three"),
        ("§ 5", "section five"),
        ("day/night", "day slash night"),
        ("x = y", "x equals y"),
        ("fish &amp; chips", "fish and chips"),
    ],
    "the web": [
        ("john.doe@example.com", "john dot doe at example dot com"),
        ("Visit example.com.", "Visit example dot com."),
        ("https://www.example.org/news/", "example dot org slash news"),
        ("see bbc.co.uk/sport, please", "see B B C dot C O dot U K slash sport, please"),
        ("report.pdf", "report dot P D F"),
        ("song.mp3", "song dot M P three"),
        ("@nightingale", "at nightingale"),
        ("my_file.tar.gz", "my file dot tar dot G Z"),
        ("foo.io", "foo dot I O"),
    ],
    "left alone": [
        ("Hello, world! How are you?", "Hello, world! How are you?"),
        ("[pause 500ms] Wait [laughter] 5.", "[pause 500ms] Wait [laughter] five."),
        ("[PAUSE 1.5s]", "[PAUSE 1.5s]"),
        ("naïve café — “quoted” … text;", "naïve café — “quoted” … text;"),
        ("two  spaces\n\nand a break", "two  spaces\n\nand a break"),
        ("It's rock 'n' roll.", "It's rock 'n' roll."),
        ("Wait... what?", "Wait... what?"),
        ("", ""),
    ],
}
PAIRS = [pair for pairs in SPOKEN.values() for pair in pairs]


@pytest.mark.parametrize(("written", "spoken"), PAIRS)
def test_what_is_written_is_expanded_to_what_is_said(written: str, spoken: str) -> None:
    assert expand(written) == spoken


def test_the_table_is_of_the_promised_size() -> None:
    assert len(PAIRS) == len({written for written, _ in PAIRS}) >= 150


@pytest.mark.parametrize("spoken", [spoken for _, spoken in PAIRS])
def test_what_is_said_stays_as_it_is(spoken: str) -> None:
    assert expand(spoken) == spoken


def test_expanding_twice_is_expanding_once() -> None:
    draw = random.Random(5)
    tokens = [written for written, _ in PAIRS]
    signs = "0123456789.,:-/$%#'aApPmMsSxIVeE +=@&()[]°²½"
    for i in range(4000):
        if i % 2:
            text = draw.choice(("", " ")).join(draw.choices(tokens, k=draw.randint(2, 4)))
        else:
            text = "".join(draw.choices(signs, k=draw.randint(1, 14)))
        once = expand(text)
        assert expand(once) == once, text


def test_no_digit_is_left_in_ordinary_text() -> None:
    for written, _ in PAIRS:
        if "[" not in written:
            assert not re.search("[0-9]", expand(f"It was {written} and then {written}."))


SMALL = {cardinal(number): number for number in range(100)}
SCALES = ["thousand", "million", "billion", "trillion", "quadrillion", "quintillion"]


def value_of(words: str) -> int:
    """The number that English words name, read with another method than they are made."""
    total = group = 0
    for word in words.split():
        if word == "hundred":
            group *= 100
        elif word in SCALES:
            total += group * 1000 ** (SCALES.index(word) + 1)
            group = 0
        else:
            group += SMALL[word]
    return total + group


def test_words_name_the_number_they_are_made_of() -> None:
    assert len(SMALL) == 100
    draw = random.Random(6)
    for number in [*range(2000), *(draw.randrange(10 ** draw.randint(1, 21)) for _ in range(2000))]:
        assert value_of(cardinal(number)) == number
        assert value_of(expand(f"{number:,}")) == number


@pytest.mark.slow
@pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_many_thousand_characters_are_expanded(count: int) -> None:
    sentence = "The 5 km of 1999 cost $5.50, e.g. on Nov. 5, at 10:30. "
    spoken = (
        "The five kilometers of nineteen ninety-nine cost five dollars and fifty cents, "
        "for example, on November fifth, at ten thirty. "
    )
    sentences = count // len(sentence)
    assert expand(sentence * sentences) == spoken * sentences
    for text in ("1" * count, "1-" * (count // 2), "a.b-c_d" * (count // 7), "A." * (count // 2)):
        assert len(expand(text)) > 0.9 * count
