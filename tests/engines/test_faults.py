"""An event that failed is found in its own log, whatever came in between on other streams, and
told as a whole, whatever of it the query read.
"""

import random

from hypothesis import given
from hypothesis import strategies as st

from edgewise.engines.faults import in_own_logs
from edgewise.engines.inputs import OFFSET, Inputs
from edgewise.engines.kernel.runtime import NO_TIME
from edgewise.engines.results import FAULTS, fault_table
from edgewise.event.arrow import AT, record_batch
from edgewise.lang import compile_app
from edgewise.log.segment import SegmentWriter

APP = compile_app(
    "define stream S (k int); define stream T (k int); define stream U (k int);"
    "from S insert into O; from T insert into O; from U insert into O;"
).app


@given(seed=st.integers(0, 1000))
def test_every_place_in_the_order_of_capture_leads_back_to_its_offset(tmp_path_factory, seed):
    dice, root = random.Random(seed), tmp_path_factory.mktemp("logs")
    for stream in APP.inputs:
        writer = SegmentWriter.open(root / stream.name, stream.schema)
        count = dice.randint(0, 12)
        moments = sorted(dice.randint(0, 8) for _ in range(count))
        kinds = [dice.choice([0, 2]) for _ in moments]
        if count:
            batch = record_batch(writer.schema, moments, moments, kinds, [list(range(count))])
            writer.append(batch)
        writer.close()
    inputs = Inputs({s.name: str(root / s.name) for s in APP.inputs})
    names = list(inputs.paths)
    rows = inputs.table(inputs.earliest(), inputs.heads(), 0).to_pylist()
    failed, expected = [], []
    for row in rows:
        stream = names[row["_stream"]]
        said = dice.choice([stream, NO_TIME])  # a window does not know whose event it was
        failed.append((said, 0, row[OFFSET], row[AT], "why", [(None,)]))
        offset = row[f"s{row['_stream']}_k"]  # the value is the offset
        expected.append((stream, offset, f"[{offset}]"))
    out = {FAULTS.name: [fault_table(failed)]}
    in_own_logs(out, inputs)
    columns = [out[FAULTS.name][0].column(n).to_pylist() for n in ("stream", "offset", "event")]
    assert list(zip(*columns, strict=True)) == expected
    inputs.close()


def test_of_another_event_nothing_is_told(tmp_path):
    """Whatever the log has there now: what the query saw stays."""
    writer = SegmentWriter.open(tmp_path / "S", APP.inputs[0].schema)
    writer.append(record_batch(writer.schema, [1], [1], [0], [[5]]))
    writer.close()
    inputs = Inputs({"S": str(tmp_path / "S")})
    failed = [("S", 0, 0, 1, "why", [(7,)]), ("S", 0, 9, 1, "why", [(8,)])]
    out = {FAULTS.name: [fault_table(failed)]}
    in_own_logs(out, inputs)
    assert out[FAULTS.name][0].column("event").to_pylist() == ["[7]", "[8]"]
    inputs.close()


def test_what_a_query_made_keeps_the_number_of_what_caused_it(tmp_path):
    for stream in APP.inputs:
        SegmentWriter.open(tmp_path / stream.name, stream.schema).close()
    inputs = Inputs({s.name: str(tmp_path / s.name) for s in APP.inputs})
    out = {FAULTS.name: [fault_table([("O", 0, 7, 1, "why", [()])])]}
    in_own_logs(out, inputs)
    assert out[FAULTS.name][0].column("offset").to_pylist() == [7]
    inputs.close()
