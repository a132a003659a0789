"""Scripted models, embedders and entailers, as the text of a module beside an item's files.

Each model writes what it is asked into ``requests.jsonl``, so that a check sees the prompt, the
temperature and the length that the program sent. What a model knows stands in ``knows.json``.
"""

MODELS = r'''
import json
import re
import threading
import zlib
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
LOCK = threading.Lock()


def knowledge(name):
    path = HERE / "knows.json"
    return json.loads(path.read_text())[name] if path.exists() else {}


def note(model, request):
    row = {
        "model": model,
        "text": request.messages[-1].content,
        "turns": len(request.messages),
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "repeat": request.repeat,
        "prompt": request.prompt,
    }
    with LOCK, (HERE / "requests.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")
    return row["text"]


def last_options(text):
    """The options of the last question of a prompt, by letter."""
    tail = text[text.rindex("\nA) ") :]
    return dict(re.findall(r"^([A-E])\) (.*)$", tail, re.MULTILINE))


def chooser(request):
    """Takes its own answer among options, as often as knows.json says of the question."""
    text = note("chooser", request)
    for question, rule in knowledge("chooser").items():
        if question in text:
            options = last_options(text)
            letter = next(key for key, option in options.items() if option == rule["answer"])
            times = rule.get("times")
            seen = sum(
                question in row["text"]
                for row in map(json.loads, (HERE / "requests.jsonl").read_text().splitlines())
            )
            if times is None or seen <= times:
                return letter
            return "E"
    raise ValueError("no question is known")


def never(request):
    """Always takes the last option, none of the others."""
    note("never", request)
    return "E"


def by_text(name):
    """A model that replies by the first key of its knowledge that stands in the prompt."""

    def reply(request):
        text = note(name, request)
        rules = knowledge(name)
        for key, answer in rules.items():
            if key and key in text:
                return answer[request.repeat % len(answer)] if isinstance(answer, list) else answer
        return rules.get("", "I have no answer.")

    return reply


def by_last(name):
    """As by_text, by the key that stands last in the prompt."""

    def reply(request):
        text = note(name, request)
        rules = knowledge(name)
        places = {key: text.rfind(key) for key in rules if key}
        best = max(places, key=places.get) if places else ""
        if places and places[best] >= 0:
            answer = rules[best]
            return answer[request.repeat % len(answer)] if isinstance(answer, list) else answer
        return rules.get("", "I have no answer.")

    return reply


reader = by_text("reader")
answers = by_last("answers")
other = by_last("other")
third = by_last("third")
writer = by_last("writer")
rater = by_text("rater")


def wavering(request):
    """Answers by the sum of the characters after the question: as a model that is not stable."""
    text = note("wavering", request)
    kinds = knowledge("wavering")["kinds"]
    return kinds[zlib.crc32(text.encode()) % len(kinds)]


def echo(request):
    """Returns the number of characters of the prompt."""
    text = note("echo", request)
    return f"The prompt has {len(text)} characters and ends as {zlib.crc32(text.encode()) % 7}."


def alike(first, second):
    """Words in common over all words, of the lower case."""
    one, two = set(re.findall(r"\w+", first.lower())), set(re.findall(r"\w+", second.lower()))
    return len(one & two) / len(one | two) if one | two else 0.0


class Letters:
    """Unit vectors in the direction of the counts of letters."""

    name = "letters"

    def vectors(self, texts):
        alphabet = "abcdefghijklmnopqrstuvwxyz"
        rows = [[text.lower().count(letter) for letter in alphabet] for text in texts]
        counts = np.array(rows, dtype=np.float64) + 0.01
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


letters = Letters()


class Directions:
    """Unit vectors of the plane: the angle in degrees stands in the text as @N; else 0."""

    name = "directions"

    def vectors(self, texts):
        degrees = [float((re.findall(r"@(-?\d+)", text) or ["0"])[-1]) for text in texts]
        turned = np.radians(degrees)
        return np.stack([np.cos(turned), np.sin(turned)], axis=1).astype(np.float32)


directions = Directions()


class Marks:
    """An entailer that goes by marks: a premise with =X entails a hypothesis with X, one with !X
    contradicts it; several marks of a premise count together, as of joined passages."""

    name = "marks"

    def scores(self, pairs):
        rows = []
        for premise, hypothesis in pairs:
            marks = set(re.findall(r"\b(k\d+)\b", hypothesis))
            if marks and marks <= set(re.findall(r"= ?(k\d+)\b", premise)):
                rows.append((0.9, 0.08, 0.02))
            elif marks and marks & set(re.findall(r"! ?(k\d+)\b", premise)):
                rows.append((0.02, 0.08, 0.9))
            else:
                rows.append((0.05, 0.9, 0.05))
        return np.array(rows)


marks = Marks()
'''
