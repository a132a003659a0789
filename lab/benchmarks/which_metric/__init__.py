"""Every metric that runs without a key, held against people on public sets."""
