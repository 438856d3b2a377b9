"""Hold the results of an app on DataFrames: rows by stream, faults, late rows, plan, counters.

All frames of one stage come from one tagged frame; Spark computes it once for each frame that is
written, so `tagged` is what to write where several results are wanted. Made by `api`.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from edgewise.plan.explain import explain_text
from edgewise.plan.nodes import App
from edgewise.plan.picture import explain_svg
from edgewise.spark.operator import stage as columns
from edgewise.spark.operator.frames import select_output
from edgewise.spark.operator.stage import FAULTS, LATE, STATS, OperatorStage

Part = tuple[OperatorStage, DataFrame]


class Results(Mapping[str, DataFrame]):
    """The results of an app by stream; `tagged` has all of them in one frame, computed once."""

    def __init__(self, app: App, parts: Sequence[Part], notes: Sequence[str] = ()) -> None:
        self._app = app
        self._parts = parts
        self._notes = notes

    def __getitem__(self, stream: str) -> DataFrame:
        frames = [
            select_output(stage, tagged, stream)
            for stage, tagged in self._parts
            if any(s.name == stream for s in stage.outputs)
        ]
        if not frames:
            known = ", ".join(self) or "none"
            raise KeyError(f"the app writes no stream '{stream}'; it writes: {known}")
        return reduce(DataFrame.unionByName, frames)

    def __iter__(self) -> Iterator[str]:
        names = (s.name for stage, _ in self._parts for s in stage.outputs)
        return iter(dict.fromkeys(n for n in names if not n.startswith(("$", "!"))))

    def __len__(self) -> int:
        return len(list(iter(self)))

    @property
    def faults(self) -> DataFrame:
        """Events that failed: stream, time in ms, the error, the event as JSON."""
        return self[FAULTS.name]

    @property
    def late(self) -> DataFrame:
        """Events that came behind the watermark: stream, time in ms, the event as JSON."""
        return self[LATE.name]

    @property
    def tagged(self) -> DataFrame:
        """All rows: `stream`, `time`, and a JSON object of the attributes of that stream."""
        return reduce(DataFrame.unionByName, [_tag(s, frame) for s, frame in self._parts])

    def explain(self, *, spark: bool = False) -> str:
        """Our plan: fragments, keys, shards, bounds of state; with `spark` also Spark's."""
        lines = [explain_text(self._app), "on DataFrames"]
        lines += [f"├─ {_describe_stage(stage)}" for stage, _ in self._parts]
        lines += [f"└─ {note}" for note in self._notes]
        if spark:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                for _, tagged in self._parts:
                    tagged.explain()
            lines.append(printed.getvalue().rstrip())
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Results({', '.join(self)})"

    def _repr_html_(self) -> str:
        """The picture of the app, for notebooks."""
        return explain_svg(self._app)


def observe(stage: OperatorStage, tagged: DataFrame) -> DataFrame:
    """The same rows; Spark counts them in the progress of the query, by name of the stage."""
    stream = sf.col(columns.STREAM)
    own = [s.name for s in stage.outputs if not s.name.startswith("$")]
    index = stage.outputs.index(STATS)
    counted = {
        "rows": sf.count_if(stream.isin(own)),
        "faults": sf.count_if(stream == FAULTS.name),
        "late": sf.count_if(stream == LATE.name),
        **{a.name: sf.sum(f"o{index}_{j}") for j, a in enumerate(STATS.attributes)},
    }
    observed = [value.alias(name) for name, value in counted.items()]
    return tagged.observe(f"edgewise {stage.fragment.name}", observed[0], *observed[1:])


def _describe_stage(stage: OperatorStage) -> str:
    fragment = stage.fragment
    if fragment.stateless:
        return f"{fragment.name}: no state, no shuffle"
    key = "; ".join(f"{', '.join(names)} of {s}" for s, names in fragment.keys if names)
    count = len(stage.shards)
    where = f"{count} shards by {key}" if key else f"1 shard: {fragment.why or 'no key'}"
    return f"{fragment.name}: {where}"


def _tag(stage: OperatorStage, frame: DataFrame) -> DataFrame:
    rows = sf.coalesce(
        *(
            sf.when(
                sf.col(columns.STREAM) == schema.name,
                sf.to_json(
                    sf.struct(
                        *(
                            sf.col(f"o{i}_{j}").alias(a.name)
                            for j, a in enumerate(schema.attributes)
                        )
                    ),
                    {"ignoreNullFields": "false"},
                ),
            )
            for i, schema in enumerate(stage.outputs)
        )
    )
    return frame.where(sf.col(columns.STREAM) != STATS.name).select(
        sf.col(columns.STREAM).alias("stream"),
        sf.col(columns.TIME).alias("time"),
        rows.alias("row"),
    )
