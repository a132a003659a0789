"""The plain loop that trustassay is held against: ask, try again, write each answer down at once.

    python -m lab.benchmarks.reliability.plain QUESTIONS OUT BASE_URL --at-once 50 --tries 8

Exponential backoff with a random share, Retry-After where it is given, and questions whose answer
stands in OUT already are left out. ``--tries 0`` tries for ever.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
from pathlib import Path
from typing import Any

import aiohttp

FIRST_S, MOST_S = 0.5, 20.0


async def ask(session: aiohttp.ClientSession, url: str, prompt: str, tries: int) -> str | None:
    """Return the answer, or ``None`` where all tries are used up."""
    body = {"model": "test", "messages": [{"role": "user", "content": prompt}]}
    for number in range(tries) if tries else itertools.count():
        delay_s = min(MOST_S, FIRST_S * 2 ** min(number, 10)) * random.uniform(0.5, 1.0)
        try:
            async with session.post(f"{url}/chat/completions", json=body) as response:
                if response.status == 200:
                    found = json.loads(await response.read())
                    return str(found["choices"][0]["message"]["content"])
                delay_s = float(response.headers.get("Retry-After", delay_s))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError, KeyError):
            pass
        await asyncio.sleep(delay_s)
    return None


def answered(out: Path) -> set[str]:
    """Return the ids of the questions with an answer; a line that broke off counts for none."""
    found = set()
    for line in out.read_text(encoding="utf-8").splitlines() if out.exists() else ():
        try:
            found.add(json.loads(line)["id"])
        except ValueError:
            continue
    return found


async def main(args: argparse.Namespace) -> None:
    done = answered(args.out)
    questions = [json.loads(line) for line in args.questions.read_text().splitlines()]
    places = asyncio.Semaphore(args.at_once)
    timeout = aiohttp.ClientTimeout(total=args.timeout_s)
    with args.out.open("a", encoding="utf-8") as file:
        if file.tell() and not args.out.read_bytes().endswith(b"\n"):
            file.write("\n")

        async def one(question: dict[str, Any]) -> None:
            async with places:
                text = await ask(session, args.url, question["question"], args.tries)
            if text is not None:
                print(json.dumps({"id": question["id"], "response": text}), file=file, flush=True)

        connector = aiohttp.TCPConnector(limit=0)
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
            asyncio.TaskGroup() as group,
        ):
            for question in questions:
                if question["id"] not in done:
                    group.create_task(one(question))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("questions", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("url")
    parser.add_argument("--at-once", type=int, default=50)
    parser.add_argument("--tries", type=int, default=8)
    parser.add_argument("--timeout-s", type=float, default=120.0)
    asyncio.run(main(parser.parse_args()))
