"""The roles in the tests: the owner (the root key), another tenant, an operator and a viewer.

tests/conftest.py has a fixture for each role on the shared server.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.server import Server
from tests.support.staff import STAFF_PASSWORD, Operator, logged_in, make_staff


def create_key(server: Server, name: str) -> str:
    """The secret of a new key, whose owner has the name of the key."""
    return server.manage("createkey", name, "--owner", name).split()[-1]


@contextmanager
def logged_in_viewer(server: Server, name: str = "viewer") -> Iterator[Operator]:
    """A new staff account that may look at responses and do nothing else."""
    make_staff(server, name, "view_response")
    with logged_in(server, name, STAFF_PASSWORD) as viewer:
        yield viewer
