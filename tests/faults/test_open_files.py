"""The limit of open files: the start raises it, and reports one that is too low."""

import resource
from collections.abc import Callable

import pytest

from tests.support.server import Server

pytestmark = pytest.mark.any_database

FEW_FILES = 256


class FewFilesServer(Server):
    """Started with room for few open files, as most shells do, and allowed to make more."""

    command = (
        "-c",
        "import resource, runpy, sys; sys.path.insert(0, '.'); sys.argv = ['manage.py', 'serve']; "
        "_, hard = resource.getrlimit(resource.RLIMIT_NOFILE); "
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({FEW_FILES}, hard)); "
        "runpy.run_path('manage.py', run_name='__main__')",
    )


def open_files_limit(server: Server) -> int:
    assert server.process is not None
    soft, _ = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    return soft


def test_the_start_raises_the_limit_of_open_files(make_server: Callable[..., Server]) -> None:
    server = make_server(FewFilesServer, HERMES_MAX_CONNECTIONS="100")
    assert open_files_limit(server) > FEW_FILES + 100
    assert "open files" not in server.log


def test_too_few_open_files_are_reported(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_MAX_CONNECTIONS="1000000")
    assert "lower HERMES_MAX_CONNECTIONS" in server.log
    found = server.managed("doctor", "--offline").stdout.decode()
    assert "1000000 connections and the rest need" in found
    assert "lower HERMES_MAX_CONNECTIONS" in found
