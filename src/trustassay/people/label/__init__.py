"""Active evaluation: which answers to rate next, and what ratings say of all answers."""
