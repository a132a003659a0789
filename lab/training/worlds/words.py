"""Names, things and verbs: wide enough that no pair can be learnt by heart.

Names of people, firms, towns and jobs come from Faker's lists for nine countries; things are put
together from a noun and what tells it from others.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from faker import Faker

from lab.training.worlds.facts import Verb

__all__ = [
    "ACTS",
    "CASES",
    "CONDITIONS",
    "DEGREES",
    "GROUPS",
    "MEASURES",
    "PLACES",
    "SAYING",
    "VERBS",
    "Names",
    "thing",
]

LOCALES = ("en_US", "en_GB", "en_IN", "de_DE", "fr_FR", "es_ES", "it_IT", "pl_PL", "nl_NL")

VERBS = [
    Verb(*row.split("|"))
    for row in """\
hired|hire|hired by|got a job from|gave work to
sued|sue|sued by|was taken to court by|brought a case against
taught|teach|taught by|took lessons from|gave lessons to
praised|praise|praised by|got praise from|spoke highly of
criticised|criticise|criticised by|came under attack from|found fault with
rescued|rescue|rescued by|owed survival to|saved the life of
defeated|defeat|defeated by|lost to|won against
visited|visit|visited by|had a visit from|called on
paid|pay|paid by|received money from|gave money to
replaced|replace|replaced by|gave up a post to|took the post of
warned|warn|warned by|received a warning from|gave a warning to
invited|invite|invited by|had an invitation from|sent an invitation to
interviewed|interview|interviewed by|answered questions from|put questions to
employed|employ|employed by|worked for|was the boss of
photographed|photograph|photographed by|stood in front of the camera of|took a picture of
arrested|arrest|arrested by|was taken into custody by|put handcuffs on
helped|help|helped by|got support from|came to the aid of
followed|follow|followed by|walked ahead of|went behind
phoned|phone|phoned by|got a call from|rang
thanked|thank|thanked by|received thanks from|showed gratitude to
examined|examine|examined by|was a patient of|gave a check-up to
nominated|nominate|nominated by|became a candidate thanks to|put forward
insured|insure|insured by|had a policy with|sold a policy to
trained|train|trained by|learnt the trade from|passed skills on to
blamed|blame|blamed by|was held responsible by|put the fault on
promoted|promote|promoted by|rose in rank thanks to|gave a higher post to
dismissed|dismiss|dismissed by|lost a job with|threw out
sponsored|sponsor|sponsored by|was backed with funds by|put up funds for
succeeded|succeed|succeeded by|came before|took over from
copied|copy|copied by|served as a model for|imitated
forgave|forgive|forgiven by|found mercy with|stopped being angry with
supplied|supply|supplied by|bought goods from|sold goods to
painted|paint|painted by|sat as a model for|made a portrait of
overtook|overtake|overtaken by|fell behind|got ahead of
questioned|question|questioned by|had to give answers to|asked for explanations from
recommended|recommend|recommended by|got a reference from|put in a good word for""".splitlines()
]

PLACES = [
    "at the harbour",
    "in the town hall",
    "at the railway station",
    "in the library",
    "at a trade fair",
    "in the hospital",
    "on the ferry",
    "at the market",
    "in the garden",
    "at the airport",
    "in the school hall",
    "at the stadium",
    "in a cafe",
    "at the border",
    "in the archive",
    "on the bridge",
    "at a wedding",
    "in the workshop",
    "at the hotel",
    "in the laboratory",
]

CONDITIONS = [
    ("the budget passes", "the budget had passed"),
    ("the weather holds", "the weather had held"),
    ("the contract is signed", "the contract had been signed"),
    ("prices fall", "prices had fallen"),
    ("the road opens in time", "the road had opened in time"),
    ("the test succeeds", "the test had succeeded"),
    ("the strike ends", "the strike had ended"),
    ("the loan is granted", "the loan had been granted"),
    ("the vote is won", "the vote had been won"),
    ("the visa arrives", "the visa had arrived"),
    ("the rain stops", "the rain had stopped"),
    ("the board agrees", "the board had agreed"),
    ("the parts arrive", "the parts had arrived"),
    ("the river stays low", "the river had stayed low"),
    ("the museum reopens", "the museum had reopened"),
    ("a sponsor is found", "a sponsor had been found"),
]

SAYING = {
    False: [
        "said",
        "claimed",
        "believed",
        "thought",
        "wrote",
        "suspected",
        "assumed",
        "feared",
        "told a reporter",
        "insisted",
    ],
    True: [
        "knew",
        "regretted",
        "found out",
        "noticed",
        "was glad",
        "was annoyed",
        "remembered",
        "discovered",
    ],
}

DEGREES = ["planned", "possible", "tried", "ordered"]

ACTS = [
    ("use the pool", "use of the pool"),
    ("enter the reading room", "entry to the reading room"),
    ("borrow tools", "borrowing of tools"),
    ("park in the yard", "parking in the yard"),
    ("take photographs", "taking photographs"),
    ("work from home", "working from home"),
    ("return goods", "return of goods"),
    ("vote", "voting"),
    ("use the lift", "use of the lift"),
    ("book a table", "booking of tables"),
    ("keep pets", "keeping of pets"),
    ("open an account", "opening of accounts"),
    ("use the old entrance", "use of the old entrance"),
    ("fish in the lake", "fishing in the lake"),
    ("travel free of charge", "free travel"),
    ("download the data", "downloading the data"),
    ("attend the course", "attendance of the course"),
    ("carry a camera", "carrying a camera"),
    ("light a fire", "lighting of fires"),
    ("claim expenses", "claiming of expenses"),
]

CASES = [
    "members",
    "visitors",
    "pupils",
    "tenants",
    "guests",
    "volunteers",
    "nurses",
    "drivers",
    "retired staff",
    "trainees",
    "suppliers",
    "neighbours",
    "reporters",
    "students",
    "residents",
    "part-time workers",
    "cyclists",
    "new customers",
    "groups of more than ten",
    "children under twelve",
]

GROUPS = [
    ("houses in the street", "have a cellar"),
    ("ships in the race", "reached the port"),
    ("samples", "contained lead"),
    ("pupils in the class", "passed the test"),
    ("letters in the box", "were opened"),
    ("trees in the park", "survived the winter"),
    ("members of the board", "supported the plan"),
    ("patients in the study", "reported headaches"),
    ("shops in the arcade", "accept cards"),
    ("birds in the colony", "were ringed"),
    ("buses of the town", "run on gas"),
    ("rooms of the hotel", "face the sea"),
    ("windows of the church", "are broken"),
    ("files on the disk", "could be restored"),
    ("volunteers", "came back for a second year"),
    ("songs on the record", "are instrumental"),
    ("wells in the valley", "dried up"),
    ("seats in the hall", "were taken"),
    ("bottles in the crate", "leaked"),
    ("candidates", "speak Danish"),
]

MEASURES = {
    "length": ("metres", (2, 4000), ["long"], ["length"]),
    "mass": ("kilograms", (1, 900), ["heavy"], ["weight"]),
    "volume": ("litres", (1, 500), [], ["capacity"]),
    "time": ("minutes", (2, 240), [], ["running time"]),
    "money": ("euros", (2, 900), [], ["price"]),
}
"""Each quantity: the usual unit, its range, and how it is called."""

_NOUNS = (
    "lamp pump camera boat kettle drill engine clock ladder carpet tent bicycle guitar harp "
    "cabinet telescope printer heater loom mixer radio stove trunk anchor cable crane drone "
    "filter generator hammock kayak lantern mirror oven plough raft saddle sledge tank vase "
    "wagon barrel bench canoe desk elevator flute gate hose iron jug kiln lathe microscope "
    "net organ press quilt rope sculpture turbine umbrella violin wheel axe bell compass dome "
    "easel fountain "
).split()
_KINDS = (
    "red blue green grey white black brass oak steel copper old new small large spare second "
    "rented foldable portable heavy-duty antique electric wooden striped round square narrow "
    "tall painted imported patented borrowed "
).split()


def thing(rng: np.random.Generator) -> str:
    """Return "the oak kettle" and the like, one of two thousand."""
    return f"the {_KINDS[rng.integers(len(_KINDS))]} {_NOUNS[rng.integers(len(_NOUNS))]}"


POOL = {
    "first_name_female": 300,
    "first_name_male": 300,
    "last_name": 800,
    "company": 400,
    "city": 400,
}
"""How many names of each kind are taken from a country's lists."""


class Names:
    """Draws names by one generator alone."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def _draw(self, kind: str) -> str:
        pool = _pool(LOCALES[self.rng.integers(len(LOCALES))], kind)
        return pool[self.rng.integers(len(pool))]

    def person(self, gender: str) -> str:
        """Return a first and last name."""
        first = self._draw("first_name_female" if gender == "f" else "first_name_male")
        return f"{first} {self._draw('last_name')}"

    def firm(self) -> str:
        """Return a firm's name."""
        return self._draw("company")

    def town(self) -> str:
        """Return a town."""
        return self._draw("city")


@cache
def _pool(locale: str, kind: str) -> tuple[str, ...]:
    """Return different names of a country, always the same ones."""
    source = _faker(locale)
    source.seed_instance(0)
    return tuple(dict.fromkeys(str(getattr(source, kind)()) for _ in range(POOL[kind])))


@cache
def _faker(locale: str) -> Faker:
    return Faker(locale)
