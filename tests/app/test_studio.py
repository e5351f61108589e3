"""The studio: what it may touch, who may talk to it, and its page in a real browser."""

import ast
import asyncio
import http.client
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import psutil
import pytest
import socketio
from tests import chromium
from typer.testing import CliRunner

import loopdyn as ld
from loopdyn.app import studio
from loopdyn.app.cli import app
from loopdyn.app.studio import MOST_PAGES, work
from loopdyn.app.studio.folder import MAX_TEXT, MODELS, RUNS, Folder
from loopdyn.app.studio.guard import refusal
from loopdyn.app.studio.worker import Worker
from loopdyn.errors import LoopdynError, ModelError
from loopdyn.io.yaml import load_text

HOSTILE = "<img src=x onerror=hacked=1>"
FOUR_BAR = (Path(studio.__file__).parent / "new.yaml").read_text("utf-8")
SWING = re.sub("(?s)forces:.*start", "start", FOUR_BAR)  # without motor and friction it swings for ever

# ------------------------------------------------------------------------------------------------------ the folder


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "secret.yaml").write_text("outside")
    inside = tmp_path / "here"
    (inside / "sub").mkdir(parents=True)
    (inside / "a.yaml").write_text("loopdyn: 1\n")
    (inside / "sub" / "b.yml").write_text("loopdyn: 1\n")
    (inside / ".hidden").mkdir()
    (inside / ".hidden" / "c.yaml").write_text("")
    return Folder(inside)


@pytest.mark.parametrize(
    "name",
    [
        "../secret.yaml",
        "sub/../../secret.yaml",
        "sub/../a.yaml",  # stays inside, but nobody needs it
        "/etc/passwd.yaml",
        "C:\\secret.yaml",
        "C:secret.yaml",
        "..\\secret.yaml",
        "\\\\server\\share\\x.yaml",
        "~/x.yaml",
        "a.txt",
        "a.yaml/",
        "",
        "  ",
        "a\0.yaml",
        "a\n.yaml",
        "x" * 5000 + ".yaml",
    ],
)
def test_names_that_lead_out_or_are_no_names_are_refused(folder, name):
    with pytest.raises(LoopdynError):
        folder.read(name)
    with pytest.raises(LoopdynError):
        folder.write(name, "loopdyn: 1")
    assert (folder.root.parent / "secret.yaml").read_text() == "outside"


def test_links_that_lead_out_are_refused_for_files_and_folders(folder):
    (folder.root / "link.yaml").symlink_to(folder.root.parent / "secret.yaml")
    (folder.root / "up").symlink_to(folder.root.parent)
    (folder.root / "circle.yaml").symlink_to(folder.root / "circle.yaml")
    for name in ("link.yaml", "up/secret.yaml", "up/new.yaml", "circle.yaml"):
        with pytest.raises(LoopdynError):
            folder.read(name)
        with pytest.raises(LoopdynError):
            folder.write(name, "loopdyn: 1")
    assert (folder.root.parent / "secret.yaml").read_text() == "outside"
    assert not (folder.root.parent / "new.yaml").exists()


def test_links_within_the_folder_are_followed(folder):
    (folder.root / "alias.yaml").symlink_to(folder.root / "sub" / "b.yml")
    folder.write("alias.yaml", "changed")
    assert (folder.root / "sub" / "b.yml").read_text() == "changed"


def test_files_are_listed_without_hidden_folders_and_without_following_links(folder):
    (folder.root / "up").symlink_to(folder.root.parent)
    assert folder.models() == ["a.yaml", "sub/b.yml"]


def test_files_that_are_too_large_or_no_text_are_refused(folder):
    (folder.root / "large.yaml").write_text("#" * (MAX_TEXT + 1))
    (folder.root / "huge.yaml").write_bytes(b"#" * (4 * MAX_TEXT + 1))
    (folder.root / "binary.yaml").write_bytes(bytes(range(256)))
    (folder.root / "folder.yaml").mkdir()
    os.mkfifo(folder.root / "pipe.yaml")
    for name in ("large", "huge", "binary", "folder", "pipe", "absent"):
        with pytest.raises(LoopdynError):
            folder.read(f"{name}.yaml")
    with pytest.raises(LoopdynError, match="no folder"):
        folder.write("absent/x.yaml", "")
    with pytest.raises(LoopdynError, match="ordinary"):
        folder.write("folder.yaml", "")
    assert folder.place("run.nc", RUNS) == folder.root / "run.nc"
    assert folder.place("sub/b.yml", MODELS).is_file()


def test_a_model_may_not_name_a_mesh_outside_the_folder(tmp_path):
    text = "loopdyn: 1\nbodies:\n  b:\n    mesh: {file: %s, density: 1000}\n"
    with pytest.raises(ModelError) as caught:
        load_text(text % "/etc/hostname", tmp_path / "m.yaml", within=tmp_path)
    (problem,) = caught.value.problems
    assert problem.line == 4
    assert "outside the folder" in problem.message
    inside = tmp_path / "part.stl"
    assert load_text(text % inside, tmp_path / "m.yaml", within=tmp_path).bodies["b"]


# ------------------------------------------------------------------------------------------------- who may talk


def headers(**given):
    return [(name.encode(), value.encode()) for name, value in given.items()]


@pytest.mark.parametrize("name", ["127.0.0.1:8765", "localhost:8765"])
def test_the_own_page_is_let_in(name):
    assert refusal(headers(host=name), 8765, websocket=False) == ""
    assert refusal(headers(host=name, origin=f"http://{name}"), 8765, websocket=False) == ""
    assert refusal(headers(host=name, origin=f"http://{name}"), 8765, websocket=True) == ""
    bare = name.removesuffix(":8765")  # as browsers write the port of HTTP itself
    assert refusal(headers(host=bare, origin=f"http://{bare}"), 80, websocket=True) == ""


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1", "127.0.0.1:80", "0.0.0.0:8765", ""])
def test_an_address_that_was_made_to_lead_here_is_refused(host):
    assert refusal(headers(host=host), 8765, websocket=False)
    assert refusal(headers(host=host, origin=f"http://{host}"), 8765, websocket=True)


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "https://127.0.0.1:8765",
        "http://127.0.0.1:8766",
        "http://127.0.0.1:8765.evil.example",
        "http://localhost:8765",  # another site than 127.0.0.1 to a browser
        "null",
        "",
    ],
)
def test_a_page_of_another_site_is_refused(origin):
    assert refusal(headers(host="127.0.0.1:8765", origin=origin), 8765, websocket=False)
    assert refusal(headers(host="127.0.0.1:8765", origin=origin), 8765, websocket=True)


def test_a_websocket_must_say_where_it_comes_from_and_headers_may_not_be_given_twice():
    assert refusal(headers(host="127.0.0.1:8765"), 8765, websocket=True)
    twice = [*headers(host="127.0.0.1:8765"), *headers(host="evil.example")]
    assert refusal(twice, 8765, websocket=False)
    mixed = [*headers(host="127.0.0.1:8765", origin="http://127.0.0.1:8765"), *headers(origin="http://evil.example")]
    assert refusal(mixed, 8765, websocket=False)


# ---------------------------------------------------------------------------------------------- what is computed


def test_a_text_is_checked_moved_run_and_its_run_saved(tmp_path):
    desk = work.Desk(str(tmp_path))
    found = desk.check(FOUR_BAR, "m.yaml")
    assert found.problems == ()
    assert (found.dof, found.redundant) == (1, 3)  # a planar four-bar of revolute joints in space
    a = next(i for i in found.inputs if i.label == "A")
    assert (a.unit, a.high - a.low) == ("deg", pytest.approx(360))
    assert a.value == pytest.approx(10)  # the start of the file
    moved = desk.move("A", 40.0)
    assert moved.q[0] == pytest.approx(np.radians(40))
    assert "closed" in moved.text
    ran = desk.run(FOUR_BAR, "m.yaml", "auto", 0.2, moved.q, report=lambda share: False)
    assert ran.status == "finished"
    desk.save_run(str(tmp_path / "run.nc"))
    run = ld.load_run(tmp_path / "run.nc")
    assert run.data["q"].values[0, 0] == pytest.approx(40.0)  # deg
    np.testing.assert_array_equal(run.data["v"].values[0], 0)


def test_modes_of_a_text_are_those_of_its_equilibrium(tmp_path):
    desk = work.Desk(str(tmp_path))
    with pytest.raises(LoopdynError, match="Find them first"):
        desk.mode(0)
    found = desk.modes(SWING, "m.yaml", at_start=False)
    system = load_text(SWING, "swing.yaml").compile()
    mode = ld.linearize(system, ld.equilibrium(system)).modes()
    assert found.names == (f"0: {mode.frequency[0]:.5g} Hz, damping {mode.damping[0]:.4f}",)
    assert "crank" in desk.mode(0)
    with pytest.raises(LoopdynError, match="no mode 1"):
        desk.mode(1)
    assert "not an equilibrium" in desk.modes(SWING, "m.yaml", at_start=True).text


def test_problems_of_a_text_have_their_lines(tmp_path):
    desk = work.Desk(str(tmp_path))
    found = desk.check(FOUR_BAR.replace("child: rocker, at: [1000", "child: rockr, at: [1000"), "sub/m.yaml")
    (problem,) = found.problems
    assert (problem.file, problem.line) == ("m.yaml", 15)
    assert "rockr" in problem.message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0",
        "just words",
        "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]",
        "[" * 5000,
        "loopdyn: 1\nbodies: {'<script>alert(1)</script>': {mass: -1}}",
        "!!python/object/apply:os.system ['true']",
        "loopdyn: 1\nname: x\nbodies: {b: {mass: '9**9**9**9'}}",
    ],
)
def test_malformed_texts_give_problems_in_words(tmp_path, text):
    assert work.Desk(str(tmp_path)).check(text, "m.yaml").problems


def test_a_value_that_cannot_be_reached_is_said_and_the_pose_is_kept(tmp_path):
    desk = work.Desk(str(tmp_path))
    desk.check(FOUR_BAR.replace("crank: 300", "crank: 700"), "m.yaml")
    before = desk.state.q.copy()
    # crank 0.7 and ground 1.0, coupler hypot(0.1, 0.6) and rocker hypot(0.2, 0.6) as drawn: at 180 degrees the
    # pins B and D are 1.7 apart, the two links together reach 1.24
    moved = desk.move("A", 180.0)
    assert moved.placement is None
    assert "C" in moved.text
    np.testing.assert_array_equal(desk.state.q, before)


def test_a_run_that_is_told_to_end_keeps_what_it_has(tmp_path):
    desk = work.Desk(str(tmp_path))
    ran = desk.run(SWING, "m.yaml", "auto", 1e5, None, report=lambda share: share > 0.002)  # 200 s, two outputs
    assert ran.status == "interrupted"
    assert 0 < desk.result.path.t[-1] < 1e5
    desk.save_run(str(tmp_path / "run.nc"))


def test_a_process_that_is_ended_is_said_and_started_again(tmp_path):
    async def story():
        worker = Worker(tmp_path)
        arguments = {"text": SWING, "name": "m.yaml", "formulation": "auto", "seconds": 1e5, "pose": None}
        with pytest.raises(LoopdynError, match="ended"):
            await worker.call("run", lambda share: worker.end(), **arguments)
        found = await worker.call("check", text=FOUR_BAR, name="m.yaml")
        worker.end()
        return found

    assert asyncio.run(story()).dof == 1


def test_a_closed_page_starts_no_process_for_a_check_that_still_waits_its_turn(tmp_path):
    async def story():
        worker = Worker(tmp_path)
        calls = [asyncio.create_task(worker.call("check", text=FOUR_BAR, name="m.yaml")) for _ in range(2)]
        await asyncio.sleep(0.2)  # the first one is computed, the second one waits
        worker.close()
        found = await asyncio.gather(*calls, return_exceptions=True)
        return found, worker._process

    found, process = asyncio.run(story())
    assert [type(x) for x in found] == [LoopdynError, LoopdynError]
    assert "closed" in str(found[1])
    assert process is None


# ----------------------------------------------------------------------------------------------------- the server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A studio as a user starts it: its folder and address."""
    root = tmp_path_factory.mktemp("studio")
    (root / "outside.yaml").write_text("loopdyn: 1\n")
    here = root / "here"
    here.mkdir()
    (here / "four_bar.yaml").write_text(FOUR_BAR)
    (here / "hostile.yaml").write_text(FOUR_BAR.replace("rocker", HOSTILE))
    (here / "swing.yaml").write_text(SWING)
    (here / "binary.yaml").write_bytes(bytes(range(256)))
    (here / "bomb.yaml").write_text("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n")
    (here / "huge.yaml").write_bytes(b"#" * (4 * MAX_TEXT + 1))
    process, port = launch(here, "four_bar.yaml")
    yield here, port
    process.send_signal(signal.SIGINT)
    with process.stdout:
        assert process.wait(20) == 0


def launch(folder, *arguments):
    environment = {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"}  # NiceGUI looks at it
    environment["PYTHONPATH"] = str(Path(ld.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-m", "loopdyn", "studio", "--no-browser", "--port", "0", *arguments],
        cwd=folder, env=environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    line = process.stdout.readline()
    return process, int(re.search(r"http://127\.0\.0\.1:(\d+)/", line)[1])


def ask(port, path="/", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, answer.read(), answer.headers
    connection.close()
    return found


def test_it_listens_at_127_0_0_1_only(server):
    _, port = server
    with socket.socket() as s, pytest.raises(OSError):
        s.connect(("127.0.0.2", port))  # also this machine, at another address


def test_http_from_elsewhere_is_refused(server):
    _, port = server
    status, body, given = ask(port)
    assert status == 200
    assert "default-src 'self'" in given["content-security-policy"]
    assert b"http://" not in body.replace(f"http://127.0.0.1:{port}".encode(), b"")  # nothing comes from elsewhere
    for headers in ({"Host": f"evil.example:{port}"}, {"Origin": "http://evil.example"}):
        for path in ("/", "/drawing_library.js", "/_nicegui_ws/socket.io/?EIO=4&transport=polling"):
            assert ask(port, path, **headers)[0] == 403
    assert ask(port, "/view/guessed/pose/1")[0] == 404
    assert ask(port, "/four_bar.yaml")[0] == 404
    assert ask(port, "/view/..%2f..%2fetc/pose/passwd")[0] == 404


def upgrade(port, **more):
    """Status line of a websocket handshake."""
    lines = {
        "Host": f"127.0.0.1:{port}", "Upgrade": "websocket", "Connection": "Upgrade",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13",
    } | more  # fmt: skip
    request = "GET /_nicegui_ws/socket.io/?EIO=4&transport=websocket HTTP/1.1\r\n"
    request += "".join(f"{name}: {value}\r\n" for name, value in lines.items()) + "\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=20) as s:
        s.sendall(request.encode())
        return s.recv(4096).split(b"\r\n")[0]


def test_websockets_from_elsewhere_are_refused(server):
    _, port = server
    assert b" 101 " in upgrade(port, Origin=f"http://127.0.0.1:{port}")
    assert b" 403 " in upgrade(port, Origin="http://evil.example")
    assert b" 403 " in upgrade(port, Origin="null")
    assert b" 403 " in upgrade(port)
    assert b" 403 " in upgrade(port, Host=f"evil.example:{port}", Origin=f"http://evil.example:{port}")


def test_a_port_that_is_taken_is_said_with_the_next_step(server, monkeypatch):
    here, port = server
    monkeypatch.chdir(here)
    done = CliRunner().invoke(app, ["studio", "--port", str(port), "--no-browser"])
    assert done.exit_code == 1
    assert f"port {port}" in done.output
    assert "--port 0" in done.output


@pytest.mark.parametrize(
    ("file", "said"),
    [("../outside.yaml", "Start it there: cd "), ("absent.yaml", "no such file"), ("binary.yaml", "not UTF-8")],
)
def test_a_file_that_cannot_be_opened_is_said_at_once(server, monkeypatch, file, said):
    monkeypatch.chdir(server[0])
    done = CliRunner().invoke(app, ["studio", file, "--port", "0", "--no-browser"])
    assert done.exit_code == 1
    assert said in done.output


def test_without_nicegui_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(studio.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LoopdynError, match=re.escape("pip install 'loopdyn[studio]'")):
        studio.open_studio()


# ---------------------------------------------------------------------------------------------------- the browser


@pytest.fixture(scope="module")
def browser():
    with chromium.launched() as found:
        yield found


@pytest.fixture(scope="module")
def tab(browser, server):
    """A tab with the studio; at the end nothing may have been said or asked of another machine."""
    _, port = server
    said, asked = [], []
    page = browser.new_page(viewport={"width": 1300, "height": 800}, reduced_motion="reduce")  # nothing plays unasked
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"http://127.0.0.1:{port}/")
    waits(page, "status", "opened four_bar.yaml")
    yield page
    page.close()
    assert said == []
    own = (f"http://127.0.0.1:{port}/", f"ws://127.0.0.1:{port}/", "data:", "blob:")
    assert [url for url in asked if not url.startswith(own)] == []


@pytest.fixture
def page(tab):
    """The tab with the four-bar, as it is in its file."""
    open_file(tab, "four_bar.yaml")
    if tab.locator(key("tab-mechanism")).get_attribute("aria-selected") != "true":
        tab.locator(key("tab-mechanism")).click()
    waits(tab, "summary", "four_bar: 1 degree of freedom, 3 redundant constraints")
    return tab


class Visitor:
    """An open page without a browser: what NiceGUI's script says to the server, and what it hears."""

    def __init__(self, port):
        self.port, self.heard, self.socket = port, [], socketio.AsyncClient()
        self.socket.on("update", lambda data: self.heard.append(json.dumps(data)))

    async def enter(self):
        _, page, _ = await asyncio.to_thread(ask, self.port)
        query = ast.literal_eval(re.search(r"query: (\{.*?\}),", page.decode())[1])
        address = f"http://127.0.0.1:{self.port}"
        await self.socket.connect(
            f"{address}?{urlencode(query)}",
            transports=["websocket"],
            socketio_path="/_nicegui_ws/socket.io",
            headers={"Origin": address},
        )
        names = {"tab_id": secrets.token_hex(8), "old_tab_id": None, "document_id": secrets.token_hex(8)}
        hand = {"client_id": query["client_id"], "next_message_id": 0, **names}
        assert await self.socket.call("handshake", hand)
        return self

    async def hears(self, text, seconds=60.0):
        while seconds > 0.0 and not any(text in said for said in self.heard):
            await asyncio.sleep(0.2)
            seconds -= 0.2
        return any(text in said for said in self.heard)


@pytest.mark.slow
def test_closed_pages_leave_no_process_and_one_page_too_many_is_refused(tmp_path):
    (tmp_path / "four_bar.yaml").write_text(FOUR_BAR)
    process, port = launch(tmp_path, "four_bar.yaml")
    server = psutil.Process(process.pid)

    def workers():
        return [p for p in server.children(recursive=True) if "resource_tracker" not in " ".join(p.cmdline())]

    async def story():
        pages = [await Visitor(port).enter() for _ in range(MOST_PAGES + 1)]
        assert await pages[-1].hears(f"{MOST_PAGES} pages of the studio are open")
        assert await pages[0].hears("opened four_bar.yaml")
        assert not await pages[1].hears("pages of the studio are open", 0.2)
        assert 0 < len(workers()) <= 2 * MOST_PAGES
        for page in pages:
            await page.socket.disconnect()
        for _ in range(100):  # NiceGUI waits some seconds for a page that was lost to come back
            if not workers():
                break
            await asyncio.sleep(0.5)
        assert workers() == []
        again = await Visitor(port).enter()  # there is room again
        assert await again.hears("opened four_bar.yaml")
        await again.socket.disconnect()

    try:
        with ThreadPoolExecutor(1) as pool:  # this thread may still have the event loop of another test's browser
            pool.submit(asyncio.run, story()).result()
    finally:
        process.send_signal(signal.SIGINT)
        with process.stdout:
            assert process.wait(20) == 0


def open_file(page, name):
    fill(page, "file", name)
    page.keyboard.press("Enter")
    if page.evaluate("window.unsaved"):
        page.locator(key("yes")).click()
        page.locator(key("yes")).wait_for(state="detached")


def key(name):
    return f"[data-key={name}]"


def waits(page, name, text):
    """Until a part of the page says something."""
    shown = "([selector, text]) => document.querySelector(selector)?.textContent.includes(text)"
    try:
        page.wait_for_function(shown, arg=[key(name), text], timeout=60_000)  # kernels may have to be compiled
    except Exception:
        pytest.fail(f"'{name}' does not say {text!r} but {page.locator(key(name)).inner_text()!r}")


def fill(page, name, text):
    page.locator(key(name)).fill(text)  # the field that the key stands on


def in_frame(page, name, script):
    """What a script says in one of the frames, once its page is there."""
    said = """([selector, script]) => {
        const inside = document.querySelector(selector).contentWindow;
        return inside.page !== undefined && { value: inside.eval(script) };
    }"""
    return page.wait_for_function(said, arg=[f"iframe{key(name)}", script]).json_value().get("value")


def becomes_true_in_frame(page, name, script):
    """Wait until a script says so in one of the frames, whose page follows a little later than the words around it."""
    said = """([selector, script]) => {
        const inside = document.querySelector(selector).contentWindow;
        return inside.page !== undefined && inside.eval(script);
    }"""
    page.wait_for_function(said, arg=[f"iframe{key(name)}", script])


# First, while no tab was clicked: Quasar may take a tab that was clicked out of the order of Tab.
@pytest.mark.slow  # in a real browser
def test_everything_can_be_reached_with_the_keyboard_and_has_a_name(page):
    page.locator(key("file")).focus()
    seen = []
    for _ in range(14):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('.cm-editor') !== null"):
            page.keyboard.press("Escape")  # in the editor Tab indents
        found = "document.activeElement.closest('[data-key]')?.dataset.key"
        seen.append(page.evaluate(found))
    for name in ("open", "save", "files", "editor", "tab-mechanism", "pose"):
        assert name in seen
    for role, name in (
        ("textbox", "File"),
        ("button", "Save"),
        ("slider", "Value of the input"),
        ("combobox", "Input"),
    ):
        assert page.get_by_role(role, name=name).count() >= 1, name


@pytest.mark.slow  # in a real browser
def test_open_edit_with_an_error_at_its_line_and_save(page, server):
    here, _ = server
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("# the end\nsprings: 1")
    waits(page, "problems", "line 20: model file: unknown key 'springs'")
    assert "unknown key 'springs'" in page.locator(".cm-line.wrong-line").inner_text()  # beside the text itself
    assert page.title() == "● four_bar.yaml - loopdyn studio"
    for _ in "springs: 1":
        page.keyboard.press("Backspace")
    waits(page, "summary", "1 degree of freedom")
    assert page.locator(".wrong-line").count() == 0
    fill(page, "file", "sub/../../escaped.yaml")
    page.keyboard.press("Control+s")
    waits(page, "status", "not saved: 'sub/../../escaped.yaml' leads out of the folder")
    fill(page, "file", "edited.yaml")
    page.keyboard.press("Control+s")
    waits(page, "status", "saved edited.yaml")
    assert (here / "edited.yaml").read_text() == FOUR_BAR + "# the end\n"
    assert page.title() == "edited.yaml - loopdyn studio"
    assert sorted(p.name for p in here.parent.iterdir()) == ["here", "outside.yaml"]


@pytest.mark.slow  # in a real browser
def test_a_text_that_is_too_long_is_not_inserted(page):
    page.evaluate("""text => {
        const data = new DataTransfer();
        data.setData("text/plain", text);
        const paste = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
        document.querySelector(".cm-content").dispatchEvent(paste);
    }""", "#" * (MAX_TEXT + 1))  # fmt: skip
    waits(page, "status", "not inserted: more than 500,000 characters")
    assert not page.evaluate("window.unsaved")
    open_file(page, "swing.yaml")
    waits(page, "status", "opened swing.yaml")


@pytest.mark.slow  # in a real browser
def test_a_file_that_another_program_changed_is_replaced_only_if_asked(page, server):
    here, _ = server
    (here / "shared.yaml").write_text(FOUR_BAR)
    open_file(page, "shared.yaml")
    waits(page, "status", "opened shared.yaml")
    (here / "shared.yaml").write_text("theirs")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+Home")
    page.keyboard.type("#")
    page.wait_for_function("window.unsaved")
    page.locator(key("save")).click()
    page.locator(key("no")).click()
    waits(page, "status", "not saved")
    assert (here / "shared.yaml").read_text() == "theirs"
    page.locator(key("save")).click()
    page.locator(key("yes")).click()
    waits(page, "status", "saved shared.yaml")
    assert (here / "shared.yaml").read_text() == "#" + FOUR_BAR


@pytest.mark.slow  # in a real browser
def test_dragging_the_input_moves_the_mechanism_with_closed_loops(page):
    pose = "JSON.stringify(page.bodyPose('rocker'))"
    first = in_frame(page, "pose", pose)
    page.locator(key("slider")).hover()  # in its middle, once it is at rest: the page may still be growing above it
    box = page.locator(key("slider")).bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.down()
    for part in np.linspace(0.5, 0.7, 5):
        page.mouse.move(box["x"] + part * box["width"], y)
    page.mouse.up()
    # all of the drag has come through: from 10 deg in the middle of the slider, 0.2 of a turn and some
    page.wait_for_function(f"/A = 8[0-9.]* deg: all loops/.test(document.querySelector('{key('moved')}').textContent)")
    becomes_true_in_frame(page, "pose", f"{pose} !== {json.dumps(first)}")
    page.locator(key("value")).fill("70")
    waits(page, "moved", "A = 70 deg")
    at_70 = 0.3 * np.array([np.cos(np.radians(70)), np.sin(np.radians(70)), 0])
    for _ in range(100):  # the picture follows the words
        if np.abs(corner(in_frame(page, "pose", "page.bodyPose('crank')"), (0.3, 0, 0)) - at_70).max() < 1e-6:
            break
        page.wait_for_timeout(50)
    # both ends of the coupler, from the poses that are drawn: the crank is 0.3 m long and C is 0.632 m from D
    crank, coupler = (in_frame(page, "pose", f"page.bodyPose('{name}')") for name in ("crank", "coupler"))
    pins = [corner(crank, (0.3, 0, 0)), corner(coupler, (0.3, 0, 0))]
    np.testing.assert_allclose(pins[0], at_70, atol=1e-6)
    np.testing.assert_allclose(pins[1], pins[0], atol=1e-6)  # single precision
    c = corner(coupler, (0.8, 0.6, 0))
    assert np.linalg.norm(c - [1.0, 0, 0]) == pytest.approx(np.hypot(0.2, 0.6), abs=1e-6)
    page.locator(f"{key('slider')} [tabindex='0']").focus()
    page.keyboard.press("ArrowRight")  # the keyboard drags too
    page.wait_for_function(f"!/A = 70 deg/.test(document.querySelector('{key('moved')}').textContent)")
    waits(page, "moved", "all loops closed to")


def corner(pose, reference):
    """Where a point of a body is that was at `reference` when the body's frame was that of the world."""
    w, x, y, z = pose["rotation"]
    p = np.asarray(reference, float)
    u = np.array([x, y, z])
    return np.array(pose["position"]) + p + 2 * np.cross(u, np.cross(u, p) + w * p)


@pytest.mark.slow  # in a real browser
def test_run_look_and_save_the_run(page, server):
    here, _ = server
    page.locator(key("tab-motion")).click()
    page.locator(key("seconds")).fill("0.5")
    page.keyboard.press("Control+Enter")
    waits(page, "ran", "finished: reached t = 0.5 s")
    titles = in_frame(page, "motion", "[...document.querySelectorAll('.plot h3')].map(h => h.textContent)")
    assert [t.split(" (")[0].strip() for t in titles][:3] == [
        "Coordinates",
        "Reaction force in C",
        "Reaction moment in C",
    ]
    assert "Energy (J)" in titles
    in_frame(page, "motion", "page.pause(); page.seek(0.5)")
    assert in_frame(page, "motion", "page.time") == 0.5
    fill(page, "run-file", "../run.nc")
    page.locator(key("save-run")).click()
    waits(page, "status", "leads out of the folder")
    fill(page, "run-file", "run.nc")
    page.locator(key("save-run")).click()
    waits(page, "status", "saved the run as run.nc")
    saved = ld.load_run(here / "run.nc")
    assert (saved.status, saved.data["time"].values[-1]) == ("finished", 0.5)
    assert not (here.parent / "run.nc").exists()
    page.locator(".cm-content").click()
    page.keyboard.type("#")
    page.locator(key("stale")).wait_for(state="visible")  # the text is no longer that of the run
    open_file(page, "swing.yaml")
    waits(page, "ran", "not run yet")
    page.locator(key("save-run")).click()
    waits(page, "status", "there is no run to save")


@pytest.mark.slow  # in a real browser
def test_modes_are_listed_and_move(page):
    """The four-bar without its motor hangs: one mode, with the frequency of `ld.linearize`, and its crank swings."""
    open_file(page, "swing.yaml")
    waits(page, "status", "opened swing.yaml")
    page.locator(key("tab-modes")).click()
    page.locator(key("find-modes")).click()
    waits(page, "modes", "linearized at t = 0 s")
    system = load_text(SWING, "swing.yaml").compile()
    mode = ld.linearize(system, ld.equilibrium(system)).modes()
    assert f"{mode.frequency[0]:.5g}" in page.locator(key("modes")).inner_text()
    becomes_true_in_frame(page, "mode-view", "page.bodyPose('crank') !== undefined")
    turns = []
    for t in (0.0, 1.0):  # half a period of the film: the other end of the swing
        in_frame(page, "mode-view", f"page.pause(); page.seek({t})")
        w, _, _, z = (in_frame(page, "mode-view", "page.bodyPose('crank')")["rotation"][k] for k in range(4))
        turns.append(2 * np.arctan2(z, w))
    largest = max(abs(x) for x in mode.moving(0).values())
    swing = 0.2 * abs(mode.moving(0).get("A", 0.0)) / largest  # rad, to either side
    assert abs(np.angle(np.exp(1j * (turns[0] - turns[1])))) == pytest.approx(2 * swing, rel=0.05)
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("# the end\nsprings: 1")
    waits(page, "problems", "springs")
    page.locator(key("find-modes")).click()
    waits(page, "modes", "the model has problems")


@pytest.mark.slow  # in a real browser
def test_a_long_run_leaves_the_page_usable_and_can_be_stopped(page):
    open_file(page, "swing.yaml")
    waits(page, "status", "opened swing.yaml")
    page.locator(key("tab-motion")).click()
    page.locator(key("seconds")).fill("100000")
    page.locator(key("run")).click()
    waits(page, "ran", "running: ")
    page.locator(key("tab-mechanism")).click()
    page.locator(key("value")).fill("33")
    waits(page, "moved", "A = 33 deg: all loops closed")
    page.keyboard.press("Control+.")
    page.locator(key("tab-motion")).click()
    waits(page, "ran", "interrupted: stopped by the user")
    becomes_true_in_frame(page, "motion", "page.data.samples > 1")


@pytest.mark.slow  # in a real browser
def test_files_that_cannot_be_opened_leave_the_page_as_it_is(page):
    for file, said in (
        ("binary.yaml", "not UTF-8"),
        ("huge.yaml", "too much for the editor"),
        ("absent.yaml", "no such file"),
        ("../outside.yaml", "leads out of the folder"),
        ("/etc/passwd", "does not end in .yaml"),
    ):
        open_file(page, file)
        waits(page, "status", said)
        waits(page, "summary", "four_bar: 1 degree of freedom")


@pytest.mark.slow  # in a real browser
def test_malformed_and_hostile_models_are_shown_as_text(page):
    open_file(page, "bomb.yaml")
    waits(page, "problems", "anchor")
    open_file(page, "hostile.yaml")
    waits(page, "facts", HOSTILE)
    waits(page, "summary", "1 degree of freedom")
    shown = "contentWindow.document.getElementById('labels')?.textContent"
    page.wait_for_function(f"document.querySelector('iframe{key('pose')}').{shown}?.includes({HOSTILE!r})")
    assert page.evaluate("window.hacked") is None
    assert in_frame(page, "pose", "window.hacked") is None
