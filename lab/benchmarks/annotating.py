"""How many ratings a second `trustassay annotate` stores, and whether one is lost.

    python -m lab.benchmarks.annotating                  # ten raters, 300 ratings each: half a
    minute
    python -m lab.benchmarks.annotating --kill 3         # the server is killed three times
    meanwhile

Starts the command, and rates as ten browsers would that need no time to think: each client sends a
rating, waits for the reply, and sends the next. After a kill it sends the same rating again. At the
end every rating that the server confirmed is looked up in the file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

LEVELS = 6
START_S = 60.0


@dataclass
class Served:
    """The command at work in a folder; it can be killed and started again on the same port."""

    folder: Path
    arguments: Sequence[str]
    port: int = 0
    links: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the command and wait until it says its links."""
        said = self.folder / "said"
        command = [sys.executable, "-m", "trustassay", "annotate", *self.arguments]
        with said.open("wb") as file:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port)], cwd=self.folder, stderr=file, env=os.environ
            )
        deadline = time.monotonic() + START_S
        while "Ctrl-C ends" not in (text := said.read_text()):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start: {text}")
            time.sleep(0.02)
        self.links = dict(re.findall(r"^([\w.-]+): (http://\S+)", text, re.MULTILINE))
        self.port = int(next(iter(self.links.values())).split(":")[2].split("/")[0])

    def kill(self) -> None:
        """End it with SIGKILL."""
        assert self.process
        self.process.kill()
        self.process.wait()


@dataclass
class Measured:
    """What was confirmed, by rater and step, and what it took."""

    confirmed: dict[tuple[str, int], int] = field(default_factory=dict)
    sent_again: int = 0
    seconds: float = 0.0


def level(rater: str, step: int) -> int:
    """Return what a client rates: another level at nearly every step."""
    return (7 * step + int(rater[1:])) % LEVELS


async def rate(served: Served, rater: str, number: int, measured: Measured) -> None:
    """Rate as one browser does, each step until the server confirms it."""
    async with aiohttp.ClientSession() as browser:
        for step in range(number):
            form = {"step": str(step), "choice": str(level(rater, step)), "note": f"{rater} {step}"}
            while True:
                try:
                    url = f"{served.links[rater]}/rate"
                    async with browser.post(url, data=form, allow_redirects=False) as reply:
                        if reply.status == 303:
                            break
                        raise RuntimeError(f"{reply.status}: {await reply.text()}")
                except aiohttp.ClientError:
                    measured.sent_again += 1
                    await asyncio.sleep(0.05)
            measured.confirmed[rater, step] = level(rater, step)


async def measure(served: Served, number: int, kills: int = 0) -> Measured:
    """Let all raters rate ``number`` answers at once; the server is killed ``kills`` times."""
    measured, begin = Measured(), time.perf_counter()
    raters = [
        asyncio.create_task(rate(served, name, number, measured)) for name in list(served.links)
    ]
    for kill in range(kills):
        due = (kill + 1) * len(raters) * number // (kills + 1)
        while len(measured.confirmed) < due and not all(task.done() for task in raters):
            await asyncio.sleep(0.005)
        served.kill()
        await asyncio.to_thread(served.start)
    await asyncio.gather(*raters)
    measured.seconds = time.perf_counter() - begin
    return measured


def stored(path: Path) -> Mapping[tuple[str, int], int]:
    """Return the ratings in the file, by rater and the step that the note names."""
    found = {}
    for line in path.read_text().splitlines()[1:]:
        row = json.loads(line)
        found[row["rater"], int(row["note"].split()[1])] = row["rating"]
    return found


def many_raters(folder: Path, raters: int, number: int) -> Served:
    """Write answers to rate, and return the command on which so many raters rate them all."""
    rows = [{"id": f"q{n}", "question": f"{n}?", "response": f"{n}."} for n in range(number)]
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    names = [part for n in range(raters) for part in ("--rater", f"r{n}")]
    return Served(folder, ["answers.jsonl", *names])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--raters", type=int, default=10)
    parser.add_argument("--each", type=int, default=300)
    parser.add_argument("--kill", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        served = many_raters(Path(folder), given.raters, given.each)
        served.start()
        try:
            measured = asyncio.run(measure(served, given.each, given.kill))
        finally:
            served.kill()
        found = stored(served.folder / "ratings.jsonl")
        lost = {key for key, value in measured.confirmed.items() if found.get(key) != value}
        count, seconds = len(measured.confirmed), measured.seconds
        print(
            f"{count:,} ratings by {given.raters} clients in {seconds:.1f} s: "
            f"{count / seconds:,.0f} a second; "
            f"killed {given.kill} times, {measured.sent_again:,} sent again, {len(lost)} lost"
        )


if __name__ == "__main__":
    main()
