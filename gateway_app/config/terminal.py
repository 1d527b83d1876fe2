"""The variables that limit the terminal's commands."""

from gateway_app.config.environment import Env
from gateway_app.config.terminal_limits import Limits


def read_limits(env: Env) -> Limits:
    return Limits(
        has_network=env.choice("HERMES_TERMINAL_NETWORK", "off", ("off", "on")) == "on",
        memory_mb=env.integer("HERMES_TERMINAL_MEMORY_MB", 2048, low=64, high=1_048_576),
        processes=env.integer("HERMES_TERMINAL_PROCESSES", 512, low=16, high=100_000),
        file_mb=env.integer("HERMES_TERMINAL_FILE_MB", 1024, low=1, high=1_048_576),
        temporary_mb=env.integer("HERMES_TERMINAL_TMP_MB", 512, low=1, high=1_048_576),
        cpu_secs=env.integer("HERMES_TERMINAL_CPU_SECS", 900, low=1, high=86_400),
        open_files=env.integer("HERMES_TERMINAL_OPEN_FILES", 1024, low=256, high=1_048_576),
    )
