"""``python -m trustassay``."""

from trustassay.cli.main import main

if __name__ == "__main__":
    main()
