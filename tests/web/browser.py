"""A real browser for tests: Chromium, headless, through ChromeDriver's W3C WebDriver protocol and the
standard library.

    with Browser() as browser:
        browser.open("file:///…")
        browser.click(browser.find("button"))

tap.Skip where the machine has no chromium or no chromedriver. Positions are CSS pixels of the window.
"""
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import tap  # noqa: E402

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the standard's key of an element's identity
START_SECONDS = 30
PATIENCE_SECONDS = 10

KEYS = {
    "Tab": "\ue004", "Enter": "\ue007", "Shift": "\ue008", "Control": "\ue009", "Escape": "\ue00c", "Space": " ",
    "PageUp": "\ue00e", "PageDown": "\ue00f", "End": "\ue010", "Home": "\ue011", "ArrowLeft": "\ue012",
    "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015", "Backspace": "\ue003",
}  # fmt: skip


class BrowserError(Exception):
    """What the driver refused."""


def command_of(*names):
    for name in names:
        if found := shutil.which(name):
            return found
    raise tap.Skip(f"there is no {names[0]}")


class Browser:
    def __init__(self, width=1280, height=900):
        self.chromium = command_of("chromium", "chromium-browser", "google-chrome")
        driver = command_of("chromedriver", "chromium.chromedriver")
        self.driver = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.session = None
        try:
            self.address = f"http://127.0.0.1:{self._read_port()}"
            self.session = self._new_session(width, height)
            self.resize(width, height)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            if self.session:
                self._send("DELETE", "")
        except (OSError, BrowserError):
            pass
        finally:
            self.driver.kill()
            self.driver.wait()
            self.driver.stdout.close()

    def _read_port(self):
        for line in self.driver.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                return int(found[1])
        raise BrowserError("chromedriver ended before it listened")

    def _new_session(self, width, height):
        # As root there is no sandbox; what is shown is the project's own.
        arguments = ["--headless=new", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
                     "--disable-background-networking", "--force-color-profile=srgb", f"--window-size={width},{height}"]  # fmt: skip
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")
        wanted = {
            "goog:chromeOptions": {"binary": self.chromium, "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        answer = self._request("POST", "/session", {"capabilities": {"alwaysMatch": wanted}}, START_SECONDS)
        return answer["sessionId"]

    def _request(self, method, path, body=None, seconds=60):
        data = None if method != "POST" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        # The driver is on this machine: no proxy.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=seconds) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise BrowserError(f"{value['error']}: {value['message'].splitlines()[0]}") from None

    def _send(self, method, path, body=None):
        return self._request(method, f"/session/{self.session}{path}", body)

    # Pages.

    def open(self, address):
        """Loads the page anew, also where only the fragment differs."""
        self._send("POST", "/url", {"url": "about:blank"})
        self._send("POST", "/url", {"url": address})

    def reload(self):
        self._send("POST", "/refresh")

    def address_shown(self):
        return self._send("GET", "/url")

    def execute(self, script, *arguments):
        """The value of a function's body; `arguments[0]` and so on, elements among them, are its arguments."""
        return self._send("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait_for(self, script, *arguments, seconds=PATIENCE_SECONDS):
        """Until the body's value is true; returns it."""
        end = time.monotonic() + seconds
        while not (value := self.execute(script, *arguments)):
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s: {script}")
            time.sleep(0.02)
        return value

    # Elements.

    def find(self, selector):
        return self._send("POST", "/element", {"using": "css selector", "value": selector})

    def find_all(self, selector):
        return self._send("POST", "/elements", {"using": "css selector", "value": selector})

    def text(self, element):
        return self._send("GET", f"/element/{element[ELEMENT]}/text")

    def attribute(self, element, name):
        return self._send("GET", f"/element/{element[ELEMENT]}/attribute/{name}")

    def name(self, element):
        """As a screen reader says it."""
        return self._send("GET", f"/element/{element[ELEMENT]}/computedlabel")

    def role(self, element):
        return self._send("GET", f"/element/{element[ELEMENT]}/computedrole")

    def active(self):
        return self._send("GET", "/element/active")

    # Hands.

    def click(self, element):
        self._send("POST", f"/element/{element[ELEMENT]}/click")

    def type(self, element, text):
        self._send("POST", f"/element/{element[ELEMENT]}/value", {"text": text})

    def press(self, *keys, holding=()):
        """Keys by their names, or characters, into what has the focus."""
        held = [KEYS.get(key, key) for key in holding]
        steps = [{"type": "keyDown", "value": key} for key in held]
        for key in keys:
            steps += [{"type": kind, "value": KEYS.get(key, key)} for kind in ("keyDown", "keyUp")]
        steps += [{"type": "keyUp", "value": key} for key in reversed(held)]
        self._act({"type": "key", "id": "keyboard", "actions": steps})

    def hover(self, element, x=0, y=0):
        """To a place beside the element's middle."""
        self._point(self._move(element, x, y))

    def click_at(self, element, x=0, y=0, times=1):
        presses = [{"type": kind, "button": 0} for _ in range(times) for kind in ("pointerDown", "pointerUp")]
        self._point(self._move(element, x, y), *presses)

    def double_click(self, element):
        self.click_at(element, times=2)

    def leave(self):
        """Takes the pointer to the window's corner."""
        self._point({"type": "pointerMove", "duration": 0, "x": 0, "y": 0})

    @staticmethod
    def _move(element, x, y):
        return {"type": "pointerMove", "duration": 0, "origin": element, "x": x, "y": y}

    def _point(self, *steps):
        self._act({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": list(steps)})

    def _act(self, source):
        self._send("POST", "/actions", {"actions": [source]})

    # Surroundings.

    def cdp(self, command, **parameters):
        return self._send("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def resize(self, width, height, scale=1):
        """Of what the page has, which a window may be too small for."""
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)

    def prefer(self, scheme):
        """"light" or "dark"."""
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path, whole=True):
        """A PNG of the whole page, or of what the window shows."""
        picture = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        Path(path).write_bytes(base64.b64decode(picture["data"]))

    # Logs; each call gives what came since the one before.

    def console(self):
        """Errors and warnings that the page caused."""
        entries = self._send("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self):
        """The addresses that pages asked for, but for about:blank."""
        messages = [json.loads(entry["message"])["message"] for entry in self._send("POST", "/se/log", {"type": "performance"})]
        addresses = [message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"]
        return [address for address in addresses if not address.startswith("about:")]
