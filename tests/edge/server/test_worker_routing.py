import asyncio
from http import HTTPStatus

from edgewise.edge.server.server import Edge
from edgewise.edge.server.worker_routing import WorkerRouter
from edgewise.edge.transports.http import HttpRequest


class Waiting:
    """A connection that only keeps its answer."""

    def __init__(self):
        self.answered = asyncio.get_running_loop().create_future()

    def respond(self, response):
        self.answered.set_result(response)


def passed(tmp_path, session, before=lambda _path: None):
    async def main():
        edge = Edge()
        passing = WorkerRouter(edge, 0, tmp_path)
        await passing.start()
        before(tmp_path)
        connection = Waiting()
        request = HttpRequest(
            "POST", "/poll", {"session": session}, {"host": "localhost"}, b"\x90"
        )
        sent = edge.route_elsewhere(connection, request)
        response = await asyncio.wait_for(connection.answered, 10) if sent else None
        await passing.stop()
        return response

    return asyncio.run(main())


def test_a_name_of_ones_own_or_of_nobody_is_not_passed_on(tmp_path):
    for session in ("", "abc", "0-abc", "x-abc", "7-abc"):
        assert passed(tmp_path, session) is None


def test_a_process_that_is_gone_is_an_answer(tmp_path):
    response = passed(tmp_path, "7-abc", lambda path: (path / "edge-7.sock").touch())
    assert response.status is HTTPStatus.GONE
