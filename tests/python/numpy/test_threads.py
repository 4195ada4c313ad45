"""Any number of Python's threads may be in calls at once, and calls of any number of threads have the same bits."""
import multiprocessing
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import attn

GENERATOR = np.random.default_rng(12)
Q, K, V = (GENERATOR.standard_normal(shape).astype("float32")
           for shape in ((2, 4, 70, 32), (2, 2, 90, 32), (2, 2, 90, 16)))
SETTINGS = dict(causal=True, align="bottom-right", window=(40, None))


def results(threads=0):
    settings = dict(SETTINGS, threads=threads)
    out, stats = attn.attention(Q, K, V, return_stats=True, **settings)
    gradients = attn.gradients(V.repeat(2, axis=1)[:, :, :70], Q, K, V, **settings)
    top = attn.topk(Q, K, 4, **settings)
    return b"".join(array.tobytes() for array in (
        out, stats, *gradients[:3], *top, attn.weights(Q, K, **settings), attn.entropy(Q, K, **settings),
        attn.received(Q, K, **settings), attn.decode(Q[:, :, -5:], K, V, **settings)))


@pytest.fixture(scope="module")
def alone():
    return results(threads=1)


@pytest.mark.parametrize("threads", (0, 2, 3, 7))
def test_the_number_of_threads_changes_no_bit(alone, threads):
    assert results(threads) == alone


def test_set_threads():
    before = attn.get_threads()
    assert 1 <= before <= (os.cpu_count() or 1)
    try:
        attn.set_threads(3)
        assert attn.get_threads() == 3
        attn.set_threads(np.int64(1))
        assert attn.get_threads() == 1
    finally:
        attn.set_threads(0)
    assert attn.get_threads() == before


def test_eight_threads_at_once_give_the_bits_of_one(alone):
    start = threading.Barrier(8)

    def work(number):
        start.wait()
        return [results(threads=number % 3) for _ in range(5)]

    with ThreadPoolExecutor(8) as pool:
        for answers in pool.map(work, range(8)):
            assert all(answer == alone for answer in answers)


def test_a_call_releases_the_gil():
    """While one thread is in a long call, another one runs Python."""
    length = 800 if os.environ.get("ATTN_TEST_SANITIZED") == "1" else 3000
    x = GENERATOR.standard_normal((1, 8, length, 64)).astype("float32")
    times = {}

    def long_call():
        times["begin"] = time.perf_counter()
        attn.attention(x, x, x, threads=1)
        times["end"] = time.perf_counter()

    thread = threading.Thread(target=long_call)
    ticks = []
    thread.start()
    while thread.is_alive():
        ticks.append(time.perf_counter())
        time.sleep(0.001)
    thread.join()
    lasted = times["end"] - times["begin"]
    inside = [tick for tick in ticks if times["begin"] + lasted / 4 < tick < times["end"] - lasted / 4]
    assert len(inside) >= 5, f"Python ran {len(inside)} times in the middle of a call of {lasted:.3f} s"


def test_errors_are_those_of_their_thread():
    """Messages of one call do not come out of another's."""
    names = ("soft_cap", "dropout", "key_lengths", "window")
    values = (-1, 2, [1, 1000], (0, 2**62))

    def work(number):
        for _ in range(200):
            with pytest.raises(ValueError, match=names[number]):
                attn.attention(Q[:, :, :3], K, V, **{names[number]: values[number]})
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def answer_from_child(sender):
    sender.send(results())
    sender.close()


@pytest.mark.parametrize("method", ("fork", "spawn"))
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_child_process_computes_the_same(alone, method):
    results(threads=2)  # so that there are threads, which the child does not have
    context = multiprocessing.get_context(method)
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=answer_from_child, args=(sender,))
    child.start()
    sender.close()
    try:
        assert receiver.poll(30), "the child gives no answer"
        assert receiver.recv() == alone
        child.join(30)
        assert child.exitcode == 0
    finally:
        child.kill()
        child.join()


def test_a_fork_while_another_thread_is_in_a_call(alone):
    x = GENERATOR.standard_normal((1, 4, 1500, 64)).astype("float32")
    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(lambda: attn.attention(x, x, x))
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(writer, b"same" if results() == alone else b"else")
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            assert pipe.read() == b"same"
        os.waitpid(child, 0)
        busy.result()
