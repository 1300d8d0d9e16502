# SPDX-License-Identifier: GPL-2.0-or-later
#
# One Makefile; everything is built into $(O). `make help` prints the targets.

O       ?= .output
CC      ?= cc
CLANG   ?= clang
V       ?= 0
VERSION := 0.1.0

Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' '$(1)' '$(2)')

MODULES := liburcu-qsbr liburcu-cds libcares jansson libsystemd libcap-ng
PKG_CFLAGS := $(shell pkg-config --cflags $(MODULES) 2>/dev/null)
PKG_LIBS   := $(shell pkg-config --libs $(MODULES) 2>/dev/null)

WARN := -Wall -Wextra -Wconversion -Wformat=2 -Wshadow -Wstrict-prototypes \
        -Wmissing-prototypes -Wimplicit-fallthrough -Wvla
# `make check` says so; elsewhere a newer compiler's opinion stops nobody
ifeq ($(WERROR),1)
WARN += -Werror
endif
HARDENING := -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fPIE \
          -fno-strict-aliasing -fno-strict-overflow
CFLAGS ?= -O2 -g
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -DHEADGATE_VERSION='"$(VERSION)"' \
             -D_LGPL_SOURCE -pthread -MMD -MP -Iuserspace -I$(O)/gen \
             $(WARN) $(HARDENING) $(PKG_CFLAGS) $(CFLAGS)
LDLIBS  = $(PKG_LIBS) -pthread
LDFLAGS ?=
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now $(LDFLAGS)

# make SAN=1: address and undefined-behaviour sanitizers
ifeq ($(SAN),1)
override O := $(O)-san
HARDENING :=
CFLAGS := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined \
          -fno-sanitize-recover=all
LDFLAGS += -fsanitize=address,undefined
else ifeq ($(SAN),thread)
override O := $(O)-tsan
HARDENING :=
CFLAGS := -O1 -g -fsanitize=thread
LDFLAGS += -fsanitize=thread
endif

LIB_SRC   := $(filter-out userspace/main.c,$(wildcard userspace/*.c \
             userspace/config/*.c))
GEN_SRC   := $(patsubst userspace/config/%.y,$(O)/gen/%.c,$(wildcard userspace/config/*.y)) \
             $(patsubst userspace/config/%.l,$(O)/gen/%.c,$(wildcard userspace/config/*.l))
LIB_OBJ   := $(LIB_SRC:%.c=$(O)/%.o) $(GEN_SRC:.c=.o)
CLI_OBJ   := $(patsubst %.c,$(O)/%.o,$(wildcard tools/headgate/*.c))
UNIT_BIN  := $(patsubst selftests/unit/%.c,$(O)/unit/%,$(wildcard selftests/unit/test_*.c))
FUZZ_BIN  := $(patsubst selftests/fuzz/%.c,$(O)/fuzz/%,$(wildcard selftests/fuzz/fuzz_*.c))
BENCH_BIN := $(patsubst selftests/bench/%.c,$(O)/bench/%,$(wildcard selftests/bench/*.c))

.PHONY: all
all: $(O)/headgated $(O)/headgate ## build the daemon and the CLI

.SECONDARY:
.DELETE_ON_ERROR:

$(O)/libheadgate.a: $(LIB_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcsP $@ $^

$(O)/headgated: $(O)/userspace/main.o $(O)/libheadgate.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(CFLAGS) -o $@ $^ $(LDLIBS)

$(O)/headgate: $(CLI_OBJ) $(O)/libheadgate.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(CFLAGS) -o $@ $^ $(LDLIBS)

$(O)/%.o: %.c | generated
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

# flex and bison write code that our warnings were not made for
$(O)/gen/%.o: $(O)/gen/%.c | generated
	$(call say,CC,$@)
	$(Q)$(CC) $(filter-out -W%,$(ALL_CFLAGS)) -Iuserspace/config -c -o $@ $<

.PHONY: tools-there
tools-there:
	@command -v bison > /dev/null && command -v flex > /dev/null && \
		pkg-config --exists $(MODULES) || { \
		echo "something to build with is missing: sudo make deps" >&2; \
		exit 1; }

$(GEN_SRC): | tools-there

$(O)/gen/%.c: userspace/config/%.y
	$(call say,BISON,$@)
	$(Q)mkdir -p $(@D)
	$(Q)bison -Wall -Werror --defines=$(@:.c=.h) -o $@ $<

$(O)/gen/%.c: userspace/config/%.l
	$(call say,FLEX,$@)
	$(Q)mkdir -p $(@D)
	$(Q)flex --header-file=$(@:.c=.h) -o $@ $<

.PHONY: generated
generated: $(GEN_SRC)

$(O)/unit/%: selftests/unit/%.c $(O)/libheadgate.a | generated
	$(call say,UNIT,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -Wno-conversion $(ALL_LDFLAGS) -o $@ \
		$< $(O)/libheadgate.a -lcmocka -lm $(LDLIBS)

$(O)/bench/%: selftests/bench/%.c $(O)/libheadgate.a | generated
	$(call say,BENCH,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $< $(O)/libheadgate.a \
		-lm $(LDLIBS)

# libFuzzer brings its own main and wants the code it drives instrumented too
FUZZ_O      := $(O)-fuzz
FUZZ_CFLAGS := -O1 -g -fno-omit-frame-pointer \
               -fsanitize=fuzzer-no-link,address,undefined \
               -fno-sanitize-recover=all
FUZZ_TIME   ?= 120

$(O)/fuzz/%: selftests/fuzz/%.c FORCE
	$(Q)$(MAKE) --no-print-directory O=$(FUZZ_O) CC=$(CLANG) \
		CFLAGS='$(FUZZ_CFLAGS)' HARDENING= $(FUZZ_O)/libheadgate.a
	$(call say,FUZZ,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(filter-out -Wconversion -D_FORTIFY_SOURCE=2,$(ALL_CFLAGS)) $(FUZZ_CFLAGS) \
		-fsanitize=fuzzer -o $@ $< $(FUZZ_O)/libheadgate.a $(LDLIBS)

.PHONY: FORCE
FORCE:

-include $(shell find $(O) -name '*.d' 2>/dev/null)

##@ set-up
.PHONY: deps
deps: ## install what is needed to build, check and bench (root, apt)
	tools/package/install-deps

# what the end-to-end tests and the demo run
PROGRAMS = HEADGATED=$(abspath $(O))/headgated HEADGATE=$(abspath $(O))/headgate
ifeq ($(SAN),1)
# the router has no /proc, where the leak check looks; unit tests have it
PROGRAMS += ASAN_OPTIONS=detect_leaks=0
endif

##@ tests
.PHONY: quick unit config-check includes format-check
quick: all unit config-check includes format-check man-check ## a minute, no network

unit: all $(UNIT_BIN) ## unit tests (cmocka); SAN=1 for the sanitizers
	$(Q)selftests/run-unit $(UNIT_BIN)

config-check: $(O)/headgate ## golden configurations
	$(Q)selftests/config/run $(O)/headgate

includes: ## the arrows between the modules
	$(Q)selftests/includes

format-check: ## line lengths, white space, licence lines
	$(Q)selftests/format

format: ## have clang-format mend it
	$(Q)selftests/format --fix

.PHONY: man-check
man-check: ## the manual pages are sound mdoc
	$(Q)selftests/man

.PHONY: check-net
check-net: all ## end to end, in network namespaces (root)
	$(Q)$(PROGRAMS) selftests/net/run

.PHONY: interop
interop: all ## the same with nginx, HAProxy, OpenSSL, curl, GnuTLS (root)
	$(Q)$(PROGRAMS) selftests/interop/run

.PHONY: fuzz fuzz-check
fuzz: $(O)/fuzz/fuzz_$(T) ## make fuzz T=tls FUZZ_TIME=120
	$(Q)selftests/fuzz/run $(FUZZ_TIME) $<

fuzz-check: $(FUZZ_BIN) ## every fuzz target for FUZZ_TIME seconds
	$(Q)selftests/fuzz/run $(FUZZ_TIME) $(FUZZ_BIN)

.PHONY: check
check: ## everything that needs no hardware; installs what it needs (root)
	$(Q)selftests/run

.PHONY: bench
bench: all $(BENCH_BIN) ## side by side with HAProxy and nginx (root); QUICK=1
	$(Q)$(GIVE_BACK)
	$(Q)selftests/bench/run --out $(O)

# what was built by sudo belongs to who asked for it
GIVE_BACK = [ -z "$$SUDO_UID" ] || chown -R "$$SUDO_UID:$$SUDO_GID" .output*

##@ to see it work
.PHONY: demo
demo: ## clients, router and servers in namespaces (root); KEEP=1 stays up
	$(Q)tools/package/install-deps --quiet
	$(Q)$(MAKE) --no-print-directory all
	$(Q)$(GIVE_BACK)
	$(Q)exec env $(PROGRAMS) KEEP=$(KEEP) tools/demo

##@ install
PREFIX  ?= /usr/local
DESTDIR ?=
.PHONY: install
install: all ## programs, unit files, manual pages, an example configuration
	install -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)/etc/headgate \
		$(DESTDIR)$(PREFIX)/lib/systemd/system \
		$(DESTDIR)$(PREFIX)/lib/sysusers.d \
		$(DESTDIR)$(PREFIX)/share/doc/headgate/examples \
		$(DESTDIR)$(PREFIX)/share/man/man5 \
		$(DESTDIR)$(PREFIX)/share/man/man8
	install -m 755 $(O)/headgated $(O)/headgate $(DESTDIR)$(PREFIX)/sbin
	sed 's,@SBINDIR@,$(PREFIX)/sbin,' tools/package/headgate.service \
		> $(DESTDIR)$(PREFIX)/lib/systemd/system/headgate.service
	chmod 644 $(DESTDIR)$(PREFIX)/lib/systemd/system/headgate.service
	install -m 644 tools/package/headgate.sysusers \
		$(DESTDIR)$(PREFIX)/lib/sysusers.d/headgate.conf
	install -m 644 tools/package/headgate.socket \
		$(DESTDIR)$(PREFIX)/share/doc/headgate/examples
	install -m 644 docs/man/*.5 $(DESTDIR)$(PREFIX)/share/man/man5
	install -m 644 docs/man/*.8 $(DESTDIR)$(PREFIX)/share/man/man8
	[ -e $(DESTDIR)/etc/headgate/headgate.conf ] || \
		install -m 644 tools/package/headgate.conf \
			$(DESTDIR)/etc/headgate/headgate.conf

compile_commands.json: ## for editors
	$(Q)$(MAKE) -Bn V=1 all | selftests/compile-commands > $@

.PHONY: coverage
coverage: ## what the unit tests reach of each file
	$(Q)selftests/coverage

.PHONY: analyze
analyze: generated ## clang's static analyzer
	$(Q)for f in $(LIB_SRC); do $(CLANG) --analyze --analyzer-output text \
		$(filter-out -MMD -MP,$(ALL_CFLAGS)) $$f || exit 1; done

.PHONY: help
help: ## print this
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: clean
clean: ## remove what was built
	$(Q)rm -rf .output .output-*
