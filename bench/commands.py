"""The command line of the benchmark."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.harness import Harness, JobFailed, machine, running_harness
from bench.results import Results
from bench.scenarios import SCENARIOS, Run, Scenario, warm_up
from bench.targets import KNOWN, ROOT, Serve, Target, Url

DEFAULT_TARGETS = "direct,litellm,serve,uvicorn,postgresql"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure scenarios, targets taking turns")
    add_common(run)
    run.add_argument("--scenario", default=",".join(SCENARIOS), help="names, separated by commas")
    run.add_argument("--targets", default=DEFAULT_TARGETS, help="names, separated by commas")
    run.add_argument("--rounds", type=int, default=3)
    run.add_argument("--json", type=Path, help="writes every figure of every round")
    run.set_defaults(handle=handle_run)
    options = parser.parse_args()
    sys.exit(options.handle(options))


def add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--api", default="", help="chat or responses; both without it")
    parser.add_argument("--seconds", type=float, default=0.0, help="length of each measurement")
    parser.add_argument("--count", type=int, help="streams, readers or clients, instead of the scenario's own number")
    parser.add_argument("--tree", type=Path, default=ROOT, help="start the server from this working tree")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="a variable of the server")
    parser.add_argument("--target", action="append", default=[], metavar="NAME=URL", help="a server that runs already")
    parser.add_argument("--key", default="none", help="the key for --target")
    parser.add_argument("--model", default="bench-model", help="the model for --target")
    parser.add_argument("--model-port", type=int, default=0, help="a fixed port of the stub model, for --target")


def chosen_scenarios(names: str) -> dict[str, Scenario]:
    chosen = {}
    for name in names.split(","):
        if name not in SCENARIOS:
            raise SystemExit(f"--scenario: {name!r} is none of {', '.join(SCENARIOS)}.")
        chosen[name] = SCENARIOS[name]
    return chosen


def chosen_targets(options: argparse.Namespace, names: str) -> list[Target]:
    extra = dict(pair.split("=", 1) for pair in options.env)
    targets: list[Target] = []
    for name in filter(None, names.split(",")):
        if name not in KNOWN:
            raise SystemExit(f"--targets: {name!r} is none of {', '.join(KNOWN)}.")
        kind = KNOWN[name]
        if issubclass(kind, Serve):
            targets.append(kind(options.tree.resolve(), dict(extra)))
        else:
            targets.append(kind())
    for pair in options.target:
        name, _, url = pair.partition("=")
        if not url:
            raise SystemExit(f"--target: {pair!r} is not NAME=URL.")
        targets.append(Url(name, url, options.key, options.model))
    return targets


@contextmanager
def started(harness: Harness, targets: Sequence[Target]) -> Iterator[list[Target]]:
    """The targets that start; the others are left out with the reason."""
    with ExitStack() as stack:
        running = []
        for target in targets:
            say(f"starting {target.name} ...")
            try:
                target.start(harness.model_port)
            except RuntimeError as error:
                say(f"left out: {target.name}: {error}")
                continue
            stack.callback(target.stop)
            running.append(target)
        yield running


def handle_run(options: argparse.Namespace) -> int:
    scenarios = chosen_scenarios(options.scenario)
    results = Results(machine(options.tree))
    with running_harness(options.model_port) as harness:
        with started(harness, chosen_targets(options, options.targets)) as targets:
            for target in targets:
                for api in ("chat", "responses"):
                    warm_up(Run(harness, target, api, 1.0))
            for number in range(options.rounds):
                measure_round(harness, scenarios, targets, options, results, number)
    print(results.text())
    if options.json:
        options.json.write_text(json.dumps(results.as_json(), indent=1) + "\n")
    return 0


def measure_round(
    harness: Harness,
    scenarios: dict[str, Scenario],
    targets: Sequence[Target],
    options: argparse.Namespace,
    results: Results,
    number: int,
) -> None:
    for name, scenario in scenarios.items():
        for api in scenario.apis:
            if options.api and api != options.api:
                continue
            for target in targets:
                if not scenario.fits(target):
                    continue
                run = Run(harness, target, api, options.seconds or scenario.secs, options.count)
                harness.wait_until_quiet(target)
                try:
                    figures = scenario.measure(run)
                except JobFailed as error:
                    say(f"failed: {error}")
                    continue
                results.add(name, api, target.name, figures)
                say(f"round {number + 1} {name} {api} {target.name}: {results.line(name, figures)}")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
