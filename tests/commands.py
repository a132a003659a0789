"""Runs commands of trustassay in one process: ``python -m tests.commands COMMANDS.json``.

COMMANDS.json is a list of lists of arguments. On standard output comes one JSON object: ``status``
has the exit status of each command, ``network`` what Python code did with sockets.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

QUIET = ("socket.__new__", "socket.bind")
"""What asyncio does for its own pair of sockets; nothing leaves the machine by it."""


def run(arguments: list[str]) -> int:
    from trustassay.cli.main import main

    sys.argv = ["trustassay", *arguments]
    try:
        main()
    except SystemExit as error:
        return int(error.code or 0)
    return 0


def listen(heard: list[list[str]]) -> None:
    """Note what Python code does with sockets from now on."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith("socket.") and event not in QUIET:
            heard.append([event, *(str(argument) for argument in arguments[-2:])])

    sys.addaudithook(hook)


if __name__ == "__main__":
    network: list[list[str]] = []
    listen(network)
    status = [run(arguments) for arguments in json.loads(Path(sys.argv[1]).read_bytes())]
    print(json.dumps({"status": status, "network": network}))
