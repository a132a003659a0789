"""The rules by which grounding reads an answer: two profiles, and every difference by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["PROFILES", "Rules"]


@dataclass(frozen=True, slots=True)
class Rules:
    """How text, citations and refusals are read. Defaults are those of the default profile.

    splitter: name of a sentence splitter, or ``NAME:LANGUAGE``.
    refusal: name of a refusal detector.
    one_text: decide refusal once, on the response as it stands; else the counts use the raw
        text and the correctness figures the one without citations.
    lists: read ``[1, 2]``, ``[1-3]``, ``[Doc 2]``; else the digits after each ``[`` alone.
    trailing: a citation after the full stop belongs to the sentence before it.
    lines: bullets and finished lines end a sentence.
    asides: a sentence without citations that claims nothing ("Here is a summary:") counts nowhere;
        else it counts as unsupported.
    zero: ``[0]`` is invalid; else it cites the last document.
    invalid: the effect of a citation of a missing document: ``void`` makes its sentence
        unsupported and takes its citations out of precision; ``imprecise`` counts it as an
        imprecise citation and judges the others.
    duplicates: ``once`` counts a document cited twice in a sentence once; ``each`` twice.
    precision: with ``paper`` a citation that covers a gold answer which the others also cover
        counts as precise; with ``alce`` it does not.
    words: gold answers match whole words; else any part of a word.
    lists_split: splitting of list answers respects numbering, "and", and names with commas.
    blank: an empty response counts ``zero`` in the citation figures; ``skip`` leaves it out.
    untitled: the premise of a passage without a title is only its text; else it has an empty
        title.
    undefined_f1_zero: the F1 of undefined recall and precision is 0; else it is undefined.
    """

    splitter: str = "sentencex"
    refusal: str = "phrases"
    one_text: bool = True
    lists: bool = True
    trailing: bool = True
    lines: bool = True
    asides: bool = True
    zero: Literal["invalid", "last"] = "invalid"
    invalid: Literal["void", "imprecise"] = "void"
    duplicates: Literal["once", "each"] = "once"
    precision: Literal["paper", "alce"] = "paper"
    words: bool = True
    lists_split: bool = True
    blank: Literal["zero", "skip"] = "zero"
    untitled: bool = True
    undefined_f1_zero: bool = False


PROFILES = {
    "default": Rules(),
    "paper": Rules(
        splitter="punkt",
        refusal="paper",
        one_text=False,
        lists=False,
        trailing=False,
        lines=False,
        asides=False,
        zero="last",
        invalid="void",
        duplicates="each",
        precision="paper",
        words=False,
        lists_split=False,
        blank="skip",
        untitled=False,
        undefined_f1_zero=True,
    ),
}
