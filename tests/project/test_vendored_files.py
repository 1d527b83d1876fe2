"""The browser's libraries in the tree: each is the file that its record names."""

import hashlib
import re

import pytest

from tests.support.server import ROOT

pytestmark = pytest.mark.any_database
VENDOR = ROOT / "gateway_app/operations/dashboard/static/dashboard/vendor"


def test_every_library_of_the_browser_has_its_version_its_hash_and_its_licence() -> None:
    row = re.compile(r"^\| `(\S+)` \| ([\w.-]+) (\d[\d.]+) \| `\S+` \| `([0-9a-f]{64})` \|$", re.MULTILINE)
    recorded = row.findall((VENDOR / "README.md").read_text())
    libraries = {path.name for path in VENDOR.iterdir() if path.suffix in (".js", ".css")}
    assert {name for name, *_ in recorded} == libraries
    reasons = (ROOT / "docs/architecture.md").read_text()
    for name, package, version, digest in recorded:
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name
        assert (VENDOR / f"{name.split('.')[0].removesuffix('-ext')}.LICENSE").exists(), name
        assert f"{package.removesuffix('.org')} {version}".lower() in reasons.lower(), name
