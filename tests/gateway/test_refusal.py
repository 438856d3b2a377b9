from edgewise.gateway.examine import Fault
from edgewise.gateway.refusal import Refused, refused_body


def test_a_body_at_fault_has_no_event():
    refused = refused_body(400, "malformed", "not JSON")
    assert (refused.status, refused.code, refused.message) == (400, "malformed", "body: not JSON")
    assert refused.answer()["problems"] == [{"field": "body", "reason": "not JSON"}]


def test_the_answer_names_the_events_at_fault_and_that_nothing_was_taken():
    refused = Refused(400, "invalid", "no", (Fault(2, "v", "missing"),))
    assert refused.answer() == {
        "error": "invalid",
        "message": "no",
        "accepted": 0,
        "problems": [{"event": 2, "field": "v", "reason": "missing"}],
    }
