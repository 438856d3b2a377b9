from tests.support.compiled_plans import planned, refused


def test_names_are_shared_by_all_kinds():
    assert refused("define table S (v int);") == ["'S' is already a stream, from line 1"]
    assert refused("define trigger A at 'start';") == ["'A' is already a stream, from line 2"]


def test_unknown_and_unfit_names():
    assert refused("from X insert into Y;") == ["there is no stream or window 'X'"]
    assert refused("from T insert into Y;") == ["'T' is a table, not a stream or window"]
    assert refused("from S insert into #I;") == ["'#I' stands outside a partition"]
    assert refused("from !S insert into I;") == ["there is no fault stream '!S'"]


def test_inner_streams_belong_to_their_partition():
    text = "partition with (k of S) begin from S insert into #I; from #I insert into O; end;"
    app = planned(text + text.replace("into O", "into O2"))
    assert [s.name for s in app.partitions[0].streams] == ["#I"]
    assert "#I" not in [s.name for s in app.streams]
