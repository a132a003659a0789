"""A metric from outside, installed as any third party would."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from trustassay import metric


@pytest.fixture
def probe_installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Install ``tests.support:Probe`` as the metric ``probe``; return the folder for a path."""
    home = tmp_path_factory.mktemp("site")
    info = home / "probe-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: probe\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[trustassay.metrics]\nprobe = tests.support:Probe\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(home))
        metric._entries.cache_clear()
        yield home
    metric._entries.cache_clear()
