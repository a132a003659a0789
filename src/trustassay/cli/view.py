"""``trustassay view``: one local page for all runs below a folder."""

from pathlib import Path

from trustassay.cli.options import with_options
from trustassay.errors import UsageError
from trustassay.show.terminal import say


@with_options
def view(*, folder: Path | None, rate: str, rubric: str, blind: bool, host: str, port: int) -> None:
    """See, compare and rate the runs below a folder on a page of this machine."""
    from trustassay.metrics.judge import read_rubric
    from trustassay.workflows.annotate.project import NAME
    from trustassay.workflows.listening import listening
    from trustassay.workflows.view import serving
    from trustassay.workflows.view.index import Index, index_path
    from trustassay.workflows.view.pages import Site
    from trustassay.workflows.view.server import VIEWER, Keeper, application

    folder = folder or Path("trustassay-runs" if Path("trustassay-runs").is_dir() else ".")
    if not folder.is_dir():
        raise UsageError(f"{folder}: expected a folder with runs; `score --out` makes one")
    if rate and not NAME.fullmatch(rate):
        hint = "expected up to 40 letters, digits, _, - and . (not first)"
        raise UsageError(f"--rate: {hint}, got {rate[:50]!r}")
    with listening(host, port) as at:
        path = index_path(folder)
        index = Index(folder, path)
        links = serving.Links(path, [VIEWER])
        base = f"/{links.tokens[VIEWER]}"
        site = Site(folder.resolve(), base, rate, read_rubric(rubric), blind=blind)
        if warning := serving.warning_of(host):
            say(warning)
        say(f"{serving.address(host, at)}{site.base}/")
        say("Ctrl-C ends; the same command has the same address")
        keeper = Keeper(index, say)
        keeper.start()
        hosts = serving.known_hosts(host, at.getsockname()[1])

        async def drained() -> None:
            keeper.close()

        served = application(site, index, links, say, hosts, lambda: keeper.version)
        serving.serve(served, at, drained)
