"""``python -m trustassay``, and the command ``trustassay``."""

from trustassay.cli.interrupting import begin, end


def main() -> None:
    """Run the command line. Modules that are slow to import are imported only here."""
    # Before the slow imports below, so that Ctrl-C during them ends the program without a
    # traceback.
    begin()
    from trustassay.cli.main import main as run

    try:
        run()
    except SystemExit as ending:
        # Leaves an interrupted process without waiting for its threads; else does nothing.
        end(ending.code)
        raise


if __name__ == "__main__":
    main()
