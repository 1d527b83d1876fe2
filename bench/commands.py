"""The command line of the benchmark."""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.check import BASELINE, BUSY_SHARE, CHECKED, calibration_secs, compare, read_baseline, verdict
from bench.clocks import cores
from bench.cluster import measure
from bench.cluster_page import write
from bench.growth import GROWTHS
from bench.growth_page import Measured, write_growth
from bench.harness import Harness, machine, running_harness
from bench.page import replace_part
from bench.profiling import FOLDER, Recording, top_list
from bench.readme import write_figures
from bench.results import Results, number
from bench.scenarios import BOTH, SCENARIOS, Run, Scenario, warm_up
from bench.table import markdown
from bench.targets import KNOWN, ROOT, Serve, Target, Url

RESULTS = ROOT / "bench" / "results.json"
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
    run.add_argument("--page", action="store_true", help="writes bench/results.json, the table of the page and README")
    run.set_defaults(handle=handle_run)
    profile = commands.add_parser("profile", help="where the server spends its time in one scenario")
    add_common(profile)
    profile.add_argument("--scenario", default="streams_50")
    profile.add_argument("--targets", default="serve", help="serve, uvicorn or postgresql")
    profile.add_argument("--gil", action="store_true", help="only threads that hold the interpreter's lock")
    profile.set_defaults(handle=handle_profile)
    check = commands.add_parser("check", help="compare CPU per token and per request with the stored figures")
    add_common(check)
    check.add_argument("--rounds", type=int, default=3)
    check.add_argument("--store", action="store_true", help="store the figures of this run")
    check.set_defaults(handle=handle_check)
    growth = commands.add_parser("growth", help="how costs grow, as curves on the page")
    add_common(growth)
    growth.add_argument("--only", default=",".join(GROWTHS), help="names, separated by commas")
    growth.add_argument("--largest", type=int, default=10**6, help="leaves out larger sizes")
    growth.add_argument("--page", action="store_true", help="writes bench/growth.json, the pictures and the page")
    growth.set_defaults(handle=handle_growth)
    cluster = commands.add_parser("cluster", help="several processes beside one, on PostgreSQL and Redis")
    cluster.add_argument("--rounds", type=int, default=3)
    cluster.add_argument("--seconds", type=float, default=10.0, help="length of each measurement")
    cluster.add_argument("--page", action="store_true", help="writes bench/cluster.json and the tables of the page")
    cluster.set_defaults(handle=handle_cluster)
    page = commands.add_parser("page", help="write the table of the page and README from bench/results.json again")
    page.set_defaults(handle=handle_page)
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
            announce(f"starting {target.name} ...")
            try:
                target.start(harness.model_port)
            except RuntimeError as error:
                announce(f"left out: {target.name}: {error}")
                continue
            stack.callback(target.stop)
            running.append(target)
        yield running


def handle_run(options: argparse.Namespace) -> int:
    scenarios = chosen_scenarios(options.scenario)
    results = Results(machine(options.tree))
    with measuring(options, options.targets) as (harness, targets):
        for round_number in range(1, options.rounds + 1):
            measure_round(harness, scenarios, targets, options, results, round_number)
    print(results.text())
    written = json.dumps(results.as_json(), indent=1) + "\n"
    if options.json:
        options.json.write_text(written)
    if options.page:
        RESULTS.write_text(written)
        write_pages()
    return 0


def write_pages() -> None:
    """From the stored figures, so that the pages never differ from them."""
    results = Results.from_json(json.loads(RESULTS.read_text()))
    replace_part("bench", f"{about(results)}\n\n{markdown(results)}")
    write_figures(results)


def handle_page(options: argparse.Namespace) -> int:
    write_pages()
    return 0


def about(results: Results) -> str:
    found = results.machine
    return (
        f"Measured on {found['day']}: {found['cpu']}, {found['cores']} cores, Python {found['python']}, "
        f"Linux {found['kernel']}, commit {found['commit']}, load before {found['load_before']}."
    )


@contextmanager
def measuring(options: argparse.Namespace, names: str) -> Iterator[tuple[Harness, list[Target]]]:
    """The model, the client and the chosen targets, warmed up."""
    with ExitStack() as stack:
        harness = stack.enter_context(running_harness(options.model_port))
        targets = stack.enter_context(started(harness, chosen_targets(options, names)))
        if not targets:
            raise SystemExit("No target could be started.")
        for target in targets:
            for api in BOTH:
                if options.api in ("", api):
                    warm_up(Run(harness, target, api, 1.0))
        yield harness, targets


def handle_profile(options: argparse.Namespace) -> int:
    [(name, scenario)] = chosen_scenarios(options.scenario).items()
    api = options.api or scenario.apis[0]
    with measuring(options, options.targets) as (harness, [target]):
        path = FOLDER / f"{name}-{api}-{time.strftime('%H%M%S')}.txt"
        recording = Recording(target.pids[0], path, only_gil=options.gil)
        figures = scenario.measure(Run(harness, target, api, options.seconds or scenario.secs, options.count))
        recording.stop()
    print(top_list(path.read_text()))
    print(f"\n{name} {api}: {Results.line(name, figures)} (with the profiler beside it)")
    print(f"{path} has the stacks; https://www.speedscope.app shows them.")
    return 0


def handle_check(options: argparse.Namespace) -> int:
    """The least of some rounds: whatever else runs can only add to it."""
    found: dict[str, list[float]] = {}
    units: list[float] = []
    foreign: list[float] = []
    with measuring(options, "serve") as (harness, [target]):
        for _ in range(options.rounds):
            for name, figure, secs in CHECKED:
                for api in BOTH:
                    units.append(calibrated())
                    harness.wait_until_quiet(target)
                    figures = SCENARIOS[name].measure(Run(harness, target, api, options.seconds or secs))
                    found.setdefault(f"{name} {api} {figure}", []).append(figures[figure])
                    foreign.append(figures["foreign_share"])
    unit_ms = min(units) * 1e3
    ratios = {name: min(values) / unit_ms for name, values in found.items()}
    print(f"The piece of work that everything is divided by takes {unit_ms:.1f} ms of CPU here.")
    print(f"Other processes took {max(foreign):.0%} of the server's core at most.")
    if max(foreign) > BUSY_SHARE:
        print("That is much: a server that has to wait handles more at once, and needs less CPU for each.")
    if options.store:
        BASELINE.write_text(json.dumps({"ratios": ratios, "unit_ms": unit_ms}, indent=1) + "\n")
        print(f"Stored in {BASELINE}.")
        return 0
    comparisons = compare(read_baseline(), ratios)
    for comparison in comparisons:
        print(comparison.text)
    return verdict(comparisons)


def calibrated() -> float:
    """On the server's core."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cores()[0]})
    try:
        return calibration_secs()
    finally:
        os.sched_setaffinity(0, allowed)


def measure_round(
    harness: Harness,
    scenarios: dict[str, Scenario],
    targets: Sequence[Target],
    options: argparse.Namespace,
    results: Results,
    round_number: int,
) -> None:
    for name, scenario in scenarios.items():
        if round_number > 1 and not scenario.is_repeated:
            continue
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
                except RuntimeError as error:
                    announce(f"failed: {name} {api} {target.name}: {error}")
                    continue
                results.add(name, api, target.name, figures)
                announce(f"round {round_number} {name} {api} {target.name}: {results.line(name, figures)}")


def handle_growth(options: argparse.Namespace) -> int:
    measured: Measured = {}
    about_machine = machine(options.tree)
    options.api = options.api or "responses"
    for name in options.only.split(","):
        if name not in GROWTHS:
            raise SystemExit(f"--only: {name!r} is none of {', '.join(GROWTHS)}.")
        growth = GROWTHS[name]
        sizes = tuple(size for size in growth.sizes if size <= options.largest)
        measured[name] = {}
        # A server of its own for each: no curve shows what another left behind.
        with measuring(options, "serve") as (harness, [target]):
            assert isinstance(target, Serve)
            for size, figures in growth.measure(harness, target, sizes):
                measured[name][str(size)] = {figure: round(value, 4) for figure, value in figures.items()}
                shown = [f"{title} {number(figures[figure])}" for figure, title in growth.figures.items()]
                announce(f"{name} {size:,}: {', '.join(shown)}, foreign {figures.get('foreign_share', 0):.0%}")
    if options.page:
        write_growth(about_machine, measured)
    return 0


def handle_cluster(options: argparse.Namespace) -> int:
    results = Results(machine(ROOT))
    measure(results, options.rounds, options.seconds)
    print(results.text())
    if options.page:
        write(results)
    return 0


def announce(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
