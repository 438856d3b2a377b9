"""Faults, tried one after the other: after each, what was acknowledged is there, once, in order,
or the log says which file is damaged and where. The last line of each test is its report."""

import errno
import itertools
import logging
import os
import random
import shutil
import threading
import time

import pytest

from edgewise.errors import LogCorrupt, LogError, LogFull
from edgewise.log import active_segment as active_module
from edgewise.log.api import LogConfig
from edgewise.log.files import ledger_path, segment_bases
from edgewise.log.laws import SCHEMA, make_rows, read_all
from edgewise.log.parquet import move_to_parquet
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter
from edgewise.log.verify import verify_log

CONFIG = LogConfig(segment_bytes_max=12_000, batch_rows_max=7)
EVENTS = 300
FLIPS, FLIPS_MANY = 60, 2000


def times(directory):
    return read_all(SegmentReader.open(directory)).column("_ts").to_pylist()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A log with Parquet ledgers, sealed segments and an active one."""
    directory = tmp_path_factory.mktemp("whole") / "log"
    writer = SegmentWriter.open(directory, SCHEMA, CONFIG)
    for at in range(0, EVENTS, 10):
        writer.append(make_rows(list(range(at, at + 10))), producer="p", sequence=at)
    writer.close()
    for base in segment_bases(directory)[:2]:
        move_to_parquet(directory, base)
    assert len(segment_bases(directory)) > 4
    return directory


def outcome(directory):
    """Open, read all, append: what a person meets after the fault."""
    try:
        SegmentWriter.open(directory, SCHEMA, CONFIG).close()
        return times(directory)
    except LogError as error:
        return error


def try_flips(whole, tmp_path, count, seed):
    chance = random.Random(seed)
    said = same = 0
    files = sorted(p for p in whole.iterdir() if p.stat().st_size > 100)
    for number in range(count):
        copied = tmp_path / f"copy-{number}"
        shutil.copytree(whole, copied)
        victim = copied / chance.choice(files).name
        data = bytearray(victim.read_bytes())
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        victim.write_bytes(data)
        result = outcome(copied)
        if isinstance(result, LogError):
            assert isinstance(result, LogCorrupt), result
            assert victim.name in str(result), (victim, result)
            said += 1
        else:
            assert result == list(range(EVENTS)), victim
            same += 1
        shutil.rmtree(copied)
    return f"faults tried: {count} flipped bits in any file; {said} said, {same} without effect"


def test_a_flipped_bit_in_any_file_is_said_or_has_no_effect(whole, tmp_path):
    print(try_flips(whole, tmp_path, FLIPS, seed=3))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_thousands_of_flipped_bits(whole, tmp_path):
    print(try_flips(whole, tmp_path, FLIPS_MANY, seed=4))


def test_any_file_cut_short_is_said_or_cut_to_whole_appends(whole, tmp_path, caplog):
    chance = random.Random(5)
    tried = 0
    for name in sorted(p.name for p in whole.iterdir() if p.stat().st_size > 100):
        for number in range(4):
            copied = tmp_path / f"{name}-{number}"
            shutil.copytree(whole, copied)
            os.truncate(copied / name, chance.randrange((whole / name).stat().st_size))
            caplog.clear()
            result = outcome(copied)
            tried += 1
            if isinstance(result, LogError):
                assert name in str(result), (name, result)
            else:
                assert result == list(range(len(result)))
                assert len(result) % 10 == 0, "never half an append"
                assert len(result) == EVENTS or "acknowledged events are gone" in caplog.text
    print(f"faults tried: {tried} files cut short; events checked: {tried * EVENTS}")


def test_a_torn_write_at_every_place_of_the_last_append(tmp_path):
    """The bytes of an append reach the disk in any prefix; nobody was told of it yet."""
    source = tmp_path / "source"
    writer = SegmentWriter.open(source, SCHEMA, CONFIG)
    writer.append(make_rows(list(range(5))))
    active = ledger_path(source, 0)
    durable, head = active.stat().st_size, (source / "head").read_bytes()
    writer.append(make_rows(list(range(5, 25))))
    writer.close()
    whole = active.read_bytes()
    tried = 0
    for size in range(durable, len(whole), 61):
        for hole in (False, True):
            copied = tmp_path / "copy"
            shutil.copytree(source, copied)
            data = bytearray(whole[:size])
            if hole and size - durable > 200:  # an early page is missing, a later one is there
                data[durable + 64 : durable + 128] = bytes(64)
            ledger_path(copied, 0).write_bytes(data)
            (copied / "head").write_bytes(head)
            writer = SegmentWriter.open(copied, SCHEMA, CONFIG)
            assert writer.head.offset == 5
            assert writer.append(make_rows([5])).first == 5
            writer.close()
            assert times(copied) == list(range(6))
            shutil.rmtree(copied)
            tried += 1
    print(f"faults tried: {tried} torn writes; events checked: {tried * 6}")


def test_a_clock_that_jumps_changes_no_order_and_drops_nothing_early(tmp_path):
    jumps = itertools.cycle([2_000_000, 10, 1_999_900, -5, 0])
    config = LogConfig(segment_bytes_max=12_000, retain_ms=1_000)
    writer = SegmentWriter.open(tmp_path, SCHEMA, config, now_ms=lambda: next(jumps))
    for at in range(0, EVENTS, 10):
        writer.append(make_rows([EVENTS - at] * 10))
        assert writer.retain(next(jumps)) == 0
    writer.close()
    expected = [EVENTS - at for at in range(0, EVENTS, 10) for _ in range(10)]
    assert times(tmp_path) == expected
    assert verify_log(tmp_path).good
    print(f"faults tried: {EVENTS // 10} jumps of the clock; events checked: {EVENTS}")


def test_a_slow_disk_delays_and_groups_but_loses_nothing(tmp_path, monkeypatch):
    real, chance = active_module.write_durably, random.Random(6)
    calls = []

    def slow(fd, buffers, position):
        calls.append(fd)
        time.sleep(chance.choice([0, 0, 0.001, 0.02]))
        real(fd, buffers, position)

    monkeypatch.setattr(active_module, "write_durably", slow)
    writer = SegmentWriter.open(tmp_path, SCHEMA, LogConfig(pending_bytes_max=3_000))
    reader = SegmentReader.open(tmp_path)
    answers = {}

    def produce(name):
        for at in range(20):
            answers[name * 100 + at] = writer.append(make_rows([name * 100 + at]))

    threads = [threading.Thread(target=produce, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = read_all(reader).column("_ts").to_pylist()
    assert all(seen[done.first] == value for value, done in answers.items())
    assert len(seen) == 120
    assert len(calls) < 120, "appends that wait share a sync"
    writer.close()
    print(f"faults tried: {len(calls)} slow syncs; events checked: {len(seen)}")


def test_a_disk_that_is_full_now_and_then_loses_nothing_and_doubles_nothing(tmp_path, monkeypatch):
    real, chance = os.pwritev, random.Random(7)
    refused = 0

    def moody(fd, buffers, position, flags=0):
        if chance.random() < 0.3:
            raise OSError(errno.ENOSPC, "No space left on device")
        if chance.random() < 0.3:
            return real(fd, [bytes(buffers[0])[: chance.randint(1, 60)]], position, flags)
        return real(fd, buffers, position, flags)

    writer = SegmentWriter.open(tmp_path, SCHEMA, CONFIG)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", moody)
        at = 0
        while at < 200:
            try:
                writer.append(make_rows([at]), producer="p", sequence=at)
            except LogFull:
                refused += 1
            else:
                at += 1
    writer.close()
    assert times(tmp_path) == list(range(200))
    assert verify_log(tmp_path).good
    print(f"faults tried: {refused} refusals of a full disk; events checked: 200")


def test_what_was_cut_is_said(whole, tmp_path, caplog):
    copied = tmp_path / "copy"
    shutil.copytree(whole, copied)
    with ledger_path(copied, segment_bases(copied)[-1]).open("ab") as file:
        file.write(b"EWF1 and then the power went")
    with caplog.at_level(logging.WARNING):
        writer = SegmentWriter.open(copied, SCHEMA, CONFIG)
    assert writer.bytes_cut == 28
    assert "cut a torn tail of 28 bytes" in caplog.text
    writer.close()
    assert times(copied) == list(range(EVENTS))
