"""What one command may use. Not beside its reader: tools import nothing of Django."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    has_network: bool = False
    memory_mb: int = 2048  # of one process; with control groups also of the whole command
    processes: int = 512  # threads count, too
    file_mb: int = 1024
    temporary_mb: int = 512
    cpu_secs: int = 900  # of one process
    open_files: int = 1024
