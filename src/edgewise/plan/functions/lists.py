"""Declare the `list:` functions. What is no list, an index out of range: the event is dropped."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any

from edgewise.errors import BadEvent
from edgewise.plan.exprs import Const
from edgewise.plan.functions.java_maps import has, is_same
from edgewise.plan.functions.java_text import to_units
from edgewise.plan.functions.table import (
    ANY,
    BOOL,
    INT,
    OBJECT,
    SET,
    TEXT,
    TRUTH,
    WHOLE,
    Args,
    Function,
    scalar,
)

LIST_ITEMS_MAX = 1_000_000  # of one list; more drop the event
_ORDERS = ("asc", "desc", "rev")


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise BadEvent(f"a list is needed here, not {value!r}")
    if len(value) > LIST_ITEMS_MAX:
        raise BadEvent(f"a list holds no more than {LIST_ITEMS_MAX} items")
    return value


def _index(value: Any, length: int) -> int:
    if value is None or not 0 <= value < length:
        raise BadEvent(f"the list has no item {value}")
    return int(value)


def add(values: Any, item: Any, *index: int | None) -> list[Any]:
    found = list(_list(values))
    at = _index(index[0], len(found) + 1) if index else len(found)
    found.insert(at, item)
    return found


def add_all(values: Any, more: Any, *distinct: bool | None) -> list[Any]:
    found = list(_list(values))
    for item in _list(more):
        if not (distinct and distinct[0] and has(found, item)):
            found.append(item)
    return found


def clear(values: Any) -> list[Any]:
    return _list(values)[:0]


def clone(values: Any) -> list[Any]:
    return list(_list(values))


def contains(values: Any, item: Any) -> bool:
    return has(_list(values), item)


def contains_all(values: Any, wanted: Any) -> bool:
    found = _list(values)
    return all(has(found, item) for item in _list(wanted))


def contains_any(values: Any, wanted: Any) -> bool:
    found = _list(values)
    return any(has(found, item) for item in _list(wanted))


def create(*items: Any) -> list[Any]:
    """One null alone is no item, as in the original."""
    return [] if items == (None,) else list(items)


def get(values: Any, index: int | None) -> Any:
    found = _list(values)
    if index is None:
        raise BadEvent("the index is null")
    return found[index] if 0 <= index < len(found) else None


def index_of(values: Any, item: Any) -> int:
    return next((i for i, value in enumerate(_list(values)) if is_same(value, item)), -1)


def last_index_of(values: Any, item: Any) -> int:
    found = _list(values)
    return next((i for i in range(len(found) - 1, -1, -1) if is_same(found[i], item)), -1)


def is_empty(values: Any) -> bool:
    return not _list(values)


def is_list(value: Any) -> bool:
    return isinstance(value, list)


def remove(values: Any, item: Any) -> list[Any]:
    found = list(_list(values))
    at = index_of(found, item)
    if at >= 0:
        del found[at]
    return found


def remove_all(values: Any, unwanted: Any) -> list[Any]:
    others = _list(unwanted)
    return [item for item in _list(values) if not has(others, item)]


def retain_all(values: Any, wanted: Any) -> list[Any]:
    others = _list(wanted)
    return [item for item in _list(values) if has(others, item)]


def remove_by_index(values: Any, index: int | None) -> list[Any]:
    found = list(_list(values))
    del found[_index(index, len(found))]
    return found


def set_value(values: Any, index: int | None, item: Any) -> list[Any]:
    found = list(_list(values))
    found[_index(index, len(found))] = item
    return found


def size(values: Any) -> int:
    return len(_list(values))


def sort(values: Any, order: str = "rev") -> list[Any]:
    """Texts without regard to case, numbers of one type; `rev` only turns the list around."""
    found = _list(values)
    if order.lower() == "rev" or not found:
        return found[::-1]
    kinds = {type(item) for item in found}
    if len(kinds) != 1 or not kinds <= {str, int, float}:
        raise BadEvent("list:sort takes texts, or numbers of one type")
    found = sorted(found, key=cmp_to_key(_compare_texts) if kinds == {str} else None)
    return found[::-1] if order.lower() == "desc" else found


def _folded(text: str) -> str:
    """Each character by itself; one that becomes several stays as it is."""
    upper = (c.upper() if len(c.upper()) == 1 else c for c in text)
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in upper)


def _compare_texts(left: str, right: str) -> int:
    first, second = to_units(_folded(left)), to_units(_folded(right))
    return (first > second) - (first < second)


def _has_order(args: Args) -> str:
    if len(args) > 1 and isinstance(args[1], Const):
        if str(args[1].value).lower() not in _ORDERS:
            return f"'{args[1].value}' is no order; use 'asc', 'desc' or 'rev'"
    elif len(args) > 1:
        return "the order must be a constant"
    return ""


def _of_list(name: str, *takes: Any, returns: Any, python: Any, **more: Any) -> Function:
    return scalar(f"list:{name}", *takes, returns=returns, python=python, takes_null=True, **more)


FUNCTIONS = (
    _of_list("add", SET, ANY, WHOLE, returns=OBJECT, python=add, optional=1),
    _of_list("addAll", SET, SET, TRUTH, returns=OBJECT, python=add_all, optional=1),
    _of_list("clear", SET, returns=OBJECT, python=clear),
    _of_list("clone", SET, returns=OBJECT, python=clone),
    _of_list("contains", SET, ANY, returns=BOOL, python=contains),
    _of_list("containsAll", SET, SET, returns=BOOL, python=contains_all),
    _of_list("containsAny", SET, SET, returns=BOOL, python=contains_any),
    _of_list("create", ANY, returns=OBJECT, python=create, optional=1, variadic=True),
    _of_list("get", SET, WHOLE, returns=OBJECT, python=get),
    _of_list("indexOf", SET, ANY, returns=INT, python=index_of),
    _of_list("isEmpty", SET, returns=BOOL, python=is_empty),
    _of_list("isList", ANY, returns=BOOL, python=is_list),
    _of_list("lastIndexOf", SET, ANY, returns=INT, python=last_index_of),
    _of_list("remove", SET, ANY, returns=OBJECT, python=remove),
    _of_list("removeAll", SET, SET, returns=OBJECT, python=remove_all),
    _of_list("removeByIndex", SET, WHOLE, returns=OBJECT, python=remove_by_index),
    _of_list("retainAll", SET, SET, returns=OBJECT, python=retain_all),
    _of_list("setValue", SET, WHOLE, ANY, returns=OBJECT, python=set_value),
    _of_list("size", SET, returns=INT, python=size),
    _of_list("sort", SET, TEXT, returns=OBJECT, python=sort, optional=1, rule=_has_order),
)
