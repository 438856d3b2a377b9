"""How the tests of this room look at plans."""

from tests.support.parsed_trees import DEFINE, OTHERS

from edgewise.errors import AppError
from edgewise.lang import compile_app

TABLE = "@PrimaryKey('k') define table T (k string, v int);\n"


def planned(text):
    return compile_app(DEFINE + OTHERS + TABLE + text).app


def query(text):
    return planned(text).queries[-1]


def refused(text):
    """The messages about an app that must not compile."""
    try:
        compile_app(DEFINE + OTHERS + TABLE + text)
    except AppError as error:
        return [p.message for p in error.problems]
    raise AssertionError("this app was accepted")


def warned(text):
    return [p.message for p in compile_app(DEFINE + OTHERS + TABLE + text).warnings]
