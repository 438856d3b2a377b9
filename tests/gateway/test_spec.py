import pytest

from edgewise.gateway.spec import BadSpec, Guarantee, MapSpec, SourceSpec


def test_a_source_maps_json_where_nothing_is_said():
    assert SourceSpec("S", "http").map == MapSpec("json")


def test_guarantees_are_the_words_of_the_annotation():
    assert Guarantee("effectively-once") is Guarantee.EFFECTIVELY_ONCE


def test_a_bad_spec_names_the_option_at_fault():
    with pytest.raises(BadSpec) as bad:
        raise BadSpec("no", "path")
    assert bad.value.option == "path"
