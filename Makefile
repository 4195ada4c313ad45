# A short front for Meson: `make look` and `make check` set up what they need, build, and run.
# CC and CXX choose the compilers; PREFIX, LIBDIR (relative to it) and DESTDIR the place of `make install`.

PREFIX = /usr/local
# Meson's own choice depends on what else is installed, and may be one that no loader searches.
LIBDIR = lib
SENTENCE = The robot picked up the screwdriver because it was heavy.

# `make look` shows the default model and tests name theirs, whatever the user's own choice is.
unexport ATTN_MODEL

.PHONY: all look check check-sanitize check-clang install clean

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

check:
	@scripts/setup check
	@scripts/configure build '--prefix=$(PREFIX)' '--libdir=$(LIBDIR)' -Dtests=enabled
	@ninja -C build
	@scripts/attn-fetch-model >/dev/null
	@scripts/run_tests.py build

check-sanitize:
	@scripts/setup check
	@scripts/configure build-sanitize -Dtests=enabled -Db_sanitize=address,undefined -Db_lundef=false
	@ninja -C build-sanitize
	@scripts/attn-fetch-model >/dev/null
	@scripts/run_tests.py build-sanitize

check-clang:
	@scripts/setup clang
	@CC=gcc CXX=g++ scripts/configure build-gcc -Dtests=enabled -Dwerror=true
	@ninja -C build-gcc
	@CC=clang CXX=clang++ scripts/configure build-clang -Dtests=enabled -Dwerror=true
	@ninja -C build-clang

install: all
	@meson install -C build --no-rebuild --quiet $(if $(DESTDIR),--destdir '$(abspath $(DESTDIR))')
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" = 0 ]; then PATH="$$PATH:/sbin:/usr/sbin" ldconfig || :; fi

clean:
	rm -rf build build-sanitize build-gcc build-clang
