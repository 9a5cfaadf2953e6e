"""Acronyms: which are spelled and which are read as words."""

import re

_PRONOUNCED = frozenset(
    """
    NASA NATO UNICEF UNESCO OPEC FIFA UEFA AIDS NAFTA ASEAN INTERPOL SCUBA LASER RADAR SONAR
    CAPTCHA JPEG MPEG GIF PIN SIM RAM ROM LAN WAN BIOS CAD COBOL FORTRAN BASIC LISP ASCII YAML
    JSON TOML REST SOAP CERN DARPA NOAA OSHA FEMA HIPAA SARS MERS COVID ZIP SWAT POTUS SCOTUS
    MIDI CUDA LAPACK BLAS SIMD RISC WAV SEGA IKEA LEGO VISA NIMBY YOLO ISIS SALT START SIDS
    LIDAR
    """.split()
)
# Ordinary words that are often written in capitals for stress.
_STRESSED = frozenset(
    """
    A ABOUT AFTER AGAIN ALL ALSO AN AND ANY ARE AS ASK AT AWAY BAD BE BEEN BEST BIG BOTH BOY
    BUT BUY BY CALL CAME CAN COME DAY DEAR DID DIE DO DOES DONE DOWN EACH EAT END EVEN EVER
    EVERY FAR FAST FEW FIND FIRST FOR FREE FROM FULL FUN GET GIRL GIVE GO GOD GONE GOOD GOT
    GREAT HAD HAHA HARD HAS HATE HAVE HE HELL HELLO HELP HER HERE HEY HI HIM HIS HOME HOT HOW
    HUGE IF IN INTO IS ITS JOY JUST KEEP KNOW LAST LATE LEFT LESS LET LIE LIFE LIKE LIVE LONG
    LOOK LOST LOVE MAD MADE MAN MANY MAY ME MEN MINE MORE MOST MUCH MUST MY NAME NEAR NEED
    NEVER NEW NEXT NICE NIGHT NO NOPE NOT NOTE NOW OF OFF OH OK OLD ON ONCE ONE ONLY OPEN OR
    OTHER OUR OUT OVER OWN PAST PLAY PLUS POOR PUT RAN READ REAL RED RIGHT RUN SAD SAID SAME
    SAVE SAW SAY SEE SHE SHUT SIR SO SOLD SOME SOON STAY STILL STOP SUCH SURE TAKE TELL TEN
    TEXT THAN THANK THAT THE THEIR THEM THEN THERE THESE THEY THIS THOSE TIME TO TODAY TOLD
    TOO TOP TRUE TRY TURN TWO UH UM UP VERY WAIT WALK WANT WAR WAS WAY WE WELL WENT WERE WHAT
    WHEN WHERE WHICH WHILE WHY WIFE WILL WIN WISH WITH WON WORD WORK WORLD WORST WOW WRONG
    YEAH YES YET YOU YOUR
    """.split()
)
_VOWELS = frozenset("aeiouyAEIOUY")
_WORD = re.compile(r"[^\W\d_]{2,}")


def spelled(letters: str) -> str:
    """ "F B I"."""
    return " ".join(letters.upper())


def is_spelled(word: str) -> bool:
    """Whether the letters of a word are said one by one."""
    if not _VOWELS & set(word):
        return True
    if not word.isupper() or len(word) > 5:
        return False
    return word not in _PRONOUNCED and word not in _STRESSED


def _acronym(match: re.Match[str]) -> str:
    letters = match["letters"]
    if not is_spelled(letters):
        return match[0]
    return spelled(letters) + (match["ending"] or "") + (" " if match["joint"] else "")


def _pattern(letters: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?<![\w.@#'’])(?P<letters>[{letters}]{{2,}})(?P<ending>['’]?s)?(?![\w'’])(?P<joint>-(?=\w))?"
    )


_ACRONYM = _pattern("A-Z")
_WITHOUT_VOWEL = _pattern("B-DF-HJ-NP-TV-XZ")


def spell_acronyms(text: str) -> str:
    """Spells acronyms; in a text that is all in capitals, only those without a vowel."""
    words = _WORD.findall(text)
    capitals = sum(word.isupper() for word in words)
    shouted = capitals >= 3 and capitals > 0.6 * len(words)
    return (_WITHOUT_VOWEL if shouted else _ACRONYM).sub(_acronym, text)
