"""How results are shown: in the terminal, on a page, in a notebook, and in files."""
