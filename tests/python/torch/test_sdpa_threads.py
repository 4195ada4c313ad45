"""The function from many threads of Python, in forked processes, in inference mode; and the same bits whatever the
number of threads."""
import concurrent.futures
import os
import threading
import time

import pytest

torch = pytest.importorskip("torch")

import attn.torch  # noqa: E402

from sdpa_reference import TOLERANCE, TYPES, assert_close, formula, type_name  # noqa: E402

# [batch, heads, queries, keys, d], each enough work for several threads; without gradient the first two go to decode.
SIZES = [(1, 8, 1, 2000, 64), (1, 4, 16, 1100, 40), (1, 2, 130, 300, 32), (2, 4, 130, 130, 32), (1, 8, 64, 300, 80)]


def make(size, dtype=torch.float32, seed=0):
    batch, heads, queries, keys, d = size
    generator = torch.Generator().manual_seed(seed)
    shapes = [(batch, heads, queries, d), (batch, heads, keys, d), (batch, heads, keys, d)]
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def forward_and_backward(attention, tensors, **settings):
    """Output without gradients, output with them, and the gradients."""
    with torch.no_grad():
        plain = attention(*tensors, **settings)
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    output = attention(*leaves, **settings)
    d_output = torch.linspace(-1, 1, output.numel()).view(output.shape).to(output.dtype)
    return [plain, output.detach(), *torch.autograd.grad(output, leaves, d_output)]


def same_bits(first, second):
    return all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


@pytest.mark.usefixtures("promised_here")
@pytest.mark.parametrize("dtype", TYPES, ids=type_name)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_threads_change_no_bit(attention, dtype, size):
    tensors = make(size, dtype)
    results = []
    for threads in (1, 3) if dtype == torch.float32 else (1, 2):
        torch.set_num_threads(threads)
        results.append(forward_and_backward(attention, tensors, is_causal=size[2] == 130))
    assert same_bits(*results)


@pytest.mark.usefixtures("promised_here")
def test_threads_change_no_bit_of_dropout(attention):
    results = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        torch.manual_seed(5)
        results.append(forward_and_backward(attention, make(SIZES[3]), dropout_p=0.3))
    assert same_bits(*results)


@pytest.mark.parametrize("inner_threads", [1, 2])
def test_many_threads_at_once(attention, inner_threads):
    """Eight threads of Python, each with tensors of its own and all with one pair they share, give the bits of one."""
    torch.set_num_threads(inner_threads)
    work = [make(size) for size in SIZES]
    shared = make(SIZES[3])
    expected = [forward_and_backward(attention, tensors) for tensors in work]
    expected_shared = forward_and_backward(attention, shared)
    start = threading.Barrier(8)

    def run(worker):
        torch.set_num_threads(inner_threads)
        start.wait(timeout=60)
        for index in range(worker, worker + len(work)):
            index %= len(work)
            assert same_bits(forward_and_backward(attention, work[index]), expected[index])
            assert same_bits(forward_and_backward(attention, shared), expected_shared)
        return True

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(8), timeout=300))


@pytest.mark.usefixtures("promised_here")
def test_calls_without_pytorch_use_as_many(attention):
    """With attn.torch NumPy's functions run on PyTorch's threads, and on as many as it says when they are called."""
    for threads in (2, 1, 3):
        torch.set_num_threads(threads)
        assert attn.get_threads() == threads
    attn.set_threads(4)
    try:
        assert attn.get_threads() == 4
    finally:
        attn.set_threads(0)
    assert attn.get_threads() == 3


def test_backward_in_another_thread(attention):
    leaves = [tensor.requires_grad_() for tensor in make(SIZES[3])]
    output = attention(*leaves)
    expected = torch.autograd.grad(output, leaves, torch.ones_like(output), retain_graph=True)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        gradients = pool.submit(torch.autograd.grad, output, leaves, torch.ones_like(output)).result(timeout=60)
    assert same_bits(gradients, expected)


def test_shared_leaf(attention):
    """Threads add their gradients into one leaf, as autograd does for any function."""
    leaf = torch.zeros(1, 2, 20, 8, requires_grad=True)
    k, v = torch.randn(2, 1, 2, 20, 8)
    attention(leaf, k, v).sum().backward()
    expected = 8 * leaf.grad.clone()
    leaf.grad = None
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: attention(leaf, k, v).sum().backward(), range(8), timeout=60))
    assert_close(leaf.grad, expected.double(), 1e-5, "gradient")


def test_other_threads_run_meanwhile(attention):
    """A call lets other threads of Python run: one that counts gets on while a long call is at work."""
    tensors = make((1, 8, 1024, 1024, 64))
    attention(*tensors)
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0)

    counter = threading.Thread(target=count)
    counter.start()
    try:
        begin, before = time.perf_counter(), counted[0]
        attention(*tensors)
        seconds, after = time.perf_counter() - begin, counted[0]
    finally:
        stop.set()
        counter.join(timeout=60)
    # Holding the interpreter lock the counter would stand still; a slice of the lock is 5 ms.
    assert after - before > 20, f"{after - before} rounds in {seconds:.3f} s"


class Attended(torch.utils.data.Dataset):
    """What a data loader's worker computes by itself."""

    def __init__(self, attention):
        self.attention = attention

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return torch.cat([part.flatten() for part in forward_and_backward(self.attention, make(SIZES[3], seed=index))])


def test_workers_of_a_data_loader(attention):
    """Forked workers work after their parent did, on two threads, and give its bits."""
    torch.set_num_threads(2)
    data = Attended(attention)
    expected = torch.stack([data[index] for index in range(len(data))])
    loader = torch.utils.data.DataLoader(
        data, batch_size=3, num_workers=2, multiprocessing_context="fork", timeout=60
    )
    assert torch.equal(torch.cat(list(loader)), expected)


@pytest.mark.parametrize("threads", [1, 2])
def test_fork(attention, threads):
    """A child without exec calls the function as its parent does; one thread of it is what PyTorch itself needs there
    where its threads are those of GNU OpenMP."""
    torch.set_num_threads(threads)
    tensors = make(SIZES[3])
    expected = forward_and_backward(attention, tensors)
    child = os.fork()
    if child == 0:
        try:
            torch.set_num_threads(1)
            os._exit(0 if same_bits(forward_and_backward(attention, tensors), expected) else 1)
        finally:
            os._exit(2)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            break
        time.sleep(0.01)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert same_bits(forward_and_backward(attention, tensors), expected)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_inference_mode(attention, size):
    """Tensors made in inference mode and others, in it, give the numbers that are given outside."""
    tensors = [tensor.requires_grad_() for tensor in make(size)]
    with torch.no_grad():
        expected = attention(*tensors)
    with torch.inference_mode():
        output = attention(*tensors)
        again = attention(*[tensor.clone() for tensor in tensors])
    assert output.is_inference() and not output.requires_grad
    assert torch.equal(output, expected) and torch.equal(again, expected)
    outside = attention(*[tensor.detach() for tensor in tensors], torch.zeros(size[2], size[3], device="cpu"))
    assert_close(outside, formula(*tensors).detach(), TOLERANCE[torch.float32].output, "output")


def test_inference_tensors_outside(attention):
    """Tensors of inference mode cannot be saved for gradients; without any they are as good as others."""
    with torch.inference_mode():
        tensors = [tensor.clone() for tensor in make(SIZES[3])]
    expected = attention(*make(SIZES[3]))
    with torch.no_grad():
        assert torch.equal(attention(*tensors), expected)
    leaf = make(SIZES[3])[0].requires_grad_()
    with pytest.raises(RuntimeError, match="[Ii]nference"):
        attention(leaf, *tensors[1:])


def test_gradients_off_and_on(attention):
    """Modes belong to the thread that set them."""
    leaf = make(SIZES[2])[0].requires_grad_()
    others = make(SIZES[2])[1:]
    with torch.no_grad(), concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert not attention(leaf, *others).requires_grad
        assert pool.submit(attention, leaf, *others).result(timeout=60).requires_grad
