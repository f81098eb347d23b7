# Tansy. Users need Go alone; the proofs need Dafny 2.3.0 and Z3 4.8.5 (verified/tools/install).
GO ?= go
CACHE ?= $(if $(TANSY_CACHE),$(TANSY_CACHE),$(HOME)/.cache/tansy)
export Z3 ?= $(CACHE)/z3/bin/z3
GENERATE = python3 verified/tools/gen.py

.PHONY: all help quick serve test race verify metatheory gen gen-check hooks test-linux bench lint mutants go-mutants fuzz rbd-helper release

all: test

# these commands, and what each is for
help:
	@awk '/^# / { what = substr($$0, 3) } /^[a-z-]+:/ { if (what) printf "%-13s %s\n", substr($$1, 1, length($$1) - 1), what } !/^# / { what = "" }' Makefile

# build, vet, and the short tests of packages that are quick (below a minute)
quick:
	$(GO) build ./...
	! $(GO) vet ./... 2>&1 | grep -v -e '^#' -e '^go: downloading ' -e '^internal/gen/' -e '^example/internal/gen/'
	$(GO) test -short $$($(GO) list ./... | grep -v -E '$(SLOW)')

# packages whose tests take more than a few seconds, or make devices and mounts that others on the machine would notice
SLOW = /(journal|fs|cmd/tansy|cluster|check|repair|standby|bench(/.*)?|load|disk(/.*)?|test/.*|dtxn)$$

# create tansy.img if there is none, and export it on 127.0.0.1:2049
serve:
	$(GO) run ./cmd/tansy serve

# all tests that need Go alone
test:
	$(GO) test -timeout 20m $(TEST_FLAGS) ./...

# A program with the race detector sleeps for a second when it is over, and the tests start hundreds: not here.
RACE = GORACE="atexit_sleep_ms=0 $$GORACE"

# test/translated first: it takes a minute or more of one processor, for which all would wait at the end.
# the same, short, with the race detector, which also checks the order of locks
race:
	$(RACE) $(GO) test -race -short -timeout 30m $(TEST_FLAGS) ./test/translated ./...

# check every proof; VERIFY_FLAGS=-f starts from scratch
verify: $(Z3)
	python3 verified/tools/verify.py $(VERIFY_FLAGS)

# what follows from these proofs for clients, in Coq 8.16 with stdpp (seconds)
metatheory:
	python3 metatheory/check.py $(METATHEORY_FLAGS)

# break the verified core, one line at a time: no such change may verify (hours; verified/tools/mutants.py runs some)
mutants: $(Z3)
	python3 verified/tools/mutants.py

$(Z3):
	verified/tools/install $(CACHE)

# translate the verified code, and that of the examples, to Go
gen:
	$(GENERATE) verified/compile.dfy internal/gen tansy/internal/gen tansy/internal/runtime
	$(GENERATE) --runtime tansy/internal/gen example/compile.dfy example/internal/gen tansy/example/internal/gen tansy/internal/runtime

# the committed translation is the one of the committed sources
gen-check:
	verified/tools/gen-check

# git looks at the translation before each commit that changes it or its sources
hooks:
	git config core.hooksPath verified/tools/hooks

# break the Go code, one line at a time: a test must find each (hours)
go-mutants:
	$(GO) run ./test/mutants

# every fuzz target in turn, for HOURS of CPU time
fuzz:
	nice -n 19 $(GO) run ./test/fuzz -hours $(or $(HOURS),1)

# the real Linux NFS client in user-mode Linux
test-linux:
	test/linux/run

# the helper for volumes on Ceph in C, which is faster than the one in Python (docs/guide/standby.md); as root
rbd-helper:
	disk/rbd/plugin/build $(or $(PREFIX),/usr/local)/lib/tansy

# speed, as ratios to a floor measured in the same run
bench:
	$(GO) run ./bench

# binaries, archives, packages, and image in dist/, and the tag: make release VERSION=1.2.3 (packaging/release says more)
release:
	packaging/release $(VERSION) --tag

# what the verifier cannot see of the threads, and that the check of it notices mistakes (seconds; no Dafny);
# what Dafny generates has self-assignments and unreachable returns: vet's remarks on it are left out;
# every mutant still finds its text; the documents say the numbers that there are; what the metatheory quotes of the proofs still stands there
lint:
	python3 verified/tools/threads.py --selftest
	python3 verified/tools/solver.py --selftest
	python3 verified/tools/gonames.py --selftest
	python3 verified/tools/unproved.py
	python3 verified/tools/lines.py --selftest
	python3 verified/tools/lines.py
	! $(GO) vet ./... 2>&1 | grep -v -e '^#' -e '^go: downloading ' -e '^internal/gen/' -e '^example/internal/gen/'
	$(GO) vet -C packaging/image ./...
	GOOS=darwin $(GO) build ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 $$($(GO) list ./... | grep -v internal/gen)
	cd packaging/image && $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	python3 verified/tools/mutants.py -n
	$(GO) run ./test/mutants -n
	$(GO) run ./test/counts
	python3 metatheory/check.py --quotes
	@out=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .) && { test -z "$$out" || { echo "$$out"; exit 1; }; }
