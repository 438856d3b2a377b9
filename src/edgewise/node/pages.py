"""Choose the page that a node serves at `/`, and find it in the package or in a checkout.

`/js/` is the JavaScript client and `/parts/` what our own pages share; both are there whatever
page is served, so that a page of a user can import them. Used by `run` and `edgewise edge`.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from edgewise.errors import SetupError
from edgewise.node.config import NodeConfig

WALL = "wall"  # made from the topic sinks of the app
DEMO = "demo"


def add_page(config: NodeConfig, page: str = WALL) -> NodeConfig:
    """`config.web` is a directory of the user's own; without one our `page` is served."""
    packaged = Path(__file__).parent / "assets"
    web, js = packaged / "web", packaged / "js"
    if not web.is_dir():
        root = Path(__file__).parents[3]
        web, js = root / "web", root / "clients" / "js"
    own = config.web
    if own is not None and not (own / "index.html").is_file():
        raise SetupError(f"--web {own}: there is no {own / 'index.html'} to serve at /")
    assets = (("/js/", js), ("/parts/", web / "parts"), ("/", own or web / page))
    return dataclasses.replace(config, assets=assets)
