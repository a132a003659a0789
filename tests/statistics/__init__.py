# ruff: noqa: A005 - it mirrors src
