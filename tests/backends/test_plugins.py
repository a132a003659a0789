"""Schemes of other packages: installed as by ``pip``, used, listed, and broken in every way."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from typer.testing import CliRunner

import trustassay
from trustassay.backends import inventory, registry
from trustassay.backends.resolve import chat, embedder, entailer, similarity
from trustassay.cli.main import app
from trustassay.core.capabilities import ChatModel, Entailer, Reply
from trustassay.errors import BackendError, UnknownNameError

ACME = """
import numpy as np
from trustassay.backends.registry import scheme
from trustassay.core.capabilities import Passage, Reply

class Acme:
    def __init__(self, model, region="eu"):
        self.name = f"acme:{model}?region={region}"

    async def reply(self, request):
        return Reply("SUPPORTS" if len(request.messages[-1].content) > 40 else "Yes.")

class Shelf:
    name = "acme-shelf"
    def search(self, queries, k):
        return [[Passage("1", "Rome is in Italy.")][:k] for _ in queries]

@scheme("acme", kind="chat model", form="acme:MODEL", options={"region": str}, price="openai",
        target="a model, as in acme:MODEL")
def acme(model, region="eu"):
    return Acme(model, region)

@scheme("acme", kind="embedder", form="acme:MODEL", slow=True, needs={"acme_c": "acme[c]"})
def embed(model):
    return lambda texts: np.ones((len(texts), 2))

@scheme("acme", kind="retriever", form="acme:SHELF")
def shelf(_):
    return Shelf()

@scheme("acme", kind="similarity", form="acme")
def wrong():
    return 7
"""
PACKAGES = {
    "acme-trust": ("1.2", {"trustassay.backends": {"acme": "acme_trust"}}, {"acme_trust": ACME}),
    "sham": (
        "0.1",
        {
            "trustassay.backends": {
                "sham": "sham_broken",
                "empty": "sham_empty",
                "other": "sham_other",
                "openai": "sham_empty",
            },
            "trustassay.metrics": {"shammetric": "sham_broken:Metric"},
            "trustassay.commands": {"shamcommand": "sham_empty:nothing"},
            "trustassay.capabilities": {"shamcapability": "sham_broken:CAPABILITY"},
        },
        {
            "sham_broken": "import a_library_that_is_not_there",
            "sham_empty": "",
            "sham_other": "from trustassay.backends.registry import scheme\n"
            "scheme('elsewhere', kind='linker')(print)",
        },
    ),
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install the packages, as ``pip`` would; return their folder."""
    for name, (version, groups, modules) in PACKAGES.items():
        info = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines = []
        for group, entries in groups.items():
            lines += [f"[{group}]", *(f"{entry} = {path}" for entry, path in entries.items())]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
        for module, code in modules.items():
            (tmp_path / f"{module}.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    known = dict(registry._SCHEMES)
    yield tmp_path
    for key, one in [*registry._SCHEMES.items()]:
        if key not in known and one.load.__module__.startswith(("acme_", "sham_")):
            del registry._SCHEMES[key]
    for module in [name for name in sys.modules if name.startswith(("acme_", "sham_"))]:
        del sys.modules[module]


@pytest.mark.usefixtures("installed")
def test_a_scheme_of_another_package_is_a_scheme_like_others() -> None:
    assert "acme_trust" not in sys.modules
    model = chat("acme:m?region=us")
    assert isinstance(model, ChatModel) and model.name == "acme:m?region=us"
    assert embedder("acme:m").vectors(["a", "b"]).shape == (2, 2)  # type: ignore[union-attr]
    assert registry.load("retriever", "acme:x").search(["q"], 1)[0][0].text == "Rome is in Italy."
    judge = entailer("acme:m?repeats=1&region=us")
    assert isinstance(judge, Entailer) and judge.name == "acme:m?region=us"
    assert entailer("chat:acme:m").name == "chat:acme:m?region=eu"
    assert judge.scores([("a", "b")]).tolist() == [[1, 0, 0]]
    (reply,) = trustassay.chat("acme:m").ask(["Well?"])
    assert isinstance(reply, Reply) and reply.text == "Yes."
    assert registry.find_price_provider("acme:m") == "openai"


@pytest.mark.usefixtures("installed")
def test_what_is_known_of_it_before_it_is_loaded() -> None:
    assert registry.takes_time("embedder", "acme:m")
    assert registry.takes_time("similarity", "cosine:acme:m")
    assert not registry.takes_time("chat model", "acme:m")
    assert registry.find_fault("chat model", "acme:m") is None
    expected = "acme:m: acme_c is missing: pip install acme[c]"
    assert registry.find_fault("similarity", "cosine:acme:m") == expected
    with pytest.raises(UnknownNameError, match="unknown option of acme 'regoin'; did you mean"):
        registry.find_fault("entailer", "chat:acme:m?regoin=us")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: chat("acme:"), "acme: needs a model, as in acme:MODEL"),
        (lambda: chat("acme:m?x=1"), "unknown option of acme 'x'"),
        (lambda: chat("acm:m"), "unknown chat model 'acm'; did you mean acme?"),
        (lambda: similarity("acme"), "expected a similarity .an object or a function., got 7"),
        (
            lambda: registry.load("linker", "acme:m"),
            "acme-trust 1.2 defines it for chat model and",
        ),
        (lambda: chat("sham:m"), "sham: the scheme of the package sham 0.1 cannot be loaded .Mod"),
        (
            lambda: chat("empty:m"),
            "package sham 0.1 cannot be loaded .it defines no scheme of this name",
        ),
        (lambda: chat("other:m"), "package sham 0.1 cannot be loaded .scheme elsewhere is desc"),
    ],
)
def test_a_broken_plugin_is_one_line_that_names_the_package(ask: object, words: str) -> None:
    with pytest.raises((BackendError, UnknownNameError), match=words) as error:
        ask()  # type: ignore[operator]
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("installed")
def test_who_does_not_use_a_broken_plugin_never_meets_it(tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text('{"question": "Where?", "response": "In Rome.", "documents": ["Rome."]}\n')
    arguments = ["score", str(file), "--metric", "faithfulness", "--entailer", "lexical"]
    done = CliRunner().invoke(app, [*arguments, "--cache", "off", "--json"])
    assert done.exit_code == 0, done.output
    assert "sham" not in done.output
    assert entailer("lexical").name == "lexical"
    assert chat("openai:m").name.startswith("openai:m@")  # not that of the package


@pytest.mark.usefixtures("installed")
def test_models_lists_what_packages_add(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    found = {
        one.name: one for one in inventory.iterate_plugins() if one.package.startswith(("ac", "sh"))
    }
    assert found["acme"].state == "chat model, embedder, retriever, similarity"
    assert (found["acme"].package, found["acme"].kind) == ("acme-trust 1.2", "scheme")
    assert {one.kind for one in found.values()} == {"scheme", "metric", "capability", "command"}
    broken = {name for name, one in found.items() if one.broken}
    assert broken == set(found) - {"acme"}
    assert "trustassay already defines this scheme" in found["openai"].state
    done = CliRunner().invoke(app, ["models", "--plugins"])
    assert done.exit_code == 1
    assert "acme-trust 1.2" in done.output and "7 of these cannot be loaded" in done.output
    assert "Traceback" not in done.output


def test_two_packages_of_one_scheme(installed: Path) -> None:
    info = installed / "twin-3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: twin\nVersion: 3\n")
    (info / "entry_points.txt").write_text("[trustassay.backends]\nacme = sham_empty\n")
    with pytest.raises(BackendError, match=r"acme: .* \(.* already defines this scheme"):
        chat("acme:m")


def test_a_module_that_was_imported_before_is_no_twin(installed: Path) -> None:
    __import__("acme_trust")
    assert chat("acme:m").name == "acme:m?region=eu"
    (entry,) = registry.find_entry_points()["acme"]
    assert len(registry.load_plugin(entry)) == 4


@pytest.mark.usefixtures("installed")
def test_a_scheme_that_cannot_be_loaded_leaves_others_of_its_package() -> None:
    assert chat("acme:m").name == "acme:m?region=eu"
    (good,) = registry.find_entry_points()["acme"]
    broken = EntryPoint("broken", "sham_broken", registry.ENTRY_POINT_GROUP)
    vars(broken).update(dist=good.dist)
    with pytest.raises(BackendError, match=r"broken: .* acme-trust 1\.2 cannot be loaded"):
        registry.load_plugin(broken)
    assert chat("acme:m").name == "acme:m?region=eu"
