"""The e-mail of a row: templates filled in, no header from a value, an id by offset."""

from edgewise.event.schema import Schema
from edgewise.gateway.connectors import check_sink
from edgewise.gateway.email_message import EmailWriter
from edgewise.gateway.spec import SinkSpec

SCHEMA = Schema.of("Alerts", who="string", n="int")


def write(row, **options):
    given = {"address": "node@example.org", "to": "{{who}}", "subject": "n is {{n}}", **options}
    spec = check_sink(SinkSpec("Alerts", "email", given))
    return EmailWriter(spec.options, SCHEMA, "Alerts").write(7, row, b"the body")


def test_addresses_and_subject_are_templates():
    message, receivers = write(("a@x, b@x", 3), cc="c@x", bcc="d@x")
    assert receivers == ["a@x", "b@x", "c@x", "d@x"]
    assert (message["Subject"], message["To"], message["Cc"]) == ("n is 3", "a@x, b@x", "c@x")
    assert message["Bcc"] is None
    assert message["Message-ID"] == "<Alerts.7@example.org>"
    assert message.get_content() == "the body\n"


def test_a_value_cannot_add_a_header():
    message, _ = write(("a@x", 1), subject="{{who}}\nBcc: evil@x")
    assert message["Subject"] == "a@x Bcc: evil@x"
    assert message["Bcc"] is None


def test_html_is_said_by_the_content_type():
    message, _ = write(("a@x", 1), **{"content.type": "text/html; charset=utf-8"})
    assert message.get_content_type() == "text/html"
