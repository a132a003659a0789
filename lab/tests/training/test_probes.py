"""The probes by hand, and how they are counted."""

from collections import Counter, defaultdict

from lab.training.probes import Probe, passed, probes, table


def test_twenty_kinds_of_fifteen_pairs() -> None:
    rows = probes()
    assert set(Counter(row.kind for row in rows).values()) == {30}
    assert len({row.kind for row in rows}) == 20
    assert len({(row.premise, row.hypothesis) for row in rows}) == 600
    by_passage = defaultdict(list)
    for row in rows:
        by_passage[row.premise].append(row.label == "entailment")
    assert all(sorted(found) == [False, True] for found in by_passage.values())


def test_shares_by_kind() -> None:
    rows = [
        Probe("roles", "p", "a", "entailment"),
        Probe("roles", "p", "b", "neutral"),
        Probe("units", "q", "a", "entailment"),
        Probe("units", "q", "b", "contradiction"),
    ]
    found = passed(rows, [0.9, 0.5, 0.1, 0.2])
    assert found == {"roles": (1.0, 1.0), "units": (0.0, 0.0), "all": (0.5, 0.5)}
    assert "| all | 0.50 / 0.50 |" in table({"x": found}).splitlines()[-1]
