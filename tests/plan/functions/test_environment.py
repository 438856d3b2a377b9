import pytest
from tests.support.kernel_runs import START

from edgewise.engines.embedded import InMemoryEngine
from edgewise.errors import AppError
from edgewise.lang import compile_app
from edgewise.plan.functions import environment

HEAD = "define stream A (s string);"
CHROME = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/120.0.0.0 Safari/537.36"
)


def value(text, variables):
    app = compile_app(f"{HEAD} from A select {text} as r insert into O;", variables=variables).app
    running = InMemoryEngine(app, start=START)
    running.send("A", 1000, ("x",))
    return running.take()[0].data[0]


@pytest.mark.parametrize("name", ["getEnvironmentProperty", "getSystemProperty"])
def test_a_property_is_a_constant_of_the_app(name):
    assert value(f"env:{name}('REGION')", {"REGION": "eu"}) == "eu"
    assert value(f"env:{name}('REGION', s)", {}) == "x"
    assert value(f"env:{name}('REGION')", {}) is None


def test_the_name_of_a_property_must_be_a_constant():
    with pytest.raises(AppError, match="must be a constant"):
        value("env:getSystemProperty(s)", {})


@pytest.mark.parametrize(
    ("header", "origin"),
    [("10.0.0.1, 203.0.113.7x, 8.8.8.8", "8.8.8.8"), ("192.168.1.1", None), ("", None)],
)
def test_the_origin_is_the_first_public_address(header, origin):
    assert environment.find_origin(header) == origin


def test_a_user_agent_tells_browser_and_system():
    assert environment.read_agent(CHROME, "browser") == "Chrome"
    assert environment.read_agent(CHROME, "OS") == "Linux"
    assert environment.read_agent("", "device") == "Other"
    assert environment.read_agent("", "browser") == "Other"
    with pytest.raises(AppError, match="no property"):
        value("env:getUserAgentProperty(s, 'colour')", {})
