"""Declare the `map:` functions. What is no map, or cannot be parsed: the event is dropped."""

from __future__ import annotations

from typing import Any
from xml.parsers import expat

from edgewise.errors import BadEvent
from edgewise.plan.functions import json_text
from edgewise.plan.functions.java_maps import has, ordered
from edgewise.plan.functions.java_text import parse_real, show
from edgewise.plan.functions.table import (
    ANY,
    BOOL,
    INT,
    OBJECT,
    SET,
    STRING,
    TEXT,
    Args,
    Function,
    scalar,
)

XML_DEPTH_MAX = 100  # elements inside each other


def _map(value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise BadEvent(f"a map is needed here, not {value!r}")
    return value


def clear(values: Any) -> dict[Any, Any]:
    _map(values)
    return {}


def clone(values: Any) -> dict[Any, Any]:
    return dict(_map(values))


def combine_by_key(*maps: Any) -> dict[Any, Any]:
    """For each key the list of its values, null where a map has none."""
    found = [_map(m) for m in maps]
    keys = dict.fromkeys(key for m in found for key in m)
    return ordered({key: [m.get(key) for m in found] for key in keys})


def contains_key(values: Any, key: Any) -> bool:
    return key in _map(values)


def contains_value(values: Any, value: Any) -> bool:
    return has(_map(values).values(), value)


def create(*items: Any) -> dict[Any, Any]:
    return ordered(dict(zip(items[::2], items[1::2], strict=True)))


def create_from_json(text: Any) -> dict[Any, Any]:
    found = json_text.parse_strict(text) if isinstance(text, str) else None
    if not isinstance(found, dict):
        raise BadEvent(f"'{text}' is no JSON object")
    return _reorder(found)


def _reorder(values: dict[Any, Any]) -> dict[Any, Any]:
    return ordered({k: _reorder(v) if isinstance(v, dict) else v for k, v in values.items()})


def get(values: Any, key: Any, *default: Any) -> Any:
    return _map(values).get(key, *default)


def is_empty(values: Any) -> bool:
    return not _map(values)


def is_map(value: Any) -> bool:
    return isinstance(value, dict)


def keys(values: Any) -> list[Any]:
    return list(_map(values))


def put(values: Any, key: Any, value: Any) -> dict[Any, Any]:
    return ordered({**_map(values), key: value})


def put_all(values: Any, more: Any) -> dict[Any, Any]:
    return ordered({**_map(values), **_map(more)})


def put_if_absent(values: Any, key: Any, value: Any) -> dict[Any, Any]:
    """A null value counts as none."""
    return put(values, key, value) if _map(values).get(key) is None else dict(values)


def remove(values: Any, *unwanted: Any) -> dict[Any, Any]:
    return {k: v for k, v in _map(values).items() if k not in unwanted}


def replace(values: Any, key: Any, value: Any) -> dict[Any, Any]:
    return {k: value if k == key else v for k, v in _map(values).items()}


def replace_all(values: Any, more: Any) -> dict[Any, Any]:
    others = _map(more)
    return {k: others.get(k, v) for k, v in _map(values).items()}


def size(values: Any) -> int:
    return len(_map(values))


def to_json(values: Any) -> str:
    return json_text.write_compact(_map(values))


def to_xml(values: Any, *root: Any) -> str:
    """Elements by key, inside a root where one is named. Values are not escaped, as there."""
    inside = "".join(_element(key, value) for key, value in _map(values).items())
    return f"<{root[0]}>{inside}</{root[0]}>" if root else inside


def _element(key: Any, value: Any) -> str:
    if key is None or value is None:
        raise BadEvent("map:toXML has no text for null")
    inside = to_xml(value) if isinstance(value, dict) else show(value)
    return f"<{show(key)}>{inside}</{show(key)}>"


def values(found: Any) -> list[Any]:
    return list(_map(found).values())


def create_from_xml(text: Any) -> dict[Any, Any]:
    """The elements inside the root: by name a map, a bool, a number or a text."""
    if not isinstance(text, str):
        raise BadEvent("map:createFromXML takes a text")
    reader = _XmlReader()
    try:
        reader.parser.Parse(text, True)
    except expat.ExpatError as why:
        raise BadEvent(f"'{text}' is no XML: {why}") from why
    return reader.root


class _XmlReader:
    """Builds maps while expat reads; declared entities are refused, for they can grow."""

    def __init__(self) -> None:
        self.parser = expat.ParserCreate(namespace_separator="}")
        self.parser.StartElementHandler = self._open
        self.parser.EndElementHandler = self._close
        self.parser.CharacterDataHandler = self._text
        self.parser.EntityDeclHandler = self._refuse
        self.root: dict[Any, Any] = {}
        self._open_elements: list[tuple[str, dict[Any, Any], list[str]]] = []

    def _refuse(self, *_declared: object) -> None:
        raise BadEvent("XML that declares entities is not read")

    def _open(self, name: str, _attributes: dict[str, str]) -> None:
        if len(self._open_elements) >= XML_DEPTH_MAX:
            raise BadEvent(f"XML is nested deeper than {XML_DEPTH_MAX}")
        full = f"{{{name}" if "}" in name else name
        self._open_elements.append((full, {}, []))

    def _text(self, text: str) -> None:
        self._open_elements[-1][2].append(text)

    def _close(self, _name: str) -> None:
        name, children, texts = self._open_elements.pop()
        if not self._open_elements:
            self.root = ordered(children)
            return
        inside = ordered(children) if children else _value_of("".join(texts))
        self._open_elements[-1][1][name] = inside


def _value_of(text: str) -> Any:
    if text in {"true", "false"}:
        return text == "true"
    try:
        value = parse_real(text) if text == text.strip() else None
    except BadEvent:
        return text
    if value is None or text[-1:].isalpha():
        return text
    return int(value) if value.is_integer() and abs(value) < 1 << 63 else value


def _has_pairs(args: Args) -> str:
    return "a map takes keys and values by turns" if len(args) % 2 else ""


def _of_map(name: str, *takes: Any, returns: Any, python: Any, **more: Any) -> Function:
    return scalar(f"map:{name}", *takes, returns=returns, python=python, takes_null=True, **more)


FUNCTIONS = (
    _of_map("clear", SET, returns=OBJECT, python=clear),
    _of_map("clone", SET, returns=OBJECT, python=clone),
    _of_map("combineByKey", SET, SET, returns=OBJECT, python=combine_by_key, variadic=True),
    _of_map("containsKey", SET, ANY, returns=BOOL, python=contains_key),
    _of_map("containsValue", SET, ANY, returns=BOOL, python=contains_value),
    _of_map(
        "create", ANY, returns=OBJECT, python=create, optional=1, variadic=True, rule=_has_pairs
    ),
    _of_map("createFromJSON", TEXT, returns=OBJECT, python=create_from_json),
    _of_map("createFromXML", TEXT, returns=OBJECT, python=create_from_xml),
    _of_map("get", SET, ANY, ANY, returns=OBJECT, python=get, optional=1),
    _of_map("isEmpty", SET, returns=BOOL, python=is_empty),
    _of_map("isMap", ANY, returns=BOOL, python=is_map),
    _of_map("keys", SET, returns=OBJECT, python=keys),
    _of_map("put", SET, ANY, ANY, returns=OBJECT, python=put),
    _of_map("putAll", SET, SET, returns=OBJECT, python=put_all),
    _of_map("putIfAbsent", SET, ANY, ANY, returns=OBJECT, python=put_if_absent),
    _of_map("remove", SET, ANY, returns=OBJECT, python=remove, variadic=True),
    _of_map("replace", SET, ANY, ANY, returns=OBJECT, python=replace),
    _of_map("replaceAll", SET, SET, returns=OBJECT, python=replace_all),
    _of_map("size", SET, returns=INT, python=size),
    _of_map("toJSON", SET, returns=STRING, python=to_json),
    _of_map("toXML", SET, ANY, returns=STRING, python=to_xml, optional=1),
    _of_map("values", SET, returns=OBJECT, python=values),
)
