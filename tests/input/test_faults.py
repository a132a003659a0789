"""What cannot be told is told once, with the names that would tell it."""

from typing import Any

import pytest

from trustassay.core.sample import Problem
from trustassay.input import InputFault, LocatedSample, read_samples
from trustassay.input.layouts import guess_fields
from trustassay.input.records import (
    MAX_FAULTS_LISTED,
    UnknownFieldsError,
    find_common_unknown_fields,
    summarise_faults,
)
from trustassay.runs.intake import BadInputError

LOG = {"Ask": "Q?", "Reply": "A.", "Source text": "p", "user_id": 7, "response_time": 3}
GUESSED = {"question": "Ask", "response": "Reply", "documents": "Source text"}


def faults(*records: Any) -> list[InputFault]:
    return [one for one in read_samples(list(records)) if isinstance(one, InputFault)]


def test_what_all_records_lack_is_one_line_with_guesses() -> None:
    found = faults(*[LOG] * 42)
    lines = summarise_faults(found)
    assert lines == ["sample 1 and 41 more: question: is missing (expected text)"]
    untold = find_common_unknown_fields(found)
    assert untold is not None
    assert dict(untold.fields) == GUESSED
    assert untold.names == tuple(LOG)
    assert 'fields={"question": "Ask", "response": "Reply"' in str(untold)


def test_few_faults_and_those_of_values_are_listed_each() -> None:
    assert len(summarise_faults(faults(*[LOG] * 3))) == 3
    wrong = faults(*[{"question": "Q?", "response": [n]} for n in range(5)])
    assert len(summarise_faults(wrong)) == 5
    assert find_common_unknown_fields(wrong) is None


def test_of_many_faults_of_values_the_first_ones_are_listed_also_in_an_exception() -> None:
    wrong = faults(*[{"question": "Q?", "response": [n]} for n in range(MAX_FAULTS_LISTED + 3)])
    lines = summarise_faults(wrong)
    assert len(lines) == MAX_FAULTS_LISTED + 1
    assert lines[-1] == "... 3 more: response: expected text"
    assert str(BadInputError(wrong, len(wrong))).splitlines() == lines


def test_a_blank_cell_of_a_known_name_is_not_untold() -> None:
    assert find_common_unknown_fields(faults({"question": None, "Ask": "Q?"})) is None


def test_a_table_without_a_question_says_what_would_name_it(tmp_path: Any) -> None:
    path = tmp_path / "log.csv"
    path.write_text("Ask;Reply;Contexts\na;b;c\n")
    with pytest.raises(UnknownFieldsError, match="columns are separated by semicolons") as caught:
        list(read_samples(path))
    assert dict(caught.value.unknown_fields.fields) == {"question": "Ask", "response": "Reply"}
    path.write_text("when,size\n1,2\n")
    with pytest.raises(UnknownFieldsError, match='"question": "NAME"'):
        list(read_samples(path))


def test_documents_are_to_be_named_only_where_a_name_may_be_theirs() -> None:
    problem = Problem("documents", "is missing (expected the passages shown)")
    [located] = read_samples([{"question": "Q?", "response": "A."}])
    assert isinstance(located, LocatedSample)
    untold = located.find_unknown_fields([problem])
    assert untold is not None
    assert (dict(untold.fields), dict(untold.nameable)) == ({"documents": ""}, {})
    [located] = read_samples([{"question": "Q?", "response": "A.", "evidence": "p"}])
    assert isinstance(located, LocatedSample)
    untold = located.find_unknown_fields([problem])
    assert untold is not None
    assert dict(untold.nameable) == {"documents": "evidence"}


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("user_query", "bot_reply"), {"question": "user_query", "response": "bot_reply"}),
        (("prompt_tokens", "model_name", "answer_id"), {}),
        (("inputs.ask", "outputs.said"), {"question": "inputs.ask", "response": "outputs.said"}),
        ((), {}),
    ],
)
def test_guesses_by_the_words_in_names(names: tuple[str, ...], found: dict[str, str]) -> None:
    assert dict(guess_fields(names)) == found
