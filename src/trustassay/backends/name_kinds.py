"""Kinds of names, each told by examples: a word is of the kind whose examples it is nearest to."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "EXAMPLES",
    "FRAGMENTS",
    "GIVEN",
    "HALVES",
    "PEOPLE",
    "PLACE",
    "PLACES",
    "SURNAME",
    "TITLES",
]

GIVEN, SURNAME, PLACE, PEOPLE = "given name", "surname", "place", "people"

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    GIVEN: tuple(
        "John Mary David Susan Robert Linda Michael Anna Peter Laura Thomas Julia Edward Helen "
        "Paul Karen Steven Nancy Juan Maria Pierre Ivan Ahmed Hans Kevin Emily Brian Alice".split()
    ),
    SURNAME: tuple(
        "Smith Johnson Williams Anderson Thompson Wilson Robinson Harrison Mitchell Campbell "
        "Peterson Garcia Martinez Schmidt Rossi Kowalski Nguyen Singh Sullivan Murphy Fitzgerald "
        "Henderson Jenkins Simpson Beethoven Picasso Einstein".split()
    ),
    PLACE: tuple(
        "London Paris Chicago Boston Tokyo Berlin Madrid Texas Ohio Florida California Germany "
        "Brazil Canada Egypt India Kenya Norway Wales Scotland Sydney Toronto Moscow Naples "
        "Baltimore Seattle Cairo Lisbon Africa Europe Asia".split()
    ),
    PEOPLE: tuple(
        "Spanish French Italian Chinese Japanese Arabic Russian German Dutch Polish Swedish Greek "
        "Turkish Korean Persian Hungarian Portuguese Danish Irish Mexican Brazilian Australian "
        "American European African Asian Catholic Muslim".split()
    ),
    "other": tuple(
        "Microsoft Toyota Honda Disney Google Boeing Christmas Easter Islam Buddhism January "
        "October Monday Sunday Bible Senate Reuters Oscar Grammy Emmy Pulitzer Republican Marxist "
        "Victorian Nintendo Sony Yahoo Mercedes".split()
    ),
}

PLACES: Mapping[str, tuple[str, ...]] = {
    "country": tuple(
        "Germany Brazil Canada Egypt India Kenya Norway France Japan Poland Nigeria Peru Sweden "
        "Thailand Turkey Hungary Morocco Vietnam Portugal Colombia China".split()
    ),
    "state": tuple(
        "Texas Ohio Florida California Oregon Nebraska Georgia Alabama Kentucky Minnesota Quebec "
        "Ontario Yorkshire Kent Queensland Bavaria Virginia Montana".split()
    ),
    "city": tuple(
        "London Paris Chicago Boston Tokyo Berlin Madrid Sydney Toronto Moscow Naples Baltimore "
        "Seattle Cairo Lisbon Birmingham Hamburg Denver Dublin Milan".split()
    ),
}
"""Kinds of places, by examples, too."""
HALVES = frozenset(
    "york angeles diego francisco antonio vegas orleans jersey zealand rico lanka hampshire "
    "carolina dakota korea arabia salvador leone buenos aires janeiro paulo hong kong kuala "
    "lumpur aviv addis ababa".split()
)
"""Halves of the names of places; alone they are none."""
FRAGMENTS = HALVES | frozenset(
    "rican los las san santa rio sao tel monte costa puerto inc ltd corp co jan feb mar apr jun "
    "jul aug sep oct nov dec mon tue wed thu fri sat sun mrs von der van del des les".split()
)
"""What is no name by itself: halves of names, short forms, particles."""
TITLES = frozenset(
    "mr mrs ms miss dr prof sir dame lord lady saint st king queen prince princess emperor empress "
    "president senator governor general captain colonel major judge justice pope father sister "
    "jr sr ii iii iv v vi vii viii ix x".split()
)
"""What stands beside a person's name, and is kept."""
