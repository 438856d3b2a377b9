"""An event that failed is found in its own log, whatever came in between on other streams."""

import random

from hypothesis import given
from hypothesis import strategies as st

from edgewise.engines.faults import in_own_logs
from edgewise.engines.inputs import OFFSET, Inputs
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
        failed.append((stream, 0, row[OFFSET], row[AT], "why", [()]))
        expected.append(row[f"s{row['_stream']}_k"])  # which is its offset
    out = {FAULTS.name: [fault_table(failed)]}
    in_own_logs(out, inputs)
    assert out[FAULTS.name][0].column("offset").to_pylist() == expected
    inputs.close()


def test_what_a_query_made_keeps_the_number_of_what_caused_it(tmp_path):
    for stream in APP.inputs:
        SegmentWriter.open(tmp_path / stream.name, stream.schema).close()
    inputs = Inputs({s.name: str(tmp_path / s.name) for s in APP.inputs})
    out = {FAULTS.name: [fault_table([("O", 0, 7, 1, "why", [()])])]}
    in_own_logs(out, inputs)
    assert out[FAULTS.name][0].column("offset").to_pylist() == [7]
    inputs.close()
