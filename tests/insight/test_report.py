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
from msmqwire.insight.report import page
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


@pytest.mark.parametrize(("apart", "every", "bars"), [(0, "minute", 1), (119, "minute", 2), (120, "2 minutes", 2)])
def test_the_timeline_has_a_bar_for_so_many_minutes(apart: int, every: str, bars: int, tmp_path: Path) -> None:
    pings = [datagram(WRITER["ping"](4, FIRST), to=3527)] * 2
    path = write(tmp_path / "x.pcap", pings, step=60_000_000_000 * apart)
    page = Page(report(tmp_path / "report.html", path))
    assert f"Packets of every {every}, at most {3 - bars}, from 2024-03-04 08:00 to " in page.text
    assert sum(tag == "rect" for tag, _ in page.tags) == bars
    assert f"2024-03-04 08:00: {3 - bars:,} packets" in page.text


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


def test_without_graphviz_there_is_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    page = Page(report(tmp_path / "report.html", *EXAMPLES))
    assert sum(tag == "svg" for tag, _ in page.tags) == 1
    assert "Packets from one host to another" in page.text


def test_hostile_text_is_text(tmp_path: Path, hostile: Path) -> None:
    page = Page(report(tmp_path / "report.html", hostile))
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    assert not any(tag == "img" for tag, _ in page.tags)
    assert ATTACK in page.text


def test_nothing_in_a_capture(tmp_path: Path) -> None:
    page = Page(report(tmp_path / "report.html", write(tmp_path / "empty.pcap", [])))
    assert not page.open
    assert "None." in page.text


def browse(page: Path, *options: str) -> str:
    """What the browser makes of a page."""
    chromium = require_program("chromium")
    profile = page.parent / "profile"
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", *options]
    # A browser reserves more addresses than `make mutants` allows
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    command = ["prlimit", f"--as={'unlimited' if most == resource.RLIM_INFINITY else most}:", *command]
    done = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_browser_shows_it_as_text(tmp_path: Path, hostile: Path) -> None:
    path = tmp_path / "report.html"
    report(path, hostile)
    seen = browse(path, "--dump-dom")
    assert "<title>MSMQ report</title>" in seen
    assert "owned&lt;" in seen or "owned'&lt;" in seen


def test_a_browser_sorts_tables(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    text = report(path, *EXAMPLES)
    # The policy of the page refuses scripts of a test as it does others
    click = "<script>document.querySelector('section[aria-labelledby=hosts] th button').click()</script>"
    path.write_text(re.sub(r"<meta http-equiv[^>]*>", "", text).replace("</body>", f"{click}</body>"), "utf-8")
    seen = browse(path, "--dump-dom")
    hosts = seen[seen.index('id="hosts"') : seen.index('id="queue_managers"')]
    addresses = re.findall(r"<tr><td>([^<]*)</td>", hosts)
    assert addresses == sorted(addresses)
    assert 'aria-sort="ascending"' in hosts
    refused = text.replace("</body>", f"{click}</body>")
    path.write_text(refused, "utf-8")
    assert "aria-sort=" not in re.sub(r"<(style|script)>.*?</\1>", "", browse(path, "--dump-dom"), flags=re.DOTALL)


@pytest.mark.long
def test_a_narrow_browser_scrolls_tables_alone(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    text = re.sub(r"<meta http-equiv[^>]*>", "", report(path, *EXAMPLES))  # its lines have SHA-256
    measure = "<script>document.title = document.documentElement.scrollWidth - innerWidth</script></body>"
    path.write_text(text.replace("</body>", measure), "utf-8")
    over = re.search("<title>(.*?)</title>", browse(path, "--dump-dom", "--window-size=500,900"))
    assert over is not None
    assert int(over[1]) <= 0


@pytest.mark.long
@pytest.mark.parametrize(("clicks", "order"), [(1, ["high", "medium", "low"]), (2, ["low", "medium", "high"])])
def test_a_browser_sorts_by_severity(clicks: int, order: list[str], tmp_path: Path) -> None:
    seen = dict.fromkeys(("first_seen", "last_seen"))
    findings = [Finding("rule", severity, "", None, [], dict(seen), "") for severity in ("low", "high", "medium")]
    click = "document.querySelector('section[aria-labelledby=findings] th button').click();" * clicks
    text = page(Summary(), findings, []).replace("</body>", f"<script>{click}</script></body>")
    path = tmp_path / "report.html"
    path.write_text(re.sub(r"<meta http-equiv[^>]*>", "", text), "utf-8")
    assert re.findall(r"<tr><td[^>]*>(high|medium|low)</td>", browse(path, "--dump-dom")) == order


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
