"""What `import attn` brings: its version, the best kernels of this CPU, its files, and no other library."""
import importlib.metadata
import importlib.resources
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import attn
import pytest

ROOT = Path(__file__).parents[3]
HEADER = (ROOT / "include" / "attn.h").read_text()


def run(program: str, **variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "ATTN_ISA"} | variables
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_version_is_the_headers() -> None:
    parts = [re.search(rf"#define ATTN_VERSION_{part}\s+(\d+)", HEADER) for part in ("MAJOR", "MINOR", "PATCH")]
    assert attn.__version__ == ".".join(part[1] for part in parts if part)
    if "ATTN_TEST_WHEEL" in os.environ:
        assert importlib.metadata.version("attn") == attn.__version__


def test_no_library_but_numpy_is_imported() -> None:
    program = "import sys, attn; print(*{name.split('.')[0] for name in sys.modules})"
    found = set(run(program).split()) - set(sys.stdlib_module_names)
    before = set(run(program.replace(", attn", ", numpy")).split())
    assert found - before <= {"attn"}


def test_without_pytorch_it_is_as_good() -> None:
    without = "import sys; sys.modules['torch'] = None; sys.modules['transformers'] = None; import attn\n"
    assert run(without + "import numpy; q = numpy.ones((3, 4)); print(attn.attention(q, q, q).sum())") == "12.0"
    assert run(without + "try: import attn.torch\nexcept ImportError: print('no')") == "no"


@pytest.mark.parametrize("missing", (True, False))
def test_help_loads_no_library(missing: bool) -> None:
    program = "for name in ('torch', 'transformers'): sys.modules[name] = None\n" if missing else ""
    program = f"import pydoc, sys\n{program}import attn; text = pydoc.plaintext.document(attn)\n"
    program += "print('look(' in text, *[name for name in ('torch', 'transformers') if sys.modules.get(name)])"
    assert run(program) == "True"
    everything = "from attn import *; import sys; print(callable(look), *{'torch', 'transformers'} & {*sys.modules})"
    assert run(everything) == "True"


def test_names_that_it_exports_are_there() -> None:
    program = "import attn; print(*[n for n in attn.__all__ if n != 'look' and not hasattr(attn, n)])"
    assert run(program) == ""
    assert set(attn.__all__) <= set(dir(attn))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the flags of a CPU are known here for x86_64")
def test_the_best_kernels_are_used() -> None:
    flags = set(Path("/proc/cpuinfo").read_text().split())
    best = "scalar"
    if flags >= {"avx2", "fma", "f16c"}:
        best = "avx2"
        if flags >= {"avx512f", "avx512vl", "avx512dq", "avx512bw"}:
            best = "avx512"
    assert run("import attn; print(attn.isa())") == best
    assert run("import attn; print(attn.isa())", ATTN_ISA="scalar") == "scalar"


def test_it_says_that_it_is_typed() -> None:
    files = importlib.resources.files("attn")
    assert (files / "py.typed").is_file() and (files / "_native.pyi").is_file()


def test_the_page_is_the_tools() -> None:
    page = importlib.resources.files("attn") / "page"
    source = ROOT / "src" / "draw" / "page"
    names = {path.name for path in source.iterdir() if path.suffix in (".html", ".css", ".js")}
    entries = [entry for entry in page.iterdir() if entry.name.endswith((".html", ".css", ".js"))]
    staged = {entry.name: entry.read_bytes() for entry in entries}
    # The form asks a server, which a notebook has not.
    assert set(staged) == names - {"ask.js"}
    assert all((source / name).read_bytes() == data for name, data in staged.items())
