"""Which sentences of an answer state a fact."""

import pytest

from trustassay.metrics.tool_use.sentences import has_fact, is_fragment, states_fact


@pytest.mark.parametrize(
    "sentence",
    [
        "The Tagus is 900 km long.",
        "Sorry, it is 900 km long.",
        "I have cancelled the order.",
        "As a member, you have three free visits.",
        "- **Refund:** 20 euros have been returned.",
        "Since it is open, entry is free.",
        # Words of a speaker hide nothing.
        "**Please note that** the Tagus is 900 km long.",
        "To sum up, please note that entry is free.",
        "I can see that the order is open.",
        "I'm happy to tell you that the order is open.",
        "We must also add that the order is open.",
        "I also cancelled the order.",
        "Just the first order is open.",
        "Your order is open, please allow three days.",
    ],
)
def test_what_is_so_or_was_done_is_a_fact(sentence: str) -> None:
    assert states_fact(sentence)
    assert has_fact(f"Is it so? {sentence}")


@pytest.mark.parametrize(
    "sentence",
    [
        "To go on, I'll need the number of your order.",
        "Unfortunately, I cannot go on without the number.",
        "I'm unable to say that the order is open.",
        "I also need your number.",
        "Since it is open, I will go on.",
        "As you asked, we should wait.",
        "Provided that you have a receipt, returns are free.",
        "Is the order open?",
        "What I need is the number.",
        "Reason: Please say why it is open.",
        "Just let me know.",
        "Please confirm (yes/no).",
        "Before I go on, please check the address.",
        "Once you confirm, I will cancel it.",
        "If you have a receipt, returns are free.",
        "You can return it within 30 days.",
        "Would you like that?",
        "Let me know which one you want.",
        "Hold the line.",
    ],
)
def test_requests_plans_offers_and_conditions_are_none(sentence: str) -> None:
    assert not states_fact(sentence)
    assert not has_fact(sentence)


@pytest.mark.parametrize(
    "text", ["- Price: $20", "1. FQ-12", "**Status:** Delivered", "* Tea", "+ Tea"]
)
def test_labels_with_values_are_fragments(text: str) -> None:
    assert is_fragment(text)
    assert not states_fact(text)
    assert not is_fragment("The price is $20.")
