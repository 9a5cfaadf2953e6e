"""Chinese, Japanese and Korean."""

import re

from ..basic import basic_normalizer
from ..engine import Normalizer
from ..language import Language
from ..number_words import NumberWords

_LATIN = "[A-Za-z]"
_MONTHS = "1月 2月 3月 4月 5月 6月 7月 8月 9月 10月 11月 12月"  # dates are made of numbers

_CHINESE = (
    "0: 零|一|二|三|四|五|六|七|八|九; 10: 一十[>>]; 20: <<十[>>]; 100: <<百[>h>]; "
    "1000: <<千[>k>]; "
    ""
    "10000: <w<万[>t>]; 100000000: <w<亿[>e>]; 1000000000000: <w<万亿[>e>]"
)
_CHINESE_NUMBERS = NumberWords(
    _CHINESE.replace("10: 一十[>>]", "10: 十[>>]", 1),
    10**16,
    u=_CHINESE,
    w=_CHINESE.replace("10: 一十[>>]", "10: 十[>>]", 1),
    h="0: =u=; 1: 零=u=; 10: =u=",
    k="0: =u=; 1: 零=u=; 100: =u=",
    t="0: =u=; 1: 零=u=; 1000: =u=",
    e="0: =u=; 1: 零=u=; 10000000: =u=",
)


def _chinese_date(language: Language, day: int, month: int, year: int | None) -> str:
    words = f"{language.cardinal(month)}月{language.cardinal(day)}日"
    return words if year is None else f"{language.digits(str(year))}年{words}"


def _chinese_clock(language: Language, hour: int, minute: int) -> str:
    words = f"{'两' if hour == 2 else language.cardinal(hour)}点"
    if not minute:
        return words
    zero = "零" if minute < 10 else ""
    return f"{words}{zero}{language.cardinal(minute)}分"


def chinese() -> Normalizer:
    """The rules for Mandarin Chinese."""
    language = Language(
        code="zh",
        numbers=_CHINESE_NUMBERS,
        words="minus: 负, comma: 点, point: 点, to: 到",
        months=_MONTHS,
        date=_chinese_date,
        clock=_chinese_clock,
        decimal=".",
        joint="",
        spelled_decimals=True,
        letter_boundary=_LATIN,
        currencies=(
            "¥ ￥ CNY RMB: 元, € EUR: 欧元, $ US$ USD: 美元, £ GBP: 英镑, HK$: 港元, R$: 雷亚尔"
        ),
    )
    percent = rf"{language.start}([-−]?{language.numeral})[%％]"
    language.extra["dates"] = {
        percent: lambda match: f"百分之{language.in_words(match[1])}",
        r"(?<![0-9])([0-9]{4})(?=年)": lambda match: language.digits(match[1]),
        rf"{language.start}([-−]?{language.numeral})\s?(?:°C|℃)": lambda match: (
            f"{language.in_words(match[1])}摄氏度"
        ),
        r"(?<![0-9.,])2(?=[个位只次天周本张条件人])": "两",
    }
    return basic_normalizer(language)


_JAPANESE_NUMBERS = NumberWords(
    "0: 零|一|二|三|四|五|六|七|八|九; 10: 十[>>]; 20: <<十[>>]; 100: 百[>>]; 200: <<百[>>]; "
    "1000: 千[>>]; 2000: <<千[>>]; 10000: <<万[>>]; 100000000: <<億[>>]; 1000000000000: <<兆[>>]",
    10**16,
)


def _japanese_date(language: Language, day: int, month: int, year: int | None) -> str:
    words = f"{language.cardinal(month)}月{language.cardinal(day)}日"
    return words if year is None else f"{language.cardinal(year)}年{words}"


def _japanese_clock(language: Language, hour: int, minute: int) -> str:
    words = f"{language.cardinal(hour)}時"
    return f"{words}{language.cardinal(minute)}分" if minute else words


def japanese() -> Normalizer:
    """The rules for Japanese; numbers are in kanji, which the front-end reads."""
    return basic_normalizer(
        Language(
            code="ja",
            numbers=_JAPANESE_NUMBERS,
            words="minus: マイナス, comma: 点, point: 点, to: から",
            months=_MONTHS,
            date=_japanese_date,
            clock=_japanese_clock,
            decimal=".",
            joint="",
            spelled_decimals=True,
            letter_boundary=_LATIN,
            currencies=("¥ ￥ JPY: 円, € EUR: ユーロ, $ US$ USD: ドル, £ GBP: ポンド, R$: レアル"),
            units="% ％: パーセント, °C ℃: 度, °: 度",
        )
    )


_KOREAN_NUMBERS = NumberWords(
    "0: 영|일|이|삼|사|오|육|칠|팔|구; 10: 십[>>]; 20: <<십[>>]; 100: 백[>>]; 200: <<백[>>]; "
    "1000: 천[>>]; 2000: <<천[>>]; 10000: 만[ >>]; 20000: <<만[ >>]; 100000000: <<억[ >>]; "
    "1000000000000: <<조[ >>]",
    10**16,
    # Before counters, numbers are native: "세 시", "스물두 살".
    native=(
        "0: 영|한|두|세|네|다섯|여섯|일곱|여덟|아홉; 10: 열[>>]; 20: 스무; 21: 스물>>; "
        "30: 서른[>>]; 40: 마흔[>>]; 50: 쉰[>>]; 60: 예순[>>]; 70: 일흔[>>]; 80: 여든[>>]; "
        "90: 아흔[>>]"
    ),
)
_COUNTERS = "시간|시|개(?!월)|명|살|마리|잔|병|권|대(?![\\w])|송이|벌|켤레|사람|가지|군데|달"


def _korean_date(language: Language, day: int, month: int, year: int | None) -> str:
    name = {6: "유", 10: "시"}.get(month) or language.cardinal(month)
    words = f"{name}월 {language.cardinal(day)}일"
    return words if year is None else f"{language.cardinal(year)}년 {words}"


def _korean_clock(language: Language, hour: int, minute: int) -> str:
    words = f"{language.cardinal(hour, 'native' if 1 <= hour <= 12 else '')} 시"
    return f"{words} {language.cardinal(minute)} 분" if minute else words


def korean() -> Normalizer:
    """The rules for Korean."""

    def counted(match: re.Match[str]) -> str:
        form = "native" if match[2] != "시" or int(match[1]) <= 12 else ""
        return f"{_KOREAN_NUMBERS.spell(int(match[1]), form)} {match[2]}"

    return basic_normalizer(
        Language(
            code="ko",
            numbers=_KOREAN_NUMBERS,
            words="minus: 마이너스, comma: 점, point: 점, to: 에서",
            months="1월 2월 3월 4월 5월 6월 7월 8월 9월 10월 11월 12월",
            date=_korean_date,
            clock=_korean_clock,
            decimal=".",
            spelled_decimals=True,
            letter_boundary=_LATIN,
            currencies=(
                "₩ KRW: 원, € EUR: 유로, $ US$ USD: 달러, £ GBP: 파운드, ¥ JPY: 엔, R$: 헤알"
            ),
            units="% ％: 퍼센트, °C ℃: 도, °: 도",
            extra={
                "dates": {r"(?<![0-9])6월": "유월", r"(?<![0-9])10월": "시월"},
                "numbers": {
                    rf"(?<![0-9.,:])([1-9][0-9]?)\s?({_COUNTERS})": counted,
                    r"(?<=[0-9])(?=[가-힣])(?![년월일])": " ",
                },
            },
        )
    )
