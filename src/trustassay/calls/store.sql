-- The tables of a file of calls, version 3 (PRAGMA user_version).

CREATE TABLE calls (
    key BLOB PRIMARY KEY,      -- 16 bytes, see Keys
    capability TEXT NOT NULL,  -- entailment, embedding, similarity, chat
    backend TEXT NOT NULL,     -- the backend's name, with model and address
    request TEXT NOT NULL,     -- JSON: the texts, or a chat request's fields
    reply TEXT NOT NULL,       -- JSON, of log-probabilities see chat_text.py
    seconds REAL NOT NULL,     -- this call's share of its batch's time
    prompt_tokens INTEGER,     -- NULL where the backend does not count them
    reply_tokens INTEGER,
    cached INTEGER NOT NULL DEFAULT 0  -- 1: taken from the shared file or another run
) STRICT;

-- In the shared file: calls that processes are making, see CallMarks in store.py.
CREATE TABLE under_way (
    key BLOB PRIMARY KEY,
    owner TEXT NOT NULL,       -- host, process and run
    expires REAL NOT NULL      -- seconds since 1970
) STRICT, WITHOUT ROWID;
