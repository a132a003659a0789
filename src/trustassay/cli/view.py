"""``trustassay view``: one local page for all runs below a folder."""

from pathlib import Path
from typing import Annotated

from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.errors import UsageError
from trustassay.report.terminal import say
from trustassay.runs.options import (
    Flag,
)


@with_options
def view(  # noqa: PLR0913 - one argument an option
    *,
    folder: Annotated[
        Path | None,
        Flag(
            "FOLDER",
            "A folder; all runs below it are shown. It may be the folder of a single run. "
            "Default: trustassay-runs if it exists, else the current folder.",
        ),
    ],
    rate: Annotated[
        str,
        Flag(
            "--rate",
            "Name of the rater. Without it the pages are read-only. Ratings are stored in the "
            "folder of each run, as by `annotate`.",
            metavar="NAME",
            default="",
        ),
    ],
    rubric: Annotated[str, common.RUBRIC] = "answer",
    blind: Annotated[
        bool,
        Flag(
            "--blind/--no-blind",
            "Hide the scores and other people's ratings of an answer until you rate it.",
            default=True,
        ),
    ],
    write_others: common.WriteOthers,
    host: common.Host,
    port: common.Port = 8766,
    public: common.Public = "",
) -> None:
    """Serve web pages on this machine to view, compare and rate all runs below a folder.

    The pages show the list of runs, each answer with its verdicts, passages and model calls, a
    figure over time, two runs side by side, and what to rate next. They follow runs in progress.
    The address contains a secret token. Nothing leaves this machine.

    \b
    trustassay view
    trustassay view runs --rate anna
    trustassay view runs --rate anna --rubric verdict --port 0
    """
    from trustassay.metrics.judge import read_rubric
    from trustassay.people.annotate.project import RATER_NAME
    from trustassay.report import serving
    from trustassay.report.serving import open_listener
    from trustassay.view.index import Index, index_path
    from trustassay.view.pages import Site
    from trustassay.view.server import VIEWER, IndexRefresher, application

    # step 1: check the arguments before anything is opened
    folder = folder or Path("trustassay-runs" if Path("trustassay-runs").is_dir() else ".")
    if not folder.is_dir():
        raise UsageError(f"{folder}: expected a folder of runs; `score --out` writes one")
    if rate and not RATER_NAME.fullmatch(rate):
        hint = "expected up to 40 letters, digits, _, - and . (not as first character)"
        raise UsageError(f"--rate: {hint}, got {rate[:50]!r}")
    # step 2: bind the port first, so that a port in use leaves no trace
    with open_listener(host, port) as at:
        path = index_path(folder)
        index = Index(folder, path)
        # Tokens are kept beside the table, so the address stays the same from start to start.
        links = serving.AccessLinks(path, [rate or VIEWER])
        base = f"/{links.tokens[rate or VIEWER]}"
        site = Site(
            folder.resolve(),
            base,
            rate,
            read_rubric(rubric),
            blind=blind,
            write_others=write_others,
        )
        # step 3: print the address, and a warning where other machines can reach it
        if warning := serving.warn_of_exposure(host):
            say(warning)
        say(f"{serving.format_address(host, at)}{site.base}/")
        say("Ctrl-C ends the server. The same command serves the same address again.")
        # step 4: keep the table up to date in the background, and serve until Ctrl-C
        refresher = IndexRefresher(index, say)
        refresher.start()
        hosts = serving.AllowedHosts(host, public)

        async def stop_refreshing() -> None:
            refresher.close()

        served = application(site, index, links, say, hosts, lambda: refresher.version)
        serving.serve(served, at, stop_refreshing)
