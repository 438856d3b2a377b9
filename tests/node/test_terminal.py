import io
import re

from edgewise.node.terminal import Terminal


def test_a_step_is_a_line_with_the_elapsed_time():
    out = io.StringIO()
    Terminal(out).say("spark", "starting the JVM")
    assert re.fullmatch(r" *\d+\.\ds  spark    starting the JVM\n", out.getvalue())
