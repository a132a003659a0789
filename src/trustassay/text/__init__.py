"""How texts are read: words, sentences, citations, refusals, tables, quantities, replies."""
