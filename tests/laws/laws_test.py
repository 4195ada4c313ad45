"""The laws of scripts/laws hold in this tree, and each of them finds a fault where there is one.

    laws_test.py ROOT SHARED_LIBRARY STATIC_LIBRARY      (libraries empty: built with a sanitizer)
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(sys.argv[1])
LIBRARIES = [path for path in sys.argv[2:4] if path]
sys.path += [str(ROOT / "tests"), str(ROOT / "scripts" / "laws")]

import file_length  # noqa: E402
import headers_alone  # noqa: E402
import include_directions  # noqa: E402
import library_symbols  # noqa: E402
import package_files  # noqa: E402
import readme_example  # noqa: E402
import readme_links  # noqa: E402
import tap  # noqa: E402
import tests_reached  # noqa: E402


def expect(found, *faults):
    """Exactly these problems, each told by a part of its text, in order."""
    assert len(found) == len(faults), "\n".join(found) or "no problem found"
    for problem, fault in zip(found, faults):
        assert fault in problem, f"{fault!r} expected in {problem!r}"


def problems_in(law, files):
    """What a law says of a small tree, given as {path: text}."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            place = Path(folder, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        return law(Path(folder))


def includes_run_one_way():
    expect(include_directions.problems(ROOT))


def finds_includes_against_the_direction():
    good = {
        "include/attn.h": "",
        "src/model/bert.c": '#include <stdio.h>\n#include "attn.h"\n#include "nn/linear.h"\n',
        "cmd/look.c": '#include "options.h"\n#include "model/bert.h"\n',
        "cmd/options.h": "",
        "examples/first.c": "#include <attn.h>\n#include <stdio.h>\n",
        "python/native/module.c": '#include <Python.h>\n#include <attn.h>\n#include "array.h"\n',
        "python/native/array.h": "",
    }
    expect(problems_in(include_directions.problems, good))
    bad = {
        "src/base/file.c": '#include "nn/linear.h"\n',
        "src/model/gpt2.c": '  # include "kernel/kernel.h"\n',
        "src/nn/linear.c": '#include "linear.h"\n',
        "src/stray/stray.c": "",
        "cmd/embed.c": '#include "kernel/kernel.h"\n',
        "cmd/look.c": '#include "absent.h"\n',
        "examples/second.c": '#include "base/error.h"\n',
        "python/native/array.c": '#include "base/memory.h"\n',
    }
    expect(
        problems_in(include_directions.problems, bad),
        "cmd/embed.c: includes kernel/kernel.h",
        "cmd/look.c: includes absent.h",
        "examples/second.c: includes base/error.h",
        "python/native/array.c: includes base/memory.h",
        "src/base/file.c: includes nn/linear.h",
        "src/model/gpt2.c: includes kernel/kernel.h",
        "src/nn/linear.c: includes linear.h",
        "src/stray/stray.c: the law knows no room stray",
    )


def files_are_short():
    expect(file_length.problems(ROOT))


def finds_a_file_that_is_too_long():
    long, short = "x\n" * 601, "x\n" * 600
    tree = {"src/a.c": long, "src/b.c": short, "README.md": long, "build/c.c": long}
    expect(problems_in(file_length.problems, tree), "README.md: 601 lines", "src/a.c: 601 lines")


def headers_compile_alone():
    expect(headers_alone.problems(ROOT))


def every_header_can_be_compiled_here():
    if left_out := headers_alone.left_out(ROOT):
        raise tap.Skip(", ".join(f"{path} lacks {what}" for path, what in left_out.items()))


def finds_a_header_that_needs_another():
    tree = {
        "include/attn.h": "typedef int attn;\n",
        "include/other.h": "int attn_new(int class);\n",
        "src/base/lacks.h": "size_t f(void);\n",
    }
    expect(
        problems_in(headers_alone.problems, tree),
        "include/other.h: does not compile alone as C++11",
        "src/base/lacks.h: does not compile alone as C11",
    )


def finds_a_header_of_the_extension_that_needs_another():
    if headers_alone.python_flags() is None:
        raise tap.Skip("the headers of Python are not there")
    tree = {
        "python/native/array.h": "#include <Python.h>\nPyObject *array(void);\n",
        "python/native/lacks.h": '#include "array.h"\nattn_tensor tensor(void);\n',
    }
    expect(problems_in(headers_alone.problems, tree), "python/native/lacks.h: does not compile alone as C11")


def package_is_complete():
    expect(package_files.problems(ROOT))


def finds_a_file_that_is_in_no_wheel():
    tree = {
        "python/meson.build": "files('native/module.c')  # 'native/array.c'\n",
        "python/native/module.c": "",
        "python/native/array.c": "",
        "python/attn/meson.build": "{'.': files('__init__.py'), 'torch': files('torch/__init__.py')}\n",
        "python/attn/__init__.py": "",
        "python/attn/py.typed": "",
        "python/attn/torch/__init__.py": "",
        "python/attn/torch/operators.py": "",
    }
    expect(problems_in(package_files.problems, tree), "python/attn/py.typed", "python/attn/torch/operators.py",
           "python/native/array.c")


def tests_are_reached():
    expect(tests_reached.problems(ROOT))


def finds_a_test_that_nothing_runs():
    tree = {
        "tests/meson.build": "subdir('a')\n",
        "tests/help.py": "",
        "tests/a/meson.build": "# 'dead.c'\nexecutable('x', 'x.c')\nforeach n : ['y']\n  n + '_test.c'\n",
        "tests/a/x.c": "",
        "tests/a/y_test.c": "",
        "tests/a/dead.c": "",
        "tests/a/dead.py": "import help\n",
        "tests/python/meson.build": "x = {'numpy': '', 'absent': ''}\n",
        "tests/python/numpy/test_a.py": "import reference\n",
        "tests/python/numpy/reference.py": "",
        "tests/python/numpy/dead.py": "",
        "tests/python/numpy/conftest.py": "",
        "tests/python/torch/conftest.py": "",
        "tests/python/torch/test_dead.py": "",
    }
    expect(problems_in(tests_reached.problems, tree), "tests/a/dead.c", "tests/a/dead.py",
           "tests/python/numpy/dead.py", "tests/python/torch/conftest.py", "tests/python/torch/test_dead.py")


def finds_tests_that_pytest_takes_for_one():
    tree = {
        "tests/python/meson.build": "x = {'numpy': '', 'torch': ''}\n",
        "tests/python/numpy/test_a.py": "import reference\n",
        "tests/python/numpy/reference.py": "",
        "tests/python/numpy/conftest.py": "",
        "tests/python/torch/test_b.py": "import reference\n",
        "tests/python/torch/reference.py": "",
        "tests/python/torch/conftest.py": "",
    }
    expect(problems_in(tests_reached.problems, tree), "tests/python/torch/reference.py: tests/python/numpy/reference.py")


def readme_shows_the_example():
    expect(readme_example.problems(ROOT))


def finds_a_readme_that_differs():
    tree = {"README.md": "# x\n```c\nint x;\n```\n", "examples/first.c": "int y;\n"}
    expect(problems_in(readme_example.problems, tree), "is not examples/first.c")
    tree["examples/first.c"] = "int x;\n"
    expect(problems_in(readme_example.problems, tree))
    tree["README.md"] = "# x\n"
    expect(problems_in(readme_example.problems, tree), "0 blocks of C")


def readme_links_to_what_is_there():
    expect(readme_links.problems(ROOT))


def finds_links_to_nothing_and_a_readme_without_a_picture():
    expect(problems_in(readme_links.problems, {"README.md": "[a](a.md) [b](https://b)\n", "a.md": ""}),
           "no picture")
    expect(problems_in(readme_links.problems, {"README.md": "![a](a.svg) [b](b.md#c)\n", "a.svg": ""}),
           "b.md")


def library_keeps_to_its_symbols():
    if not LIBRARIES:
        raise tap.Skip("a sanitizer adds symbols and libraries of its own")
    expect(library_symbols.problems(ROOT / "include" / "attn.h", *LIBRARIES))


def finds_symbols_and_libraries_that_do_not_belong():
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        (at / "attn.h").write_text(
            "#define ATTN_API\n/* ATTN_API int attn_no(void); */\n"
            "ATTN_API int attn_a(\n    int x);\nATTN_API const char *attn_b(void);\n"
        )
        (at / "l.c").write_text(
            "int attn_a(int x);\nint attn_c(int x);\nint helper(int x);\n"
            "int attn_a(int x) { return helper(x); }\nint attn_c(int x) { return x; }\n"
            '__attribute__((visibility("hidden"))) int helper(int x) { return x; }\n'
        )
        compiler = os.environ.get("CC", "cc").split()
        for command in (
            [*compiler, "-fPIC", "-c", "l.c"],
            [*compiler, "-shared", "-o", "l.so", "l.o", "-Wl,--no-as-needed", "-lresolv"],
            ["ar", "rc", "l.a", "l.o"],
        ):
            subprocess.run(command, cwd=at, check=True)
        found = library_symbols.problems(at / "attn.h", str(at / "l.so"), str(at / "l.a"))
        assert any("exports attn_c" in p for p in found), found
        assert any("lacks attn_b" in p for p in found), found
        assert any("global symbol helper" in p for p in found), found
        assert any("needs libresolv" in p for p in found), found
        assert not any("attn_no" in p or "attn_a" in p for p in found), found


tap.run(
    [
        includes_run_one_way,
        finds_includes_against_the_direction,
        files_are_short,
        finds_a_file_that_is_too_long,
        headers_compile_alone,
        every_header_can_be_compiled_here,
        finds_a_header_that_needs_another,
        finds_a_header_of_the_extension_that_needs_another,
        package_is_complete,
        finds_a_file_that_is_in_no_wheel,
        tests_are_reached,
        finds_a_test_that_nothing_runs,
        finds_tests_that_pytest_takes_for_one,
        readme_shows_the_example,
        finds_a_readme_that_differs,
        readme_links_to_what_is_there,
        finds_links_to_nothing_and_a_readme_without_a_picture,
        library_keeps_to_its_symbols,
        finds_symbols_and_libraries_that_do_not_belong,
    ]
)
