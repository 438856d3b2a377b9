from edgewise.gateway.json_body import Fault
from edgewise.gateway.refusal import Refusal, refuse_request


def test_a_body_at_fault_has_no_event():
    refused = refuse_request(400, "malformed", "not JSON")
    assert (refused.status, refused.code, refused.message) == (400, "malformed", "body: not JSON")
    assert refused.to_json()["problems"] == [{"field": "body", "reason": "not JSON"}]


def test_the_answer_names_the_events_at_fault_and_that_nothing_was_taken():
    refused = Refusal(400, "invalid", "no", (Fault(2, "v", "missing"),))
    assert refused.to_json() == {
        "error": "invalid",
        "message": "no",
        "accepted": 0,
        "problems": [{"event": 2, "field": "v", "reason": "missing"}],
    }
