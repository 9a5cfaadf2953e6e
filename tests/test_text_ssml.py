"""The subset of SSML that is read: its elements, its limits, and errors with line and column."""

from __future__ import annotations

import pytest

from nightingale.text import Segment, prepare
from nightingale.text.segment import Style


def spoken(inside: str, language: str = "en") -> list[Segment]:
    return prepare(f"<speak>{inside}</speak>", language)


def texts(inside: str, language: str = "en") -> list[str]:
    return [str(segment.text) for segment in spoken(inside, language)]


def test_text_that_begins_with_speak_is_ssml_and_other_text_is_not() -> None:
    ssml = "\ufeff <?xml version='1.0'?><speak>Hi &amp; bye.</speak>"
    assert [str(s.text) for s in prepare(ssml.replace(" <?", "<?"))] == ["Hi and bye."]
    assert [str(s.text) for s in prepare("  <speak\nversion='1.1'>Hi.</speak>")] == ["Hi."]
    assert "<speaker>" in prepare("<speaker>Hi.</speaker>")[0].text
    assert "<speak>" in prepare("Say <speak>Hi.</speak>")[0].text
    assert "<speak>" in prepare("<speak>Hi.</speak>", markup="plain")[0].text
    with pytest.raises(ValueError, match=r"SSML, line 1, column 1: syntax error"):
        prepare("Hi.", markup="ssml")
    with pytest.raises(ValueError, match="markup must be one of plain, ssml"):
        prepare("Hi.", markup="latex")


def test_white_space_and_line_breaks_are_spaces() -> None:
    assert texts("\n  One\n\n  two.\r\n- three\n") == ["One two. - three"]


def test_paragraphs_and_sentences_end_where_they_are_marked() -> None:
    found = spoken("<p><s>Mr. Lee</s><s>went home</s></p><p>Then he slept. He dreamt</p>Bye")
    assert [(str(s.text), s.ends) for s in found] == [
        ("Mister Lee. went home", "paragraph"),
        ("Then he slept. He dreamt", "paragraph"),
        ("Bye", "paragraph"),
    ]


@pytest.mark.parametrize(
    ("mark", "seconds"),
    [
        ("<break/>", 0.5),
        ("<break time='250ms'/>", 0.25),
        ("<break time='1.5s'/>", 1.5),
        ("<break time=' .5s '></break>", 0.5),
        ("<break strength='none' time='1s'/>", 1.0),
        ("<break strength='x-weak'/>", 0.1),
        ("<break strength='x-strong'/>", 1.25),
        ("<break time='20s'/><break time='20s'/>", 30.0),
        ("[pause 2s]", 2.0),
        ("<break time='1s'/>[pause:0.5]", 1.5),
    ],
)
def test_a_break_is_a_pause(mark: str, seconds: float) -> None:
    found = spoken(f"Wait {mark} now.")
    assert [(str(s.text), s.pause) for s in found] == [("Wait", seconds), ("now.", 0.0)]


def test_breaks_at_the_edges() -> None:
    found = spoken("<break time='1s'/><p>Wait.</p><break time='2s'/>")
    assert [(str(s.text), s.pause) for s in found] == [("", 1.0), ("Wait.", 2.0)]
    assert texts("Wait <break strength='none'/> now.") == ["Wait now."]
    assert [(str(s.text), s.pause) for s in spoken("<break/>")] == [("", 0.5)]
    with pytest.raises(ValueError, match="there is no text to speak"):
        spoken(" <p> </p>")


def test_a_part_has_its_own_language_voice_and_rate() -> None:
    inside = (
        "I said <lang xml:lang='fr-FR'>j'ai 2 chats</lang>, "
        "<voice name='Anna' xml:lang='es'>hola<prosody rate='fast'> 3 amigos.</prosody></voice>"
    )
    found = spoken(inside)
    assert [(str(s.text), s.ends, s.style) for s in found] == [
        ("I said", "cut", Style()),
        ("j'ai deux chats,", "clause", Style(language="fr")),
        ("hola", "cut", Style(language="es", voice="Anna")),
        ("tres amigos.", "paragraph", Style(language="es", voice="Anna", rate=1.25)),
    ]


def test_the_language_of_the_document_is_that_of_its_numbers() -> None:
    found = prepare("<speak xml:lang='fr'>2 chats</speak>", "en")
    assert [(str(s.text), s.style.language) for s in found] == [("deux chats", "fr")]
    assert prepare("<speak xml:lang='en-GB'>Hi.</speak>", "en")[0].style == Style()
    assert spoken("<lang xml:lang='nb-NO'>Hei.</lang>")[0].style.language == "no"


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        ("x-slow", 0.5),
        ("slow", 0.75),
        ("medium", 1.0),
        ("default", 1.0),
        ("x-fast", 1.5),
        ("150%", 1.5),
        ("+25%", 1.25),
        ("-25%", 0.75),
        ("62.5%", 0.625),
    ],
)
def test_rates(rate: str, expected: float) -> None:
    assert spoken(f"<prosody rate='{rate}'>Hi.</prosody>")[0].style.rate == expected


def test_a_rate_with_a_sign_changes_the_one_around_it() -> None:
    inner = "<prosody rate='{}'>Hi.</prosody>"
    assert spoken(f"<prosody rate='150%'>{inner.format('-50%')}</prosody>")[0].style.rate == 0.75
    assert spoken(f"<prosody rate='150%'>{inner.format('80%')}</prosody>")[0].style.rate == 0.8


def test_other_words_stand_for_the_text_they_come_from() -> None:
    text = "<speak>The <sub alias='World Wide Web'>W&amp;W</sub> is <sub alias='big'/>.</speak>"
    (segment,) = prepare(text)
    assert segment.text == "The World Wide Web is big."
    words = {str(word): text[slice(*word.source)] for word in segment.text.words()}
    assert words["World"] == words["Web"] == "W&amp;W"
    assert words["is"] == "is"
    assert words["big."] == "<sub alias='big'/>."


@pytest.mark.parametrize(
    ("kind", "text", "language", "words"),
    [
        ("characters", "Ab1", "en", "A B one"),
        ("spell-out", "w3c", "es", "uve doble tres ce"),
        ("characters", "ÑU", "es", "Ñ u"),
        ("cardinal", "1999", "en", "one thousand nine hundred ninety-nine"),
        ("cardinal", "1999", "de", "eintausendneunhundertneunundneunzig"),
        ("number", "-12", "fr", "moins douze"),
        ("number", "3.5", "en", "three point five"),
        ("cardinal", "007", "en", "seven"),
        ("ordinal", "22", "en", "twenty-second"),
        ("ordinal", "112th", "en", "one hundred twelfth"),
        ("ordinal", "1", "fr", "premier"),
        ("ordinal", "3", "es", "tercero"),
        ("ordinal", "2", "pt", "segundo"),
        ("digits", "90-210", "en", "nine zero two one zero"),
        ("digits", "12", "it", "uno due"),
        ("telephone", "+1 (212) 555", "en", "plus one, two one two, five five five"),
        ("telephone", "01 23", "fr", "zéro un, deux trois"),
        ("date", "5/12/2024", "en", "May twelfth, twenty twenty-four"),
        ("date", "2024-05-12", "es", "doce de mayo de dos mil veinticuatro"),
        ("time", "10:30", "en", "ten thirty"),
        ("time", "5:30 pm", "fr", "dix-sept heures trente"),
    ],
)
def test_say_as(kind: str, text: str, language: str, words: str) -> None:
    inside = f"<say-as interpret-as='{kind}'>{text}</say-as>"
    assert texts(inside, language) == [words]


def test_the_format_of_a_date_says_what_stands_where() -> None:
    for format, date in (("mdy", "5/12/2024"), ("dmy", "12.05.2024"), ("ymd", "2024 5 12")):
        inside = f"<say-as interpret-as='date' format='{format}'>{date}</say-as>"
        assert texts(inside) == ["May twelfth, twenty twenty-four"]


def test_entities_comments_and_cdata() -> None:
    text = "<speak>Tom &amp; <!-- not said -->Al&#233; <![CDATA[a <b> c]]></speak>"
    (segment,) = prepare(text)
    assert segment.text == "Tom and Alé a <b> c"
    words = {str(word): text[slice(*word.source)] for word in segment.text.words()}
    assert words["and"] == "&amp;"
    assert words["Alé"] == "Al&#233;"
    assert words["c"] == "c"


def test_namespaces() -> None:
    text = (
        "<a:speak xmlns:a='http://www.w3.org/2001/10/synthesis' xmlns:xsi='urn:xsi' "
        "xsi:schemaLocation='somewhere'><a:p>Hi.</a:p></a:speak>"
    )
    assert [str(s.text) for s in prepare(text, markup="ssml")] == ["Hi."]
    with pytest.raises(ValueError, match="unknown element <m:style>"):
        spoken("<m:style xmlns:m='urn:other'>Hi.</m:style>")
    with pytest.raises(ValueError, match="unknown element <m:p>"):
        spoken("<m:p xmlns:m='urn:other'>Hi.</m:p>")


BAD = {
    "<speak>Hi": "line 1, column 10: <speak> is not closed",
    "<speak>\n é <p>Hi</speak>": "line 2, column 11: mismatched tag",
    "<speak>a < b</speak>": r"line 1, column 11: not well-formed \(invalid token\)",
    "<speak>\r\n\r\n<audio src='x'/></speak>": "line 3, column 1: unknown element <audio>",
    "<speak>é&nbsp;</speak>": "line 1, column 9: unknown entity",
    "<!DOCTYPE speak [<!ENTITY a 'b'>]><speak>&a;</speak>": "type declaration is not accepted",
    "<!DOCTYPE speak SYSTEM 'file:///etc/passwd'><speak/>": "type declaration is not accepted",
    "<speak><speak>Hi</speak></speak>": "line 1, column 8: <speak> must be the outermost",
    "<speak>Hi</speak><speak>Hi</speak>": "line 1, column 18: junk after document element",
    "<speak><x:y>Hi</x:y></speak>": "line 1, column 8: unbound prefix",
    "<speak><break time='31s'/></speak>": "time='31s' is no pause: .* at most 30 s",
    "<speak><break time='-1s'/></speak>": "time='-1s' is no pause",
    "<speak><break time='5'/></speak>": "time='5' is no pause",
    "<speak><break strength='huge'/></speak>": "strength='huge' is not one of none, x-weak",
    "<speak><break>Hi</break></speak>": "<break> must be empty",
    "<speak><sub>Hi</sub></speak>": "<sub> needs the attribute 'alias'",
    "<speak><sub alias='a'>b<break/></sub></speak>": "<break> cannot stand in <sub>",
    "<speak><lang>Hi</lang></speak>": "<lang> needs the attribute 'xml:lang'",
    "<speak><voice gender='female'>Hi</voice></speak>": "<voice> has the attributes name, xml:lang",
    "<speak><prosody rate='1' pitch='2'>a</prosody></speak>": "attributes rate, not 'pitch'",
    "<speak><prosody rate='quick'>a</prosody></speak>": "rate='quick' is neither a percentage",
    "<speak><prosody rate='10%'>a</prosody></speak>": "rate='10%' is not between 50% and 200%",
    "<speak><prosody rate='+150%'>a</prosody></speak>": r"rate='\+150%' is not between",
    "<speak><say-as interpret-as='song'>a</say-as></speak>": "interpret-as='song' is not one of",
    "<speak><say-as interpret-as='cardinal'>a</say-as></speak>": "'a' is not a number",
    f"<speak><say-as interpret-as='number'>{'1' * 31}</say-as></speak>": "at most 30 digits",
    "<speak><say-as interpret-as='digits'>a1</say-as></speak>": "'a1' has characters that are not",
    "<speak><say-as interpret-as='digits'> </say-as></speak>": "<say-as> has no text",
    "<speak><say-as interpret-as='ordinal'>x</say-as></speak>": "'x' is not a whole number",
    "<speak><say-as interpret-as='telephone'>x</say-as></speak>": "'x' is not a telephone number",
    "<speak><say-as interpret-as='time'>25:00</say-as></speak>": "'25:00' is not a time",
    "<speak><say-as interpret-as='time' format='x'>1:00</say-as></speak>": "format='x' of a time",
    "<speak><say-as interpret-as='date' format='dmy'>31.2.2024</say-as></speak>": "is not a date:",
    "<speak><say-as interpret-as='date' format='dmy'>1.2.24</say-as></speak>": "a year of four",
    "<speak><say-as interpret-as='date' format='y'>2024</say-as></speak>": "is not one of dmy, mdy",
    "<speak><say-as interpret-as='digits' format='x'>1</say-as></speak>": "has no format",
    "<speak>[pause soon]</speak>": "'.pause soon.' is no pause",
}


@pytest.mark.parametrize("text", BAD)
def test_what_is_malformed_or_unsupported_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=BAD[text]) as refused:
        prepare(text, markup="ssml")
    assert "[pause" in text or str(refused.value).startswith("SSML, line ")


def test_depth_and_size_are_limited() -> None:
    with pytest.raises(ValueError, match="column 155: elements may stand in each other 50 deep"):
        prepare("<speak>" + "<p>" * 10_000)
    with pytest.raises(ValueError, match="may have 1,000,000 characters, not 1,000,015"):
        spoken("a" * 1_000_000)
    with pytest.raises(ValueError, match="not valid UTF-8"):
        spoken("\ud800")
    assert len(spoken("<p>a</p>" * 50)) == 50


def test_ordinals_are_refused_where_a_language_has_no_rules() -> None:
    with pytest.raises(ValueError, match=r"column 8: there are no ordinals .* 'de'"):
        spoken("<say-as interpret-as='ordinal'>3</say-as>", "de")
