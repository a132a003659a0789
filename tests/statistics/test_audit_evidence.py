"""The evidence of an audit, and the day since which more answers are wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest

from trustassay.statistics.warranty import AUDIT_ALARM, AuditEvidence, audit_change_logs


def test_the_first_day_by_hand() -> None:
    evidence = AuditEvidence().add_day(10, 2, 0.1)
    gains = [(p / 0.1) ** 2 * ((1 - p) / 0.9) ** 8 / 365 for p in (0.13, 0.17, 0.22, 0.3)]
    assert math.exp(evidence.log_mean) == pytest.approx(np.mean(gains))
    assert evidence.days == 1


def test_an_alarm_is_rare_at_the_promised_share_and_soon_at_three_times_it() -> None:
    rng = np.random.default_rng(3)

    def alarm_day(risk: float) -> float:
        evidence = AuditEvidence()
        for day in range(365):
            evidence = evidence.add_day(10, int(rng.binomial(10, risk)), 0.1)
            if evidence.log_mean >= AUDIT_ALARM:
                return day
        return math.inf

    assert np.mean([alarm_day(0.1) < math.inf for _ in range(100)]) <= 0.1
    assert np.median([alarm_day(0.3) for _ in range(30)]) < 12


def test_the_change_is_where_errors_begin() -> None:
    rated = [10] * 8
    logs = audit_change_logs(rated, [1, 0, 1, 1, 4, 3, 5, 4], 0.1)
    assert int(np.argmax(logs)) == 4
    # 16 of 40 wrong, by hand
    assert logs[4] == pytest.approx(16 * math.log(4) + 24 * math.log(0.6 / 0.9))
    # Below the promised share there is no sign of a change; nothing but errors stays finite.
    assert audit_change_logs(rated, [0] * 8, 0.1).tolist() == [0.0] * 8
    assert np.isfinite(audit_change_logs([3, 0], [3, 0], 0.1)).all()
