"""What all methods share: so far what became of each question."""
