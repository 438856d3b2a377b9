"""Parse the command line and call the handler of its command.

Exit codes: 0, 1 where `fmt --check`, `log verify` or `doctor`
found something, 2 for an error with a
sentence, 130 for Ctrl-C. Used by the script `edgewise` and by `python -m edgewise`.
"""

from __future__ import annotations

import sys

from edgewise.cli.parser import build_parser
from edgewise.errors import EdgewiseError, name_missing_extra

BAD_INPUT = 2


def main(argv: list[str] | None = None) -> int:
    arguments = build_parser().parse_args(argv)
    try:
        with name_missing_extra():
            return int(arguments.call(arguments) or 0)
    except EdgewiseError as error:
        print(error, file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130
