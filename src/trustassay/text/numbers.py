"""Formats numbers for people: counts with their nouns, figures, shares, p-values, intervals."""

import math

NOT_A_NUMBER = "–"
NO_BREAK = "\N{NARROW NO-BREAK SPACE}"


def amount(count: float, singular: str, plural: str = "") -> str:
    """Return a count with its noun: ``1 answer``, ``1,000 answers``, ``2 replies``."""
    return f"{count:,.0f} {singular if count == 1 else plural or singular + 's'}"


def verb(count: float, singular: str, plural: str) -> str:
    """Return the form of a verb that agrees with a count: ``1 is``, ``2 are``."""
    return singular if count == 1 else plural


def percent_text(share: float) -> str:
    """Format a share from 0 to 1 in whole per cent; "<1 %" or ">99 %" where it would round away."""
    if 0 < share <= 0.005:
        return "<1 %"
    return ">99 %" if 0.995 <= share < 1 else f"{100 * share:.0f} %"


def gigabytes_text(count: float) -> str:
    """Format a size in bytes as gigabytes: ``1.1 GB``."""
    return f"{count / 1e9:.1f} GB"


def number(value: float, digits: int = 1) -> str:
    """Format a number with thousands separators; an integer without decimals."""
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return NOT_A_NUMBER
    text = f"{value:,.{digits}f}"
    # "-0.0" after rounding is "0.0".
    return text.removeprefix("-") if not text.strip("-0.,") else text


def figure(value: float, unit: str, digits: int = 1) -> str:
    """Format a figure; one without a unit between -1 and 1, such as gamma, with three decimals."""
    # Counts (int) and percentages keep their format.
    if not unit and not isinstance(value, int) and abs(value) < 1:
        digits = 3
    return measure(value, unit, digits)


def format_figure(value: float, unit: str, sign: str = "") -> str:
    """Format a figure: percentages and degrees with one decimal, other numbers with three.

    sign: ``+`` for a change, which is then written with its sign.
    """
    # Counts have separators; a change of a count is written with its sign and decimals.
    if isinstance(value, int) and not sign:
        return f"{value:,}"
    return f"{value:{sign}.{1 if unit in ('%', '°') else 3}f}"


def measure(value: float, unit: str, digits: int = 1) -> str:
    """Format a number with its unit, joined by a space that does not break."""
    return f"{number(value, digits)}{NO_BREAK}{unit}" if unit else number(value, digits)


def score_text(score: float | None) -> str:
    """Format a score: two decimals, or an exponent where it would read as zero."""
    if score is None or not math.isfinite(score):
        return NOT_A_NUMBER
    # It would be rounded to 0.00.
    if 0 < abs(score) < 0.005:
        return f"{score:.1e}"
    return number(float(score), 2)


def p_text(p: float) -> str:
    """Format a p-value: two decimals, small ones with two digits, or "<0.0001"."""
    if p < 0.0001:
        return "<0.0001"
    return f"{p:.2f}" if p >= 0.1 else f"{p:.2g}"


def p_equation(p: float) -> str:
    """Format a p-value with its sign: ``p = 0.03``, or "p < 0.0001"."""
    text = p_text(p)
    return f"p {text[0]} {text[1:]}" if text.startswith("<") else f"p = {text}"


def ends_text(interval: tuple[float, float] | None, sign: str = "", digits: int = 3) -> str:
    """Format the ends of an interval, ``0.650 to 0.770``; empty without one."""
    if interval is None:
        return ""
    return " to ".join(f"{end:{sign}.{digits}f}" for end in interval).replace("-", "−")


def with_interval(value: float, interval: tuple[float, float] | None, digits: int = 3) -> str:
    """Format an estimate with its interval: ``0.712 (0.650 to 0.774)``."""
    text = number(value, digits)
    if interval:
        text += f" ({number(interval[0], digits)} to {number(interval[1], digits)})"
    return text


def with_error(value: float, error: float | None, digits: int = 3) -> str:
    """Format a mean with its standard error in its last digits: 0.063 and 0.004 as ``0.063(4)``.

    Where an error above 0 would round to 0, there are more decimals, up to ten. An error of exactly
    0 is ``(0)``. Without an error, as of a single value, the value has no parentheses.
    """
    if not math.isfinite(value):
        return NOT_A_NUMBER
    if error is None or not math.isfinite(error):
        return number(float(value), digits)
    # Up to ten decimals: an error of 1e-12 is shown as (0).
    while error > 0 and round(error * 10**digits) == 0 and digits < 10:
        digits += 1
    return f"{number(float(value), digits)}({round(error * 10**digits)})"
