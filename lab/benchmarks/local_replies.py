"""What local models replied, kept from one machine to the next.

    python -m lab.benchmarks.local_replies FOLDER [FOLDER ...]     # adds the replies of these
    caches

The experiments with local models take hours, and each start adds to those before it: what the
models replied is in ``local_replies.jsonl.gz``, without the prompts, by the keys of the calls. A
benchmark that calls :func:`restore` asks for the rest alone. Keys tell the model by its path, too:
replies are found where the models lie in the same folder. They are texts of Qwen2.5-Coder, under
Apache-2.0.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any

from trustassay.calls.store import CACHE_FILE, StoredCall, build_read_only_uri, open_cache

FILE = Path(__file__).with_name("local_replies.jsonl.gz")
COLUMNS = ("backend", "reply", "seconds", "prompt_tokens", "reply_tokens")


def kept(file: Path = FILE) -> dict[str, list[Any]]:
    """Return the columns of each reply, by the key of its call."""
    if not file.exists():
        return {}
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return {key: row for key, *row in map(json.loads, lines)}


def restore(cache: Path, file: Path = FILE) -> None:
    """Put the kept replies into the folder of a cache."""
    store = open_cache(cache)
    store.add(
        StoredCall(bytes.fromhex(key), "chat", backend, "", reply, seconds, *tokens)
        for key, (backend, reply, seconds, *tokens) in kept(file).items()
    )
    store.close()


def keep(cache: Path, file: Path = FILE) -> int:
    """Add the chat replies of a cache to the kept ones; return how many there are now."""
    rows = kept(file)
    query = f"SELECT HEX(key), {', '.join(COLUMNS)} FROM calls WHERE capability = 'chat'"
    with sqlite3.connect(build_read_only_uri(cache / CACHE_FILE), uri=True) as calls:
        for key, *row in calls.execute(query):
            rows.setdefault(key.lower(), row)
    text = "".join(f"{json.dumps([key, *rows[key]], ensure_ascii=False)}\n" for key in sorted(rows))
    file.write_bytes(gzip.compress(text.encode(), mtime=0))
    return len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="+", help="folder of a cache")
    for folder in parser.parse_args().folder:
        print(f"{folder}: {keep(folder)} replies are kept")


if __name__ == "__main__":
    main()
