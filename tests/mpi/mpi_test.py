"""attn train in several processes, under mpirun.

    mpi_test.py ROOT ATTN          ATTN is of a build with -Dmpi=enabled

What mpirun needs as root, and with more processes than cores, is set here and nowhere else.
"""
import csv
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT, ATTN = Path(sys.argv[1]), sys.argv[2]
sys.path.append(str(ROOT / "tests"))

import tap  # noqa: E402

_FOLDER = tempfile.TemporaryDirectory(prefix="attn-mpi-")
FOLDER = Path(_FOLDER.name)
SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "ATTN_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "HOME": str(FOLDER),
}
CORPUS = FOLDER / "corpus.txt"
CORPUS.write_text("".join(
    f"{subject} {verb} {thing}.\n" for n in range(6) for verb in ["sees", "picks up", "wants", "paints"]
    for subject in ["The cat", "A dog", "The robot", "My friend"]
    for thing in ["the box", "a red ball", "the house", "it"]))  # fmt: skip
TINY = ["-f", str(CORPUS), "--layers", "2", "--heads", "2", "--dim", "32", "--ctx", "16", "--batch", "12",
        "--steps", "10", "--dropout", "0.2", "--eval-every", "5"]  # fmt: skip


def command(processes, *arguments):
    launcher = shutil.which("mpirun")
    if not launcher:
        raise tap.Skip("there is no mpirun")
    launch = [launcher, "-n", str(processes)] if processes else []
    return [*launch, ATTN, "train", *map(str, arguments)]


def start(processes, *arguments):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ATTN_")}
    return subprocess.Popen(command(processes, *arguments), env={**environment, **SETTINGS}, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip


def run(processes, *arguments):
    process = start(processes, *arguments)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def succeeds(processes, *arguments):
    status, out, err = run(processes, *arguments)
    assert status == 0 and not err, (status, out, err)
    return out


def rows(name):
    with open(FOLDER / name / "training.csv") as file:
        return list(csv.DictReader(file))


def numbers(name):
    """Losses, held-out losses and norms of all steps."""
    return [float(row[key]) for row in rows(name) for key in ["loss", "held_out", "norm"] if row[key]]


def the_loss_is_that_of_one_process():
    for objective, vocabulary in [("gpt", "bytes"), ("mlm", "100")]:
        more = ["--objective", objective, "--vocab", vocabulary]
        succeeds(0, *TINY, *more, "-o", FOLDER / f"alone-{objective}")
        alone = numbers(f"alone-{objective}")
        assert len(alone) == 22
        for processes, parts in [(1, 1), (2, 1), (2, 3), (3, 1), (3, 2)]:
            name = f"{objective}-{processes}-{parts}"
            out = succeeds(processes, *TINY, *more, "-o", FOLDER / name, "--accumulate", parts)
            assert out.count("steps:") == 1 and "10 of 10" in out, out
            together = numbers(name)
            for one, other in zip(alone, together, strict=True):
                assert abs(one - other) <= 1e-5, (name, one, other)


def a_resume_may_have_other_processes():
    succeeds(3, *TINY, "-o", FOLDER / "three", "--stop-after", "4")
    succeeds(2, "-f", CORPUS, "--resume", FOLDER / "three", "--stop-after", "4")
    succeeds(0, "-f", CORPUS, "--resume", FOLDER / "three")
    succeeds(0, *TINY, "-o", FOLDER / "one")
    for one, other in zip(numbers("one"), numbers("three"), strict=True):
        assert abs(one - other) <= 1e-5, (one, other)


def one_process_tells_what_is_wrong():
    folder = FOLDER / "wrong"
    for arguments, status, words in [
        ([*TINY, "-o", folder, "-f", "no-such-file"], 1, "attn train: no-such-file: no such file"),
        ([*TINY], 2, "attn train: the folder for the model is missing"),
        ([*TINY, "-o", folder, "--batch", "9"], 1, "--batch is 9"),
        ([*TINY, "-o", folder, "-f", "-"], 1, "standard input"),
        (["-f", CORPUS, "--resume", folder], 1, "training.safetensors: no such file"),
    ]:
        got, out, err = run(2, *arguments)
        assert got == status and not out, (got, out, err)
        assert err.count("attn train: ") == 1 and words in err, err
    assert not folder.exists()


def a_full_disk_ends_all():
    # A limit on files stands for it; MPI's own files in shared memory would not fit.
    settings = {**os.environ, **SETTINGS, "OMPI_MCA_btl": "tcp,self", "PMIX_MCA_gds": "hash"}
    launch = command(2, *TINY, "-o", FOLDER / "full")
    done = subprocess.run(["sh", "-c", 'ulimit -f 20; exec "$0" "$@"', *launch], env=settings,
                          capture_output=True, text=True, timeout=120)  # fmt: skip
    assert done.returncode == 1 and "File too large" in done.stderr, done
    assert not (FOLDER / "full").exists()


def wait_for_steps(name, process, count):
    path = FOLDER / name / "training.csv"
    for _ in range(1200):
        if path.exists() and path.read_text().count("\n") > count:
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError("no step in 60 seconds")


def children(process):
    """The processes that mpirun started, by rank."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if parent == process.pid and arguments[0].decode() == ATTN:
            rank = [v.split(b"=")[1] for v in variables if v.startswith(b"OMPI_COMM_WORLD_RANK=")]
            found[int(rank[0])] = int(entry.name)
    return found


def a_process_that_dies_ends_all():
    for dying in [1, 0]:
        name = f"dying-{dying}"
        process = start(2, *TINY, "-o", FOLDER / name, "--steps", "1000000", "--save-every", "5")
        wait_for_steps(name, process, 12)
        ranks = children(process)
        assert sorted(ranks) == [0, 1], ranks
        os.kill(ranks[dying], signal.SIGKILL)
        out, err = process.communicate(timeout=60)
        assert process.returncode != 0, (out, err)
        assert f"rank {dying}" in err and "signal 9" in err, err
        out = succeeds(2, "-f", CORPUS, "--resume", FOLDER / name, "--stop-after", "1")
        step = int(out.split("steps:")[1].split()[0])
        assert step % 5 == 1 and step > 5, out


def a_signal_to_one_saves_for_all():
    process = start(2, *TINY, "-o", FOLDER / "signal", "--steps", "1000000", "--save-every", "1000000")
    wait_for_steps("signal", process, 3)
    os.kill(children(process)[1], signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted; --resume" in err, (process.returncode, err)
    steps = int(out.split("steps:")[1].split()[0])
    assert len(rows("signal")) == steps
    succeeds(2, "-f", CORPUS, "--resume", FOLDER / "signal", "--stop-after", "1")


tap.run([
    the_loss_is_that_of_one_process,
    a_resume_may_have_other_processes,
    one_process_tells_what_is_wrong,
    a_full_disk_ends_all,
    a_process_that_dies_ends_all,
    a_signal_to_one_saves_for_all,
])
