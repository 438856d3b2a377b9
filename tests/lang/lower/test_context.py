from tests.support.compiled_plans import planned


def test_queries_know_their_partition():
    app = planned("from S insert into X; partition with (k of S) begin from S insert into Y; end;")
    assert [q.partition for q in app.queries] == ["", "partition1"]
