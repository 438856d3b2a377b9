"""Apps as text, played on the embedded engine. Time starts at 1000."""

from edgewise.engines.embedded import InMemoryEngine
from edgewise.event.event import EventKind
from edgewise.lang import compile_app

STREAMS = "define stream A (k string, v int); define stream B (k string, v int); "
START = 1000


def engine(query, head=STREAMS):
    app = compile_app(head + query).app
    return InMemoryEngine(app, taps=[q.name for q in app.queries], start=START)


def feed(running, events):
    """Events are `(stream, ts, *data)`; a bare number moves time."""
    for event in events:
        if isinstance(event, int):
            running.advance(event)
        else:
            stream, ts, *data = event
            running.send(stream, ts, data)


def play(query, events, head=STREAMS):
    """Rows of O as `(ts, mark, *data)`, with mark + for current and - for expired."""
    running = engine(query, head)
    feed(running, events)
    return rows(running)


def rows(running, stream="O"):
    return [
        (e.ts, "+" if e.kind is EventKind.CURRENT else "-", *e.data)
        for e in running.take()
        if e.stream == stream
    ]


def data(query, events, head=STREAMS):
    return [row[2:] for row in play(query, events, head)]
