"""Build apps in Python, with completion in the editor and the errors of the language.

    from edgewise import col, count, stream

    logins = stream("logins", ip="string", city="string")
    often = (
        logins.window.time("10 min")
        .group_by("ip")
        .select("ip", n=count())
        .having(col.n > 10)
        .insert_into("often")
    )
    app = often.compile("logins").app

What is built is the tree of an app; it is written down as SiddhiQL and compiled as if a person had
written it, so an error shows that text. `often.text()` shows it too. `often.run(events)` runs it
in this process, and `App` runs any app there. Library users find all of it in `edgewise`.
"""

from edgewise.lang.fluent.app import App
from edgewise.lang.fluent.flow import Flow, every, pattern, sequence, stream
from edgewise.lang.fluent.rows import Rows
from edgewise.lang.fluent.terms import (
    Term,
    avg,
    call,
    col,
    count,
    distinct_count,
    lit,
    max_,
    min_,
    std_dev,
    sum_,
)

__all__ = [
    "App",
    "Flow",
    "Rows",
    "Term",
    "avg",
    "call",
    "col",
    "count",
    "distinct_count",
    "every",
    "lit",
    "max_",
    "min_",
    "pattern",
    "sequence",
    "std_dev",
    "stream",
    "sum_",
]
