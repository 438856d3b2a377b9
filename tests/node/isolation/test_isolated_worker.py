"""The parts of a worker in this process; `test_isolated_pool` runs real ones."""

import io
import math
import struct

import msgspec

from edgewise.node.isolation import isolated_worker as worker


def run_filter(program, architecture, number):
    """The kernel's filter machine, for the instructions that we use."""
    code = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    data = {worker._NUMBER_AT: number, worker._ARCHITECTURE_AT: architecture}
    at, loaded = 0, 0
    while True:
        operation, if_equal, if_not, value = code[at]
        if operation == worker._RETURN:
            return value
        if operation == worker._LOAD:
            loaded = data[value]
            at += 1
        else:
            at += 1 + (if_equal if loaded == value else if_not)


def test_the_filter_allows_what_is_listed_and_nothing_else():
    for machine, (architecture, numbers) in worker.ALLOWED.items():
        program = worker.build_filter(machine)
        for number in range(500):
            allowed = run_filter(program, architecture, number) == worker._ALLOW
            assert allowed == (number in numbers)
        assert run_filter(program, architecture, 0x40000000) != worker._ALLOW, "x32"
        assert run_filter(program, 1, numbers[0]) == worker._KILL
    assert worker.build_filter("vax") == b""


def test_a_call_gives_a_value_or_a_reason():
    double = worker.load_function("f", "def body(data):\n    return data[0] * 2\n")
    assert worker.call(double, [2]) == (True, 4)
    assert worker.call(double, [None])[0] is False
    assert worker.call(lambda _: [0] * 2**62, [])[1] == "it needs more memory than it may have"


def test_an_answer_is_never_longer_than_its_limit():
    for value in ("x" * 5000, object(), math.nan, {1}, 2**80, [1, None, "a"]):
        answer = io.BytesIO(worker.encode_answer(7, [(True, value)], 1000))
        assert len(answer.getvalue()) <= 1100
        number, ((good, _),) = worker.read_message(answer)
        assert number == 7
        assert good == (value != "x" * 5000 and type(value) is not object and value != 2**80)
    assert worker.read_message(io.BytesIO(b"\1")) is None


def test_messages_are_read_one_after_the_other():
    body = msgspec.msgpack.encode([1, [["a"]]])
    stream = io.BytesIO(2 * (worker.LENGTH.pack(len(body)) + body))
    assert [worker.read_message(stream) for _ in range(3)] == [[1, [["a"]]], [1, [["a"]]], None]
