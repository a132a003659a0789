"""What moves a judge: answers changed in one thing that must not matter, and with an error."""
