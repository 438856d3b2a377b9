"""The files in `deploy`: the command lines are ours, the manifests are Kubernetes' own."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from edgewise.cli.parser import build_parser
from edgewise.lang import compile_app

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "edgewise"
KUBERNETES = ("1.28", "1.32")
SETS = {
    "defaults": {},
    "cluster": {"spark.master": "spark://m:7077", "spark.state": "s3://bucket/shop"},
    "embedded": {"node.engine": "embedded", "edge.autoscaling.enabled": "false"},
    "everything": {
        "tls.existingSecret": "cert",
        "monitoring.enabled": "true",
        "edge.autoscaling.dataAge.enabled": "true",
        "node.extraArgs[0]": "--save-interval=5",
        "node.storage.className": "fast",
        "networkPolicy.from[0].namespaceSelector.matchLabels.team": "shop",
    },
}
REFUSED = {
    "log=files:///data": "log",
    "spark.master=spark://m:7077": "state",
    "auth.existingSecret=": "existingSecret",
    "edge.replics=3": "replics",
}


def assert_parsed(words):
    """As the container's entry point gets them; argparse exits where one is not known."""
    return build_parser().parse_args([str(word) for word in words])


@pytest.mark.integration
def test_compose_runs_commands_that_exist_on_an_app_that_compiles():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    for name in ("node", "standby", "edge-a", "edge-b"):
        parsed = assert_parsed(services[name]["command"])
        assert parsed.log == ["kafka://kafka:9092/shop"]
        assert services[name]["read_only"]
        assert services[name]["cap_drop"] == ["ALL"]
    state = assert_parsed(services["node"]["command"]).state
    shared = f"state:{state}"
    assert all(shared in services[name]["volumes"] for name in ("node", "standby", "spark-worker"))
    assert compile_app((DEPLOY / "app.siddhi").read_text()).app.name == "shop"
    used = {v.split(":")[0] for s in services.values() for v in s.get("volumes", ())}
    assert set(compose["volumes"]) == {name for name in used if not name.startswith(".")}


@pytest.mark.integration
def test_the_chart_has_the_version_of_the_package_and_an_app_that_compiles():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "src/edgewise/__init__.py").read_text()
    version = project.get("version") or re.search(r'__version__ = "(.+?)"', text)[1]
    assert chart["version"] == chart["appVersion"]
    assert version.startswith(chart["version"])
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert compile_app(values["app"]).app.name == "shop"
    known = (ROOT / "docs/reference/metrics.md").read_text()
    rules = (CHART / "templates/monitoring.yaml").read_text()
    for metric in re.findall(r"(edgewise_\w+?)(?:_bucket)?\[", rules):
        assert f"`{metric}`" in known


@pytest.fixture(scope="module")
def helm():
    fetched = subprocess.run(
        [ROOT / "scripts/fetch-helm"], stdout=subprocess.PIPE, text=True, check=True
    )
    return fetched.stdout.strip()


def render(helm, settings, *more):
    options = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    return subprocess.run(
        [helm, "template", "shop", CHART, "--kube-version", "1.32.0", *options, *more],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_the_chart_renders_valid_manifests_whose_commands_exist(helm, name):
    import kubernetes_validate

    subprocess.run([helm, "lint", "--strict", CHART], check=True, capture_output=True)
    done = render(helm, SETS[name])
    assert done.returncode == 0, done.stderr
    manifests = [m for m in yaml.safe_load_all(done.stdout) if m]
    own = [m for m in manifests if not m["apiVersion"].startswith("monitoring.coreos.com")]
    for manifest in own:
        for version in KUBERNETES:
            kubernetes_validate.validate(manifest, version, strict=True)
    kinds = {m["kind"] for m in manifests}
    assert {"StatefulSet", "Deployment", "PodDisruptionBudget", "NetworkPolicy"} <= kinds
    services = {json.dumps(m["metadata"]["labels"]): m for m in own if m["kind"] == "Service"}
    for workload in (m for m in own if m["kind"] in {"StatefulSet", "Deployment"}):
        [container] = workload["spec"]["template"]["spec"]["containers"]
        parsed = assert_parsed(container["args"])
        assert parsed.jwt_key
        assert container["securityContext"]["readOnlyRootFilesystem"]
        labels = workload["spec"]["template"]["metadata"]["labels"]
        assert workload["spec"]["selector"]["matchLabels"].items() <= labels.items()
        assert any(s["spec"]["selector"].items() <= labels.items() for s in services.values())
    for monitor in (m for m in manifests if m["kind"] == "ServiceMonitor"):
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        [service] = [s for text, s in services.items() if wanted <= json.loads(text).items()]
        ports = {p["name"] for p in service["spec"]["ports"]}
        assert {e["port"] for e in monitor["spec"]["endpoints"]} <= ports


@pytest.mark.slow
@pytest.mark.parametrize("setting", REFUSED)
def test_values_that_cannot_work_are_refused_by_name(helm, setting):
    done = render(helm, {}, "--set", setting)
    assert done.returncode != 0
    assert REFUSED[setting] in done.stderr
