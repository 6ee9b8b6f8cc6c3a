"""The report: one page that loads nothing, in which hostile text is text; a browser shows and sorts it."""

from __future__ import annotations

import hashlib
import re
import resource
import struct
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from msmqwire import __version__, mqqb
from msmqwire.insight import Summary
from msmqwire.insight.findings import Finding
from msmqwire.insight.report import REPORT_SECTIONS, page
from msmqwire.mqqb.message.classes import MEANINGS
from msmqwire.wire.codes import FAULTS
from tests.cli.support import msmqwire, run
from tests.effort import first_of
from tests.insight.captures import EXAMPLES, FIRST, SECOND, WRITER, datagram, message, stream, write
from tests.insight.test_detect import DOTNET
from tests.notification.sent import captured_packets
from tests.system_programs import require_program

ATTACK = "</td><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


class Page(HTMLParser):
    """The elements of a page, its text, and the elements that are open."""

    VOID = frozenset({"meta", "link", "img", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, Any]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["script"]:
            self.text += data


def report(path: Path, *captures: Path, **environment: str) -> str:
    assert run("report", *captures, "-q", "--expect", "10.20.0.0/16", "-o", path)[0] in (0, 2)
    return path.read_text("utf-8")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    queue = f"OS:host\\{ATTACK}"
    return write(
        tmp_path / f"{'x' * 9}.pcap", stream([message(FIRST, queue, number, body=DOTNET) for number in (1, 2)])
    )


def test_problems_and_acknowledgments_have_their_meaning(tmp_path: Path) -> None:
    rejected = message(FIRST, "OS:host\\admin", message_class=0x8003)
    text = Page(report(tmp_path / "page.html", write(tmp_path / "x.pcap", stream([rejected])), *EXAMPLES)).text
    assert MEANINGS["nack_q_exceed_quota"] in text
    assert FAULTS["bad_count"] in text


def test_the_page_is_complete_and_loads_nothing(tmp_path: Path) -> None:
    page = Page(report(tmp_path / "report.html", *EXAMPLES))
    assert not page.open
    assert not {tag for tag, _ in page.tags} & {"link", "img", "iframe", "object", "base"}
    for _, attributes in page.tags:
        assert not {name for name in attributes if name.startswith("on") or name in ("src", "style")}
        assert (attributes.get("href") or "#").startswith("#")
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    targets = [attributes["href"][1:] for tag, attributes in page.tags if tag == "a"]
    assert set(targets) <= set(ids)
    assert "10.20.1.10" in page.text
    assert "unexpected-directory-server" in page.text
    assert FAULTS["bad_count"] in page.text
    assert "other-site.pcapng 11" in page.text
    headers = [attributes for tag, attributes in page.tags if tag == "th"]
    assert headers
    assert all(attributes["scope"] == "col" for attributes in headers)


def test_hosts_and_minutes_have_their_frames(tmp_path: Path) -> None:
    text = report(tmp_path / "report.html", EXAMPLES[1])
    traffic = text[text.index('id="traffic"') : text.index('id="timeline"')]
    timeline = text[text.index('id="timeline"') : text.index('id="hosts"')]
    assert "<td>message-session.pcap 2 7 9 14 15</td>" in traffic
    assert "<td>message-session.pcap 1 2 6 7 8 9 16</td>" in timeline
    assert "<td>first_message</td>" in timeline


def test_flags_are_words(tmp_path: Path) -> None:
    body = b"\1\1" + WRITER["notification_update"](2, struct.pack("<2I", 1403, 1404), b"\1\1")
    path = write(tmp_path / "x.pcap", stream([WRITER["user_message"](FIRST, SECOND, 3, 1, 0, body)]))
    text = report(tmp_path / "report.html", path)
    changes = text[text.index('id="notifications"') : text.index('id="problems"')]
    assert "<td>yes</td>" in changes
    assert "<td>no</td>" not in changes


@pytest.mark.parametrize("size", [300, 301])
def test_long_texts_end_with_an_ellipsis(size: int, tmp_path: Path) -> None:
    name = "DIRECT=OS:host\\" + "q" * (size - 15)
    path = write(tmp_path / "x.pcap", stream([message(FIRST, name.removeprefix("DIRECT="))]))
    cells = re.findall(r"<td>(DIRECT=OS:host[^<]*)</td>", report(tmp_path / "report.html", path))
    assert set(cells) == {name if size == 300 else f"{name[:300]}…"}


def test_ports_and_numbers_are_shown(tmp_path: Path) -> None:
    path = write(tmp_path / "x.pcap", stream([message(FIRST, number=4711)] * 2, port=41234))
    page = report(tmp_path / "report.html", path)
    sessions = page[page.index('id="sessions"') : page.index('id="repeated"')]
    assert "<td>41234</td>" in sessions
    assert "<td>1801</td>" in sessions
    assert "<td>4711</td>" in page[page.index('id="repeated"') : page.index('id="discovery"')]


def test_the_page_says_how_it_was_made_and_of_what(tmp_path: Path) -> None:
    path = write(tmp_path / "x.pcap", stream([message()]))
    text = Page(report(tmp_path / "report.html", path)).text
    assert f"msmqwire {__version__}, 20" in text
    data = path.read_bytes()
    assert f"{path}: {len(data):,} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}" in text


def test_the_page_has_the_counts_and_the_texts_of_messages(tmp_path: Path) -> None:
    order = mqqb.UserMessage(
        destination_queue="DIRECT=OS:server\\private$\\orders",
        label="Order 7",
        body="<order/>".encode("utf-16-le"),
        body_type=8,
    )
    frames = stream([mqqb.encode(order)])
    path = write(tmp_path / "x.pcap", [*frames, b"\0" * 60])
    text = report(tmp_path / "report.html", path)
    section = text[text.index('<h2 id="messages">') : text.index('<h2 id="hosts">')]
    assert "<td>Order 7</td><td>&lt;order/&gt;</td>" in section
    *_, counts = run("report", path, "-o", tmp_path / "again.html")
    assert f"<li>{counts.splitlines()[0]}</li>" in text[text.index('<h2 id="reading">') :]


def test_payloads_with_faults_are_counted(tmp_path: Path) -> None:
    status, _, said = run("report", *EXAMPLES, "-o", tmp_path / "report.html")
    line = "3 payloads with faults: bad_count 1, bad_flag 1, truncated 1"
    assert (status, line in said.splitlines()) == (2, True)
    assert f"<li>{line}</li>" in (tmp_path / "report.html").read_text("utf-8")


def test_other_files_of_a_folder_are_named_once_and_have_no_digest(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    path = write(folder / "x.pcap", stream([message()]))
    (folder / "note.txt").write_bytes(b"dear all")
    status, _, said = run("report", folder, "-o", tmp_path / "report.html")
    assert (status, said.count("note.txt")) == (2, 1)
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "note.txt" not in text
    assert text.count(f"{path}: ") == 1


def test_a_pipe_has_no_digest(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    data = EXAMPLES[0].read_bytes()
    assert msmqwire("report", "-", "-q", "-o", path, input=data).returncode in (0, 2)
    assert "-: size and SHA-256 are not computed" in path.read_text("utf-8")


def test_the_worst_findings_come_first(tmp_path: Path) -> None:
    frames = [datagram(WRITER["PRINTED_REQUEST"]), *stream([WRITER["user_message"](FIRST, SECOND, 3, 1, 0, b"\1\xff")])]
    text = report(tmp_path / "report.html", write(tmp_path / "x.pcap", frames))
    assert "2 packets, 2 hosts, 1 queue, 1 payload with a fault, 2 findings (1 high); 2024-03-04 08:00:00 UTC" in text
    assert text.index("refused-notification") < text.index("discovery-probe")
    assert '<td class="time">2024-03-04 08:00:00</td>' in text


def test_hostile_text_is_text(tmp_path: Path, hostile: Path) -> None:
    page = Page(report(tmp_path / "report.html", hostile))
    assert [attributes.get("id") for tag, attributes in page.tags if tag == "script"] == ["charts", None, None]
    assert not any(tag == "img" for tag, _ in page.tags)
    assert ATTACK in page.text


def test_nothing_in_a_capture(tmp_path: Path) -> None:
    page = Page(report(tmp_path / "report.html", write(tmp_path / "empty.pcap", [])))
    assert not page.open
    assert "None." in page.text


def browse_with_console(page: Path, *options: str) -> tuple[str, list[str]]:
    """What the browser makes of a page, and the lines of its console."""
    chromium = require_program("chromium")
    profile = page.parent / "profile"
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", *options]
    command += ["--virtual-time-budget=5000", "--enable-logging=stderr"]
    # A browser reserves more addresses than `make mutants` allows
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    command = ["prlimit", f"--as={'unlimited' if most == resource.RLIM_INFINITY else most}:", *command]
    done = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def browse(page: Path, *options: str) -> str:
    """What the browser makes of a page."""
    return browse_with_console(page, *options)[0]


def with_script(text: str, script: str, *, policy: bool = False) -> str:
    """A page with a script of a test at its end, and without its policy, which refuses it as it does others."""
    page, _, end = text.rpartition("</body>")
    page = page if policy else re.sub(r"<meta http-equiv[^>]*>", "", page)
    return f"{page}<script>{script}</script></body>{end}"


def test_a_browser_draws_the_charts_and_shows_text_as_text(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    queue, end = f"OS:host\\{ATTACK}", "OS:host\\</script><script>document.title='owned'</script><!--<script>"
    packets = [message(FIRST, queue, 1, body=DOTNET), message(FIRST, end, 2, label=f"{ATTACK}\r\n{end}")]
    text = report(path, write(tmp_path / "x.pcap", stream(packets)))
    seen, console = browse_with_console(path, "--dump-dom")
    # The policy has refused nothing
    assert console == []
    assert "<title>MSMQ report</title>" in seen
    assert len(re.findall("<script[ >]", re.sub("<script>.*?</script>", "<script>", seen, flags=re.DOTALL))) == 3
    drawings = re.findall(r'id="chart-(\w+)".*?(<svg.*?</svg>)', seen, flags=re.DOTALL)
    assert [name for name, _ in drawings] == ["activity", "hosts", "queues"]
    drawn = {name: Page(svg) for name, svg in drawings}
    assert "192.0.2.7 → 10.20.1.25" in drawn["activity"].text
    assert all(text in drawn["hosts"].text for text in ("192.0.2.7", "10.20.1.25", "queue manager"))
    assert ATTACK in drawn["queues"].text
    assert end in drawn["queues"].text
    path.write_text(with_script(text, "document.title = 'other'", policy=True), "utf-8")
    seen, console = browse_with_console(path, "--dump-dom")
    assert "<title>MSMQ report</title>" in seen
    assert any("Content Security Policy" in line for line in console)


@pytest.mark.parametrize(
    "mark", ["#chart-activity .role-mark path[fill='var(--finding)']", "#chart-hosts path[fill='var(--medium)']"]
)
def test_a_click_on_a_finding_leads_to_its_messages(mark: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    packets = [message(FIRST, number=number, body=DOTNET if number in (2, 4) else b"<a/>") for number in range(1, 6)]
    text = report(path, write(tmp_path / "x.pcap", stream(packets)))
    assert re.findall(r'<tr id="message-(\d)" data-findings="1">', text) == ["2", "4"]
    click = (
        f"setTimeout(() => document.querySelector({mark!r})"
        ".dispatchEvent(new MouseEvent('click', {bubbles: true})), 2000)"
    )
    path.write_text(with_script(text, click), "utf-8")
    seen = browse(path, "--dump-dom")
    assert re.findall(r'<tr id="message-(\d)" data-findings="1" class="of-finding">', seen) == ["2", "4"]


def test_a_browser_sorts_tables(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    text = report(path, *EXAMPLES)
    click = "document.querySelector('section[aria-labelledby=hosts] th button').click()"
    path.write_text(with_script(text, click), "utf-8")
    seen = browse(path, "--dump-dom")
    hosts = seen[seen.index('id="hosts"') : seen.index('id="connections"')]
    addresses = re.findall(r"<tr><td>([^<]*)</td>", hosts)
    assert addresses == sorted(addresses)
    assert 'aria-sort="ascending"' in hosts
    path.write_text(with_script(text, click, policy=True), "utf-8")
    assert "aria-sort=" not in re.sub(r"<(style|script)>.*?</\1>", "", browse(path, "--dump-dom"), flags=re.DOTALL)


@pytest.mark.long
@pytest.mark.parametrize("width", [390, 500])
def test_a_narrow_browser_scrolls_tables_alone(width: int, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    text = report(path, *EXAMPLES)  # its lines have SHA-256
    # After the charts are drawn
    measure = "setTimeout(() => { document.title = document.documentElement.scrollWidth - innerWidth; }, 2000)"
    path.write_text(with_script(text, measure), "utf-8")
    over = re.search("<title>(.*?)</title>", browse(path, "--dump-dom", f"--window-size={width},900"))
    assert over is not None
    assert int(over[1]) <= 0


@pytest.mark.long
@pytest.mark.parametrize(("clicks", "order"), [(1, ["high", "medium", "low"]), (2, ["low", "medium", "high"])])
def test_a_browser_sorts_by_severity(clicks: int, order: list[str], tmp_path: Path) -> None:
    seen = dict.fromkeys(("first_seen", "last_seen"))
    findings = [Finding("rule", severity, "", None, [], dict(seen), "") for severity in ("low", "high", "medium")]
    click = "document.querySelector('section[aria-labelledby=findings] th button').click();" * clicks
    text = with_script(page(Summary(sections=REPORT_SECTIONS), findings, []), click)
    path = tmp_path / "report.html"
    path.write_text(text, "utf-8")
    assert re.findall(r"<tr[^>]*><td[^>]*>(high|medium|low)</td>", browse(path, "--dump-dom")) == order


@pytest.mark.long
def test_screenshots_in_light_and_dark(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    report(path, *EXAMPLES)
    images = []
    for name, options in (("light", ()), ("dark", ("--blink-settings=preferredColorScheme=0",))):
        image = tmp_path / f"{name}.png"
        browse(path, f"--screenshot={image}", "--window-size=1200,2000", *options)
        images.append(image.read_bytes())
    assert images[0] != images[1]
    # A blank page of this size takes a tenth of it
    assert min(map(len, images)) > 60_000


WITHOUT_PANDAS = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name=name)

sys.meta_path.insert(0, Absent())
from msmqwire.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("command", first_of(["report", "summary", "detect"]))
def test_pandas_is_not_needed(command: str, tmp_path: Path) -> None:
    """Without it Arrow makes no Python values of times in nanoseconds."""
    output = tmp_path / "out.json"
    nanoseconds = tmp_path / "nanoseconds.pcap"
    nanoseconds.write_bytes(captured_packets([message()]))
    arguments: list[str | Path] = [
        sys.executable,
        "-c",
        WITHOUT_PANDAS,
        command,
        "-q",
        "-o",
        output,
        nanoseconds,
        *EXAMPLES,
    ]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert (done.returncode in (0, 2), done.stderr) == (True, "")
    assert output.exists()
