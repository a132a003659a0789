"""Settings that all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

# A busy machine is no failure. CI looks at the same examples each time; a new one found by chance
# belongs to the person who runs the tests, not to the next unrelated change.
settings.register_profile("everywhere", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("everywhere")
