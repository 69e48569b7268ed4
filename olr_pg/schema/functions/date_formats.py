"""Date format models of Oracle: their form for PostgreSQL's TO_CHAR and TO_DATE, and which texts
they accept (Oracle SQL Language Reference, “Datetime Format Models”).

Month and day names are English and weeks begin on Sunday, as with NLS_DATE_LANGUAGE=AMERICAN and
NLS_TERRITORY=AMERICA. In Oracle, FM applies to all elements until the next FM; in PostgreSQL, it
applies to one element.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.schema.translating import UntranslatableError

if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBERS: Final = frozenset(
    {
        *("YYYY", "YYY", "YY", "Y", "Y,YYY", "RRRR", "RR", "IYYY", "IYY", "IY", "I", "MM", "DDD"),
        *("DD", "D", "HH24", "HH12", "HH", "MI", "SSSSS", "SS", "Q", "WW", "W", "IW", "J", "CC"),
        *("FF", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "FF7", "FF8", "FF9", "TZH", "TZM"),
    }
)
_NAMES: Final = frozenset({"MONTH", "MON", "DAY", "DY", "RM"})
_HALF_FORMATS: Final = frozenset({"AM", "PM", "A.M.", "P.M.", "AD", "BC", "A.D.", "B.C."})
_WORDS: Final = sorted({*_NUMBERS, *_NAMES, *_HALF_FORMATS, "FM", "SYYYY"}, key=len, reverse=True)
_ELEMENT: Final = re.compile(
    r'"(?P<quoted>[^"]*)"|(?P<word>'
    + "|".join(map(re.escape, _WORDS))
    + r")(?P<th>TH)?|(?P<mark>[-/,.;:_ ]|X(?=FF))",
    re.IGNORECASE,
)
_RENAMED: Final = {"RRRR": "YYYY", "RR": "YY", "HH": "HH12", "SYYYY": "YYYY"}
_YEARS: Final = frozenset({"YYYY", "SYYYY", "YY", "Y,YYY", "RRRR", "RR"})
_TIMES: Final = frozenset({"HH24", "HH12", "HH", "MI", "SS", "SSSSS", "AM", "PM", "A.M.", "P.M."})
_READ: Final = frozenset(
    {*_YEARS, *_TIMES, "MM", "MONTH", "MON", "DD", "DDD", "J", "TZH", "TZM", "AD", "BC"}
    | {f"FF{digits}" for digits in ("", *range(1, 7))}
)


class Element(NamedTuple):
    """An element of a format model.

    Attributes:
        word: the element's name in capitals; empty for punctuation and quoted text.
        text: the element as the format model contains it.
        ordinal: the suffix TH as the format model contains it; empty if there is none.
    """

    word: str
    text: str
    ordinal: str = ""
    quoted: bool = False


def elements(form: str) -> list[Element]:
    """Split a format model into its elements.

    Raises:
        UntranslatableError: PostgreSQL does not have one of the elements.
    """
    at, found = 0, list[Element]()
    while at < len(form):
        match = _ELEMENT.match(form, at)
        if match is None or "\\" in match.group():
            raise UntranslatableError(f"a date with the format {form!r}")
        if match["word"] is None:
            # X is the character before fractions of seconds: a point with NLS_TERRITORY=AMERICA.
            mark = "." if match["mark"] in ("X", "x") else match["mark"]
            text = match["quoted"] if match["quoted"] is not None else mark
            found.append(Element("", text, quoted=match["quoted"] is not None))
        else:
            found.append(Element(match["word"].upper(), match["word"], match["th"] or ""))
        at = match.end()
    return found


def shown_format(form: str, digits: int = 6) -> str:
    """Return the PostgreSQL format that prints a date as Oracle does.

    Args:
        digits: number of digits of the value's fractional seconds.

    Raises:
        UntranslatableError: PostgreSQL has no such format.
    """
    is_filled, out = False, list[str]()
    for one in elements(form):
        if one.word == "FM":
            is_filled = not is_filled
            continue
        out.append(_shown(one, form, digits, "FM" if is_filled else ""))
    return "".join(out)


def _shown(one: Element, form: str, digits: int, fill: str) -> str:
    if not one.word:
        return f'"{one.text}"' if one.quoted else one.text
    if one.word in _NAMES | _HALF_FORMATS:
        is_name = one.word in _NAMES and one.word != "RM"
        forms = (one.word, one.word.lower(), *([one.word.capitalize()] if is_name else []))
        if one.text not in forms:
            raise UntranslatableError(f"{one.text} in the format {form!r}")
        return fill + one.text
    # PostgreSQL does not pad SSSSS with zeros. So SSSSS can be translated only after FM, with which
    # Oracle does not pad it either.
    if one.word == "SYYYY" or (one.word == "SSSSS" and not fill):
        raise UntranslatableError(f"{one.word} in the format {form!r}")
    word = _RENAMED.get(one.word, one.word)
    if word.startswith("FF"):
        wanted = int(word[2:] or digits)
        if wanted == 0:
            raise UntranslatableError(f"{one.text} in the format {form!r}, for whole seconds")
        word = f"FF{min(wanted, 6)}" + "0" * max(wanted - 6, 0)
    # In Oracle, the letters of the element decide whether the ordinal is in capitals; in
    # PostgreSQL, the letters of the suffix TH do.
    ordinal = one.ordinal and ("TH" if one.text.isupper() else "th")
    return fill + word + ordinal


_PARTS: Final = {
    "YYYY": ("YEAR", 4),
    "MM": ("MONTH", 2),
    "DD": ("DAY", 2),
    "HH24": ("HOUR", 2),
    "MI": ("MINUTE", 2),
    "SS": ("SECOND", 2),
    "Q": ("QUARTER", 1),
    "DDD": ("DOY", 3),
    "IYYY": ("ISOYEAR", 4),
    "IW": ("WEEK", 2),
}


def immutable_text(form: str, moment: str) -> str | None:
    """Return SQL that prints a date with IMMUTABLE expressions only, as indexes and generated
    columns require; PostgreSQL's TO_CHAR is not IMMUTABLE. Return None if an element of the format
    is not a plain number.
    """
    parts = list[str]()
    for one in elements(form):
        if not one.word:
            quoted = one.text.replace("'", "''")
            parts.append(f"'{quoted}'")
        elif one.word in _PARTS and not one.ordinal:
            name, width = _PARTS[one.word]
            value = f"CAST(FLOOR(ABS(EXTRACT({name} FROM {moment}))) AS TEXT)"
            parts.append(f"LPAD({value}, {width}, '0')")
        else:
            return None
    return f"({' || '.join(parts)})"


class ReadFormat(NamedTuple):
    """The data with which PostgreSQL can parse a date that is written in one of Oracle's formats.

    Attributes:
        form: the format for PostgreSQL.
        missing: the format of the year and month if the text does not contain them; Oracle takes a
            missing year and month from the current date.
        has_time: whether the format has a time of day.
        has_zone: whether the format has a time zone.
        century: the element for a two-digit year; empty if years have four digits.
        pattern: a regular expression, for Python and PostgreSQL, that matches the texts that Oracle
            accepts. PostgreSQL ignores text after a date, and uses 1 for missing parts.
        long_form: the format for a text in which the element `century` has four digits; empty if
            its digits touch others.
    """

    form: str
    missing: str
    has_time: bool
    has_zone: bool
    century: str
    pattern: str
    long_form: str


def read_format(form: str) -> ReadFormat:
    """Return the data with which PostgreSQL can parse dates in a format of Oracle.

    Raises:
        UntranslatableError: PostgreSQL cannot parse dates in this format.
    """
    found = elements(form)
    words = {one.word for one in found if one.word and one.word != "FM"}
    lacking = sorted(words - _READ)
    if lacking or any(one.ordinal for one in found):
        element = (lacking or ["TH"])[0]
        raise UntranslatableError(f"{element} in the format {form!r} of a text that becomes a date")
    has_day_of_year = bool(words & {"DDD", "J"})
    missing = "" if words & _YEARS or "J" in words else "YYYY-"
    missing += "" if words & {"MM", "MON", "MONTH"} or has_day_of_year else "MM-"
    has_fraction = any(word.startswith("FF") for word in words)
    century = next((word for word in ("RRRR", "RR", "YY") if word in words), "")
    found = [one for one in found if one.word != "FM"]
    if "SYYYY" in words and (missing or found[0].word != "SYYYY" or not _is_alone(found, "SYYYY")):
        # PostgreSQL can take the minus of a year BC for a separator or for one of four digits.
        reason = f"SYYYY that does not begin the format {form!r}, or has no separator after it"
        raise UntranslatableError(reason)
    is_alone = century != "RRRR" and century != "" and _is_alone(found, century)
    return ReadFormat(
        form=_read_form(found),
        missing=missing,
        has_time=bool(words & _TIMES) or has_fraction or "TZH" in words,
        has_zone="TZH" in words,
        century=century,
        pattern=_pattern(found, "four" if is_alone else ""),
        long_form=_read_form(found, century) if is_alone else "",
    )


def _read_form(found: Sequence[Element], century: str = "") -> str:
    """Return the format for PostgreSQL. The element `century`, if given, becomes a year of four
    digits.
    """
    renamed = {**_RENAMED, "FF": "FF6", **({century: "YYYY"} if century else {})}
    return "".join(
        f'"{one.text}"' if one.quoted else renamed.get(one.word, one.word) or one.text
        for one in found
    )


def _is_alone(found: Sequence[Element], word: str) -> bool:
    """Return whether the neighbours of an element contain no digits."""
    at = next(at for at, one in enumerate(found) if one.word == word)
    beside = [found[other].word for other in (at - 1, at + 1) if 0 <= other < len(found)]
    return all(one in {"", *_NAMES, *_HALF_FORMATS} for one in beside)


_YEAR: Final = r"-?\d{1,4}"
_SHORT_OR_LONG: Final = r"(?:\d{1,2}|\d{4})"
_DIGITS: Final = {
    **dict.fromkeys(("YYYY", "SYYYY", "RRRR"), _YEAR),
    **dict.fromkeys(("YY", "RR", "MM", "DD", "HH24", "HH12", "HH", "MI", "SS", "TZM"), r"\d{1,2}"),
    "DDD": r"\d{1,3}",
    "J": r"\d{1,7}",
    "SSSSS": r"\d{1,5}",
    "TZH": r"[-+ ]?\d{1,2}",
    "MON": "[A-Za-z]{3}",
    "MONTH": "[A-Za-z]{3,9} *",
    "Y,YYY": r"\d{1,3},\d{3}",
    **dict.fromkeys(("AM", "PM"), "[AaPp][Mm]"),
    **dict.fromkeys(("A.M.", "P.M."), r"[AaPp]\.[Mm]\."),
    **dict.fromkeys(("AD", "BC"), "[A-Za-z]{2}"),
}
_WORDS_READ: Final = frozenset({"", *_NAMES, *_HALF_FORMATS})


def _pattern(found: Sequence[Element], years: str) -> str:
    """Return the regular expression for texts in a format. A text may have other punctuation
    characters than the format, and the time of day may be missing from its end (Oracle SQL Language
    Reference, “String-to-Date Conversion Rules”). Between two numbers a punctuation character is
    required: without it, Oracle accepts only numbers with all digits, and PostgreSQL takes all
    digits for the first element.
    """
    parts = list[tuple[str, bool]]()
    for at, one in enumerate(found):
        if one.quoted:
            parts.append((re.escape(one.text), True))
        elif not one.word:
            beside = {found[other].word for other in (at - 1, at + 1) if 0 <= other < len(found)}
            parts.append((f"[^A-Za-z0-9]{'*' if beside & _WORDS_READ else '+'}", True))
        elif one.word.startswith("FF"):
            parts.append((r"\d{1,9}", True))
        else:
            digits = _DIGITS[one.word]
            if years and one.word in ("YY", "RR"):
                digits = _SHORT_OR_LONG
            parts.append((digits, one.word in _TIMES))
    last = max((at for at, (_, is_late) in enumerate(parts) if not is_late), default=-1)
    if last < 0:
        return "".join(part for part, _ in parts)
    tail = ""
    for part, _ in reversed(parts[last + 1 :]):
        tail = f"(?:{part}{tail})?"
    return "".join(part for part, _ in parts[: last + 1]) + tail


_PLAIN: Final = {
    "YYYY": r"(?P<Y>\d{4})",
    "MM": r"(?P<M>\d\d)",
    "DD": r"(?P<D>\d\d)",
    "HH24": r"(?P<h>\d\d)",
    "MI": r"(?P<m>\d\d)",
    "SS": r"(?P<s>\d\d)",
}


def plain_moment(text: str, form: str) -> str | None:
    """Return the date that a literal in a format of Oracle means, in ISO form, if all elements of
    the format are digits; otherwise None.
    """
    parts, seen = list[str](), set[str]()
    for one in elements(form):
        word = one.word.removeprefix("S") if one.word == "SYYYY" else one.word
        if word and (word not in _PLAIN or word in seen):
            return None
        seen.add(word)
        parts.append(_PLAIN[word] if word else re.escape(one.text))
    match = re.fullmatch("".join(parts), text.strip())
    if match is None or not {"YYYY", "MM", "DD"} <= seen:
        return None
    had = match.groupdict()
    clock = ":".join(had.get(part) or "00" for part in "hms")
    return f"{had['Y']}-{had['M']}-{had['D']} {clock}"


FIRST_GREGORIAN_YEAR: Final = 1583
_GREGORIAN_DAY: Final = 2299161


def is_early(text: str, form: str) -> bool:
    """Return whether the text is a date before 1583 in the format. Until 4 October 1582, Oracle's
    calendar is the Julian one.
    """
    read = read_format(form)
    if read.missing:
        return False
    if day := _part(text, read, _DIGITS["J"]):
        return int(day) < _GREGORIAN_DAY
    year = (
        _part(text, read, _YEAR)
        or _part(text, read, _SHORT_OR_LONG)
        or _part(text, read, _DIGITS["Y,YYY"]).replace(",", "")
        or str(FIRST_GREGORIAN_YEAR)
    )
    # RRRR, RR and YY complete a year of two digits to one of this century or the last.
    is_complete = not read.century or len(year) > len("26")
    return is_complete and (int(year) < FIRST_GREGORIAN_YEAR or "BC" in text.upper())


def _part(text: str, read: ReadFormat, digits: str) -> str:
    """Return the part of a text that stands for the element with this pattern, or an empty text."""
    if digits not in read.pattern:
        return ""
    match = re.fullmatch(rf"\s*{read.pattern.replace(digits, f'({digits})', 1)}\s*", text)
    return match[1] if match is not None else ""
