"""Random calls give the values of the original's own extensions.

    python -m pytest -m slow tests/conformance/test_functions_differential.py

Where the extensions cannot be fetched (no JDK, no Maven, no network) the test is skipped.
"""

import random
import shutil
import subprocess
from pathlib import Path

import pytest
from bench.siddhi import HOME, classpath
from tests.conformance.peer import Trial, difference, theirs
from tests.conformance.random_calls import make_call

CALLS_PLAYED = 1500
FETCH_SECONDS_MAX = 300
POM = Path(__file__).parent / "extensions" / "pom.xml"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def extension_jars():
    """Where they are, fetched once; '' where that cannot be."""
    library = HOME / "extensions"
    if any(library.glob("*.jar")):
        return f"{library}/*"
    if not shutil.which("mvn"):
        return ""
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={library}"]
    command = ["mvn", "-q", "-B", "-f", str(POM), *goal]
    done = subprocess.run(command, capture_output=True, timeout=FETCH_SECONDS_MAX, check=False)
    return f"{library}/*" if done.returncode == 0 else ""


def test_random_calls_give_the_values_of_the_original():
    engine, jars = classpath(), extension_jars()
    if not engine or not jars:
        pytest.skip("the extensions cannot be fetched here")
    trials = []
    for seed in range(CALLS_PLAYED):
        app, events = make_call(random.Random(seed))
        trials.append(Trial(f"call {seed}", app, events, "q"))
    answers = theirs(f"{jars}:{engine}", trials)
    found = [difference(trial, answer) for trial, answer in zip(trials, answers, strict=True)]
    assert "\n\n".join(filter(None, found)) == ""
