"""Every option of the types that come from Siddhi has a meaning."""

from edgewise.gateway.connectors import load_sink_class, load_source_class
from edgewise.gateway.siddhi_connector_types import SIDDHI_SINK_TYPES, SIDDHI_SOURCE_TYPES


def test_every_option_has_a_meaning_and_every_class_loads():
    for types, load in (
        (SIDDHI_SOURCE_TYPES, load_source_class),
        (SIDDHI_SINK_TYPES, load_sink_class),
    ):
        for kind, declared in types.items():
            assert all(option.doc for option in declared.options.values())
            assert load(kind).__module__ == declared.class_path.partition(":")[0]
