"""Pages of the public internet are fetched from where they were looked up, and nothing else can be reached."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import example, given
from hypothesis import strategies as st
from yarl import URL

from harness_core import HITL, HITLDecision
from harness_core.errors import ToolFailed
from harness_core.events import HITLPending, Inspected, ToolCallEnd
from harness_core.permissions.rule import PermissionRule
from harness_core.ports import ToolContext
from harness_core.testing import FakeClock, ScriptedModel, call
from harness_core.tools import BUILTIN, html_text, http_get
from harness_core.tools import web as web_module
from harness_core.tools.addresses import not_public
from harness_core.tools.html_text import readable
from harness_core.tools.http_get import USER_AGENT, WEB_BYTES
from harness_core.tools.spec import FunctionTool
from harness_core.tools.web import LOOKUP_SECONDS, WEB_CHARS, web_tool
from harness_core.tools.web_text import media_type, text_of
from harness_core.types import NO_OUTPUT, Deadline, ToolResult
from tests.conftest import PATIENCE
from tests.engine.harness import Bench, only, request

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Site:
    """A web server of the test's own, and what it was asked."""

    def __init__(self) -> None:
        self.pages: dict[str, Answer] = {}
        self.asked: list[web.Request] = []
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self.server = TestServer(app)

    async def _answer(self, asked: web.Request) -> web.StreamResponse:
        self.asked.append(asked)
        return await self.pages[asked.path](asked)

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.server.port}{path}"

    def says(self, text: str | bytes, kind: str = "text/plain", path: str = "/", **more: Any) -> str:
        """Put a page there, and return its address."""
        body = text.encode() if isinstance(text, str) else text
        headers = {"Content-Type": kind, **more.pop("headers", {})}

        async def page(asked: web.Request) -> web.StreamResponse:
            return web.Response(body=body, headers=headers, **more)

        self.pages[path] = page
        return self.url(path)

    def redirects(self, to: str, path: str = "/", status: int = 302) -> str:
        return self.says("", path=path, status=status, headers={"Location": to, "Set-Cookie": "c=1"})


class Names:
    """A resolver that knows what the test says, and counts."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = list(addresses)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        if not self.addresses:
            raise OSError("no such name")
        return self.addresses


@pytest.fixture(autouse=True)
def html_takes_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that makes text of HTML takes as long as this machine needs to begin it."""
    monkeypatch.setattr(web_module, "HTML_SECONDS", PATIENCE)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    await site.server.start_server()
    yield site
    await site.server.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def context(tmp_path: Path, clock: FakeClock) -> ToolContext:
    return ToolContext("s", "c", tmp_path, Deadline(clock.monotonic() + 60), clock)


HERE = web_tool(allow_private=True)


async def fetched(url: str, context: ToolContext, tool: FunctionTool = HERE) -> str:
    result = await tool.run({"url": url}, context)
    assert result.outcome == "ok", result.content
    return result.content


async def refused(url: str, context: ToolContext, tool: FunctionTool = HERE) -> str:
    result = await tool.run({"url": url}, context)
    assert result.outcome == "error", result.content
    return result.content


# -- pages become text -------------------------------------------------------------------------------------------------

PAGE = """<!doctype html><html><head><title>The title</title><style>p { }</style></head><body>
<nav>menu</nav><main><h1>Head</h1><p>Some <b>bold</b> text, a <a href="/next?a=1&amp;b=2">link</a>.</p>
<script>alert(1)</script><ul><li>one<li>two</ul><img src="data:image/png;base64,AAAA" alt="a cat">
<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table></main></body></html>"""


async def test_a_page_comes_as_markdown_with_where_it_is_from(site: Site, context: ToolContext):
    url = site.says(PAGE, "text/html; charset=utf-8")

    content = await fetched(url, context)

    head, foreign, *text = content.split("\n")
    assert head == url
    assert foreign.startswith("HTTP 200, text/html, ")
    assert "Others wrote it" in text[0]
    assert "\n".join(text[2:]).startswith("# The title\n\n# Head\n\nSome **bold** text, a [link](/next?a=1&b=2).")
    assert "| 1 | 2 |" in content
    assert "a cat" in content
    assert not any(word in content for word in ("alert", "menu", "p { }", "base64"))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("application/json", '{"a": "é"}'),
        ("application/vnd.api+json", "[1]"),
        ("application/rss+xml", "<rss/>"),
        ("TEXT/CSV; header=present", "a,b"),
        ("", "no type"),
    ],
)
async def test_other_text_comes_as_it_is(kind: str, text: str, site: Site, context: ToolContext):
    assert (await fetched(site.says(text, kind), context)).endswith(f"\n\n{text}")


async def test_a_failure_of_the_server_is_an_error_with_its_text(site: Site, context: ToolContext):
    content = await refused(site.says("no such page", status=404), context)

    assert "HTTP 404" in content
    assert content.endswith("no such page")


async def test_an_empty_page_says_so(site: Site, context: ToolContext):
    assert (await fetched(site.says(""), context)).endswith(NO_OUTPUT)


@pytest.mark.parametrize(
    ("body", "header"),
    [
        ("Grüße €".encode(), "text/plain; charset=utf-8"),
        ("Grüße €".encode(), "text/plain"),
        ("Grüße €".encode("utf-8-sig"), "text/plain; charset=iso-8859-1"),
        ("Grüße €".encode("utf-16"), "text/plain"),
        ("Grüße €".encode("utf-16-le"), "text/plain; charset=UTF-16LE"),
        ("Grüße €".encode("cp1252"), 'text/plain; charset="windows-1252"'),
        ("Grüße €".encode("cp1252"), "text/plain; charset=latin1"),
        ("Grüße €".encode("cp1252"), "text/plain"),
        ("Grüße €".encode("cp1252"), "text/plain; charset=no-such"),
        ("Grüße €".encode("cp1252"), "text/plain; charset=punycode"),
        ("<meta charset=koi8-r>Grüße €".replace("ü", "ю").encode("koi8-r", "ignore"), "text/html"),
        ('<meta content="text/html; charset=gbk">Grü 中'.encode("gbk"), "text/html"),
    ],
)
def test_text_is_read_in_its_encoding(body: bytes, header: str):
    text = text_of(body, *media_type(header))

    assert "Grü" in text or "Grюe" in text
    assert text.endswith(("€", "中", "e "))


def test_a_body_that_was_cut_within_a_character_is_still_utf_8():
    assert text_of("aé".encode()[:-1], "text/plain", "", whole=False) == "a"


@pytest.mark.parametrize("kind", ["image/png", "application/pdf", "application/octet-stream", "video/mp4"])
async def test_what_is_no_text_is_an_error(kind: str, site: Site, context: ToolContext):
    assert f"It is {kind}" in await refused(site.says("abc", kind), context)


@pytest.mark.parametrize("kind", ["text/html", "text/plain; charset=utf-8", "application/json", ""])
async def test_what_says_that_it_is_text_and_is_none_is_an_error(kind: str, site: Site, context: ToolContext):
    assert "is no text" in await refused(site.says(bytes(range(256)) * 4, kind), context)


@given(st.binary(max_size=80), st.text(max_size=40))
def test_any_bytes_of_any_type_are_text_or_refused(body: bytes, header: str):
    kind, charset = media_type(header)
    try:
        text = text_of(body, kind, charset)
    except ToolFailed:
        return
    assert "\0" not in text


@pytest.mark.parametrize("deep", ["<div>", "<ul><li>", "<blockquote>", "<table><tr><td>", "<b>"])
def test_a_page_that_nests_deeper_than_the_stack_still_gives_its_text(deep: str):
    assert readable("first" + deep * 2_000 + "last").split() == ["first", "last"]


@given(st.text("<>ab/='\"!-[]? \n&#;", max_size=60))
@example("before<![;after")
def test_any_markup_gives_text(html: str):
    assert isinstance(readable(html), str)


# -- bounds ------------------------------------------------------------------------------------------------------------


async def test_only_the_beginning_of_an_endless_page_is_read(site: Site, context: ToolContext):
    stopped = asyncio.Event()

    async def endless(asked: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(asked)
        try:
            while True:
                await response.write(b"line\n" * 20_000)
        finally:
            stopped.set()

    site.pages["/"] = endless

    content = await fetched(site.url(), context)

    assert f"only the first {WEB_BYTES:,} were read" in content
    assert len(content) < WEB_CHARS + 500
    await asyncio.wait_for(stopped.wait(), PATIENCE)


@pytest.mark.parametrize("packed", [gzip.compress, zlib.compress])
async def test_a_packed_page_is_unpacked_and_a_bomb_has_an_end(packed: Any, site: Site, context: ToolContext):
    encoding = {"Content-Encoding": "gzip" if packed is gzip.compress else "deflate"}
    assert (await fetched(site.says(packed(b"hello"), headers=encoding), context)).endswith("\nhello")

    bomb = packed(b"a" * 50_000_000)
    assert len(bomb) < 100_000
    content = await fetched(site.says(bomb, headers=encoding), context)

    assert f"only the first {WEB_BYTES:,} were read" in content
    assert len(content) < WEB_CHARS + 500


@pytest.mark.parametrize(("encoding", "why"), [("br", "packed its answer as br"), ("gzip", "Error -3")])
async def test_what_cannot_be_unpacked_is_an_error(encoding: str, why: str, site: Site, context: ToolContext):
    assert why in await refused(site.says(b"zzzz", headers={"Content-Encoding": encoding}), context)


async def test_a_server_that_never_answers_is_left_when_time_is_up(site: Site, context: ToolContext):
    async def hang(asked: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    site.pages["/"] = hang
    soon = ToolContext("s", "c", context.workspace, Deadline(context.clock.monotonic() + 0.2), context.clock)

    assert await refused(site.url(), soon) == "127.0.0.1 did not answer in full within 0.2 seconds."


async def test_a_page_that_breaks_off_and_a_server_that_is_not_there_are_errors(site: Site, context: ToolContext):
    async def broken(asked: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain", "Content-Length": "100"})
        await response.prepare(asked)
        await response.write(b"half")
        asked.transport.close()  # type: ignore[union-attr]
        return response

    site.pages["/"] = broken
    url = site.url()
    assert "could not be fetched: ClientPayloadError" in await refused(url, context)
    await site.server.close()
    assert "could not be fetched: ClientConnectorError" in await refused(url, context)


class Children:
    """The processes that were started."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.all: list[asyncio.subprocess.Process] = []
        self._honest = asyncio.create_subprocess_exec

    async def start(self, *args: Any, **how: Any) -> asyncio.subprocess.Process:
        self.all.append(await self._honest(*args, **how))
        self.started.set()
        return self.all[-1]


@pytest.fixture
async def children(monkeypatch: pytest.MonkeyPatch) -> Children:
    noted = Children()
    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted.start)
    return noted


ENDLESS_HTML = "<a " * 600_000  # the parser goes through all that follows again at each of them


async def test_html_that_keeps_the_parser_busy_is_given_up(
    site: Site, context: ToolContext, monkeypatch: pytest.MonkeyPatch, children: Children
):
    monkeypatch.setattr(web_module, "HTML_SECONDS", 0.5)

    content = await refused(site.says(ENDLESS_HTML, "text/html"), context)

    assert content == "The page was fetched, but no text could be made of its HTML in time."
    assert [child.returncode for child in children.all] == [-9]


async def test_a_cancelled_fetch_leaves_nothing_behind(site: Site, context: ToolContext, children: Children):
    task = asyncio.create_task(HERE.run({"url": site.says(ENDLESS_HTML, "text/html")}, context))
    await children.started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [child.returncode for child in children.all] == [-9]


async def test_html_that_breaks_the_converter_is_an_error(
    site: Site, context: ToolContext, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(web_module, "_HTML_TEXT", Path(html_text.__file__).with_name("no_such.py"))

    content = await refused(site.says(PAGE, "text/html"), context)

    assert content == "The page was fetched, but no text could be made of its HTML."


# -- redirects ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("to", "where"),
    [
        ("/there", "http://127.0.0.1:{port}/there"),
        ("there?a=1", "http://127.0.0.1:{port}/there?a=1"),
        ("http://127.0.0.1:{port}/there", ""),
        ("http://127.0.0.2:{port}/there", ""),
        ("http://localhost:{port}/there", ""),
        ("http://127.0.0.1:1/there", ""),
        ("https://127.0.0.1:{port}/there", ""),
        ("http://169.254.169.254/latest/meta-data", ""),
        ("http://user:secret@127.0.0.1:{port}/there", ""),
        ("//example.com/x", "http://example.com/x"),
        ("file:///etc/passwd", ""),
        ("http://[::1/", ""),
    ],
)
@pytest.mark.parametrize("status", [301, 307])
async def test_a_redirect_is_told_and_not_followed(to: str, where: str, status: int, site: Site, context: ToolContext):
    site.says("arrived", path="/there")
    to, where = (text.format(port=site.server.port) for text in (to, where))

    content = await fetched(site.redirects(to, status=status), context)

    assert f"redirects to {where or to} (HTTP {status})" in content
    assert "call webfetch with that address" in content
    assert [asked.path for asked in site.asked] == ["/"]


# -- nobody is told who asks -------------------------------------------------------------------------------------------


async def test_no_cookie_no_credentials_and_no_proxy(
    site: Site, context: ToolContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    await fetched(site.says("arrived"), context)
    await fetched(site.redirects("/there"), context)  # which sets a cookie
    await fetched(site.says("arrived"), context)

    assert len(site.asked) == 3
    for asked in site.asked:
        assert asked.method == "GET"
        assert set(asked.headers) == {"Host", "User-Agent", "Accept", "Accept-Encoding", "Connection"} & set(
            asked.headers
        )
        assert asked.headers["User-Agent"] == USER_AGENT


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "ftp://example.com/",
        "file:///etc/passwd",
        "http://",
        "http:///x",
        "http://me@example.com/",
        "http://me:secret@example.com/",
        "http://:@example.com/",
        "http://example.com\\@127.0.0.1/",
        "http://example.com/a b",
        "http://example.com/\n",
        "http://example.com/\u202e",
        "http://exam\u200bple.com/",
        "http://ｅxample.com/",
        "http://example。com/",
        "http://exa%6dple.com/",
        "http://[fe80::1%25eth0]/",
        "http://2130706433/",
        "http://127.1/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.1/",
        "http://127.0.0.1./",
        "http://a.0x7f/",
        "http://example.com:0/",
        "http://example.com:99999/",
        "http://[::1/",
        "http://example.com/" + "a" * 2_000,
    ],
)
async def test_an_address_that_is_not_plain_is_refused(url: str, context: ToolContext):
    assert HERE.check({"url": url}).startswith("Wrong arguments. url: ")


@pytest.mark.parametrize(
    "url",
    ["https://example.com", "http://example.com:8080/a?b=c#d", "https://münchen.example/ä", "http://[2606:4700::1]/"],
)
def test_a_plain_address_is_taken_as_it_is_written(url: str):
    assert HERE.check({"url": url}) == ""
    assert HERE.subject({"url": url}) == url


@given(st.text(max_size=30) | st.text("htp:/@.[]%\\01x", max_size=30).map(lambda rest: "http://" + rest))
def test_any_text_is_an_address_or_told_why_not(url: str):
    assert isinstance(HERE.check({"url": url}), str)


# -- only the public internet ------------------------------------------------------------------------------------------

PUBLIC = ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700:4700::1111", "2a00:1450:4001::64"]
PRIVATE = [
    *("10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.0.1", "127.0.0.1", "127.8.8.8", "0.0.0.0", "0.1.2.3"),
    *("169.254.169.254", "100.64.0.1", "100.127.255.255", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255"),
    *("192.0.0.170", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "::", "::1", "fe80::1", "fe80::1%eth0"),
    *("fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1", "2001::1", "100::1", "64:ff9b:1::a00:1"),
    *("4000::1", "1::1", "e000::1", "3fff::1", "no address", "", "127.1", "2606:4700::1%eth0"),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_public_in_every_dress(address: str):
    assert not_public(address) == ""
    for dressed in dresses(address):
        assert not_public(dressed) == ""


@pytest.mark.parametrize("address", PRIVATE)
def test_other_addresses_are_not_public_in_any_dress(address: str):
    assert not_public(address)
    for dressed in dresses(address):
        assert not_public(dressed), dressed


def dresses(address: str) -> list[str]:
    """The IPv6 addresses that lead to an IPv4 one."""
    try:
        number = int(ipaddress.IPv4Address(address))
    except ValueError:
        return []
    carriers = ["::ffff:0:0", "::ffff:0:0:0", "64:ff9b::", "::"]
    carried = [int(ipaddress.IPv6Address(carrier)) + number for carrier in carriers]
    return [
        str(ipaddress.IPv6Address(one)) for one in (*carried, int(ipaddress.IPv6Address("2002::")) + (number << 80))
    ]


@given(st.ip_addresses())
def test_nothing_is_public_that_python_does_not_take_for_global(address: Any):
    carried = address.version == 6 and address in ipaddress.ip_network("2002::/16")
    if not not_public(str(address)) and not carried:
        assert address.is_global
        assert not address.is_multicast


@pytest.mark.parametrize("addresses", [["10.0.0.1"], ["93.184.216.34", "::ffff:127.0.0.1"], ["169.254.169.254"], []])
async def test_a_name_that_leads_into_a_network_of_somebodys_own_is_a_problem(
    addresses: list[str], site: Site, context: ToolContext
):
    tool = web_tool(resolve=Names(*addresses))
    url = site.url(host="inside.example")

    found = await tool.inspect({"url": url}, context)

    assert "leads to" in found.problem or "was not found" in found.problem
    assert found.addresses == ()
    assert await tool.run({"url": url}, context) == ToolResult(found.problem, "error")
    assert site.asked == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"])
async def test_this_machine_is_refused_by_the_tool_that_comes_with_the_harness(
    host: str, site: Site, context: ToolContext
):
    tool = BUILTIN["webfetch"]
    assert (await tool.inspect({"url": site.url(host=host)}, context)).problem
    assert (await tool.run({"url": site.url(host=host)}, context)).outcome == "error"
    assert site.asked == []


async def test_the_connection_goes_to_the_address_that_was_inspected_whatever_the_name_says_later(
    site: Site, context: ToolContext
):
    names = Names("127.0.0.1")
    tool = web_tool(allow_private=True, resolve=names)
    site.says("arrived")
    args = {"url": site.url(host="example.test")}
    found = await tool.inspect(args, context)
    names.addresses = ["127.0.0.9"]

    again = await tool.inspect(args, context)
    content = await fetched(args["url"], context, tool)

    assert found == again
    assert found.addresses == ("127.0.0.1",)
    assert content.endswith("arrived")
    assert names.asked == ["example.test"]
    assert site.asked[0].headers["Host"] == f"example.test:{site.server.port}"


async def test_another_call_and_a_late_one_look_anew(clock: FakeClock, context: ToolContext):
    names = Names("93.184.216.34")
    tool = web_tool(resolve=names)
    args = {"url": "http://example.test/"}
    assert (await tool.inspect(args, context)).addresses == ("93.184.216.34",)
    names.addresses = ["127.0.0.1"]  # the name was rebound

    other = ToolContext("s", "other", context.workspace, context.deadline, context.clock)
    assert "127.0.0.1 (this machine)" in (await tool.inspect(args, other)).problem
    assert (await tool.inspect(args, context)).problem == ""
    clock.advance(LOOKUP_SECONDS)
    assert "127.0.0.1 (this machine)" in await refused(args["url"], context, tool)


async def test_no_connection_is_made_to_an_address_that_was_not_looked_at(site: Site):
    site.says("arrived")
    for host in ("127.0.0.1", "other.test"):
        async with http_get.session_to(URL("http://example.test/"), ("127.0.0.2",)) as session:
            with pytest.raises(OSError, match="Cannot connect") as refusal:
                await http_get.get(session, URL(site.url(host=host)))
        assert "was not looked at" in repr(refusal.value.__cause__)
    assert site.asked == []


async def test_many_addresses_are_kept_sorted_and_few(context: ToolContext):
    tool = web_tool(resolve=Names(*(f"1.1.1.{n}" for n in range(40, 0, -1)), "1.1.1.1"))

    found = await tool.inspect({"url": "http://example.test/"}, context)

    assert found.addresses == tuple(sorted(f"1.1.1.{n}" for n in range(1, 41))[:16])


# -- in a run ----------------------------------------------------------------------------------------------------------


async def test_a_fetch_is_asked_about_and_goes_where_the_card_was_about(bench: Bench, site: Site):
    url = site.says("arrived")
    engine = bench.engine(ScriptedModel(call("webfetch", url=url), "done"), [web_tool(allow_private=True)])
    (task,) = only(await request(engine, "fetch it"), HITLPending).tasks
    assert site.asked == []

    await HITL.approve(await engine.session("s"), task, by="U1")
    events = await request(engine)

    assert only(events, ToolCallEnd).content.endswith("arrived")
    (seen,) = [e for e in await bench.store.read("s") if isinstance(e, Inspected)]
    assert seen.found.addresses == ("127.0.0.1",)


@pytest.mark.parametrize(
    ("to", "comes_to"),
    [
        ("/docs/b", "ok"),
        ("/admin", "asks"),
        ("/docs/secret", "denied"),
        ("http://localhost:{port}/docs/b", "asks"),
        ("http://127.0.0.9:{port}/docs/b", "denied"),
    ],
)
async def test_where_a_redirect_leads_is_a_call_of_its_own(bench: Bench, site: Site, to: str, comes_to: str):
    to = to.format(port=site.server.port)
    first = site.redirects(to, path="/docs/a")
    for path in ("/docs/b", "/docs/secret", "/admin"):
        site.says("arrived", path=path)
    rules = [
        PermissionRule.allow("webfetch", site.url("/docs/*")),
        PermissionRule.deny("webfetch", site.url("/docs/secret*")),
        PermissionRule.deny("webfetch", "127.0.0.9"),
    ]
    onward = str(URL(first).join(URL(to)))
    model = ScriptedModel(call("webfetch", url=first), call("webfetch", url=onward), "done")
    engine = bench.engine(model, [web_tool(allow_private=True)], rules=rules)

    events = await request(engine, "fetch it")

    assert [asked.path for asked in site.asked] == ["/docs/a", *(["/docs/b"] if comes_to == "ok" else [])]
    waiting = [task for event in events if isinstance(event, HITLPending) for task in event.tasks]
    assert [task.args["url"] for task in waiting] == ([onward] if comes_to == "asks" else [])
    assert all(f"contacts {URL(onward).host}" in task.comment for task in waiting)
    outcomes = [event.outcome for event in events if isinstance(event, ToolCallEnd)]
    assert outcomes == ["ok"] if comes_to == "asks" else outcomes == ["ok", comes_to]


async def test_a_private_address_is_refused_without_asking(bench: Bench, site: Site):
    engine = bench.engine(ScriptedModel(call("webfetch", url=site.url()), "done"), ["webfetch"])

    end = only(await request(engine, "fetch it"), ToolCallEnd)

    assert "127.0.0.1 (this machine)" in end.content
    assert site.asked == []


@pytest.mark.parametrize("pattern", [None, "example.test"])
async def test_no_name_is_looked_up_for_a_fetch_that_is_denied(bench: Bench, pattern: str | None):
    names, rules = Names("93.184.216.34"), [PermissionRule.deny("webfetch", pattern)]
    model = ScriptedModel(call("webfetch", url="https://what-was-read.example.test/"), "done")
    engine = bench.engine(model, [web_tool(resolve=names)], rules=rules)

    end = only(await request(engine, "fetch it"), ToolCallEnd)

    assert (end.outcome, names.asked) == ("denied", [])


async def test_a_name_that_leads_elsewhere_after_a_restart_is_not_fetched(bench: Bench, site: Site):
    names = Names("127.0.0.1")
    url = site.url(host="example.test")

    def engine() -> Any:
        model = ScriptedModel(call("webfetch", url=url), "done")
        return bench.engine(model, [web_tool(allow_private=True, resolve=names)])

    before = engine()
    (task,) = only(await request(before, "fetch it"), HITLPending).tasks
    await HITL.submit(await before.session("s"), task, HITLDecision.approve(), by="U1")
    await bench.drop()
    names.addresses = ["127.0.0.9"]

    end = only(await request(engine()), ToolCallEnd)

    assert end.outcome == "not_run"
    assert site.asked == []
