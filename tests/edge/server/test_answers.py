"""Answers of one's own: a handler, and the paths it answers."""

import pytest

from edgewise.edge.server.answers import RequestHandler, answers
from edgewise.errors import EdgewiseError


def test_a_handler_is_kept_with_its_paths():
    @answers("orders/+/cancel")
    async def cancel(caller, path, body):
        return (caller, path, body)

    assert isinstance(cancel, RequestHandler)
    assert cancel.selector == "orders/+/cancel"


def test_paths_that_are_none_are_refused_where_they_stand():
    with pytest.raises(EdgewiseError):
        answers("orders//cancel")(None)
