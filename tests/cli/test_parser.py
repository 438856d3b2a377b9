"""The help of every command is complete."""

import argparse
import shlex

import pytest

from edgewise.cli.parser import build_parser


def find_commands():
    parser = build_parser()
    [commands] = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    return {name: p for name, p in commands.choices.items() if name != "log"}  # `log` has its own


COMMANDS = find_commands()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help_text_and_shows_its_default(name):
    parser = COMMANDS[name]
    shown = " ".join(parser.format_help().split())
    for action in parser._actions:
        if action.dest == "help":
            continue
        assert action.help, f"{name} {action.dest}"
        text = parser._get_formatter()._get_help_string(action)
        optional = action.option_strings and not action.required
        in_a_required_group = any(
            action in group._group_actions and group.required
            for group in parser._mutually_exclusive_groups
        )
        if optional and not in_a_required_group:
            assert "(default" in text, f"{name} {action.option_strings}"
        assert " ".join(text.split())[:20] in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_that_parses(name):
    _, example = COMMANDS[name].epilog.split("\n", 1)
    program, *words = shlex.split(example)
    assert program == "edgewise"
    assert words[0] == name
    assert callable(build_parser().parse_args(words).call)


def test_help_names_every_command(capsys):
    text = build_parser().format_help()
    for name in (*COMMANDS, "log"):
        assert f"\n    {name} " in text
