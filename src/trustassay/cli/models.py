"""``trustassay models`` and ``models get``: backends that work here, and recommended judges."""

from itertools import chain
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.report.terminal import one_line, print_json, say, show_table
from trustassay.runs.options import (
    Flag,
)
from trustassay.text.numbers import amount, gigabytes_text

UNNAMED = "list"
"""The command of ``trustassay models`` that runs if none is named."""


class _ModelsGroup(TyperGroup):
    """A group that runs the command :data:`UNNAMED` if the first argument names none."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        names_command = args and args[0] in self.commands
        return super().parse_args(ctx, args if names_command else [UNNAMED, *args])


group = typer.Typer(cls=_ModelsGroup)


@group.command(UNNAMED)
@with_options
def models(
    *,
    uris: Annotated[
        list[str] | None,
        Flag(
            "[URI]...",
            "Backends to try, for example openai:MODEL, hf:ID-or-path, lexical. Each one gets a "
            "small request, and its time is shown. Put chat=, embedder= or entailer= before a URI "
            "to choose how it is tried.",
        ),
    ],
    check: Annotated[
        bool,
        Flag(
            "--check",
            "Load each backend that needs no model name, run its self-test, measure its speed.",
        ),
    ],
    plugins: Annotated[
        bool,
        Flag(
            "--plugins",
            "List what installed packages add: backend schemes, metrics, commands.",
        ),
    ],
) -> None:
    """List the backends, the packages that they lack and the keys that are set; try some.

    `trustassay models get NAME` downloads a recommended judge; without NAME it lists them.

    \b
    trustassay models --check
    trustassay models openai:gpt-5-mini hf:Qwen/Qwen3-0.6B
    trustassay models get qwen2.5-coder-1.5b
    """
    from trustassay.backends import inventory

    # Installed packages first: an entry point that cannot be loaded is found here.
    if plugins:
        plugin_list = list(inventory.iterate_plugins())
        if not plugin_list:
            say("no installed package adds backend schemes, metrics or commands")
            return
        texts = ["name", "kind", "package", "used for"]
        rows = [
            [plugin.name, plugin.kind, plugin.package, one_line(plugin.state)]
            for plugin in plugin_list
        ]
        show_table(texts, rows, texts)
        if broken_count := sum(plugin.broken for plugin in plugin_list):
            say(f"{broken_count} of these cannot be loaded; the last column says why")
            raise typer.Exit(1)
        return
    # A backend is tried only if the user asks for it: loading a model takes time.
    timed = check or bool(uris)
    texts = ["backend", "used for", "available"]
    rows = []
    broken_count = 0
    # Backends that the user names are tried alone, unless all are to be checked too.
    backends = inventory.iterate_backends(check=check) if check or not uris else ()
    for result in chain(backends, map(inventory.try_backend, uris or ())):
        broken_count += result.broken
        cells = [result.name, result.capability, one_line(result.state)]
        rows.append([*cells, *([result.load, result.speed] if timed else [])])
    show_table([*texts, *(["load", "speed"] if timed else [])], rows, texts)
    if broken_count:
        say(f"{amount(broken_count, 'backend')} failed; the column `available` says why")
        raise typer.Exit(1)


@group.command("get")
@with_options
def get(
    *,
    name: Annotated[
        str | None, Flag("NAME", "The model to download. Without it, the models are listed.")
    ],
    check: Annotated[
        bool,
        Flag(
            "--check",
            "Also check the SHA-256 of a file that was downloaded before; by default only its "
            "size is checked.",
        ),
    ],
    as_json: common.Json,
) -> None:
    """Download a recommended model, which you can then use by name; without a name, list them.

    The file comes from the Hugging Face hub, or from its mirror in HF_ENDPOINT, and is stored in
    TRUSTASSAY_MODELS, or else in ~/.local/share/trustassay/models. A stopped download continues
    where it stopped, and the whole file is checked. No other command downloads these models.

    \b
    trustassay models get
    trustassay models get qwen2.5-coder-1.5b
    trustassay score answers.jsonl --second qwen2.5-coder-1.5b
    """
    from trustassay.backends.fetch_model import fetch_model
    from trustassay.backends.gguf import estimate_weight_memory, read_free_memory
    from trustassay.backends.recommended import find_recommended, load_recommended
    from trustassay.backends.registry import find
    from trustassay.errors import BackendError

    if name is None:
        result = load_recommended().values()
        texts = ["name", "model", "licence", "measured as a judge"]
        rows = [
            (
                *(
                    entry.name,
                    entry.what,
                    entry.licence,
                    entry.measured,
                ),
                *(entry.size, "yes" if entry.path.exists() else "no"),
            )
            for entry in result
        ]
        show_table([*texts, "size", "downloaded"], rows, texts)
        if as_json:
            print_json({"models": [entry.to_dict() for entry in result]})
        return
    model = find_recommended(name)
    scheme, _ = find("chat model", f"gguf:{model.path}")
    assert scheme is not None
    fault = scheme.describe_missing()
    # A file that cannot be used here is not worth a download of gigabytes.
    if fault and not model.path.exists():
        raise BackendError(
            f"{name} is not downloaded, because it cannot run here yet: {fault}; then run the same "
            "command again"
        )
    needed, free = estimate_weight_memory(model.bytes), read_free_memory()
    # Only a warning, since memory may be free when the model is loaded.
    if free is not None and needed > free:
        sizes = f"{gigabytes_text(needed)} of memory, but only {gigabytes_text(free)} are free now"
        say(f"{name} needs {sizes}")
    say(f"{name} ({model.size}, {model.licence}) from {model.address}")
    # A file of the right size is not fetched again; ``--check`` verifies its digest.
    outcome = "downloaded and checked" if fetch_model(model, check=check) else "already downloaded"
    use = f"--second {name}, --entailer {name} or --judge {name}"
    say(f"{outcome}: {model.path}; to use it: {use}")
    if fault:
        say(f"{name}: {fault}")
    if as_json:
        print_json(model.to_dict())
