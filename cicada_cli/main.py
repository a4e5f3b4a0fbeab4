"""The command ``cicada``."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from itertools import takewhile

from cicada_cli.commands import COMMANDS, PROG, build_parser, parser_of
from cicada_cli.exits import Exit, UsageError
from cicada_cli.near_names import unknown_name
from cicada_cli.output import Notes, complain, say, use_plain
from cicada_cli.overview import overview
from cicada_cli.text import clipped, one_line

__all__ = ["build_parser", "main", "unforeseen"]

OF_THE_EXTRA = frozenset(
    {"Stemmer", "boto3", "botocore", "charset_normalizer", "markdown_it", "numpy", "rich", "shtab", "yaml"}
)
"""Modules of the extra ``cli``, without which only the client is installed."""
TRACEBACK_VARIABLE = "CICADA_TRACEBACK"
MAX_UNFORESEEN_CHARS = 300


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status: see :class:`cicada_cli.exits.Exit`."""
    for name in ("cicada", "cicada_client"):  # commands print their own messages
        logging.getLogger(name).addHandler(logging.NullHandler())
    logging.lastResort = Notes(logging.WARNING)
    if isinstance(sys.stdout, io.TextIOWrapper):  # the terminal's encoding may lack some letters
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return _run(sys.argv[1:] if argv is None else list(argv))
    except UsageError as error:
        complain(str(error))
        return Exit.USAGE
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in OF_THE_EXTRA:
            complain(unforeseen(error))
            return Exit.FAILED
        complain("the command needs the extra cli: pip install '.[cli]' in Cicada's repository")
        return Exit.USAGE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:  # the reader of the output has gone; the interpreter must not flush it either
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    except Exception as error:  # a traceback would print names, files and messages as they are
        complain(unforeseen(error))
        return Exit.FAILED


def _run(words: list[str]) -> Exit:
    leading = [*takewhile(lambda word: word.startswith("-"), words)]
    if len(leading) == len(words) or not {"-h", "--help"}.isdisjoint(leading):
        return _without_command(leading)
    name = words[len(leading)]
    if name not in COMMANDS:
        raise UsageError(f"{unknown_name('command', name, COMMANDS)}\nRun `{PROG}` for the list of commands.")
    args = parser_of(name).parse_args(words)
    use_plain(getattr(args, "plain", False))
    status: Exit = args.run(args)
    return status


def _without_command(words: list[str]) -> Exit:
    if any(word not in ("--plain", "-h", "--help") for word in words):
        parser_of().parse_args(words)  # --version, or an error
    say(overview())
    return Exit.DONE


def unforeseen(error: Exception) -> str:
    """An unexpected error in one line, or with its traceback where :data:`TRACEBACK_VARIABLE` is set."""
    if os.environ.get(TRACEBACK_VARIABLE):
        return "".join(traceback.format_exception(error))
    told = clipped(one_line(str(error)), MAX_UNFORESEEN_CHARS)
    return f"unexpected error: {type(error).__name__}: {told} ({TRACEBACK_VARIABLE}=1 prints a traceback)"
