import builtins
import types

import pytest
from tests.support.renamed_apps import BASE, QUERIES, compiled

from edgewise.kernel.code_globals import CODE_GLOBALS
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.kernel.codegen.fragment_source import write_source
from edgewise.plan.fragments import Fragment


def globals_of(code):
    """Every name that the code, or a function in it, looks up outside itself."""
    found = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            found |= globals_of(const)
    return found


@pytest.mark.parametrize("title", QUERIES)
def test_generated_code_finds_all_it_is_loaded_with(title):
    app = compiled(title, BASE)
    fragment = Fragment("f", tuple(q.name for q in app.queries))
    builder = FragmentBuilder(app, fragment, frozenset())
    source = write_source(builder)
    known = {**CODE_GLOBALS, **builder.writer.bound, **vars(builtins), "build": None}
    loaded = {
        name
        for name in globals_of(compile(source, "<kernel>", "exec"))
        if f".{name}" not in source and f"{name}=" not in source
    }
    assert loaded <= known.keys()
