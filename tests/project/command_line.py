"""Write the page of the command line from the options of its parser: ``python -m tests.project.command_line``."""

import argparse
from pathlib import Path

from snnjax.cli import command_line

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/command_line.md"
TOP = """# The command line

`snnjax command --help` prints what this page says. Results go to standard output, one line per fact; errors go to
standard error in one line, with exit code 2.

```sh
snnjax train --task digits --out out/digits
snnjax evaluate out/digits
snnjax new my_task
```
"""


def page() -> str:
    """The page: a section for each command, with a table of its options."""
    (commands,) = (each for each in command_line()._actions if isinstance(each, argparse._SubParsersAction))
    helps = {each.dest: each.help for each in commands._choices_actions}
    parts = [section(name, helps[name], parser) for name, parser in commands.choices.items()]
    return "\n".join([TOP, *parts])


def section(name: str, words: str | None, parser: argparse.ArgumentParser) -> str:
    lines = [f"## snnjax {name}", "", f"{str(words)[0].upper()}{str(words)[1:]}.", ""]
    lines += ["| argument | what it says |", "| --- | --- |"]
    formatter = argparse.HelpFormatter(f"snnjax {name}")
    for action in parser._actions:
        if not isinstance(action, argparse._HelpAction):
            lines.append(f"| {written(action)} | {formatter._expand_help(action)} |")
    parser.format_help()  # makes the text behind the options
    if parser.epilog:
        lines += ["", "```text", parser.epilog, "```"]
    return "\n".join(lines) + "\n"


def written(action: argparse.Action) -> str:
    """An argument as it is written, such as `--epochs EPOCHS`; choices by name."""
    name = action.option_strings[-1] if action.option_strings else ""
    choices = " ".join(f"`{each}`" for each in action.choices or ())
    value = "" if choices or action.nargs == 0 else str(action.metavar or action.dest)
    value = value.upper() if name else value
    return " ".join(filter(None, [f"`{f'{name} {value}'.strip()}`" if name or value else "", choices]))


if __name__ == "__main__":
    PAGE.write_text(page())
