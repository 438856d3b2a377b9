"""Build the pages of this folder into a static site with search: `make docs`.

Sphinx because it is kept up and fetches nothing while it builds; MyST because the pages stay plain
Markdown that reads well in a checkout too. A link to a file of the repository becomes a download.
"""

import re
from typing import ClassVar

from pygments.lexer import RegexLexer
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, Text
from sphinx.application import Sphinx

from edgewise import __version__

project = "Edgewise"
version = release = __version__
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
root_doc = "index"
html_theme = "furo"
html_title = f"Edgewise {__version__}"
html_show_sphinx = False
html_copy_source = False
html_permalinks_icon = "#"
myst_heading_anchors = 3
# Highlighting fonts and scripts come with the theme: a reader without a network sees everything.
html_theme_options = {"navigation_with_keys": True}

KEYWORDS = (
    r"define|stream|table|window|trigger|function|aggregation|partition|with|begin|end|from|"
    r"select|group|by|having|order|limit|offset|output|insert|into|update|delete|set|on|as|every|"
    r"within|not|and|or|for|is|null|in|join|left|right|full|outer|unidirectional|current|expired|"
    r"all|events|return|first|last|snapshot|at|aggregate|per|true|false|string|int|long|float|"
    r"double|bool|object|asc|desc|of|timeout"
)


class SiddhiLexer(RegexLexer):
    """Colours for SiddhiQL; what it does not know is plain text, never an error."""

    name = "SiddhiQL"
    tokens: ClassVar = {
        "root": [
            (r"--.*?$", Comment.Single),
            (r"/\*.*?\*/", Comment.Multiline),
            (r'""".*?"""', String),
            (r"'[^']*'|\"[^\"]*\"", String),
            (r"@[\w:.]+", Name.Decorator),
            (rf"(?i:\b(?:{KEYWORDS})\b)", Keyword),
            (r"\d+(\.\d+)?(e-?\d+)?[LlFfDd]?\b", Number),
            (r"->|[=<>!+*/%?-]+", Operator),
            (r"\w+", Name),
            (r"(?s).", Text),
        ],
    }
    flags = re.MULTILINE | re.DOTALL


def setup(app: Sphinx) -> None:
    app.add_lexer("sql", SiddhiLexer)
    for plain in ("plan", "mermaid"):
        app.add_lexer(plain, TextLexer)
