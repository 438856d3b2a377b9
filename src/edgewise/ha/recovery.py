"""What a node must replay or skip before it serves, by declared recovery.

    checkpoint          head
        |                |
    ----+----------------+----> offsets
        |<--- replay --->|          precise and the rollbacks: compute again
                         |          gap: start here, and say how many were skipped

The log keeps one order for ever, so a query whose answer depends only on its input (and not on a
clock, a die or the outside) gives the same rows again. That is what makes `precise` possible:
rows that are out already are recognised by their sequence and not written twice.

STATEMENTS is the promise to users; docs/explanation/recovery.md and `explain` print it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from edgewise.errors import RecoveryError
from edgewise.event.position import Position
from edgewise.event.repeat_level import RepeatLevel


class Recovery(enum.Enum):
    """The value is the word in `@sink(recovery='...')`; 'rollback' is another word for divergent.

    The names are those of Hwang et al., "High-availability algorithms for distributed stream
    processing" (2005).
    """

    PRECISE = "precise"
    REPEATING = "repeating"
    CONVERGENT = "convergent"
    DIVERGENT = "divergent"
    GAP = "gap"


SYNONYMS: Mapping[str, Recovery] = MappingProxyType({"rollback": Recovery.DIVERGENT})


@dataclass(frozen=True, slots=True)
class Statement:
    """One kind of recovery, in words."""

    rows: str
    before_serving: str
    costs: str
    needs: RepeatLevel


STATEMENTS: Mapping[Recovery, Statement] = MappingProxyType(
    {
        Recovery.PRECISE: Statement(
            rows="every row exactly once, as if nothing had failed",
            before_serving="load the checkpoint, replay from it, write only rows not yet out",
            costs="the wait for the replay",
            needs=RepeatLevel.DETERMINISTIC,
        ),
        Recovery.REPEATING: Statement(
            rows="every row at least once; rows since the checkpoint come again, unchanged",
            before_serving="load the checkpoint, replay from it, write every row",
            costs="the wait for the replay; readers must bear repeats",
            needs=RepeatLevel.DETERMINISTIC,
        ),
        Recovery.CONVERGENT: Statement(
            rows="every row at least once; some may differ until the windows have filled again",
            before_serving="as repeating; without a usable checkpoint, replay all the log has",
            costs="the wait for the replay; readers must bear repeats and corrections",
            needs=RepeatLevel.CONVERGENT,
        ),
        Recovery.DIVERGENT: Statement(
            rows="every row at least once; rows since the checkpoint may come again, or differ",
            before_serving="load the checkpoint, replay from it, write every row",
            costs="the wait for the replay; readers must bear repeats that differ",
            needs=RepeatLevel.ARBITRARY,
        ),
        Recovery.GAP: Statement(
            rows="no row twice; rows for events between checkpoint and head may be missing",
            before_serving="nothing: start at the head with an empty state",
            costs="the skipped events; windows fill anew",
            needs=RepeatLevel.ARBITRARY,
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Found:
    """What is on disk: the log from `earliest` up to `head`, and where state was last saved."""

    earliest: int
    head: Position
    checkpoint: Position | None


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """Orders for one query: offsets `replay_start` up to and without `replay_end` come first."""

    load_checkpoint: bool
    replay_start: int
    replay_end: int
    skipped: int = 0  # events that no row will ever show
    repeats_dropped: bool = False  # rows that are out already are recognised

    def __str__(self) -> str:
        count = self.replay_end - self.replay_start
        return ", ".join(
            [
                "load the checkpoint" if self.load_checkpoint else "start with an empty state",
                f"replay {count} from {self.replay_start}" if count else "replay nothing",
                *([f"skip {self.skipped}"] if self.skipped else []),
                *(["drop rows already out"] if self.repeats_dropped and count else []),
                f"serve from {self.replay_end}",
            ]
        )


def parse_recovery(word: str) -> Recovery:
    """The kind a person wrote; RecoveryError names the words there are."""
    if word in SYNONYMS:
        return SYNONYMS[word]
    try:
        return Recovery(word)
    except ValueError:
        kinds = ", ".join(f"'{kind.value}'" for kind in Recovery)
        raise RecoveryError(f"recovery is '{word}', it must be one of {kinds}") from None


def why_not(kind: Recovery, repeat: RepeatLevel) -> str:
    """Why a query of this class cannot promise `kind`; empty where it can."""
    needs = STATEMENTS[kind].needs
    if repeat >= needs:
        return ""
    possible = ", ".join(k.value for k in Recovery if repeat >= STATEMENTS[k].needs)
    return (
        f"recovery '{kind.value}' needs a {needs.name.lower()} query, and this one is "
        f"{repeat.name.lower()}: {_MISSING[needs]}; declare one of: {possible}"
    )


_MISSING: Mapping[RepeatLevel, str] = MappingProxyType(
    {
        RepeatLevel.DETERMINISTIC: "fed again it may give other rows",
        RepeatLevel.CONVERGENT: "without its old state it never comes back to the same rows",
    }
)


def plan_recovery(kind: Recovery, found: Found) -> RecoveryPlan:
    """What to do before serving. RecoveryError where the log cannot give what was declared."""
    head = found.head.offset
    if kind is Recovery.GAP:
        done = found.checkpoint.offset if found.checkpoint else found.earliest
        return RecoveryPlan(
            load_checkpoint=False,
            replay_start=head,
            replay_end=head,
            skipped=max(0, head - done),
        )
    try:
        start = _replay_start(kind, found)
    except RecoveryError:
        if kind is not Recovery.CONVERGENT:
            raise
        done = found.checkpoint.offset if found.checkpoint else 0
        return RecoveryPlan(
            load_checkpoint=False,
            replay_start=found.earliest,
            replay_end=head,
            skipped=max(0, found.earliest - done),
        )
    return RecoveryPlan(
        load_checkpoint=found.checkpoint is not None,
        replay_start=start,
        replay_end=head,
        repeats_dropped=kind is Recovery.PRECISE,
    )


def _replay_start(kind: Recovery, found: Found) -> int:
    checkpoint = found.checkpoint or Position(0, 0)
    if checkpoint.epoch > found.head.epoch or checkpoint.offset > found.head.offset:
        raise RecoveryError(
            f"the checkpoint at {checkpoint} is ahead of the log, which ends at {found.head}: "
            "they are not of the same run; restore the log that belongs to it, or declare "
            "recovery='gap' to start at the head"
        )
    if checkpoint.offset >= found.earliest:
        return checkpoint.offset
    if kind is not Recovery.PRECISE and found.checkpoint is None:
        return found.earliest  # there is nothing to roll back to but the oldest event
    raise RecoveryError(
        f"recovery='{kind.value}' must replay from offset {checkpoint.offset}, and retention "
        f"has removed everything below {found.earliest}; keep the log for longer than the time "
        "between checkpoints, or declare recovery='gap' to start at the head"
    )
