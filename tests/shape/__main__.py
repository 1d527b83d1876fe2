"""``make shape``: the figures of a tree beside those of the tree before the restructuring, and the targets.

How each figure is counted:

- Lines are those that are not blank; comments and docstrings count. Empty files are no modules.
  Migrations are left out.
- Old words (words.txt): a line counts once, however many it has.
- Calls between modules are counted in a real server with the built-in model: through libraries, but not
  through the event loop or from thread to thread. A coroutine or generator that goes on is called again,
  so a wake-up counts once for each module it passes.
- A request is one with an answer of one word. A delta is what each further word adds, at a pace at which
  each is committed and sent alone.
- Calls are the median of several runs. A timer of the server that fires meanwhile adds a few. Deltas become
  cheaper on a machine so busy that it commits several at once.
- A package is a folder, of at most two names: responses_app.eventlog.
"""

import argparse
import json
import sys
from pathlib import Path

from tests.shape.figures import ROWS, Figures, measure_sources, trace_figures, word_figures
from tests.shape.report import print_hits, print_hops, print_table
from tests.shape.tracing import trace_requests
from tests.shape.words import find_words

ROOT = Path(__file__).resolve().parent.parent.parent
BASELINE = Path(__file__).with_name("baseline.json")


def main() -> int:
    given = arguments()
    tree = given.tree.resolve()
    hits = find_words(tree)
    if given.list:
        print_hits(hits)
        return 0
    measured = measure_sources(tree)
    figures = measured.figures | word_figures(hits)
    traces = None
    if not given.no_trace:
        traces = trace_requests(tree)
        figures |= trace_figures(traces)
    if given.record:
        record(figures)
    print_table(json.loads(BASELINE.read_text()), figures)
    for remark in measured.remarks:
        print(remark)
    if traces is not None and given.hops:
        print_hops(traces)
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.shape")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout to measure; this one by default")
    parser.add_argument("--list", action="store_true", help="list the lines with old words instead")
    parser.add_argument("--hops", action="store_true", help="list the most frequent calls between modules too")
    parser.add_argument("--no-trace", action="store_true", help="start no server, count in the files alone")
    parser.add_argument("--record", action="store_true", help="keep the figures as those before")
    return parser.parse_args()


def record(figures: Figures) -> None:
    rounded = {row.name: round(figures[row.name], 2) for row in ROWS if row.name in figures}
    BASELINE.write_text(json.dumps(rounded, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
