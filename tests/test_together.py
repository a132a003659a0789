import asyncio

import pytest

from trustassay.together import all_of


def test_all_are_waited_for_and_the_first_failure_by_place_is_raised() -> None:
    done: list[str] = []

    async def work(name: str, rounds: int, fails: bool) -> str:
        for _ in range(rounds):
            await asyncio.sleep(0)
        done.append(name)
        if fails:
            raise ValueError(name)
        return name

    with pytest.raises(ValueError, match="late"):
        asyncio.run(all_of([work("late", 5, True), work("early", 1, True), work("c", 9, False)]))
    assert done == ["early", "late", "c"]
    assert asyncio.run(all_of(work(name, 3 - i, False) for i, name in enumerate("abc"))) == [*"abc"]
