"""Numbers as people read them: per cent, points, seconds; the same in tables, plots and sentences."""

from typing import Any


def percent(share: float) -> str:
    """A share of a whole: two digits below ten per cent, whole ones above.

    Example:
        >>> percent(0.0051), percent(0.0202), percent(0.1002), percent(1.0)
        ('0.51 %', '2 %', '10 %', '100 %')
    """
    value = 100 * share
    return f"{value:.2g} %" if value < 9.95 else f"{value:.0f} %"


def score(accuracy: float | None) -> str:
    """An accuracy, or an end of its interval, in per cent with one decimal; a dash for none.

    Example:
        >>> score(0.91234), score(-0.07), score(None)
        ('91.2', '−7.0', '–')
    """
    return "–" if accuracy is None else f"{100 * accuracy:.1f}".replace("-", "−")


def points(difference: float | None) -> str:
    """A difference of accuracies in percentage points, always with its sign; a dash for none.

    Example:
        >>> points(0.0312), points(-0.001), points(0.0)
        ('+3.1', '−0.1', '±0.0')
    """
    if difference is None:
        return "–"
    text = f"{abs(100 * difference):.1f}"
    return ("±" if text == "0.0" else "+" if difference > 0 else "−") + text


def hundredfold(share: float | None) -> float | None:
    """A share in per cent, for a figure; None stays None."""
    return None if share is None else 100 * share


def span(low: str, high: str) -> str:
    """An interval in words; a dash where there is none.

    Example:
        >>> span("+1.0", "+5.2")
        '+1.0 to +5.2'
    """
    return "–" if "–" in {low, high} else f"{low} to {high}"


def seconds(value: float | None) -> str:
    """A duration in seconds, with as many digits as matter.

    Example:
        >>> seconds(0.0123), seconds(4.2), seconds(133.7), seconds(None)
        ('0.012', '4.2', '134', '–')
    """
    if value is None:
        return "–"
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def listed(words: list[str]) -> str:
    """Words as a sentence has them.

    Example:
        >>> listed(["a"]), listed(["a", "b", "c"])
        ('a', 'a, b and c')
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def in_words(value: Any) -> str:
    """A setting as text.

    Example:
        >>> in_words([0, 1]), in_words(50000), in_words(0.1), in_words(None)
        ('0, 1', '50,000', '0.1', 'none')
    """
    if isinstance(value, list | tuple):
        return ", ".join(map(in_words, value)) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return f"{value:,}" if isinstance(value, int) else str(value)
