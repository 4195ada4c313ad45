#!/usr/bin/env python3
"""attn serve as a browser meets it, and as those meet it that are no browser."""
import json
import random
import signal
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlparse

import tiny_gpt2
from tool import ATTN, environment, fails, model, tap

TEXTS = ["It was heavy.", "The robot picked up the screwdriver because it was heavy.",
         "مرحبا <b>\"you\"</b> </script> 👨‍👩‍👧", "one"]
REQUESTS, CLIENTS = 1000, 16


class Server:
    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [ATTN, "serve", "--port", "0", *arguments], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=environment(ATTN_MODEL=str(model())))
        self.url = self.process.stdout.readline().decode().strip()
        assert self.url.startswith("http://"), (self.url, self.process.stderr.read())
        self.port = urlparse(self.url).port

    def send(self, data, wait=20):
        """The reply to these bytes, all of it; b"" where the connection was closed without one."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as connection:
            try:
                connection.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                pass
            return receive(connection)

    def request(self, method, path, body=b"", **headers):
        """Status and body of a whole request."""
        lines = {"Host": f"127.0.0.1:{self.port}", "Connection": "close"}
        if method == "POST":
            lines.update({"Content-Type": "application/json", "Content-Length": str(len(body))})
        lines.update({name.replace("_", "-"): value for name, value in headers.items()})
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return parse(self.send(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body))

    def look(self, **question):
        return self.request("POST", "/look", json.dumps(question).encode())

    def memory(self):
        """Resident memory in MiB, and open files."""
        folder = Path("/proc") / str(self.process.pid)
        pages = int((folder / "statm").read_text().split()[1])
        return pages * 4096 / 2**20, len(list((folder / "fd").iterdir()))

    def end(self):
        """Its exit status after SIGTERM, and what it said."""
        self.process.terminate()
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out.decode(), err.decode()


@contextmanager
def serving(*arguments):
    server = Server(*arguments)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.communicate()


def receive(connection):
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def parse(reply):
    head, _, body = reply.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def looks_at_a_text():
    with serving() as server:
        status, page = server.request("GET", "/")
        assert status == 200 and page.startswith(b"<!DOCTYPE html>") and b"data-ask" in page
        status, body = server.look(text=TEXTS[1])
        assert status == 200, body
        data = json.loads(body)
        assert data["rows"][1:-1] == TEXTS[1][:-1].split() + ["."], data["rows"]
        assert len(data["panels"]) == 1 + 6 + 6 * 12, len(data["panels"])
        assert data["vectors"]["layers"] == 6 and data["rowSpecial"] == [0, len(data["rows"]) - 1]
        status, body = server.look(text="Who lifted it?", pair="It was heavy.", measure="norm")
        assert status == 200 and json.loads(body)["measure"] != data["measure"], body[:200]
        assert server.end() == (0, "", "")


def a_long_text_has_the_means_of_layers():
    """As attn look writes them: no page holds every head of so many words."""
    tiny_gpt2.LAYERS, tiny_gpt2.HEADS, tiny_gpt2.POSITIONS = 12, 16, 2048
    with serving("-m", str(tiny_gpt2.gpt2("deep"))) as server:
        status, body = server.look(text="the " * 1800)
        assert status == 200, body[:200]
        heads = [(panel["layer"], panel["head"]) for panel in json.loads(body)["panels"]]
        assert heads == [(-1, -1)] + [(layer, -1) for layer in range(12)], heads


def wrong_questions_are_refused():
    with serving() as server:
        for question, part in [({}, "text"), ({"text": ""}, "empty"), ({"text": 7}, "string"),
                               ({"text": "a", "measure": "best"}, "rollout"),
                               ({"text": "a", "measure": "norm\0"}, "NUL"),
                               ({"text": "a", "head": 1}, "head"), ({"text": "a " * 600}, "tokens")]:
            status, body = server.look(**question)
            assert status == 400 and part in json.loads(body)["error"], (question, status, body)
        for body in [b"", b"{", b"[]", b"\xff", b'{"text": "a", "text": "b"}']:
            status, reply = server.request("POST", "/look", body)
            assert status == 400 and json.loads(reply)["error"], (body, status, reply)
        question = json.dumps({"text": "a"}).encode()
        for headers, expected in [({"Host": "evil.example"}, 403),
                                  ({"Host": f"evil.example:{server.port}"}, 403),
                                  ({"Origin": "http://evil.example"}, 403),
                                  ({"Content_Type": "text/plain"}, 415),
                                  ({"Content_Length": "999999999"}, 413)]:
            status, reply = server.request("POST", "/look", question, **headers)
            assert status == expected, (headers, status, reply)
        status, _ = server.look(text="It still answers.")
        assert status == 200
        fails(1, [f"cannot listen on 127.0.0.1, port {server.port}"], "serve", "--port",
              str(server.port), env={"ATTN_MODEL": str(model())})


def wrong_options_are_told():
    fails(2, ["--port is '70000'"], "serve", "--port", "70000")
    fails(2, ["--host is empty"], "serve", "--host", "")
    fails(2, ["'words'"], "serve", "words")


def a_second_signal_ends_it_at_once():
    with serving() as server:
        for number in [signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT]:
            server.process.send_signal(number)
        assert server.process.wait(timeout=20) == -signal.SIGTERM


class Client(threading.Thread):
    """One of many at once: good requests among all kinds of bad ones."""

    def __init__(self, server, number, requests, answers, faults):
        super().__init__()
        self.server, self.requests, self.answers, self.faults = server, requests, answers, faults
        self.random = random.Random(number)
        self.good = 0

    def run(self):
        for _ in range(self.requests):
            kind = self.random.choice([self.ask] * 4 + [self.page, self.malformed, self.oversized,
                                                        self.slow, self.cut])
            try:
                kind()
            except Exception as fault:  # whatever it is, it is told, and the others go on
                self.faults.append(f"{kind.__name__}: {fault!r}")

    def ask(self):
        text = self.random.choice(TEXTS)
        status, body = self.server.look(text=text)
        assert status == 200 and body == self.answers[text], (status, text, body[:100])
        self.good += 1

    def page(self):
        status, body = self.server.request("GET", "/")
        assert status == 200 and body.endswith(b"</html>\n"), status
        self.good += 1

    def malformed(self):
        """The server answers with an error, closes, or waits for more: whichever, this one goes."""
        data = self.random.choice([
            b"\0" * 100 + b"\r\n\r\n", b"GET\r\n\r\n", b"POST /look HTTP/9.9\r\n\r\n",
            b"POST /look HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
            b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20000 + b"\r\n",
            self.random.randbytes(500) + b"\r\n\r\n"])
        try:
            self.server.send(data, wait=0.2)
        except TimeoutError:
            pass

    def oversized(self):
        status, _ = self.server.request("POST", "/look", b" " * (1 << 18) + b"{}")
        assert status == 413, status

    def slow(self):
        host = f"127.0.0.1:{self.server.port}"
        body = json.dumps({"text": TEXTS[0]}).encode()
        data = (f"POST /look HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
                f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as connection:
            for begin in range(0, len(data), 16):
                connection.sendall(data[begin : begin + 16])
                time.sleep(0.02)
            status, reply = parse(receive(connection))
        assert status == 200 and reply == self.answers[TEXTS[0]], status
        self.good += 1

    def cut(self):
        body = json.dumps({"text": TEXTS[1]}).encode()
        data = (f"POST /look HTTP/1.1\r\nHost: localhost:{self.server.port}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as connection:
            connection.sendall(data[: self.random.randrange(1, len(data) + 1)])


def many_clients_good_and_bad_ones():
    with serving() as server:
        files, answers = server.memory()[1], {}
        for text in TEXTS:
            status, answers[text] = server.look(text=text)
            assert status == 200, answers[text]

        def crowd(requests):
            faults = []
            clients = [Client(server, number, requests // CLIENTS + 1, answers, faults)
                       for number in range(CLIENTS)]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            assert server.process.poll() is None, "it ended"
            assert not faults, faults[:3]
            return sum(client.good for client in clients)

        crowd(REQUESTS // 5)  # what is kept once, is kept now
        memory, _ = server.memory()
        good = crowd(REQUESTS)
        assert good > REQUESTS // 3, good
        deadline = time.monotonic() + 15  # connections of those that went are kept for 5 seconds
        while server.memory()[1] > files and time.monotonic() < deadline:
            time.sleep(0.1)
        memory_after, files_after = server.memory()
        assert memory_after < memory + 16, f"{memory:.0f} MiB before, {memory_after:.0f} after"
        assert files_after <= files, f"{files} open files before, {files_after} after"
        began = time.monotonic()
        assert server.end() == (0, "", "")
        assert time.monotonic() - began < 5


tap.run([
    looks_at_a_text,
    a_long_text_has_the_means_of_layers,
    wrong_questions_are_refused,
    wrong_options_are_told,
    a_second_signal_ends_it_at_once,
    many_clients_good_and_bad_ones,
])
