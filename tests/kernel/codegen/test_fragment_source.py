"""The generated source of a few queries, shown."""

import pytest
from tests.golden import scripts

from edgewise.kernel import compile_kernel
from edgewise.lang import compile_app
from edgewise.plan.fragments import Fragment


def source_of(text):
    app = compile_app(text).app
    return compile_kernel(app, Fragment("f", tuple(q.name for q in app.queries))).source


@pytest.mark.parametrize("path", scripts("kernel"), ids=lambda path: path.stem)
def test_scripts(golden, path):
    golden(path, source_of)
