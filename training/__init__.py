"""Training of the small models that ship with trustassay; no part of the wheel."""
