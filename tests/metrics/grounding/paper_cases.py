"""Small data sets with figures worked out by hand for Trust-Eval 0.1.6, its oddities included.

Each case names what it is about; `expected` holds the keys that the case is there for, and the
comments show the arithmetic, item by item. Where the original yields NaN, None stands here.
Fractions in comments are before the factor 100.
"""

import re
from dataclasses import dataclass
from typing import Any

Item = dict[str, Any]
Pair = tuple[str, str]


def simple_sentences(text: str) -> list[str]:
    """Cut after a full stop, question mark or exclamation mark that white space follows."""
    return [piece for piece in re.split(r"(?<=[.!?])\s+", text.strip()) if piece]


@dataclass(frozen=True)
class Case:
    """One data set with the entailments that hold in it and the figures it must give."""

    name: str
    items: list[Item]
    mode: str
    entailed: set[Pair]
    sentences: dict[str, list[str]] | None
    expected: dict[str, float | None]
    at_most_citations: int | None = 3

    def entails(self, premise: str, hypothesis: str) -> bool:
        """Only the listed pairs entail."""
        return (premise, hypothesis) in self.entailed

    def split(self, text: str) -> list[str]:
        """The listed sentences of a text, or those of the simple splitter."""
        if self.sentences is None:
            return simple_sentences(text)
        return self.sentences[text]


# 15 words, and two elements when read as a list.
FLAG = "I apologize, but I couldn't find an answer to your question in the search results."


def doc(name: str, *flags: int) -> Item:
    """A document that one word identifies."""
    return {"title": name, "text": f"{name} facts.", "answers_found": list(flags)}


def premise(*names: str) -> str:
    """The premise that citing these documents must give."""
    return "\n".join(f"Title: {name}\n{name} facts." for name in names)


def item(output: str, answers: list[list[str]], docs: list[Item], question: str = "Q?") -> Item:
    """One item in the Trust-Eval layout."""
    return {"question": question, "answers": answers, "docs": docs, "output": output}


# One larger case per mode

EM_MIXED = Case(
    name="em_mixed",
    items=[
        item(
            "The cities are Paris and Divodurum and also Nice [1][2]. Other towns are smaller.",
            [["Paris"], ["Lyon"], ["Nice"], ["Metz", "Divodurum"]],
            [doc("D1", 1, 0, 0, 1), doc("D2", 0, 1, 0, 0)],
        ),
        item(
            "Rome is the largest city of that land.",
            [["Rome"], ["Milan"]],
            [doc("D1", 0, 0), doc("D2", 0, 0)],
        ),
        item(FLAG, [["Oslo"]], [doc("D1", 1)]),
        item(f"{FLAG} Bern was named in no result.", [["Bern"], ["Basel"]], [doc("D1", 0, 0)]),
        item(
            "Lima came first and it stayed the capital [1]. Its port is near.",
            [["Lima"], ["Cusco"]],
            [doc("D1", 1, 0), doc("D2", 0, 1)],
        ),
        item("No large town there is known to me.", [["Turin"]], [doc("D1", 0)]),
    ],
    mode="em",
    entailed={
        (premise("D1", "D2"), "The cities are Paris and Divodurum and also Nice."),
        (premise("D1"), "The cities are Paris and Divodurum and also Nice."),
        (premise("D1"), "Lima came first and it stayed the capital."),
    },
    sentences=None,
    expected={
        # Answered 1 2 5 6, answerable 1 3 5, so refused 3 4 and unanswerable 2 4 6.
        "num_samples": 6,
        "answered_ratio": 66.67,  # 4/6, rounded
        "answered_num": 4,
        "answerable_num": 3,
        "overlapped_num": 2,  # 1 5
        "regular_length": 77 / 6,  # 13 + 8 + 15 + 21 + 12 + 8
        "answered_length": 41 / 4,  # 13 + 8 + 12 + 8
        "refuse_rec": 100 / 3,  # item 4 of 2 4 6
        "refuse_prec": 50.0,  # item 4 of 3 4
        "refuse_f1": 40.0,  # 2 (1/3)(1/2) / (5/6) = 2/5
        "answerable_rec": 200 / 3,  # 1 5 of 1 3 5
        "answerable_prec": 50.0,  # 1 5 of 1 2 5 6
        "answerable_f1": 400 / 7,  # 2 (2/3)(1/2) / (7/6) = 4/7
        "macro_avg": 50.0,  # (1/3 + 2/3) / 2
        "macro_f1": 340 / 7,  # (2/5 + 4/7) / 2 = 17/35
        # Hits: Paris Nice Metz 3/4; Rome 1/2; 0; Bern 1/2; Lima 1/2; 0.
        "regular_str_em": 37.5,  # (3/4 + 1/2 + 0 + 1/2 + 1/2 + 0) / 6 = 9/24
        "answered_str_em": 43.75,  # (3/4 + 1/2 + 1/2 + 0) / 4 = 7/16
        # Supported: item 1 Paris Lyon Metz, 2 of 3 hit; item 5 both, 1 hit.
        "calib_answered_str_em": 700 / 24,  # (2/3 + 0 + 1/2 + 0) / 4 = 7/24
        "calib_answerable_str_em": 700 / 18,  # (2/3 + 0 + 1/2) / 3 = 7/18
        "calib_str_em_f1": 100 / 3,  # 2 / (24/7 + 18/7) = 1/3
        "parametric_str_em": 18.75,  # 43.75 - 100 (2/4 + 0 + 1/2 + 0) / 4 = 43.75 - 25
        # Recall per item 1/2 0 0 0 1/2 0. In item 1 D2 adds and shares nothing: 1 of 2 precise.
        "regular_citation_rec": 100 / 6,  # 1 / 6
        "regular_citation_prec": 25.0,  # (1/2 + 1) / 6
        "regular_citation_f1": 20.0,  # 2 (1/6)(1/4) / (5/12) = 1/5
        "answered_citation_rec": 25.0,  # 1 / 4
        "answered_citation_prec": 37.5,  # (3/2) / 4
        "answered_citation_f1": 30.0,  # 2 (1/4)(3/8) / (5/8) = 3/10
        "trust_score": 2350 / 63,  # (100/3 + 340/7 + 30) / 3 = (700 + 1020 + 630) / 21 / 3
    },
)

CM_MIXED = Case(
    name="cm_mixed",
    items=[
        item(
            "Basalt cools fast [1] and is dark.",
            [["c1"], ["c2", "c2 again"], ["c3"], ["c4"]],
            [doc("D1", 1, 0, 0, 0), doc("D2", 1, 1, 1, 0)],
        ),
        item("Granite cools slowly.", [["c5"], ["c6"]], [doc("D1", 0, 0)]),
        item(FLAG, [["c7"]], [doc("D1", 1)]),
        item("Marble was once lime.", [["c8"], ["c9"]], [doc("D1", 1, 1)]),
        item("Slate splits into sheets.", [["c10"]], [doc("D1", 0)]),
    ],
    mode="cm",
    entailed={
        ("Basalt cools fast and is dark.", "c1"),
        ("Basalt cools fast and is dark.", "c2 again"),  # a later alias: never asked
        ("Basalt cools fast and is dark.", "c4"),  # not supported by a document
        ("Granite cools slowly.", "c5"),
        (FLAG, "c7"),  # a refusal is asked too
        ("Marble was once lime.", "c8"),
        ("Marble was once lime.", "c9"),
    },
    sentences=None,
    expected={
        # Answered 1 2 4 5, answerable 1 3 4. Hits 2/4, 1/2, 1/1, 2/2, 0/1.
        "regular_claims_nli": 60.0,  # (1/2 + 1/2 + 1 + 1 + 0) / 5
        "answered_claims_nli": 50.0,  # (1/2 + 1/2 + 1 + 0) / 4
        "calib_answered_claims_nli": 100 / 3,  # (1/3 + 0 + 1 + 0) / 4
        "calib_answerable_claims_nli": 400 / 9,  # (1/3 + 0 + 1) / 3
        "calib_claims_nli_f1": 800 / 21,  # 2 / (3 + 9/4) = 8/21
        "parametric_answered_claims_nli": 18.75,  # 50 - 100 (1/4 + 0 + 1 + 0) / 4
        "macro_f1": 200 / 7,  # refusals 0; 2 (2/3)(1/2) / (7/6) = 4/7, halved
        "answered_citation_f1": 0.0,
        "trust_score": 200 / 9,  # (800/21 + 600/21 + 0) / 3
    },
)

EM5_MIXED = Case(
    name="em5_mixed",
    items=[
        item(
            "Alpha [1], Zed [1], Gamma [2], Omega [2].",
            [["Alpha"], ["Beta"], ["Gamma"], ["Delta"], ["Epsilon"], ["Zeta", "Zed"], ["Eta"]],
            [
                {
                    "title": "D1",
                    "text": "Alpha and Zed, the Omega.",
                    "answers_found": [1, 0, 0, 0, 0, 1, 0],
                },
                doc("D2", 0, 1, 0, 0, 0, 0, 0),
            ],
            "Which letters?",
        ),
        item(
            "Iron, Iron, Tin,",
            [["Iron"], ["Zinc"]],
            [{"title": "D1", "text": "A mine of tin-ore.", "answers_found": [0, 0]}],
            "Which metals?",
        ),
        item(FLAG, [["Cobalt"]], [doc("D1", 1)], "Which ores?"),
        item(
            "Mercury [1][2]",
            [["Mercury"], ["Venus"]],
            [doc("D1", 1, 0), doc("D2", 0, 0)],
            "Which planets?",
        ),
        item("Quartz [1]", [["Opal"]], [doc("D1", 0)], "Which gems?"),
    ],
    mode="em5",
    entailed={
        ("Title: D1\nAlpha and Zed, the Omega.", "Which letters? Alpha"),
        ("Title: D1\nAlpha and Zed, the Omega.", "Which letters? Zed"),
        (premise("D1", "D2"), "Which planets? Mercury"),
        (premise("D1"), "Which planets? Mercury"),
    },
    sentences=None,
    expected={
        # Answered 1 2 4 5, answerable 1 3 4; the one refusal (3) was answerable.
        "answered_ratio": 80.0,
        "refuse_rec": 0.0,
        "refuse_prec": 0.0,
        "refuse_f1": 0.0,
        "answerable_f1": 400 / 7,  # 2/3 and 2/4
        "macro_avg": 100 / 3,
        "macro_f1": 200 / 7,
        "regular_length": 4.8,  # (4 + 3 + 15 + 1 + 1) / 5
        "answered_length": 2.25,  # 9 / 4
        # Predictions 4 3 2 1 1: the refusal has one comma, the doubled Iron stays.
        "regular_num_preds": 2.2,
        "answered_num_preds": 2.25,
        "calib_answered_num_preds": 2.25,  # item 2 is not shown and still counts
        "calib_answerable_num_preds": 7 / 3,  # (4 + 2 + 1) / 3
        # P 3/4 2/3 0 1 0
        "regular_qampari_prec": 2900 / 60,  # 29/12 / 5
        "answered_qampari_prec": 2900 / 48,  # 29/12 / 4
        # R 3/7 1/2 0 1/2 0
        "regular_qampari_rec": 200 / 7,  # 10/7 / 5
        "answered_qampari_rec": 500 / 14,  # 10/7 / 4
        # R5 3/5 1/2 0 1/2 0
        "regular_qampari_rec_top5": 32.0,  # 8/5 / 5
        "answered_qampari_rec_top5": 40.0,  # 8/5 / 4
        # F 6/11, 4/7, 0, 2/3, 0: the first is 2 (3/4)(3/7) / (33/28) = 18/33; the sum is 412/231.
        "regular_qampari_f1": 41200 / 1155,
        "answered_qampari_f1": 10300 / 231,
        # F5 2/3, 4/7, 0, 2/3, 0: the first is 2 (3/4)(3/5) / (27/20); the sum is 40/21.
        "regular_qampari_f1_top5": 800 / 21,
        "answered_qampari_f1_top5": 1000 / 21,
        # Calibrated, item 1 against Alpha Beta Zeta: P 2/4, R 2/3, F 4/7.
        # Item 4 against Mercury: all 1.
        "calib_answered_qampari_prec": 37.5,  # (1/2 + 1) / 4
        "calib_answerable_qampari_prec": 50.0,  # (1/2 + 1) / 3
        "calib_answered_qampari_rec": 500 / 12,  # (2/3 + 1) / 4
        "calib_answerable_qampari_rec": 500 / 9,
        "calib_answered_qampari_rec_top5": 500 / 12,
        "calib_answerable_qampari_rec_top5": 500 / 9,
        "calib_answered_qampari_f1": 1100 / 28,  # (4/7 + 1) / 4 = 11/28
        "calib_answerable_qampari_f1": 1100 / 21,
        "calib_answered_qampari_f1_top5": 1100 / 28,
        "calib_answerable_qampari_f1_top5": 1100 / 21,
        "calib_qampari_em_f1": 2200 / 49,  # 2 * 11 / (28 + 21)
        "parametric_qampari_rec_top5": 17.5,  # 40 - 100 (2/5 + 0 + 1/2 + 0) / 4 = 40 - 22.5
        # Wrong: Gamma Omega, of which Omega is in D1, 1/2; Iron Iron Tin, of which tin is in
        # tinore, 1/3; none; Quartz, 0/1.
        "qampari_presence": 500 / 18,  # (1/2 + 1/3 + 0) / 3
        "qampari_absence": 1300 / 18,
        # Recall 2/4 0 0 1 0. Points 2 of 4; for Mercury D2 is redundant, 1 of 2; Quartz 0 of 1.
        "regular_citation_rec": 30.0,
        "regular_citation_prec": 20.0,  # (1/2 + 1/2) / 5
        "regular_citation_f1": 24.0,  # 2 * 30 * 20 / 50
        "answered_citation_rec": 37.5,
        "answered_citation_prec": 25.0,
        "answered_citation_f1": 30.0,  # 2 * 37.5 * 25 / 62.5
        "trust_score": 5070 / 147,  # (2200/49 + 1400/49 + 1470/49) / 3
    },
)

EM5_TOP_FIVE = Case(
    name="em5_top_five",
    items=[
        item(
            "Ada, Cyd, Dan, Eve, Fay, Gus, Ivo, Jon",
            [["Ada"], ["Bob"], ["Cyd"], ["Dan"], ["Eve"], ["Fay"], ["Gus"], ["Hal"]],
            [
                {
                    "title": "D1",
                    "text": "Ivo met Gus.",
                    "answers_found": [True, True, True, True, True, True, False, False],
                }
            ],
        )
    ],
    mode="em5",
    entailed=set(),
    sentences=None,
    expected={
        # 8 predictions, 6 right, 6 of 8 gold answers.
        "regular_qampari_prec": 75.0,
        "regular_qampari_rec": 75.0,
        "regular_qampari_rec_top5": 100.0,  # 5 of 5
        "regular_qampari_f1": 75.0,
        "regular_qampari_f1_top5": 600 / 7,  # 2 (3/4) / (7/4) = 6/7
        # Six are supported; Gus no longer counts: 5 right, 5 of 6.
        "calib_answered_qampari_prec": 62.5,
        "calib_answered_qampari_rec": 500 / 6,
        "calib_answered_qampari_rec_top5": 100.0,
        "calib_answered_qampari_f1": 500 / 7,  # 2 (5/8)(5/6) / (35/24) = 5/7
        "calib_answered_qampari_f1_top5": 1000 / 13,  # 2 (5/8) / (13/8) = 10/13
        "calib_answerable_qampari_f1": 500 / 7,
        "calib_qampari_em_f1": 1000 / 13,
        "parametric_qampari_rec_top5": 0.0,  # 100 - 100 * 5/5
        "qampari_presence": 200 / 3,  # Gus Ivo Jon are wrong, Jon is nowhere
        "qampari_absence": 100 / 3,
        "macro_f1": 50.0,
        "trust_score": 1650 / 39,  # (1000/13 + 50 + 0) / 3 = 1650/13 / 3
    },
)

EM5_TRIMMING = Case(
    name="em5_trimming",
    items=[
        # Trailing stops are gone before trailing commas, so the stop before the last comma stays.
        item("Iron [1],, Tin [1].,", [["Iron"]], [doc("D1", 1)], "Which metals?"),
        item("", [["Iron"]], [doc("D1", 1)], "Which metals?"),
    ],
    mode="em5",
    entailed={
        (premise("D1"), "Which metals? Iron"),
        (premise("D1"), "Which metals? Tin"),  # the hypothesis is `Which metals? Tin.`
    },
    sentences=None,
    expected={
        "regular_num_preds": 1.0,  # iron tin, nothing: (2 + 0) / 2
        "regular_qampari_prec": 25.0,  # (1/2 + 0) / 2
        "regular_qampari_rec": 50.0,
        "regular_qampari_f1": 100 / 3,  # (2/3 + 0) / 2
        # Elements Iron, empty, Tin: recall 1/3, precision 1/2. Blank output, one element: 0, 0.
        "regular_citation_rec": 100 / 6,
        "regular_citation_prec": 25.0,
        "regular_citation_f1": 20.0,  # 2 (1/6)(1/4) / (5/12)
    },
)


# The sample of the seed document, with invented texts


def line(name: str, words: int, marks: str = "") -> str:
    """A sentence of so many words."""
    return " ".join([name] + ["stone"] * (words - 1)) + marks + "."


SEED_SAMPLE = Case(
    name="seed_sample",
    items=[
        # 45 + 46 = 91 words; recall 1/2, precision 1/1
        item(
            f"{line('Amber', 45, ' [1]')} {line('Agate', 46)}",
            [["claim 1"]],
            [doc("D1", 1), doc("D2", 0)],
        ),
        # 23 + 23 + 23 + 22 = 91 words; recall 2/4, precision (3 + 1 + 0) / (3 + 1 + 1)
        item(
            f"{line('Beryl', 23, ' [1][2][3]')} {line('Borax', 23, ' [2]')} "
            f"{line('Brass', 23, ' [3]')} {line('Brick', 22)}",
            [["claim 2"]],
            [doc("D1", 1), doc("D2", 0), doc("D3", 0)],
        ),
        # 45 + 45 = 90 words; recall 1/2, precision 1/2
        item(
            f"{line('Chalk', 45, ' [1]')} {line('Coral', 45, ' [1]')}",
            [["claim 3"]],
            [doc("D1", 0)],
        ),
        # 15 + 3 * 23 = 84 words; recall 1/4, precision 1/1
        item(
            f"{FLAG} {line('Denim', 23, ' [1]')} {line('Dross', 23)} {line('Dolomite', 23)}",
            [["claim 4"]],
            [doc("D1", 0)],
        ),
        # 15 + 4 * 17 = 83 words; recall 1/5, precision 1/2
        item(
            f"{FLAG} {line('Earth', 17, ' [1]')} {line('Ebony', 17, ' [1]')} "
            f"{line('Ember', 17)} {line('Emery', 17)}",
            [["claim 5"]],
            [doc("D1", 0)],
        ),
        # 15 + 68 = 83 words; recall 0, precision 0
        item(f"{FLAG} {line('Flint', 68)}", [["claim 6"]], [doc("D1", 0)]),
    ],
    mode="cm",
    entailed={
        (f"{line('Amber', 45)} {line('Agate', 46)}", "claim 1"),
        (f"{FLAG} {line('Flint', 68)}", "claim 6"),
        (premise("D1"), line("Amber", 45)),
        (premise("D1", "D2", "D3"), line("Beryl", 23)),
        (premise("D1"), line("Beryl", 23)),
        (premise("D2"), line("Beryl", 23)),
        (premise("D3"), line("Beryl", 23)),
        (premise("D2"), line("Borax", 23)),
        (premise("D1"), line("Chalk", 45)),
        (premise("D1"), line("Denim", 23)),
        (premise("D1"), line("Earth", 17)),
    },
    sentences=None,
    expected={
        # Items 1 2 3 answered, 1 2 answerable. The figures are those printed in the sample.
        "num_samples": 6,
        "answered_ratio": 50.0,
        "answered_num": 3,
        "answerable_num": 2,
        "overlapped_num": 2,
        "regular_length": 87.0,  # (272 + 250) / 6
        "answered_length": 90.66666666666667,  # (91 + 91 + 90) / 3
        "refuse_rec": 75.0,  # 4 5 6 of 3 4 5 6
        "refuse_prec": 100.0,
        "refuse_f1": 85.71428571428571,  # 2 * 75 * 100 / 175
        "answerable_rec": 100.0,
        "answerable_prec": 66.66666666666667,  # 1 2 of 1 2 3
        "answerable_f1": 80.0,
        "macro_avg": 87.5,
        "macro_f1": 82.85714285714286,
        "regular_claims_nli": 33.33333333333333,  # 1 and 6 of six
        "answered_claims_nli": 33.33333333333333,  # 1 of three
        "calib_answered_claims_nli": 33.33333333333333,
        "calib_answerable_claims_nli": 50.0,  # 1 of two
        "calib_claims_nli_f1": 40.0,  # 2 / (3 + 2)
        "parametric_answered_claims_nli": 0.0,
        "regular_citation_rec": 32.5,  # (1/2 + 1/2 + 1/2 + 1/4 + 1/5 + 0) / 6 = 1.95 / 6
        "regular_citation_prec": 63.33333333333333,  # (1 + 4/5 + 1/2 + 1 + 1/2 + 0) / 6 = 3.8 / 6
        "regular_citation_f1": 42.95652173913043,
        "answered_citation_rec": 50.0,  # 1.5 / 3
        "answered_citation_prec": 76.66666666666666,  # 2.3 / 3
        "answered_citation_f1": 60.526315789473685,
        "trust_score": 61.127819548872175,
    },
)


# Refusals and class balance

ONE_PERFECT_ANSWER = Case(
    name="B5_one_perfect_answer",
    items=[item("Copper conducts well [1].", [["copper"]], [doc("D1", 1)])],
    mode="em",
    entailed={(premise("D1"), "Copper conducts well.")},
    sentences=None,
    expected={
        "refuse_f1": 0.0,  # nothing to refuse
        "answerable_f1": 100.0,
        "macro_avg": 50.0,
        "macro_f1": 50.0,
        "calib_str_em_f1": 100.0,
        "answered_citation_f1": 100.0,
        "trust_score": 250 / 3,  # (100 + 50 + 100) / 3
    },
)

ONE_RIGHT_REFUSAL = Case(
    name="B5_one_right_refusal",
    items=[item(FLAG, [["copper"]], [doc("D1", 0)])],
    mode="em",
    entailed=set(),
    sentences=None,
    expected={
        "answered_ratio": 0.0,
        "regular_length": 15.0,
        "answered_length": 0.0,  # nothing is answered
        "refuse_f1": 100.0,
        "answerable_f1": 0.0,
        "macro_f1": 50.0,
        "calib_str_em_f1": 0.0,
        "regular_citation_rec": 0.0,  # one sentence, not cited
        "answered_citation_rec": 0.0,
        "trust_score": 50 / 3,
    },
)

FRAGMENTS_OF_THE_FLAG = Case(
    name="B6_fragments_of_the_flag",
    items=[
        # `log` stands in `apologize`
        item("but", [["x1"]], [doc("D1", 0)]),
        item("could", [["x1"]], [doc("D1", 0)]),
        item("log", [["log"]], [doc("D1", 1)]),
        item("I apologize", [["x1"]], [doc("D1", 0)]),
        # These two stay below the threshold: 50 and 84
        item("In", [["x1"]], [doc("D1", 0)]),
        item("I apologize; I couldn't find an exact answer", [["x1"]], [doc("D1", 0)]),
    ],
    mode="em",
    entailed=set(),
    sentences=None,
    expected={
        "answered_num": 2,
        "answered_ratio": 33.33,
        "answered_length": 4.5,  # (1 + 8) / 2
        "refuse_rec": 60.0,  # 1 2 4 of 1 2 4 5 6
        "refuse_prec": 75.0,  # 1 2 4 of 1 2 3 4
        "refuse_f1": 200 / 3,  # 2 * 60 * 75 / 135
        "answerable_f1": 0.0,
        "regular_str_em": 100 / 6,  # log
        "calib_answerable_str_em": 0.0,  # the one answerable item counts as refused
    },
)

PARAPHRASE_AND_FLAGGED_ANSWER = Case(
    name="B7_paraphrase_and_flagged_answer",
    items=[
        item("There is not enough information.", [["x1"]], [doc("D1", 0)]),
        item(f"The summit is Everest [1]. {FLAG}", [["Everest"]], [doc("D1", 1)]),
        item(FLAG, [["x1"]], [doc("D1", 0)]),
    ],
    mode="em",
    entailed={(premise("D1"), "The summit is Everest.")},
    sentences=None,
    expected={
        # Refused 2 3, unanswerable 1 3.
        "answered_num": 1,
        "answerable_num": 1,
        "overlapped_num": 0,
        "refuse_rec": 50.0,
        "refuse_prec": 50.0,
        "refuse_f1": 50.0,
        "answerable_rec": 0.0,
        "answerable_prec": 0.0,
        "macro_avg": 25.0,
        "macro_f1": 25.0,
        "regular_str_em": 100 / 3,
        "answered_str_em": 0.0,
        "calib_answerable_str_em": 0.0,
        # Item 2: one of two sentences, its one citation precise.
        "regular_citation_rec": 100 / 6,
        "regular_citation_prec": 100 / 3,
        "regular_citation_f1": 200 / 9,  # 2 (1/6)(1/3) / (1/2) = 2/9
        "answered_citation_f1": 0.0,
        "trust_score": 25 / 3,
    },
)

RAW_AGAINST_STRIPPED_EM = Case(
    name="B8_raw_against_stripped_em",
    items=[
        # 83 with its citation, 100 without
        item("Find [1].", [["find"], ["seek"]], [doc("D1", 1, 0)]),
        item("Copper conducts well [1].", [["copper"]], [doc("D1", 1)]),
    ],
    mode="em",
    entailed={
        (premise("D1"), "Find."),
        (premise("D1"), "Copper conducts well."),
    },
    sentences=None,
    expected={
        "answered_num": 2,
        "answerable_f1": 100.0,
        "answered_str_em": 75.0,  # (1/2 + 1) / 2
        "calib_answered_str_em": 50.0,  # item 1 is not shown
        "calib_answerable_str_em": 50.0,
        "parametric_str_em": 25.0,  # 75 - 100 (0 + 1) / 2
        "answered_citation_rec": 100.0,
        "trust_score": 200 / 3,  # (50 + 50 + 100) / 3
    },
)

RAW_AGAINST_STRIPPED_CM = Case(
    name="B8_raw_against_stripped_cm",
    items=[
        item("Find [1].", [["c1"]], [doc("D1", 1)]),
        item("Copper conducts well [1].", [["c2"], ["c3"]], [doc("D1", 1, 1)]),
    ],
    mode="cm",
    entailed={("Find.", "c1"), ("Copper conducts well.", "c2")},
    sentences=None,
    expected={
        "answered_num": 2,  # decided on the raw text
        "regular_claims_nli": 75.0,  # (1 + 1/2) / 2
        "answered_claims_nli": 50.0,  # item 2 alone
        "calib_answered_claims_nli": 50.0,
        "calib_answerable_claims_nli": 25.0,  # (0 + 1/2) / 2
        "calib_claims_nli_f1": 100 / 3,  # 2 / (2 + 4)
        "parametric_answered_claims_nli": 0.0,
    },
)

RAW_AGAINST_STRIPPED_EM5 = Case(
    name="B8_raw_against_stripped_em5",
    items=[
        item("Find [1].", [["x1"]], [doc("D1", 1)]),
        item("Copper [1]", [["copper"], ["zinc"]], [doc("D1", 1, 1)]),
    ],
    mode="em5",
    entailed=set(),
    sentences=None,
    expected={
        "answered_num": 2,
        # Item 1 is not shown; item 2 has P 1, R 1/2, F 2/3.
        "calib_answered_num_preds": 1.0,
        "calib_answered_qampari_prec": 50.0,
        "calib_answered_qampari_rec": 25.0,
        "calib_answerable_qampari_f1": 100 / 3,
        "parametric_qampari_rec_top5": 0.0,  # 25 - 100 (0 + 1/2) / 2
    },
)

BLANK_BESIDE_ANSWER = Case(
    name="B9_blank_beside_answer",
    items=[
        item("", [["x1"]], [doc("D1", 0)]),
        item("Copper conducts well [1]. Copper is red.", [["copper"]], [doc("D1", 1)]),
    ],
    mode="em",
    entailed={(premise("D1"), "Copper conducts well.")},
    sentences=None,
    expected={
        "answered_num": 2,  # blank is an answer
        "answered_ratio": 100.0,
        "answered_length": 3.0,  # (0 + 6) / 2
        "answerable_prec": 50.0,
        "answerable_f1": 200 / 3,
        "answered_str_em": 50.0,
        # Item 2 alone: one of two sentences.
        "regular_citation_rec": 50.0,
        "regular_citation_prec": 100.0,
        "regular_citation_f1": 200 / 3,
        "answered_citation_rec": 50.0,
        "answered_citation_f1": 200 / 3,
    },
)

ALL_BLANK = Case(
    name="B9_B26_all_blank",
    items=[
        item("", [["x1"]], [doc("D1", 0)]),
        item(" \n", [["x2"]], [doc("D1", 1)]),
    ],
    mode="em",
    entailed=set(),
    sentences=None,
    expected={
        "answered_num": 2,
        "regular_length": 0.0,
        "answerable_f1": 200 / 3,  # 1/1 and 1/2
        "regular_citation_rec": None,
        "regular_citation_prec": None,
        "regular_citation_f1": 0.0,
        "answered_citation_rec": 0.0,
        "answered_citation_prec": 0.0,
        "answered_citation_f1": 0.0,
        "trust_score": 100 / 9,  # (0 + 100/3 + 0) / 3
    },
)

LISTS_ALL_REFUSED = Case(
    name="em5_all_refused",
    items=[
        item(FLAG, [["iron"]], [doc("D1", 0)]),
        item(FLAG, [["iron"]], [doc("D1", 1)]),
    ],
    mode="em5",
    entailed=set(),
    sentences=None,
    expected={
        "regular_num_preds": 2.0,
        "answered_num_preds": 0.0,
        "calib_answered_num_preds": 0.0,
        "calib_answerable_num_preds": 2.0,
        "calib_qampari_em_f1": 0.0,
        "qampari_presence": 0.0,
        "qampari_absence": 0.0,
        "refuse_rec": 100.0,
        "refuse_prec": 50.0,
        "refuse_f1": 200 / 3,
        "trust_score": 100 / 9,
    },
)


# Citations

OUT_OF_RANGE = Case(
    name="B10_out_of_range",
    items=[
        item(
            "Copper melts slowly [2][9]. Zinc melts quickly [1]. Lead melts first [2].",
            [["x1"]],
            [doc("D1", 1), doc("D2", 0)],
        )
    ],
    mode="em",
    entailed={
        (premise("D2"), "Copper melts slowly."),
        (premise("D1"), "Zinc melts quickly."),
    },
    sentences=None,
    expected={
        "regular_citation_rec": 100 / 3,  # Zinc
        "regular_citation_prec": 50.0,  # 1 of 2: Copper adds nothing to the denominator
        "regular_citation_f1": 40.0,  # 2 (1/3)(1/2) / (5/6)
    },
)

RANGE_BEFORE_LIMIT = Case(
    name="B11_range_before_limit",
    items=[
        item(
            "Copper melts slowly [1][2][3][9]. Zinc melts quickly [1][2][3][1].",
            [["x1"]],
            [doc("D1", 1), doc("D2", 0), doc("D3", 0)],
        )
    ],
    mode="em",
    entailed={
        (premise("D1", "D2", "D3"), "Copper melts slowly."),
        (premise("D1", "D2", "D3"), "Zinc melts quickly."),
        (premise("D1"), "Zinc melts quickly."),
        (premise("D2"), "Zinc melts quickly."),
        (premise("D1", "D2"), "Zinc melts quickly."),
    },
    sentences=None,
    expected={
        "regular_citation_rec": 50.0,
        # D1 and D2 by themselves; D3 is redundant; the fourth was cut
        "regular_citation_prec": 200 / 3,
        "regular_citation_f1": 400 / 7,  # 2 (1/2)(2/3) / (7/6)
    },
)

ZERO_IS_THE_LAST = Case(
    name="B12_zero_is_the_last",
    items=[
        item(
            "Nickel is magnetic [0]. Nickel is dense [0][2]. Nickel is cheap [0].",
            [["x1"]],
            [doc("D1", 0), doc("D2", 1)],
        )
    ],
    mode="em",
    entailed={
        (premise("D2"), "Nickel is magnetic."),
        (premise("D2", "D2"), "Nickel is dense."),
    },
    sentences=None,
    expected={
        "regular_citation_rec": 200 / 3,
        # 1 of 1, 2 of 2 (neither document by itself or as the rest is enough), 0 of 1
        "regular_citation_prec": 75.0,
        "regular_citation_f1": 1200 / 17,  # 2 (2/3)(3/4) / (17/12)
    },
)

FIVE_DOCS = [doc("D1", 0), doc("D2", 1), doc("D3", 0), doc("D4", 0), doc("D5", 0)]

LIMIT_PAIRS = {
    (premise("D3", "D4", "D5", "D2"), "Radium glows."),
    (premise("D4", "D5", "D2"), "Radium glows."),
    (premise("D3", "D4", "D2"), "Radium glows."),
    (premise("D2"), "Radium glows."),
    (premise("D1"), "Argon is inert."),
}

LIMIT_HIDES_SUPPORT = Case(
    name="B13_limit_hides_support",
    items=[item("Radium glows [3][4][5][2]. Argon is inert [1].", [["x1"]], FIVE_DOCS)],
    mode="em",
    entailed=LIMIT_PAIRS,
    sentences=None,
    expected={
        "regular_citation_rec": 50.0,
        "regular_citation_prec": 25.0,  # (0 + 1) / (3 + 1)
        "regular_citation_f1": 100 / 3,
    },
)

NO_LIMIT = Case(
    name="B13_no_limit",
    items=[item("Radium glows [3][4][5][2]. Argon is inert [1].", [["x1"]], FIVE_DOCS)],
    mode="em",
    entailed=LIMIT_PAIRS,
    sentences=None,
    expected={
        "regular_citation_rec": 100.0,
        # D3 redundant, D4 needed, D5 redundant, D2 by itself: 2 of 4, and 1 of 1
        "regular_citation_prec": 60.0,
        "regular_citation_f1": 75.0,  # 2 * 100 * 60 / 160
    },
    at_most_citations=None,
)

LISTS_AND_RANGES = Case(
    name="B14_lists_and_ranges",
    items=[
        item(
            "Basalt is dark [1, 2]. Granite is pale [1-3]. Marble is soft [2]. Chalk is white.",
            [["x1"]],
            [doc("D1", 1), doc("D2", 0), doc("D3", 0)],
        )
    ],
    mode="em",
    entailed={
        (premise("D1"), "Basalt is dark, 2."),
        (premise("D1"), "Granite is pale."),  # the hypothesis is `Granite is pale-3.`
        (premise("D2"), "Marble is soft."),
    },
    sentences=None,
    expected={
        "regular_length": 13.0,  # `dark, 2.` is two words, `pale-3.` one: 4 + 3 + 3 + 3
        "regular_citation_rec": 50.0,
        "regular_citation_prec": 200 / 3,  # 2 of 3
        "regular_citation_f1": 400 / 7,
    },
)

BRACKETS = Case(
    name="B15_brackets",
    items=[
        item(
            "Quartz | is [note] hard] [1]. It was dated [2023]. It is (2) common [Doc 2]. "
            "Amber is [[2]] light.",
            [["note hard"], ["dated 2023"]],
            [doc("D1", 1, 0), doc("D2", 0, 0)],
        )
    ],
    mode="em",
    entailed={(premise("D1"), "Quartz is [note hard.")},
    sentences=None,
    expected={
        "regular_length": 17.0,  # 4 + 3 + 6 + 4
        "regular_str_em": 50.0,  # the year is gone
        "regular_citation_rec": 25.0,
        "regular_citation_prec": 50.0,  # 1 of 1, 2023 void, none, 0 of 1
        "regular_citation_f1": 100 / 3,  # 2 (1/4)(1/2) / (3/4)
    },
)

CITATION_FORMS = Case(
    name="citation_forms",
    items=[
        item(
            "Padded [02]. Linked [2](x). Digit [\u0662]. Wide \u30102\u3011. Minus [-2]. "
            "Caret [^2]. Spaced [ 2 ]. Unproved [02]. Spread  [2].",
            [["x1"]],
            [doc("D1", 0), doc("D2", 1)],
        )
    ],
    mode="em",
    entailed={
        (premise("D2"), "Padded."),
        (premise("D2"), "Linked(x)."),
        (premise("D2"), "Digit."),
        (premise("D2"), "Spread ."),  # one of the two spaces stays
        (premise("D2"), "Wide \u30102\u3011."),  # never asked, like the next three
        (premise("D2"), "Minus [-2."),
        (premise("D2"), "Caret [^2."),
        (premise("D2"), "Spaced [ 2 ."),
    },
    sentences=None,
    expected={
        "regular_citation_rec": 400 / 9,  # 4 of 9
        "regular_citation_prec": 80.0,  # 4 of 5
        "regular_citation_f1": 400 / 7,  # 2 (4/9)(4/5) / (56/45)
    },
)

CITATION_AFTER_THE_STOP = Case(
    name="B16_citation_after_the_stop",
    items=[
        item(
            "Lead is soft [2]. Silver tarnishes. [1] Gold does not. [2]",
            [["x1"]],
            [doc("D1", 1), doc("D2", 0)],
        )
    ],
    mode="em",
    entailed={
        (premise("D2"), "Lead is soft."),
        (premise("D1"), "Silver tarnishes."),
        (premise("D2"), "Gold does not."),
    },
    sentences={
        "Lead is soft [2]. Silver tarnishes. [1] Gold does not. [2]": [
            "Lead is soft [2].",
            "Silver tarnishes.",
            "[1] Gold does not.",
            "[2]",
        ]
    },
    expected={
        "regular_length": 8.0,
        "regular_citation_rec": 25.0,  # D1 is asked for Gold, D2 for nothing at all
        "regular_citation_prec": 100 / 3,
        "regular_citation_f1": 200 / 7,  # 2 (1/4)(1/3) / (7/12)
    },
)

EMPTY_HYPOTHESIS = Case(
    name="B16_empty_hypothesis",
    items=[item("Silver tarnishes. [1] Gold does not. [1]", [["x1"]], [doc("D1", 1)])],
    mode="em",
    entailed={(premise("D1"), "Gold does not."), (premise("D1"), "")},
    sentences={
        "Silver tarnishes. [1] Gold does not. [1]": [
            "Silver tarnishes.",
            "[1] Gold does not.",
            "[1]",
        ]
    },
    expected={
        # The lone citation is a sentence whose text is empty; it and Gold are supported.
        "regular_citation_rec": 200 / 3,
        "regular_citation_prec": 100.0,
        "regular_citation_f1": 80.0,  # 2 (2/3) / (5/3)
    },
)

BULLETS = Case(
    name="B17_bullets",
    items=[
        item(
            "- Iron rusts [1]\n- Tin does not [2]. That is all.",
            [["x1"]],
            [doc("D1", 1), doc("D2", 0)],
        )
    ],
    mode="em",
    entailed={
        (premise("D1", "D2"), "- Iron rusts\n- Tin does not."),
        (premise("D1"), "- Iron rusts"),  # never asked, like the next
        (premise("D2"), "- Tin does not."),
    },
    sentences={
        "- Iron rusts [1]\n- Tin does not [2]. That is all.": [
            "- Iron rusts [1]\n- Tin does not [2].",
            "That is all.",
        ]
    },
    expected={
        "regular_citation_rec": 50.0,
        "regular_citation_prec": 100.0,  # each is needed
        "regular_citation_f1": 200 / 3,
    },
)

ABBREVIATIONS = Case(
    name="B18_abbreviations",
    items=[item("He met Dr. E. Smith there [1].", [["Smith"]], [doc("D1", 1)])],
    mode="em",
    entailed={(premise("D1"), "Smith there.")},
    sentences={"He met Dr. E. Smith there [1].": ["He met Dr.", "E.", "Smith there [1]."]},
    expected={
        "regular_citation_rec": 100 / 3,
        "regular_citation_prec": 100.0,
        "regular_citation_f1": 50.0,  # 2 (1/3) / (4/3)
    },
)

COVERAGE = Case(
    name="B19_coverage",
    items=[
        # D2 adds nothing but covers what D1 covers: 2 of 2
        item("Opal is milky [1][2].", [["x1"], ["x2"]], [doc("D1", 1, 0), doc("D2", 1, 0)]),
        # D2 alone covers the second answer, and D1 suffices: 1 of 2
        item("Opal is milky [1][2].", [["x1"], ["x2"]], [doc("D1", 1, 0), doc("D2", 0, 1)]),
        # Neither suffices: 2 of 2
        item("Jade is tough [1][2]. It is old.", [["x1"]], [doc("D1", 1), doc("D2", 0)]),
        # D1 suffices; D2 and D4 both cover the second answer: 3 of 3
        item(
            "Onyx is black [1][2][4].",
            [["x1"], ["x2"]],
            [doc("D1", 0, 0), doc("D2", 0, 1), doc("D3", 1, 1), doc("D4", 1, 1)],
        ),
        # The same with nothing to share: 1 of 3
        item(
            "Onyx is black [1][2][4].",
            [["x1"], ["x2"], ["x3"]],
            [doc("D1", 1, 0, 0), doc("D2", 0, 1, 0), doc("D3", 1, 1, 1), doc("D4", 0, 0, 1)],
        ),
        # Each suffices by itself, and then nothing else is asked: 2 of 2
        item("Ruby is red [1][2].", [["x1"], ["x2"]], [doc("D1", 1, 0), doc("D2", 0, 1)]),
    ],
    mode="em",
    entailed={
        (premise("D1", "D2"), "Opal is milky."),
        (premise("D1"), "Opal is milky."),
        (premise("D1", "D2"), "Jade is tough."),
        (premise("D1", "D2"), "Ruby is red."),
        (premise("D1"), "Ruby is red."),
        (premise("D2"), "Ruby is red."),
        (premise("D1", "D2", "D4"), "Onyx is black."),
        (premise("D1", "D4"), "Onyx is black."),
        (premise("D1", "D2"), "Onyx is black."),
        (premise("D1"), "Onyx is black."),
    },
    sentences=None,
    expected={
        "regular_citation_rec": 1100 / 12,  # (1 + 1 + 1/2 + 1 + 1 + 1) / 6
        "regular_citation_prec": 2900 / 36,  # (1 + 1/2 + 1 + 1 + 1/3 + 1) / 6 = 29/6 / 6
        "regular_citation_f1": 31900 / 372,  # 2 (33/36)(29/36) / (62/36) = 957/1116
    },
)

DUPLICATES = Case(
    name="B20_duplicates",
    items=[
        item("Amber is resin [2][2].", [["x1"]], [doc("D1", 0), doc("D2", 1)]),
        # D4 twice: without one the other stays, and the rest still suffices
        item(
            "Coral is alive [4][4][2].",
            [["x1"]],
            [doc("D1", 0), doc("D2", 1), doc("D3", 0), doc("D4", 0)],
        ),
        # Only one of the two equal citations is taken out of the rest, so neither is needed
        item(
            "Pearl is nacre [4][4][2].",
            [["x1"]],
            [doc("D1", 0), doc("D2", 1), doc("D3", 0), doc("D4", 0)],
        ),
    ],
    mode="em",
    entailed={
        (premise("D4", "D4", "D2"), "Pearl is nacre."),
        (premise("D4", "D2"), "Pearl is nacre."),
        (premise("D2", "D2"), "Amber is resin."),
        (premise("D2"), "Amber is resin."),
        (premise("D4", "D4", "D2"), "Coral is alive."),
        (premise("D4", "D2"), "Coral is alive."),
        (premise("D2"), "Coral is alive."),
    },
    sentences=None,
    expected={
        "regular_citation_rec": 100.0,
        "regular_citation_prec": 500 / 9,  # (2/2 + 1/3 + 1/3) / 3
        "regular_citation_f1": 500 / 7,  # 2 (5/9) / (14/9)
    },
)

PREMISE_TEXT = Case(
    name="premise_text",
    items=[
        {
            "question": "How long is it?",
            "answers": [["6650 km"]],
            "docs": [
                {
                    "title": "Nile",
                    "text": "A river.\nIt floods.",
                    "sent": "It runs 6650 km.",
                    "answers_found": [1],
                    "score": 0.5,
                },
                {"title": "", "text": " Cairo ", "answers_found": [0]},
            ],
            "output": "It runs 6650 km [1][2]. It floods [1]. So it is. It is long [1].",
        }
    ],
    mode="em",
    entailed={
        ("Title: Nile\nIt runs 6650 km.\nTitle: \n Cairo ", "It runs 6650 km."),
        ("Title: Nile\nIt runs 6650 km.", "It runs 6650 km."),
        ("Title: Nile\nIt runs 6650 km.", "It is long."),
        ("Title: Nile\nA river.\nIt floods.", "It floods."),  # `sent` takes the place of this text
    },
    sentences=None,
    expected={
        "regular_citation_rec": 50.0,
        # First sentence: the Nile by itself, the other idle, 1 of 2. Then 0 of 1, none, 1 of 1.
        "regular_citation_prec": 50.0,
        "regular_citation_f1": 50.0,
    },
)


# Correctness

SUBSTRINGS = Case(
    name="B21_substrings",
    items=[
        item("A juvenile court sat there [1].", [["Nile"], ["Congo"]], [doc("D1", 1, 0)]),
        # An alias that is only an article is empty and found everywhere
        item("Rivers are long and wide.", [["The"], ["Ohio"]], [doc("D1", 0, 1)]),
        # The hyphen goes without a trace
        item(
            "The new-york office closed early.",
            [["New York"], ["New-York."]],
            [doc("D1", True, False), doc("D2", False, True)],
        ),
    ],
    mode="em",
    entailed=set(),
    sentences=None,
    expected={
        "regular_str_em": 50.0,  # 1/2 each
        "calib_answered_str_em": 50.0,  # (1/1 + 0/1 + 1/2) / 3
        "calib_answerable_str_em": 50.0,
        "parametric_str_em": 50 / 3,  # 50 - 100 (1/2 + 0 + 1/2) / 3
    },
)

COMMAS_AND_NUMBERS = Case(
    name="B22_commas_and_numbers",
    items=[
        item(
            "Mai, the Psychic Girl, 1. Heat, Alien and Ikiru, Ran.",
            [["Mai, the Psychic Girl"], ["Heat"], ["Ran"]],
            [
                {
                    "title": "Films",
                    "text": "Mai, the Psychic Girl and Alien.",
                    "answers_found": [1, 1, 1],
                }
            ],
        )
    ],
    mode="em5",
    entailed=set(),
    sentences=None,
    expected={
        # mai / psychic girl / 1 heat / alien and ikiru / ran: only the last equals an alias.
        "regular_num_preds": 5.0,
        "regular_qampari_prec": 20.0,
        "regular_qampari_rec": 100 / 3,
        "regular_qampari_rec_top5": 100 / 3,
        "regular_qampari_f1": 25.0,  # 2 (1/5)(1/3) / (8/15)
        "calib_qampari_em_f1": 25.0,
        "parametric_qampari_rec_top5": 0.0,
        # `1. Heat` contains Heat and is not wrong; of the other three, two are in the text.
        "qampari_presence": 200 / 3,
        "qampari_absence": 100 / 3,
    },
)

NOTHING_WRONG = Case(
    name="B23_nothing_wrong",
    items=[item("Copper, Zinc", [["copper"], ["zinc"], ["lead"]], [doc("D1", 1, 1, 1)])],
    mode="em5",
    entailed=set(),
    sentences=None,
    expected={
        "regular_qampari_prec": 100.0,
        "regular_qampari_rec": 200 / 3,
        "regular_qampari_f1": 80.0,
        "qampari_presence": None,
        "qampari_absence": None,
        "trust_score": 130 / 3,  # (80 + 50 + 0) / 3
    },
)


CASES = [
    EM_MIXED,
    CM_MIXED,
    EM5_MIXED,
    EM5_TOP_FIVE,
    EM5_TRIMMING,
    SEED_SAMPLE,
    ONE_PERFECT_ANSWER,
    ONE_RIGHT_REFUSAL,
    FRAGMENTS_OF_THE_FLAG,
    PARAPHRASE_AND_FLAGGED_ANSWER,
    RAW_AGAINST_STRIPPED_EM,
    RAW_AGAINST_STRIPPED_CM,
    RAW_AGAINST_STRIPPED_EM5,
    BLANK_BESIDE_ANSWER,
    ALL_BLANK,
    LISTS_ALL_REFUSED,
    OUT_OF_RANGE,
    RANGE_BEFORE_LIMIT,
    ZERO_IS_THE_LAST,
    LIMIT_HIDES_SUPPORT,
    NO_LIMIT,
    LISTS_AND_RANGES,
    BRACKETS,
    CITATION_FORMS,
    CITATION_AFTER_THE_STOP,
    EMPTY_HYPOTHESIS,
    BULLETS,
    ABBREVIATIONS,
    COVERAGE,
    DUPLICATES,
    PREMISE_TEXT,
    SUBSTRINGS,
    COMMAS_AND_NUMBERS,
    NOTHING_WRONG,
]
