"""A local page on which people rate answers, and what it stores."""
