import stat

import pytest

from edgewise.edge.access.api_keys import ApiKeyFile, ApiKeyVerifier
from edgewise.edge.access.auth import Principal
from edgewise.errors import ProtocolError, SetupError


@pytest.fixture
def file(tmp_path):
    return tmp_path / "keys.jsonl"


def test_a_key_opens_what_it_was_made_for_until_it_is_revoked(file):
    keys, verifier = ApiKeyFile(file), ApiKeyVerifier(ApiKeyFile(file))
    key = keys.add("sensor-7", {"ingest": ["readings"], "read": ["out/#"]})
    principal = verifier.verify(key)
    assert principal.name == "sensor-7"
    assert principal.may_ingest("readings")
    assert not principal.may_ingest("orders")
    assert principal.may_read(("out", "a"))
    other = keys.add("sensor-8", {})
    keys.revoke("sensor-7")
    with pytest.raises(ProtocolError, match="no such API key"):
        verifier.verify(key)
    assert verifier.verify(other).name == "sensor-8"


def test_the_secret_is_not_kept_and_the_file_is_for_its_owner(file):
    key = ApiKeyFile(file).add("sensor", {})
    assert key.rpartition("_")[2] not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("bad", ["", "ew_", "ew_sensor_", "ew_sensor_x", "ew_other_x", "x"])
def test_what_is_no_key_is_refused(file, bad):
    ApiKeyFile(file).add("sensor", {})
    with pytest.raises(ProtocolError):
        ApiKeyVerifier(ApiKeyFile(file)).verify(bad)


def test_other_tokens_go_to_the_other_verifier(file):
    class Others:
        def verify(self, token):
            return Principal(token)

    assert ApiKeyVerifier(ApiKeyFile(file), Others()).verify("a.b.c").name == "a.b.c"


def test_names_and_files_that_cannot_be_used_are_said(file):
    keys = ApiKeyFile(file)
    keys.add("a", {})
    for name, reason in (("a", "revoke it first"), ("a_b", "a name has"), ("", "a name has")):
        with pytest.raises(SetupError, match=reason):
            keys.add(name, {})
    with pytest.raises(SetupError, match="no key 'b'"):
        keys.revoke("b")
    file.write_text("not json")
    with pytest.raises(SetupError, match="no file of API keys"):
        ApiKeyFile(file).list_keys()
