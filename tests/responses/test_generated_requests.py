"""300 requests that Schemathesis makes from the OpenAPI document; ``make fuzz`` makes 20,000."""

import pytest

from tests.fuzz.driver import Fuzz
from tests.support.server import Server

CASES = 300
SEED = 12


@pytest.mark.any_database
@pytest.mark.timeout(400)  # the requests take eight seconds of a core to make
def test_generated_requests_are_answered_as_the_document_describes(server: Server) -> None:
    report = Fuzz(server, SEED).run(CASES)
    assert not report.findings, "\n".join(map(str, report.findings[:5]))
    assert report.cases > CASES * 0.8  # some operations have fewer requests than their share
    assert "Traceback" not in server.log
