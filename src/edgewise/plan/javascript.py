"""Run functions that an app defines in JavaScript, isolated and limited.

The engine is QuickJS: the language alone, without files, network, timers or modules. Each thread
has a context of its own, because a context checks the stack of the thread that made it; variables
that a body leaves behind live as long as its thread and are no state of a query. A call that takes
too long, too much memory or too deep a stack fails, and its event with it. A text ends at its
first NUL there. Used by the lowering of
`define function f[javascript]`.
"""

from __future__ import annotations

import json
import math
import threading
from dataclasses import dataclass, field
from typing import Any

from edgewise.errors import BadEvent
from edgewise.event.types import AttrType
from edgewise.event.values import round_to_float32

CALL_SECONDS_MAX = 1.0  # processor time of one call
MEMORY_BYTES_MAX = 64 * 1024 * 1024  # of one function in one thread
STACK_BYTES_MAX = 256 * 1024
INT_BITS = 32
LONG_BITS = 64
_WHOLE_BITS = {AttrType.INT: INT_BITS, AttrType.LONG: LONG_BITS}
_INSTALL = "pip install 'edgewise[javascript]'"


@dataclass(slots=True, unsafe_hash=True)
class JavaScript:
    """`body` is a function's; its arguments are in the array `data`. Compiled when called."""

    name: str
    body: str
    returns: AttrType
    _local: threading.local = field(default_factory=threading.local, compare=False, repr=False)

    def __call__(self, *args: Any) -> Any:
        function = getattr(self._local, "function", None)
        if function is None:
            function = self.compile()
        try:
            result = function(*map(self._to_script, args))
        except Exception as why:
            reason = str(why).strip().splitlines()[0] if str(why).strip() else "no reason"
            limits = {"InternalError: interrupted": "it takes too long", "null": "out of memory"}
            raise BadEvent(f"function '{self.name}': {limits.get(reason, reason)}") from why
        if hasattr(result, "json"):
            result = json.loads(result.json())
        return _of_type(result, self.returns)

    def compile(self) -> Any:
        """The function in this thread's context; a mistake in its text raises ValueError."""
        try:
            import quickjs
        except ImportError as why:
            raise ValueError(f"JavaScript needs a package: {_INSTALL}") from why
        context = quickjs.Context()
        context.set_memory_limit(MEMORY_BYTES_MAX)
        context.set_max_stack_size(STACK_BYTES_MAX)
        context.set_time_limit(CALL_SECONDS_MAX)
        head = "(function(){var data = Array.prototype.slice.call(arguments);"
        try:
            self._local.function = context.eval(
                f"{head} return (function(){{{self.body}\n}})(); }})"
            )
        except quickjs.JSException as why:
            raise ValueError(str(why).splitlines()[0]) from why
        self._local.context = context
        return self._local.function

    def _to_script(self, value: Any) -> Any:
        """Numbers beyond 32 bits are doubles there; lists and maps go over as JSON."""
        if value is None or isinstance(value, bool | str | float):
            return value
        if isinstance(value, int):
            return value if -(2**31) <= value < 2**31 else float(value)
        return self._local.context.parse_json(json.dumps(value, default=str))

    def __getstate__(self) -> tuple[str, str, AttrType]:
        return self.name, self.body, self.returns

    def __setstate__(self, state: tuple[str, str, AttrType]) -> None:
        self.name, self.body, self.returns = state
        self._local = threading.local()


def _of_type(value: Any, kind: AttrType) -> Any:
    """As the declared type: JavaScript has one kind of number; what does not fit is null."""
    if value is None or kind is AttrType.OBJECT:
        return value
    if kind is AttrType.STRING:
        return _show(value)
    if kind is AttrType.BOOL:
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if kind in _WHOLE_BITS:
        limit = 2 ** (_WHOLE_BITS[kind] - 1)
        return int(value) if math.isfinite(value) and -limit <= int(value) < limit else None
    return round_to_float32(float(value)) if kind is AttrType.FLOAT else float(value)


def _show(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value)
