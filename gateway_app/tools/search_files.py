"""Search the files of the workspace for a regular expression."""

import sys
from pathlib import Path
from typing import Any

from gateway_app.agent.tools import Tool, ToolContext
from gateway_app.tools.support import search_worker
from gateway_app.tools.support.output import Output
from gateway_app.tools.support.processes import Program, run_program
from gateway_app.tools.support.schema import checked, parameters_of
from gateway_app.tools.support.tree import SKIPPED_FOLDERS
from gateway_app.tools.support.workspace import PATH, PathRefused

MAX_SEARCH_SECS = 20
MAX_RESULTS = 1000
MAX_PATTERN_CHARS = 1000
_CODE = Path(__file__).parents[2]
_START = f"import sys; from {search_worker.__name__} import main; sys.exit(main())"

PARAMETERS = parameters_of(
    {
        "pattern": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_PATTERN_CHARS,
            "description": "A regular expression of Python, searched in each line",
        }
    },
    {
        "path": PATH | {"default": "."},
        "glob": {
            "type": "string",
            "maxLength": MAX_PATTERN_CHARS,
            "default": "",
            "description": "Only these files: '*.py' for names, 'src/**/*.py' for paths below path",
        },
        "max_results": {"type": "integer", "minimum": 1, "maximum": MAX_RESULTS, "default": 100},
    },
)


async def search_files(arguments: dict[str, Any], context: ToolContext) -> str:
    return await search(context, **checked(arguments, PARAMETERS))


async def search(
    context: ToolContext,
    pattern: str,
    path: str,
    glob: str,
    max_results: int,
    limit_secs: float = MAX_SEARCH_SECS,
) -> str:
    for name, value in (("pattern", pattern), ("path", path), ("glob", glob)):
        if "\0" in value:
            raise ValueError(f"the argument {name!r} can't contain a NUL character")
    asked = (str(context.workspace.absolute()), path, pattern, glob, str(max_results))
    output = Output(report=_report_nothing)
    program = Program((sys.executable, "-c", _START, *asked), cwd=_CODE, env={})
    ending = await run_program(program, limit_secs, output.take)
    found = output.text()
    if ending.exit_code == search_worker.IS_REFUSED:
        raise PathRefused(found)
    if ending.is_out_of_time:
        note = f"stopped after {limit_secs:g} seconds; use a simpler pattern or fewer files"
        return f"{found}[not complete: {note}]"
    if ending.exit_code:
        raise RuntimeError(f"the search broke off: {found[-500:]}")
    if found.count("\n") >= max_results:
        return f"{found}[cut: stopped at {max_results} lines; narrow pattern, path or glob]"
    return found or "[nothing found]"


def _report_nothing(piece: str) -> None:
    """The lines are returned together at the end."""


TOOL = Tool(
    name="search_files",
    description=(
        "Search the text files of the workspace for a regular expression (Python's), line by line. "
        "Each line found comes as PATH:NUMBER:TEXT. path is a folder or one file. "
        "Use it to find where something is, instead of reading many files or grep in the terminal. "
        f"At most {MAX_RESULTS} lines and {MAX_SEARCH_SECS} seconds. "
        f"Left out: binary files, files over {search_worker.MAX_FILE_BYTES} bytes, the rest of a "
        f"line after {search_worker.MAX_LINE_CHARS} bytes, and what is in "
        f"{', '.join(sorted(SKIPPED_FOLDERS))}, unless path names them."
    ),
    parameters=PARAMETERS,
    run=search_files,
    is_replay_safe=True,
    is_read_only=True,
    rest_hint="call search_files again with a narrower pattern or path, or a smaller max_results.",
)
