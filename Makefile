# A short front for Meson: `make look`, `make generate` and `make check` set up what they need, build, and run.
# CC and CXX choose the compilers; PREFIX, LIBDIR (relative to it) and DESTDIR the place of `make install`.

PREFIX = /usr/local
# Meson's own choice depends on what else is installed, and may be one that no loader searches.
LIBDIR = lib
SENTENCE = The robot picked up the screwdriver because it was heavy.

# What `make generate` goes on with.
PROMPT = The robot picked up the screwdriver because
GENERATE_OPTIONS = -n 60 -s 1

# What `make train` learns with: three to five minutes on two cores. Variables of make, as in
# `make train TRAIN_STEPS=5000`.
TRAIN_TEXT = gen1:1-rev22:21
TRAIN_SIZE = --layers 4 --heads 4 --dim 256 --ctx 128 --vocab 4096
TRAIN_STEPS = 600
TRAIN_OPTIONS = --batch 16 --lr 3e-3
TRAIN_SENTENCE = And God said, Let there be light: and there was light.
TRAIN_HEAD = L2H1

# How long `make fuzz` runs each target.
FUZZ_SECONDS = 600

# `make look` and `make generate` show the default models and tests name theirs, whatever the user's own
# choice is.
unexport ATTN_MODEL ATTN_GENERATOR

.PHONY: all look generate train wheel check check-python check-sanitize check-clang check-threads check-avx512 check-mpi \
        check-web check-exp fuzz accuracy bench-peers install clean

all:
	@scripts/setup build
	@scripts/configure build '--prefix=$(PREFIX)' '--libdir=$(LIBDIR)'
	@ninja -C build tool

look:
	@scripts/setup look
	@$(MAKE) --no-print-directory all
	@scripts/attn-fetch-model >/dev/null
	@echo
	@echo '$(SENTENCE)'
	@echo
	@echo 'it looks at:'
	@build/attn look --from it '$(SENTENCE)'
	@build/attn look -o build/look.html '$(SENTENCE)'
	@echo
	@echo 'Every word: build/attn look "$(SENTENCE)"'
	@echo 'The whole picture, to open in a browser: build/look.html'

# A small Llama writes: a prompt that it goes on with, and the picture of what it looked at.
generate:
	@scripts/setup generate
	@$(MAKE) --no-print-directory all
	@scripts/attn-fetch-model generator >/dev/null
	@echo
	@printf '%s' '$(PROMPT)'
	@build/attn generate $(GENERATE_OPTIONS) --look build/generate.html '$(PROMPT)'
	@echo
	@echo 'More: build/attn generate --help; a conversation: build/attn generate -i'
	@echo 'Which words each written word looked at, to open in a browser: build/generate.html'

# A GPT learns to write from the King James Bible, a verse a line: a sample, and pictures of the loss
# and of its heads.
train:
	@scripts/setup train
	@$(MAKE) --no-print-directory all
	@rm -rf build/train
	@bible -f '$(TRAIN_TEXT)' | sed 's/^[^ ]* //' >build/bible.txt
	@build/attn train -f build/bible.txt -o build/train $(TRAIN_SIZE) --steps $(TRAIN_STEPS) $(TRAIN_OPTIONS) --sample 120
	@build/attn look -m build/train -o build/train/look.html '$(TRAIN_SENTENCE)'
	@echo
	@echo 'The last word of "$(TRAIN_SENTENCE)" looks at:'
	@build/attn look -m build/train --from 'light#2' '$(TRAIN_SENTENCE)'
	@build/attn look -m build/train -o build/train/head.svg --head $(TRAIN_HEAD) '$(TRAIN_SENTENCE)'
	@echo
	@echo 'The loss: build/train/loss.svg'
	@echo 'What one head, $(TRAIN_HEAD), has learned: build/train/head.svg'
	@echo 'Which word looks at which, to open in a browser: build/train/look.html'

# The Python package, to give away: build/dist/attn-*.whl and .tar.gz, of what is committed.
wheel:
	@scripts/setup python
	@scripts/build_wheel build/dist

check:
	@scripts/setup check
	@scripts/configure build '--prefix=$(PREFIX)' '--libdir=$(LIBDIR)' -Dtests=enabled
	@ninja -C build
	@scripts/python_packages build
	@scripts/check_aarch64 build/aarch64
	@scripts/attn-fetch-model >/dev/null
	@scripts/attn-fetch-model generator >/dev/null
	@scripts/run_tests.py build --also aarch64=build/aarch64

# The Python package as its users get it: a wheel of this tree in a new environment, with PyTorch if python3 or pip
# has it, or ATTN_TORCH_WHEEL names its file.
check-python:
	@scripts/setup python
	@scripts/attn-fetch-model >/dev/null
	@scripts/check_python.py build/check-python

check-sanitize:
	@scripts/setup check
	@scripts/configure build-sanitize -Dtests=enabled -Doptimization=1 -Db_sanitize=address,undefined -Db_lundef=false
	@ninja -C build-sanitize
	@scripts/python_packages build-sanitize
	@scripts/attn-fetch-model >/dev/null
	@scripts/attn-fetch-model generator >/dev/null
	@scripts/run_tests.py build-sanitize

check-clang:
	@scripts/setup clang
	@CC=gcc CXX=g++ scripts/configure build-gcc -Dtests=enabled -Dwerror=true
	@ninja -C build-gcc
	@CC=clang CXX=clang++ scripts/configure build-clang -Dtests=enabled -Dwerror=true
	@ninja -C build-clang

# The other thread runtimes: POSIX threads under ThreadSanitizer, which does not know those of OpenMP, and
# none. Small shapes: where threads meet does not depend on them.
check-threads:
	@scripts/setup check
	@scripts/configure build-threads -Dtests=enabled -Dthreads=pthread -Db_sanitize=thread -Db_lundef=false
	@ninja -C build-threads
	@scripts/configure build-serial -Dtests=enabled -Dthreads=none
	@ninja -C build-serial
	@ATTN_TEST_REDUCED=1 scripts/run_tests.py build-threads --also serial=build-serial --suite threads

# The AVX-512 kernels on a CPU with AVX2; some minutes.
check-avx512:
	@if grep -qw avx512bw /proc/cpuinfo; then \
	    echo 'not needed: this CPU has AVX-512, and make check runs its kernels'; exit; \
	fi; set -e; \
	scripts/setup avx512; \
	scripts/configure build-avx512 -Dtool=false -Dtests=enabled -Dthreads=pthread -Demulate_avx512=true; \
	ninja -C build-avx512; \
	echo 'avx512 is emulated by SIMDe here'; \
	scripts/run_tests.py build-avx512

# Training in several processes under mpirun; a build of its own, as MPI is an option.
check-mpi:
	@scripts/setup mpi
	@scripts/configure build-mpi -Dtests=enabled -Dmpi=enabled
	@ninja -C build-mpi attn
	@scripts/run_tests.py build-mpi --suite mpi

# Pages in a real browser, with clicks and keys; what they look like is left in build/web.
check-web:
	@scripts/setup web
	@scripts/configure build '--prefix=$(PREFIX)' '--libdir=$(LIBDIR)' -Dtests=enabled
	@ninja -C build attn tests/draw/draw_map
	@scripts/attn-fetch-model >/dev/null
	@scripts/run_tests.py build --suite web

# exp of each instruction set over all floats of its range; a few minutes.
check-exp:
	@scripts/setup check
	@scripts/configure build '--prefix=$(PREFIX)' '--libdir=$(LIBDIR)' -Dtests=enabled
	@ninja -C build tests/kernel/exp_exhaustive
	@build/tests/kernel/exp_exhaustive

# Every reader on inputs that libFuzzer makes, each for FUZZ_SECONDS (600): `make fuzz FUZZ_SECONDS=60`.
fuzz:
	@scripts/setup clang
	@CC=clang CXX=clang++ scripts/configure build-fuzz -Dfuzz=true -Dtests=disabled -Dthreads=none -Doptimization=1
	@ninja -C build-fuzz fuzz-targets
	@FUZZ_SECONDS='$(FUZZ_SECONDS)' fuzz/run.py build-fuzz

# Measures the error of every instruction set and prints docs/accuracy.md.
accuracy:
	@scripts/setup build >&2
	@scripts/configure build '--prefix=$(PREFIX)' '--libdir=$(LIBDIR)' >&2
	@ninja -C build bench/accuracy >&2
	@build/bench/accuracy

# ARGUMENTS='--filter causal --rounds 5', for example.
bench-peers:
	@scripts/setup look
	@$(MAKE) --no-print-directory all
	@scripts/bench-peers build $(ARGUMENTS)

install: all
	@meson install -C build --no-rebuild --quiet $(if $(DESTDIR),--destdir '$(abspath $(DESTDIR))')
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" = 0 ]; then PATH="$$PATH:/sbin:/usr/sbin" ldconfig || :; fi

clean:
	rm -rf build build-sanitize build-gcc build-clang build-threads build-serial build-avx512 build-mpi build-fuzz
