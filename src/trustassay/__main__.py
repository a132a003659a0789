"""``python -m trustassay``, and the command ``trustassay``."""

from trustassay.cli.interrupting import begin, end


def main() -> None:
    """Run the command line; what takes time to import is imported only here."""
    begin()
    from trustassay.cli.main import main as run

    try:
        run()
    except SystemExit as ending:
        end(ending.code)
        raise


if __name__ == "__main__":
    main()
