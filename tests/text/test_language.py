"""In which language an answer is: by itself, by what it answers, by its script."""

import pytest

from trustassay.text.language import detect_language

SENTENCES = {
    "ca": "La llum vermella és a la casa verda, al costat de la porta, des de fa dos anys.",
    "cs": "Červená lampa stojí v zeleném domě vedle dveří už druhým rokem.",
    "da": "Den røde lampe har stået i det grønne hus ved siden af døren i to år.",
    "de": "Die Garantie beträgt zwei Jahre ab dem Kaufdatum und umfasst alle Teile.",
    "es": "La lámpara roja está en la casa verde, junto a la puerta, desde hace dos años.",
    "eu": "Lanpara gorria etxe berdean dago, atearen ondoan, duela bi urtetik hona.",
    "fi": "Punainen lamppu on ollut vihreässä talossa oven vieressä kaksi vuotta.",
    "fr": "La lampe rouge se trouve dans la maison verte, à côté de la porte.",
    "it": "La lampada rossa sta nella casa verde, accanto alla porta, da due anni.",
    "nl": "De rode lamp staat al twee jaar in het groene huis naast de deur.",
    "pl": "Czerwona lampa stoi w zielonym domu obok drzwi już od dwóch lat.",
    "pt": "A lâmpada vermelha está na casa verde, ao lado da porta, há dois anos.",
    "sv": "Den röda lampan har stått i det gröna huset bredvid dörren i två år.",
    "tr": "Kırmızı lamba iki yıldır yeşil evde, kapının yanında duruyor.",
    "ar": "المصباح الأحمر في البيت الأخضر بجانب الباب",
    "hi": "लाल बत्ती हरे घर में दरवाज़े के पास है।",
    "ja": "赤いランプは緑の家のドアのそばにあります。",
    "ru": "Красная лампа стоит в зелёном доме у двери.",
    "zh": "红灯在绿房子的门边。",
}
ENGLISH = (
    "The red lamp is in the green house by the door.",
    "Hans-Jürgen Graf von Stein was the last prisoner of that jail.",
    "She was born in San Mamés and moved to Île-de-France.",
    "The house is at the corner of Kralja Milana, Nemanjina, Beogradska, Makenzijeva, "
    "Deligradska and Bulevar oslobođenja.",
    "No, he is an actor, and so is she, as far as the record goes.",
)


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_in_another_language(language: str) -> None:
    assert detect_language(SENTENCES[language], ["Where does the red lamp stand?"]) == language


@pytest.mark.parametrize("sentence", ENGLISH)
def test_an_english_sentence(sentence: str) -> None:
    assert detect_language(sentence, ["Who was it, and where was she born?"]) == "en"


@pytest.mark.parametrize("answer", ["Real Madrid", "No", "1984", "Petra van Staveren, 1984"])
def test_a_short_answer_has_the_language_of_what_it_answers(answer: str) -> None:
    assert detect_language(answer, ["Who won the cup in that year?"]) == "en"
    assert detect_language(answer, ["¿Quién ganó la copa ese año?"]) == "es"
    assert detect_language(answer, ["", "Der Pokal ging in diesem Jahr an den Verein."]) == "de"


def test_without_context_a_short_answer_has_no_certain_language() -> None:
    assert detect_language("Real Madrid") is None
    assert detect_language("Real Madrid", ["", "3"]) is None
    assert detect_language(r"... $x = \sqrt{1/7}$", ["3"]) is None
    assert detect_language("", ["¿Quién ganó la copa ese año?"]) == "es"


def test_another_script_needs_no_context() -> None:
    assert detect_language("高级计划每月12欧元。", ["What does the plan cost?"]) == "zh"
    assert detect_language("E = mc², α ≤ β", ["What is the formula of the energy?"]) == "en"


def test_english_words_beside_rows_of_data_are_english() -> None:
    table = "name,price\nAurora lamp,20 USD\nNova lamp,30 USD"
    answer = "In 2023 the Aurora lamp cost 25 USD."
    assert detect_language(answer, ["Tell me.", table, table]) == "en"
    dutch = "De lamp is van Anna en kost 20 euro per stuk."
    assert detect_language(dutch, ["Hoeveel?", "De lamp kost 20 euro."]) == "nl"
