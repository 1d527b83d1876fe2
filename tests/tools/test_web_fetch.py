"""web_fetch: the text of pages, from allowed hosts of the public web alone."""

import ipaddress
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from gateway_app.agent.tools import ToolContext
from gateway_app.config.web_hosts import read_web_hosts
from gateway_app.tools.support.public_addresses import is_public
from gateway_app.tools.support.public_http import MAX_BYTES, FetchRefused, PublicWeb
from gateway_app.tools.web_fetch import MAX_CHARS, make_web_fetch
from tests.support.web_pages import PRIVATE, PUBLIC, Names, web_of, web_server

HERE = ToolContext(Path(), print)
PAGE = """<html><head><title>The  title</title><style>p {}</style></head><body>
<nav><a href="/menu">Menu</a></nav><main><header><h1>Head</h1></header><p>First &amp; second.</p>
<ul><li>one</li><li><a href="next?x=1">two</a></li></ul><script>alert(1)</script></main>
<footer>Imprint</footer></body></html>"""


async def fetch(web: PublicWeb, url: str, **arguments: Any) -> str:
    tool = make_web_fetch(["*"], web)
    text: Any = await tool.run({"url": url, **arguments}, HERE)
    return str(text)


# -- what a page says -------------------------------------------------------------------
async def test_the_readable_text_of_a_page_has_its_title_its_links_and_no_scripts() -> None:
    async with web_server() as server:
        server.page("/a/page", PAGE, "text/html; charset=utf-8")
        web = web_of([f"site.test:{server.port}"], Names(site_test=[PUBLIC]).resolve)
        address = f"http://site.test:{server.port}/a/page"
        text = await fetch(web, address)
    assert text == (
        f"[{address}]\n# The title\n\n# Head\n\nFirst & second.\n\n- one\n\n"
        f"- [two](http://site.test:{server.port}/a/next?x=1)"
    )


async def test_a_long_text_is_read_in_pieces() -> None:
    async with web_server() as server:
        server.page("/", "a" * MAX_CHARS + "b" * 10, "text/plain")
        web = web_of([f"site.test:{server.port}"], Names(site_test=[PUBLIC]).resolve)
        address = f"http://site.test:{server.port}"
        first = await fetch(web, address)
        rest = await fetch(web, address, offset=MAX_CHARS)
    assert first.endswith(f"a\n[cut: go on with offset={MAX_CHARS}; the text has {MAX_CHARS + 10} characters]")
    assert rest.endswith("\n\nbbbbbbbbbb")


@pytest.mark.parametrize("kind", ["text/plain; charset=punycode", "text/html; charset=punycode", "text/html"])
async def test_a_page_can_not_choose_a_codec_that_is_no_character_set(kind: str) -> None:
    """Punycode takes time that grows with the square of the page."""
    async with web_server() as server:
        server.page("/", "<meta charset=punycode>-" + "abc" * 100, kind)
        web = web_of([f"site.test:{server.port}"], Names(site_test=[PUBLIC]).resolve)
        text = await fetch(web, f"http://site.test:{server.port}")
    assert text.endswith("-" + "abc" * 100)


@pytest.mark.parametrize(
    ("kind", "body", "headers", "reason"),
    [
        ("image/png", b"x", (), "is no text: image/png"),
        ("text/html", b"x" * (MAX_BYTES + 1), (), f"more than {MAX_BYTES} bytes"),
        ("text/html", b"\x1f\x8b", ("Content-Encoding: gzip",), "is compressed"),
    ],
)
async def test_what_is_no_text_or_too_large_is_refused(
    kind: str, body: bytes, headers: tuple[str, ...], reason: str
) -> None:
    async with web_server() as server:
        server.page("/", body, kind, *headers)
        web = web_of([f"site.test:{server.port}"], Names(site_test=[PUBLIC]).resolve)
        with pytest.raises(FetchRefused, match=reason):
            await fetch(web, f"http://site.test:{server.port}/")


async def test_a_server_that_never_answers_is_given_up() -> None:
    async with web_server() as server:
        server.pages["/"] = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n"  # and never the rest
        server.stuck.add("/")
        web = web_of([f"site.test:{server.port}"], Names(site_test=[PUBLIC]).resolve)
        with pytest.raises(FetchRefused, match="did not answer within"):
            await web.get(f"http://site.test:{server.port}/", max_secs=0.3)


# -- what may be reached ----------------------------------------------------------------
@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "localhost.",
        "LOCALHOST",
    ],
)
async def test_no_spelling_of_this_machine_is_reached(host: str) -> None:
    async with web_server() as server:
        server.page("/", "secret", "text/plain")
        web = PublicWeb([f"*:{server.port}"])
        with pytest.raises(FetchRefused, match=r"private network|not one of the hosts|can't be resolved"):
            await web.get(f"http://{host}:{server.port}/")
    assert server.asked == []


async def test_a_name_that_resolves_to_this_machine_is_not_reached() -> None:
    async with web_server() as server:
        server.page("/", "secret", "text/plain")
        web = PublicWeb([f"evil.test:{server.port}"], Names(evil_test=[PUBLIC]).resolve)
        with pytest.raises(FetchRefused, match="private network"):
            await web.get(f"http://evil.test:{server.port}/")
    assert server.asked == []


async def test_a_redirect_into_a_private_network_is_not_followed() -> None:
    async with web_server() as server, web_server(PRIVATE, server.port) as private:
        names = Names(site_test=[PUBLIC], inner_test=[PRIVATE])
        server.redirect("/", f"http://inner.test:{server.port}/secret")
        private.page("/secret", "secret", "text/plain")
        web = web_of([f"*:{server.port}"], names.resolve)
        with pytest.raises(FetchRefused, match="private network"):
            await web.get(f"http://site.test:{server.port}/")
    assert (server.asked, private.asked) == (["/"], [])


async def test_a_redirect_to_a_host_that_is_not_listed_is_not_followed() -> None:
    async with web_server() as server:
        names = Names(site_test=[PUBLIC], other_test=[PUBLIC])
        server.redirect("/", f"http://other.test:{server.port}/page")
        web = web_of([f"site.test:{server.port}"], names.resolve)
        with pytest.raises(FetchRefused, match="not one of the hosts"):
            await web.get(f"http://site.test:{server.port}/")
    assert server.asked == ["/"]
    assert names.asked == ["site.test"]


async def test_redirects_end() -> None:
    async with web_server() as server:
        server.redirect("/", "/")
        web = web_of([f"site.test:{server.port}"], Names(site_test=[PUBLIC]).resolve)
        with pytest.raises(FetchRefused, match="redirects"):
            await web.get(f"http://site.test:{server.port}/")
    assert len(server.asked) == 6


async def test_a_name_is_resolved_once_so_that_rebinding_it_changes_nothing() -> None:
    async with web_server() as server, web_server(PRIVATE, server.port) as private:
        names = Names(site_test=[PUBLIC, PRIVATE])
        server.page("/", "public", "text/plain")
        private.page("/", "secret", "text/plain")
        web = web_of([f"site.test:{server.port}"], names.resolve)
        page = await web.get(f"http://site.test:{server.port}/")
    assert (page.body, names.asked, private.asked) == (b"public", ["site.test"], [])


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.1",
        "172.16.3.4",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fc00::1",
        "fec0::1",
        "ff02::1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "2002:7f00:1::",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "198.18.0.1",
        "192.0.0.8",
        "192.0.0.192",
        "192.88.99.1",
        "240.0.0.1",
        "203.0.113.1",
        "168.63.129.16",
        "::ffff:168.63.129.16",
        "::127.0.0.1",
        "::8.8.8.8",
        "::ffff:0:127.0.0.1",
        "::ffff:0:8.8.8.8",
        "64:ff9b:1::a00:1",
        "64:ff9b:1::808:808",
        "100::1",
        "100:0:0:1::1",
        "2001:20::1",
        "2001:db8::1",
        "2606:2800:220:1:0:5efe:10.0.0.1",
        "3fff::1",
        "4000::1",
        "5f00::1",
        "fd00:ec2::254",
    ],
)
def test_addresses_of_private_networks_are_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_others_are(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://site.test/",
        "//site.test/",
        "site.test",
        "http://",
        "http://site.test:99999/",
        "http://site.test@other.test/",
        "http://user:secret@site.test/",
        "http://site.test:8080/",
        "http://a.site.test/",
        "http://site.test.evil/",
        "http://evil-site.test/",
        "http://site.test\\@other.test/",
        "http://site.test/\r\nX: y",
    ],
)
async def test_only_listed_hosts_on_the_usual_ports_can_be_asked_for(url: str) -> None:
    names = Names()
    with pytest.raises(FetchRefused):
        await web_of(["site.test"], names.resolve).get(url)
    assert names.asked == []


# -- the setting ------------------------------------------------------------------------
def test_the_hosts_are_read_strictly() -> None:
    read = read_web_hosts("docs.Python.org, *.example.org:8080,")
    assert read == ("docs.python.org", "*.example.org:8080")
    assert read_web_hosts("") == ()
    for wrong in ("https://example.org", "exa mple.org", "example.org/path", "a*.org"):
        with pytest.raises(ImproperlyConfigured, match="HERMES_WEB_FETCH"):
            read_web_hosts(wrong)
