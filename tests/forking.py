"""Commands in processes forked from one that has imported ``trustassay`` already.

``command(...)`` gives the arguments of a small program that hands its standard streams, folder,
environment and limits to such a process, passes signals on, and ends as the command ends. A command
runs as it would from a shell; what is saved is a second of imports. Where the program is killed
(``SIGKILL``), so is the command, before the next one starts. Where the environment has other
settings of Python than ``PYTHONPATH``, or a standard stream is closed, the program starts
``python -m trustassay``, as does ``tests.support.fresh_command``. In a mount namespace of its own
(``unshare -rm``) the program is joined there by the command, which sees the same disks.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import functools
import gc
import importlib
import json
import os
import pkgutil
import resource
import select
import signal
import socket
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
PRELOADED = ("calls", "cli", "data", "metrics", "runs", "show", "statistics", "workflows")
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)


def command(*arguments: str) -> list[str]:
    """Return what starts ``trustassay`` with these arguments; ``-c CODE`` runs that code instead,
    as Python does.
    """
    return [sys.executable, "-I", "-S", __file__, _server(), *arguments]


@functools.cache
def _server() -> str:
    """Start the process to fork from, once in each worker; return the path of its socket."""
    import atexit
    import subprocess
    import tempfile

    folder = tempfile.TemporaryDirectory(prefix="forks-")
    path = str(Path(folder.name) / "socket")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.forking", path],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin and process.stdout

    def end() -> None:
        assert process.stdin
        process.stdin.close()
        process.wait()
        folder.cleanup()

    atexit.register(end)
    if process.stdout.readline() != b"ready\n":
        raise RuntimeError("the process to fork from has not started")
    return path


def python_settings() -> str:
    """Return the settings of Python in the environment that have their effect at the start."""
    return json.dumps(
        {
            name: one
            for name, one in os.environ.items()
            if name.startswith("PYTHON") and name != "PYTHONPATH"
        }
    )


# The process to fork from ------------------------------------------------------------------------


def serve(path: str) -> None:
    """Fork for each connection, until standard input is closed; return in commands alone."""
    import typer.main
    from typer.testing import CliRunner

    import trustassay
    from trustassay.cli.main import app

    for package in PRELOADED:
        folder = f"{trustassay.__path__[0]}/{package}"
        for module in pkgutil.walk_packages([folder], f"trustassay.{package}."):
            importlib.import_module(module.name)
    _load()
    typer.main.get_command = functools.cache(typer.main.get_command)
    CliRunner().invoke(app, ["score", "no.jsonl"])  # typer imports some of its parts then
    CliRunner().invoke(app, ["score", "--help"])
    gc.collect()
    gc.freeze()  # or the collector of each command would write to, and so copy, all that is shared
    signal.signal(signal.SIGCHLD, _reap)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(16)
        Path(f"{path}.settings").write_text(python_settings())
        print("ready", flush=True)
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            _end_what_was_killed()
            process = os.fork()
            if not process:
                listener.close()
                for other in running.values():
                    other.close()
                return _become(connection)
            running[process] = connection
    os._exit(0)


def _load() -> None:
    """Load what many commands need: the embedded models, and what tells a text's language."""
    from tests import encoded
    from trustassay.backends import embedded
    from trustassay.text.language import detect_language

    if os.environ.get(encoded.FOLDER):
        encoded.install()
    embedded.load_encoder("entailer", None, None)
    embedded.load_encoder("embedder", None)
    detect_language("Which of these texts is an English one?")


running: dict[int, socket.socket] = {}
"""For each process that waits for a command: its connection."""


def _reap(*_: object) -> None:
    """Wait for processes that have ended, so that their CPU time counts with this one's."""
    with contextlib.suppress(ChildProcessError):
        while process := os.waitpid(-1, os.WNOHANG)[0]:
            if process in running:
                running.pop(process).close()


def _end_what_was_killed() -> None:
    """Wait for commands whose programs have been killed: they are killed as well."""
    for connection in list(running.values()):
        with contextlib.suppress(OSError):  # closed, or its program still waits
            while not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                time.sleep(0.001)


def _become(connection: socket.socket) -> None:
    """Fork the command, and wait for it here; this returns in the command alone."""
    size, ancillary, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(3 * array.array("i").itemsize))
    streams = array.array("i")
    streams.frombytes(ancillary[0][2])
    asked = json.loads(connection.makefile("rb").read(int.from_bytes(size, "big")))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    process = os.fork()
    if process:
        _wait(process, connection, streams)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if asked["mounts"] != _mounts():
        _join(asked["program"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    os.umask(asked["umask"])
    for limit, (soft, hard) in zip(LIMITS, asked["limits"], strict=True):
        resource.setrlimit(limit, (soft, hard))
    paths = asked["environment"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:1] = [asked["folder"], *filter(None, paths)]
    arguments = asked["arguments"]
    sys.argv = arguments if arguments[:1] == ["-c"] else ["trustassay", *arguments]
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    vars(sys).update(__stdin__=sys.stdin, __stdout__=sys.stdout, __stderr__=sys.stderr)


def _mounts() -> str:
    """Return what tells the mount namespace of this process from others, ``""`` without any."""
    try:
        return str(Path("/proc/self/ns/mnt").readlink())
    except OSError:
        return ""


def _join(program: int) -> None:
    """Enter the user and the mount namespace of a process (``os.setns`` is new in Python 3.12)."""
    libc = ctypes.CDLL(None, use_errno=True)
    opened = [os.open(f"/proc/{program}/ns/{kind}", os.O_RDONLY) for kind in ("user", "mnt")]
    for namespace in opened:
        if libc.setns(namespace, 0):
            raise OSError(ctypes.get_errno(), "the namespace of the program cannot be entered")
        os.close(namespace)


def _wait(process: int, connection: socket.socket, streams: array.array[int]) -> None:
    """Send the number of the command and its status; kill it if nobody waits for it any more."""
    for stream in (0, 1, 2, *streams):
        os.close(stream)
    connection.sendall(f"{process}\n".encode())
    ended = os.pidfd_open(process)
    if ended not in select.select([ended, connection.fileno()], [], [])[0]:
        os.kill(process, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    try:
        connection.sendall(f"{status}\n".encode())
    finally:
        os._exit(0)


# The program that stands for a command -----------------------------------------------------------


def stand_for(path: str, arguments: list[str]) -> None:
    """Have the command run, pass signals on to it, and end as it ends."""
    waiting: list[int] = []
    process = 0

    def pass_on(number: int, _: object) -> None:
        if process:
            os.kill(process, number)
        else:
            waiting.append(number)

    fresh = [sys.executable, *([] if arguments[:1] == ["-c"] else ["-m", "trustassay"]), *arguments]
    try:
        for stream in range(3):
            os.fstat(stream)
    except OSError:  # seen before the socket takes its number
        os.execv(sys.executable, fresh)
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            if Path(f"{path}.settings").read_text() != python_settings():
                raise OSError
            umask = os.umask(0)
            os.umask(umask)
            asked = {
                "arguments": arguments,
                "folder": str(Path.cwd()),
                "environment": dict(os.environ),
                "umask": umask,
                "program": os.getpid(),
                "mounts": _mounts(),
                "limits": [resource.getrlimit(limit) for limit in LIMITS],
            }
            connection.connect(path)
        except OSError:
            os.execv(sys.executable, fresh)
        for number in PASSED_ON:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, pass_on)
        body = json.dumps(asked).encode()
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", range(3)))]
        connection.sendmsg([len(body).to_bytes(4, "big")], rights)
        connection.sendall(body)
        answers = connection.makefile()
        process = int(answers.readline())
        for early in waiting:
            os.kill(process, early)
        status = int(answers.readline())
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    if sys.flags.isolated:
        stand_for(sys.argv[1], sys.argv[2:])
    serve(sys.argv[1])
    if sys.argv[0] == "-c":
        code = compile(sys.argv.pop(1), "<string>", "exec")
        exec(code, {"__name__": "__main__"})
    else:
        from trustassay.__main__ import main

        main()
