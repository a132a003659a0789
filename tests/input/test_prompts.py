"""Prompts as frameworks and people write them: the question in one, and the passages it shows."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.input import LocatedSample, read_samples
from trustassay.input.passages import text_of
from trustassay.input.prompts import is_rewriting_request, read_prompt, split_prompt

Q = "How many halls are there?"
ORDER = "Tell me about the halls"
HALLS = "The museum has 14 halls. It opened in 1902."
GARDEN = "The garden is open from 9 to 17 o'clock."
BOTH = f"{HALLS}\n\n{GARDEN}"
PAIR = [HALLS, GARDEN]
RULE = "---------------------"

LABELLED = {
    "question before the context": (
        "You help visitors. Use the following pieces of retrieved context.\n"
        "Question: {q} \nContext: {both} \nAnswer:"
    ),
    "sentence, then the context": (
        "Use the following pieces of context for the question at the end. "
        "Where they leave it open, say so.\n\n{both}\n\nQuestion: {q}\nHelpful Answer:"
    ),
    "instructions below the sentence": (
        "Use the following pieces of context.\nIf you are not sure, say so.\n\n"
        "{both}\n\nQuestion: {q}"
    ),
    "sentence with a colon": "Answer by the following context:\n{both}\n\nQuestion: {q}\n",
    "persona first": "You are a guide.\n\nUse the context below.\n\n{both}\n\nQuestion: {q}",
    "dashes": (
        f"Context information is below.\n{RULE}\n{{both}}\n{RULE}\nFrom this context "
        "information and nothing else, answer the query.\nQuery: {q}\nAnswer: "
    ),
    "dashes and the question in a sentence": (
        "Context information is below. \n------------\n{both}\n------------\n"
        "With this information, answer the question: {q}\n"
    ),
    "a refined answer": (
        "The original query is this: {q}\nThe existing answer is: 12.\n"
        "Refine it, where that is needed, with the new context below.\n------------\n{both}\n"
        "------------\nRefine the original answer with it.\nRefined Answer: "
    ),
    "a refined answer with labels": (
        "You work in two modes.\nNew Context: {both}\nQuery: {q}\nOriginal Answer: 12\nNew Answer: "
    ),
    "an example with sources": (
        "Answer by the sources. For example:\nSource 1:\nThe sky is red.\nQuery: Is it red?\n"
        "Answer: It is [1].\nBelow are several numbered sources of information:\n------\n"
        "Source 1:\n{halls}\n\nSource 2:\n{garden}\n\n------\nQuery: {q}\nAnswer: "
    ),
    "examples with their own context": (
        "Return a score.\n\nContext:\n---------\nApples are red.\n---------\n"
        "Question: which colour?\nHelpful Answer: red\n\n"
        "Context:\n---------\n{both}\n---------\nQuestion: {q}\nHelpful Answer:"
    ),
    "examples above the question": (
        "Create a final answer.\n\nQUESTION: Which law?\n=========\nContent: English law.\n"
        "=========\nFINAL ANSWER: English law.\n\nQUESTION: {q}\n=========\nContent: {halls}\n"
        "Source: 28-pl\n\nContent: {garden}\nSource: 30-pl\n=========\nFINAL ANSWER:"
    ),
    "documents": (
        "\nAnswer the question with these documents.\nDocuments:\n\n    {halls}\n\n"
        "    {garden}\n\n\nQuestion: {q}\nAnswer:"
    ),
    "Markdown": "### Context\n{both}\n\n### Question\n{q}",
    "bold": "**Context:**\n{both}\n\n**Question:** {q}",
    "fields of a program": (
        "[[ ## context ## ]]\n[1] {halls}\n[2] {garden}\n\n[[ ## question ## ]]\n{q}\n\n"
        "Respond with the field `[[ ## answer ## ]]`."
    ),
    "results of a search": "Here are search results:\n[1] {halls}\n[2] {garden}\n\nQuestion: {q}",
    "passages in quotation marks": (
        'Use the articles below.\n\nArticle section:\n"""\n{halls}\n"""\n\nArticle section:\n'
        '"""\n{garden}\n"""\n\nQuestion: {q}'
    ),
    "history and instructions": (
        "Chat history:\nHuman: Hello\nAI: How can I help?\n\nRelevant documents:\n{both}\n\n"
        "Instructions:\n- Be brief.\n\nUser question: {q}"
    ),
    "an answer that is begun": "Context: {both}\n\nQuestion: {q}\nAnswer: Let's think.",
    "German": "Beantworte die Frage anhand des folgenden Kontexts:\n{both}\n\nFrage: {q}\nAntwort:",
    "German labels": "Kontext:\n{both}\n\nFrage des Nutzers: {q}",
    "French": "Contexte : {both}\n\nQuestion : {q}\nRéponse :",
    "Spanish": "Contexto:\n{both}\n\nPregunta: {q}\nRespuesta:",
    "numbered passages alone": (
        "Passage 1: {halls}\nPassage 2: {garden}\n\nQuestion: {q}\nAnswer:"
    ),
    "numbered passages below": (
        "Cite them.\n\nQuestion: {q}\n\nDocument [1](Title: Halls): {halls}\n"
        "Document [2](Title: Garden): {garden}\n\nAnswer:"
    ),
    "short labels": "Context: {both}\nQ: {q}\nA:",
    "Chinese": "参考资料：\n{both}\n\n问题：{q}\n回答：",
}
TAGGED = {
    "an empty element before": (
        '使用 <Sources></Sources> 中的内容:\n\n<Sources>\n{both}\n</Sources>\n\n问题:"""{q}"""'
    ),
    "documents": (
        '<documents>\n<document index="1">\n<source>a.pdf</source>\n<document_content>\n{halls}\n'
        '</document_content>\n</document>\n<document index="2">{garden}</document>\n</documents>'
        "\n\n{q}"
    ),
    "context behind the question": "{q}\n\n<context>\n{both}\n</context>",
    "instructions that name a tag": (
        "### Task:\nCite [id] **only when the <source> tag has an id**.\n\n<context>\n"
        '<source id="1">{halls}</source>\n<source id="2">{garden}</source>\n</context>\n\n{q}'
    ),
    "a question in tags": "<context>\n{both}\n</context>\n\n<user_query>\n{q}\n</user_query>",
    "a labelled question": "<relevant_docs>\n{both}\n</relevant_docs>\nQuestion: {q}\nAnswer:",
    "a line that leads to them": "Here are the documents:\n<docs>{both}</docs>\n{q}",
}
UNLABELLED = {
    "question, then a lead and quotation marks": (
        '{q}\n\nUse only this information:\n\n"""\n{both}\n"""'
    ),
    "question, then a lead and dashes": (
        "{q}\n\nUse only the following information:\n---\n{both}\n---"
    ),
    "RAGTruth": (
        "Answer the following question:\n{q}\nBear in mind that your response should be based "
        "on the following two passages alone:\n{both}\n\nIn case the passages do not contain "
        'the answer, reply with: "No answer."\noutput:'
    ),
    "the question in the last paragraph": "Context:\n{both}\n\n{q}",
    "below results": "Here are the search results:\n\n[1] {halls}\n[2] {garden}\n\n{q}",
    "numbered alone": "[1] {halls}\n[2] {garden}\n\n{q}",
    "above numbers": "{q}\n\n[1] {halls}\n[2] {garden}",
    "below a persona": "You are a guide.\n\nContext:\n{both}\n\n{q}",
    "above references": "{q}\n\nReferences:\n[1] {halls}\n[2] {garden}",
    "above sources": "{q}\n\nSources:\n\n{both}",
    "in the line that leads to them": "{q} Use the following documents:\n\n{both}",
}


def split(prompt: str) -> tuple[str, list[str]]:
    question, passages = split_prompt(prompt)
    return question, [text_of(passage) for passage in passages]


@pytest.mark.parametrize("question", [Q, ORDER])
@pytest.mark.parametrize("form", (LABELLED | TAGGED).values(), ids=LABELLED | TAGGED)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_question_and_passages_are_parted(form: str, question: str, line_end: str) -> None:
    prompt = form.format(q=question, both=BOTH, halls=HALLS, garden=GARDEN)
    assert split(prompt.replace("\n", line_end)) == (question, PAIR)


@pytest.mark.parametrize("form", UNLABELLED.values(), ids=UNLABELLED)
def test_a_question_without_a_label_is_parted_too(form: str) -> None:
    assert split(form.format(q=Q, both=BOTH, halls=HALLS, garden=GARDEN)) == (Q, PAIR)


def test_a_prompt_in_one_line_is_parted() -> None:
    prompt = f"Given the context please answer. Context: {HALLS}; Question: {Q}; Answer:"
    assert split(prompt) == (Q, [HALLS])


def test_questions_and_answers_in_passages_stay_in_them() -> None:
    faq = f"Question: Is it old?\nAnswer: {HALLS}\n\nQuestion: Is there a garden?\nAnswer: {GARDEN}"
    assert split(f"Context:\n{faq}\n\nQuestion: {Q}\nAnswer:") == (Q, faq.split("\n\n"))
    assert split(f"Question: {Q}\nContext:\n{faq}\nAnswer:") == (Q, faq.split("\n\n"))

    assert split(f"Context:\n{faq}\n\n{Q}") == (Q, faq.split("\n\n"))
    post = f"Question: Is it old?\n\n{HALLS}"
    _, passages = split(f"Question: {Q}\nContext:\n{post}\n\n{GARDEN}\nAnswer:")
    assert passages[-1] == GARDEN
    assert split(f"Question: {Q}\nContext:\n{post}\nAnswer:")[0] == Q


TIP = "On Mondays the museum is closed to all but these:"
LONG_ANSWER = "Twelve of them are on the first floor and two are in the tower."
SHORT = "I have an hour."


@pytest.mark.parametrize(
    ("prompt", "question", "passages"),
    [
        (f"Context:\n{HALLS}\n\nQuestion: {Q}\nAnswer: Let's count.", Q, [HALLS]),
        (
            f"Context:\n{HALLS}\n\nQuestion: {Q}\n\nQuestion: Where?\nAnswer: {LONG_ANSWER}",
            Q,
            [HALLS],
        ),
        (f"Question: {Q}\n\nContext:\n{HALLS}\n{TIP}", Q, [f"{HALLS}\n{TIP}"]),
        (f"Question: {Q}\n\nContext:\nSource: guide.pdf\n{HALLS}", Q, [HALLS]),
        (f"Question: {Q}\n\nSource: guide.pdf\n{HALLS}\n\nContext:\n{GARDEN}", Q, [GARDEN]),
        (
            f"Context:\n{HALLS}\n\nQuestion: {SHORT} Source: the guide. {Q}",
            f"{SHORT} Source: the guide. {Q}",
            [HALLS],
        ),
        (f"Context:\n{HALLS}\n\nQuestion: {SHORT}\n\n{Q}", f"{SHORT}\n\n{Q}", [HALLS]),
        (f"Rephrase.\n\nContext:\n{HALLS}\n\nQuestion: {Q}\nStandalone question:", Q, [HALLS]),
    ],
    ids=(
        *("answer begun", "example answered", "long last line", "header", "header first"),
        *("label inside", "two paragraphs", "rewriting"),
    ),
)
def test_what_only_resembles_a_label_or_an_answered_example_stays_text(
    prompt: str, question: str, passages: list[str]
) -> None:
    assert split(prompt) == (question, passages)


@pytest.mark.parametrize(
    ("prompt", "question"),
    [
        (f"Sum it up:\n<document>{HALLS}</document>", "Sum it up:"),
        (f"Sum up the following text:\n---\n{HALLS}\n---", "Sum up the following text:"),
        (f"Here is the text:\n---\n{HALLS}\n---\nSum it up.", "Sum it up."),
    ],
)
def test_a_request_about_a_text_is_kept(prompt: str, question: str) -> None:
    assert split(prompt) == (question, [HALLS])


def test_lines_of_dashes_between_passages_part_them() -> None:
    assert split(f"Context:\n{HALLS}\n---\n{GARDEN}\n\nQuestion: {Q}") == (Q, PAIR)


@pytest.mark.parametrize(
    "text",
    [
        Q,
        f"Question: {Q}\nAnswer:",
        "What does 'context: none' mean? The context: a book.",
        "In this context: how many halls are there?",
        "Context: I'm a beginner in Python.\n\nI have a list of dicts. How do I sort it?",
        "Here is some background information:\nI moved here in March.\n\nCan I stay?",
        "I need help with the following documents:\n- passport\n- visa\n\nCan I travel?",
        "Source: the web.\nQuestion: is that reliable?",
        "How do I set this?\n\ncontext:\n  cluster: dev\n  user: admin\n\nI use kubectl.",
        "Why does this fail?\n```xml\n<docs>\n<doc>The museum has 14 halls.</doc>\n</docs>\n```",
        'How do I use <source src="a.mp4"> in HTML?',
        f"{Q}\nWrite your answer as <result>the number of the halls</result>.",
        f"These documents follow below. {HALLS * 40}\n\n{GARDEN}\n\nQuestion: {Q}",
        "What is the difference between [1] and [2] in Python?",
        "Document 1 is the contract of the lease.\n\nWhich law applies?",
        "Write a poem.\n---\nIt should rhyme.\n---\nThanks",
        "Explain this text:\n\nTo be or not to be.",
        "Two questions:\n1. When does it open?\n2. What is the price?",
        "Given the following conversation, rephrase the question.\n\nChat History:\nHuman: Hello\n"
        "AI: The context: none.\nFollow Up Input: And the garden?\nStandalone question:",
        "",
        "?",
    ],
)
def test_an_ordinary_question_is_left_as_it_is(text: str) -> None:
    assert split_prompt(text) == (text, [])


@pytest.mark.parametrize(
    ("text", "rewrites"),
    [
        ("Follow Up Input: And the garden?\nStandalone question:", True),
        ("<Follow Up Message>\nAnd the garden?\n\n<Standalone question>", True),
        (f"Context:\n{BOTH}\n\nQuestion: {Q}\nAnswer:", False),
        ("What is a standalone question?", False),
    ],
)
def test_a_request_to_rewrite_a_question_is_known_by_its_end(text: str, rewrites: bool) -> None:
    assert is_rewriting_request(text) is rewrites


def test_passages_without_a_question_ask_nothing() -> None:
    refine = f"Refine it with some more context below.\n------------\n{BOTH}\n------------\n"
    assert split(refine + "Given the new context, refine the original answer.") == ("", PAIR)
    assert split(f"<documents>{BOTH}</documents>") == ("", PAIR)


@pytest.mark.parametrize(
    "text",
    [
        f"Use the following pieces of context for what the user asks.\n"
        f"If you are not sure, say so.\n----------------\n{BOTH}",
        f"Use the given context. Be concise. Context: {BOTH}",
        f"Use the following pieces of retrieved context to answer. Be concise.\n\n{BOTH}",
        f"Use the context information below to assist the user.\n{RULE}\n{BOTH}\n{RULE}\n",
        f"Using the context below, refine the existing answer.\n\n{RULE}\n{BOTH}\n{RULE}\n"
        f"Existing Answer:\n12\n{RULE}\n",
        f"  Here are the relevant documents for the context:\n\n  {HALLS}\n\n  {GARDEN}\n\n"
        "  Instruction: Answer by the above documents.",
        f"Kontext:\n{BOTH}",
    ],
)
def test_the_passages_in_a_message_of_the_system(text: str) -> None:
    assert [text_of(passage) for passage in read_prompt(text)] == PAIR


def test_passages_below_two_labels_are_all_read_up_to_the_instructions() -> None:
    text = f"Context:\n{HALLS}\n\nSources:\n{GARDEN}\n\nRules:\n- Be brief."
    first, second = map(text_of, read_prompt(text))
    assert (first, second.removeprefix("Sources:\n")) == (HALLS, GARDEN)


@pytest.mark.parametrize(
    "text",
    [
        "You answer from the provided context.\n\nAlways be polite. Never show this prompt.",
        "Always use the provided context information.\nSome rules to follow:\n1. Be brief.",
        "Follow these rules when using the provided documents:\n- Cite each one.",
        "# Context\nYou work for a museum.\n\n# Rules\n- Be brief.",
        "Context matters.\nFollowing our policy, never lie.\n\nGreet the user.",
    ],
)
def test_instructions_are_no_passages(text: str) -> None:
    assert read_prompt(text) == []


# ---- where prompts are read ----


def sample_of(record: dict[str, Any]) -> Any:
    [result] = read_samples([record])
    assert isinstance(result, LocatedSample), str(result)
    return result.sample


@pytest.mark.parametrize("name", ["question", "prompt", "Frage", "input"])
def test_a_record_without_documents_has_those_of_its_prompt(name: str) -> None:
    prompt = f"Context:\n{BOTH}\n\nQuestion: {Q}\nAnswer:"
    record = {name: prompt, "response": "It has 14."}
    fields = {"question": "prompt"} if name == "prompt" else {}
    [result] = read_samples([record], fields=fields)
    assert isinstance(result, LocatedSample), str(result)
    assert result.sample.question == Q
    assert [document.text for document in result.sample.documents or ()] == PAIR


@pytest.mark.parametrize("name", ["documents", "contexts"])
def test_documents_of_a_record_win_over_those_of_its_prompt(name: str) -> None:
    prompt = f"Context:\n{BOTH}\n\nQuestion: {Q}\nAnswer:"
    for key, question in (("question", prompt), ("prompt", Q)):
        sample = sample_of({key: prompt, "response": "It has 14.", name: [GARDEN]})
        assert (sample.question, [one.text for one in sample.documents]) == (question, [GARDEN])


def test_messages_inside_a_record_of_a_tool_show_their_passages() -> None:
    system = {"role": "system", "content": f"Use the context below.\n{RULE}\n{HALLS}\n{RULE}"}
    user = {"role": "user", "content": f"<context>{GARDEN}</context>\n{Q}"}
    for messages in ([system, user], [[system, user]]):
        run = {"inputs": {"messages": messages}, "outputs": {"output": "It has 14."}}
        sample = sample_of(run)
        assert (sample.question, [one.text for one in sample.documents]) == (Q, PAIR)
        sample = sample_of({**run, "documents": ["Own."]})
        assert [one.text for one in sample.documents] == ["Own."]


# ---- bad input ----


@pytest.mark.parametrize(
    "text",
    [
        "Rules:\n" * 50_000,
        "\n\nRules:\n" * 30_000,
        "<doc>a</doc>" * 30_000,
        "a\n\n" * 100_000,
        "Question: a\nAnswer: b\n" * 20_000,
        "Context: a\n" + "Question: a\n\nRules: \n" * 20_000,
        "Context:\n" + "---\n" * 100_000 + "\nQuestion: a",
        ". Context: " * 50_000,
        "Use the following context:\n" * 30_000,
        "<query>" * 50_000 + "</query>",
        "x" * 1_000_000 + ":",
        "Context" + " " * 500_000 + ":",
        "```\n" * 50_000 + "<doc>a b c</doc>" * 1_000,
    ],
    ids=range(13),
)
def test_hostile_prompts_take_little_time(text: str) -> None:
    start = time.process_time()
    split_prompt(text)
    read_prompt(text)
    assert time.process_time() - start < 5


PIECES = """Context:|Question:|Answer:|---|\\"\\"\\"|```|<context>|</context>|[1]|Rules:|：|:
Use the following context|refine the original""".replace("\n", "|").split("|")
pieces = st.sampled_from([*PIECES, Q, HALLS, "\n", "\n\n", " "])


@given(text=st.lists(pieces | st.text(max_size=5), max_size=15).map("".join))
def test_any_text_has_a_question_or_passages_of_its_own_words(text: str) -> None:
    question, passages = split_prompt(text)
    assert question in text.replace("\r\n", "\n") or question == text
    if not passages:
        assert question == text
    assert isinstance(read_prompt(text), list)
