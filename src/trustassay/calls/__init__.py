"""The calls to backends: batching, stored replies, limits of endpoints, retries and costs."""
