"""Runs the attn tool for a test, in an environment of its own.

    TEST.py ROOT ATTN          folders of the default models stand in ATTN_TEST_MODEL and
                               ATTN_TEST_GENERATOR
"""
import os
import pty
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT, ATTN = Path(sys.argv[1]), sys.argv[2]
sys.path.append(str(ROOT / "tests"))

import tap  # noqa: E402

SENTENCE = "The robot picked up the screwdriver because it was heavy."

_FOLDER = tempfile.TemporaryDirectory(prefix="attn-command-")
FOLDER = Path(_FOLDER.name)
_SEEN = ("ATTN_", "HF_", "XDG_", "OPENBLAS_", "NO_COLOR", "POSIXLY_CORRECT")


def model():
    """The folder of the default model."""
    folder = os.environ.get("ATTN_TEST_MODEL")
    if not folder:
        raise tap.Skip("ATTN_TEST_MODEL is not set")
    return Path(folder)


def generator():
    """The folder of the default generator."""
    folder = os.environ.get("ATTN_TEST_GENERATOR")
    if not folder:
        raise tap.Skip("ATTN_TEST_GENERATOR is not set")
    return folder


def environment(**changes):
    """Without anything that would reach the tool from the user's own settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_SEEN)}
    return {**kept, "HOME": str(FOLDER / "home"), "TERM": "xterm", "ATTN_THREADS": "1", **changes}


class Result:
    def __init__(self, done, arguments):
        self.status, self.bytes, self.error_bytes = done.returncode, done.stdout, done.stderr
        self.command = f"attn {' '.join(map(str, arguments))}"

    @property
    def out(self):
        return self.bytes.decode() if self.bytes else ""

    @property
    def err(self):
        return self.error_bytes.decode(errors="replace") if self.error_bytes else ""


def attn(*arguments, stdin=b"", stdout=subprocess.PIPE, env=None, **settings):
    """Whatever comes of it."""
    done = subprocess.run(
        [ATTN, *arguments], input=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=120,
        env=environment(**(env or {})), **settings)
    return Result(done, arguments)


def succeeds(*arguments, **settings):
    """What it prints, with nothing on standard error."""
    result = attn(*arguments, **settings)
    assert result.status == 0, f"{result.command}: status {result.status}: {result.err}"
    assert result.err == "", f"{result.command}: on standard error: {result.err!r}"
    return result.out


def fails(status, parts, *arguments, **settings):
    """With this exit status, and one line that holds all `parts`; prints nothing else."""
    result = attn(*arguments, **settings)
    said = f"{result.command}: status {result.status}, said {result.err!r}"
    assert result.status == status, said
    assert result.err.startswith("attn") and result.err.endswith("\n"), said
    assert result.err.count("\n") == 1 and len(result.err) > 12, said
    for part in [parts] if isinstance(parts, str) else parts:
        assert part in result.err, f"{part!r} expected; {said}"
    assert not result.bytes, f"{result.command}: printed {result.bytes[:100]!r}"
    return result.err


def in_terminal(*arguments, **changes):
    """What a terminal on standard output and standard error gets; `changes` are of the environment."""
    leader, follower = pty.openpty()
    process = subprocess.Popen([ATTN, *arguments], stdin=subprocess.DEVNULL, stdout=follower,
                               stderr=follower, env=environment(**changes))
    os.close(follower)
    text = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # how Linux tells that the other side is closed
            break
        if not part:
            break
        text += part
    os.close(leader)
    assert process.wait(timeout=120) == 0, text
    return text.decode()


def file(name, content):
    """A new file with this content; its path."""
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def damaged_model(name, **files):
    """A model folder of links to the real one, in which some files are others (bytes, or None for
    none). `__` in a file's name is a dot, which names of arguments cannot hold."""
    source, target = model(), FOLDER / "models" / name
    target.mkdir(parents=True)
    replaced = {key.replace("__", "."): content for key, content in files.items()}
    for path in source.iterdir():
        if path.name not in replaced:
            (target / path.name).symlink_to(path.resolve())
    for file_name, content in replaced.items():
        if content is not None:
            (target / file_name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(target)
