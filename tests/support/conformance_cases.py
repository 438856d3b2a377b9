"""The conformance set, where it is: beside the repository, never inside.

    python -m tests.support.conformance_cases

prints what of it we plan and refuse, and every app that we treat otherwise than it says.
"""

import json
from functools import cache
from pathlib import Path

from tests.conformance.engines import EXTENDED

from edgewise.errors import AppError
from edgewise.lang import compile_app, compile_query

FOLDER = Path(__file__).parents[2].parent / "shared" / "conformance"


@cache
def cases(name):
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else []


def problem(case):
    """Why an app (or a query asked of it) is refused, '' where it is planned."""
    error = _refusal(case)
    return error.render() if error else ""


def problems(case):
    error = _refusal(case)
    return error.problems if error else ()


def _refusal(case):
    try:
        app = compile_app(case["app"], functions=EXTENDED).app
        queries = [step["query"] for step in case.get("steps", ()) if "query" in step]
        for query, rows in zip(queries, case.get("query_results", ()), strict=False):
            if rows is not None:  # the original refuses the others too
                compile_query(query, app)
    except AppError as error:
        return error
    return None


def main():
    for name, wanted in (("siddhi_cases", ""), ("generated", ""), ("invalid_apps", "x")):
        found = [(case["id"], problem(case)) for case in cases(name)]
        wrong = [(i, text) for i, text in found if bool(text) != bool(wanted)]
        verb = "refused" if wanted else "planned"
        print(f"{name}: {len(found) - len(wrong)} of {len(found)} {verb}")
        for identity, text in wrong:
            print(f"  {identity}: {text.splitlines()[0] if text else 'accepted'}")


if __name__ == "__main__":
    main()
