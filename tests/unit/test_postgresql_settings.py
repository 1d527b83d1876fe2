"""The options of a connection to PostgreSQL, with and without a pooler between."""

from typing import Any

import psycopg
import pytest

from gateway_app.config.databases import read_database
from tests.support.migrated_database import Database

URL = "postgres://hermes@127.0.0.1/hermes"


def options(url: str, pooler: str) -> dict[str, Any]:
    database, _ = read_database(url, timeout_secs=10, pool_size=4, pooler=pooler)
    found: dict[str, Any] = database["OPTIONS"]
    return found


def test_a_pooler_gets_no_setting_of_a_session() -> None:
    assert "options" not in options(URL, "transaction")
    assert options(URL, "transaction")["prepare_threshold"] is None


def test_the_options_of_the_url_win() -> None:
    assert options(f"{URL}?options=-c%20work_mem=8MB", "none")["options"] == "-c work_mem=8MB"


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_the_server_notices_a_client_that_a_partition_cut_off(database: Database) -> None:
    assert database.cluster is not None
    url = database.cluster.url("postgres")
    with psycopg.connect(url, options=options(url, "none")["options"]) as connection:
        shown = connection.execute("SHOW tcp_keepalives_idle").fetchone()
    assert shown == ("30",)
