"""Counts how many seeds draw each feature: what is never drawn is never compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from oracle.cases import random_case
from oracle.features import FEATURES, drawn_features

SHARE = 0.01
"""The part of the seeds that has to draw a feature: 50 of 5000."""


def count_features(seeds: Iterable[int]) -> Counter[str]:
    """For each feature the number of seeds that draw it."""
    counts = Counter(dict.fromkeys(FEATURES, 0))
    for seed in seeds:
        counts.update(drawn_features(random_case(seed)))
    return counts


def report(counts: Counter[str], seeds: int) -> tuple[str, list[str]]:
    """The counts as text, rarest first, and the features that too few of the seeds draw."""
    ordered = sorted(counts.items(), key=lambda item: (item[1], item[0]))
    lines = [f"{count:6d}  {name}" for name, count in ordered]
    return "\n".join(lines), [name for name, count in ordered if count < SHARE * seeds]
