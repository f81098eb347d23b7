// Mutants puts faults into the Go code of the server and of the check of volumes, one at
// a time, and runs the tests that must notice: package by package for decoders and
// encoders, the linearizability checker for locks, durability and the protocol. (The
// faults of the verified code are in verified/tools/mutants.py.) The sources stay as they
// are; the compiler is given an overlay.
//
//	go run ./test/mutants              # all, about 17 minutes on 2 cores; fails if one is not found
//	go run ./test/mutants -only lock   # those whose description matches
//	go run ./test/mutants -table FILE  # writes the table that is in docs/evidence/oracle.md
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"tansy/test/kit/commandline"
)

// mutant is one fault: in file, old becomes new.
type mutant struct {
	what     string
	file     string
	old, new string
	tests    []string // arguments of go test; nil: those of the codecs
}

var (
	only     = flag.String("only", ".", "regular expression of the descriptions")
	table    = flag.String("table", "", "write a table to this file")
	times    = flag.Bool("times", false, "say in the table how long the tests took, in place of which one it was")
	makeOnly = flag.Bool("n", false, "make them, look whether they compile, and run no test")
)

// The tests for the mutants of one area each, as arguments of go test.
var (
	codecs = []string{"./nfs/nfs3", "./nfs/oncrpc", "./nfs/mount3", "-run",
		"Decode|Encode|Fuzz|Call|Table|Status|Cred|Header"}
	locking   = []string{"./nfs/advisory", "./nfs/nlm", "./nfs/callout", "./nfs/reclaim", "-failfast"}
	outliving = []string{"./nfs/reclaim", "./nfs/nlm", "-timeout", "1m", "-failfast", "-run",
		"Grace|Silent|Forget|Room|Always|Format|Restart|Granted|NotKept|Unread|UnderWay"}
	unreadNotes = []string{"./offline/repair", "-run", "LocksNote"}
	noting      = []string{"./fs", "-run", "Note|Xattrs$"}
	lockChecks  = []string{"./test/conformance", "-run", "Lock|Tansy", "-checks", "^(nlm|nsm)", "-timeout", "3m"}
	lockingHere = []string{"./test/mount", "-run", "Locks", "-timeout", "5m", "-failfast"}
	finding     = []string{"./nfs/portmap", "./nfs/oncrpc", "./nfs/mount3", "-run",
		"Getport|Getaddr|Dump|Register|Packet|Old|Fuzz"}
	rules = []string{"./nfs/exports", "./nfs/groups", "./nfs/server", "-run",
		"Exports|Rules|Covering|Lookups|Cache"}
	pools      = []string{"./internal/runtime/dbytes", "-run", "Pool|Retain|Source"}
	volumes    = []string{"./nfs/server", "./cmd/tansy", "-run", "Volume"}
	creating   = []string{"./cmd/tansy", "-run", "Mistyped|Colons|Create$|IfMissing|NotMounted|InMemory"}
	hints      = []string{"./cmd/tansy", "-run", "DidYouMean|FlagsOfNew|ExportsMissing|VolumeFlag|Mistyped"}
	coverings  = []string{"./test/mount", "-run", "Covered", "-timeout", "1m"}
	unfit      = []string{"./cmd/tansy", "-run", "ConformWithout"}
	reporting  = []string{"./tools/conform", "-run", "Skipped"}
	leavings   = []string{"./cmd/tansy", "-run", "TestMkfs"}
	belowIt    = []string{"./test/mount", "-run", "BusyBelow", "-timeout", "3m"}
	endings    = []string{"./test/mount", "-run", "UnmountEnded", "-timeout", "5m"}
	byRings    = []string{"./mount", "-run", "Processors|WorkersOf|WhyNoRings|WorkerAnswers"}
	noRings    = []string{"./test/mount", "-run", "TransportRefused", "-timeout", "1m"}
	remounting = []string{"./test/mount", "-run", "Remount", "-timeout", "1m"}
	checks     = []string{"./offline/check", "-short"}
	daemons    = []string{"./ops/daemon"}
	numbers    = []string{"./nfs/oncrpc", "-run", "Stat|Latency|Shutdown"}
	machines   = []string{"./nfs/server", "-run", "TwoMachines"}
	gates      = []string{"./internal/closing", "-failfast"}
	ends       = []string{"./journal", "-run", "CloseRefuses"}
	growing    = []string{"./fs", "-run", "Grow", "-skip", "InUse"}
	inUse      = []string{"./fs", "-run", "Grow.*InUse|Growth.*InUse|MayGrow", "-skip", "Crash", "-timeout", "2m"}
	remeasures = []string{"./disk", "-run", "Remeasure"}
	growServed = []string{"./cmd/tansy", "-run", "GrowServed|ServeGrow|IsServer|GrowUnsized"}
	growth     = []string{"./internal/runtime/dtxn", "-run", "Ends", "-timeout", "1m", "-failfast"}
	extents    = []string{"./fs/...", "-run", "Ends|Extend", "-timeout", "1m"}
	statuses   = []string{"./ops/status"}
	pages      = []string{"./ops/status", "-run", "Browser"} // with a browser alone
	first      = []string{"./nfs/oncrpc", "-timeout", "2m", "-run", "FirstWrite"}
	newcomers  = []string{"./nfs/oncrpc", "-timeout", "2m", "-run", "Stay|Use|StuckW|CallsOn|NoDesc"}
	mountStats = []string{"./nfs/server", "./nfs/mount3", "-run", "Stats|Old"}
	damages    = []string{"./journal", "-run",
		"Damage|OldGroups|Hidden|Pending|EarlierLog|TwoServers|NoInstall|Inspect|Pages"}
	unstable = []string{"./fs", "-run", "Unstable|SideBySide|StreamBarriers"}
	seals    = []string{"./internal/runtime/seal", "-run", "Seal|Format|Epochs|Parse"}
	trims    = []string{"./disk", "./internal/runtime/ddisk", "./internal/runtime/dtxn", "./journal", "./fs/...",
		"-run", "Discard|Spare|Hold|Freed|TrimAll|TrimGoes|TrimBeside|TrimDeviceAfter|Written|Trim$/tmpfs"}
	grown = []string{"./internal/volumeend", "./disk", "./fs", "./offline/repair", "-run",
		"Find|Headers|Copies|Copy|Larger|Grown|Unreadable$|NoVolume|Prefix|Anew"}
	inPieces         = []string{"./disk", "-timeout", "1m", "-run", "Pieced", "-seed", "1"}
	moments          = []string{"./disk", "-timeout", "1m", "-failfast", "-run", "Moment|TakeWaits|BlockSet", "-seed", "1"}
	momentsOfVolumes = []string{"./fs/...", "-timeout", "2m", "-failfast", "-run", "Moment"}
	controls         = []string{"./ops/control", "-timeout", "1m", "-failfast"}
	controlled       = []string{"./cmd/tansy", "-timeout", "2m", "-failfast", "-run", "ServedByName|ControlFolder|BackupServed"}
	pieceChecks      = []string{"./offline/check", "-timeout", "2m", "-run", "Growing|Extent|BehindTheEnds|NotYet"}
	pieceRepairs     = []string{"./offline/repair", "-timeout", "2m", "-run", "Grow|Grown"}
	pieceScrubs      = []string{"./journal", "./fs", "-timeout", "2m", "-run", "ScrubPassesOver|ScrubOfGrowing"}
	pieceRuns        = []string{"./disk", "-timeout", "1m", "-run", "There$"}
	noneLeft         = []string{"./internal/runtime/dtxn", "-run", "NoneLeft"}
	streams          = []string{"./internal/runtime/dtxn", "./offline/check", "-run",
		"Streams|Line|Position|Skipped|Moves|HereAndThere|PlacementSideBySide|PlacementOut"}
	rotors        = []string{"./internal/runtime/dtxn", "-run", "Rotor|Exchange|Stretch"}
	rooms         = []string{"./internal/runtime/dtxn", "./fs", "-run", "RoomBeside|RoomForAll|FreeOnHost"}
	trials        = []string{"./internal/runtime/ddisk", "-run=Judge|Trial"}
	pushes        = []string{"./disk", "./internal/runtime/ddisk", "-run", "Push|Pace"}
	sharings      = []string{"./internal/runtime/ddisk", "-timeout", "10s", "-run", "Shared"}
	frees         = []string{"./fs/...", "-run", "Freer"}
	wishes        = []string{"./internal/runtime/dtxn", "-run", "Ahead|ReadBlocks"}
	repairs       = []string{"./offline/repair", "-run", "Media|ManyDamages|Zeroed"}
	localRanges   = []string{"./fs", "-run", "TestRanges", "-seed", "1", "-timeout", "1m"}
	allocations   = []string{"./fs", "-run", "Allocate|ZeroLong", "-timeout", "1m"}
	remounts      = []string{"./test/mount", "-run", "Remount", "-timeout", "3m"}
	keptFiles     = []string{"./fs", "-run", "TestKept", "-seed", "1", "-timeout", "1m"}
	attributes    = []string{"./fs", "./offline/repair", "-run", "Xattr|Capabilities"}
	listsRepaired = []string{"./offline/repair", "-run", "TestLists"}
	aclWire       = []string{"./nfs/nfs3", "-run", "ACL"}
	acls          = []string{"./nfs/server", "-run", "ACL"}
	servedLists   = []string{"./test/mount", "-run", "ServedLists"}
	setsBoth      = []string{"./fs", "-run", "SetsBothLists"}
	accessLists   = []string{"./fs", "-run", "AccessLists|DefaultLists|SetsLists|ManyLists"}
	mountAttrs    = []string{"./test/mount", "-count=1", "-run", "Xattr|Privileges|Setuid|Setgid"}
	mounts        = []string{"./mount"}
	requests      = []string{"./test/mount", "-run", "TestRequests"}
	tables        = []string{"./test/mount", "-run", "Table|MountFuse"} // as root where FUSE is
	whiteouts     = []string{"./mount", "-run", "TestWhiteout"}
	faces         = []string{"./test/mount", "-failfast", "-run", "Served(Seen|Writes|Mmap|Open|Random|Umount)", "-seed", "1"} // as root where FUSE is
	readAhead     = []string{"./fs/...", "-failfast", "-timeout", "1m", "-run", "Ahead|Readers"}
	programs      = []string{"./test/programs", "-run", "Crashes/(sqlite|maildir)$", "-crashes", "10", "-seed", "1",
		"-timeout", "5m"}
	exported = []string{"./disk/nbd", "-failfast", "-timeout", "2m", "-skip", "Servers"}
	heirs    = []string{"./ops/standby", "./disk/rbd", "./nfs/oncrpc", "-timeout", "1m", "-run",
		"Lease|Settle|Stall|Slept|Watch|Lost|Close$|MayReply|Device|Nbdkit"}
	successors    = []string{"./cmd/tansy", "-timeout", "2m", "-run", "Standby|Nbdkit|HelperTansy"}
	shares        = []string{"./nfs/fair", "./nfs/oncrpc", "-run", "Memory|Turn|CallAmong|LargeCalls"}
	changesOfAll  = []string{"./nfs/fair", "./nfs/oncrpc", "./nfs/nfs3", "-timeout", "1m", "-run", "Changes|FloodOf"}
	fragmentation = []string{"./offline/check", "-run", "Placement"}
	again         = []string{"./internal/runtime/dtxn", "./fs", "./nfs/server", "./offline/check", "-run",
		"Slots|Once|SameBytes|Records|FloodKeeps|DamagedRec|Retransm|TwoClients|Super"}
	receipts = []string{"./nfs/oncrpc", "-run", "Receipt"}
	shies    = []string{"./nfs/oncrpc", "-timeout", "1m", "-run", "TestShy|TestInlineThatWaits"}
	sealed   = []string{"./nfs/oncrpc", "-timeout", "3m", "-failfast", "-run",
		"TLS|Probe|Clear|TestHandshake|HalfOpen|Chain"}
	xprtsec    = []string{"./nfs/exports", "./nfs/server", "-run", "Transports|Certificates|Useless|Xprtsec|ParseE"}
	shown      = []string{"./ops/credentials"}
	issued     = []string{"./internal/certificate", "./cmd/tansy", "-run", "Issue|Refuses|TestCert"}
	asking     = []string{"./tools/starttls"}
	throughTLS = []string{"./test/conformance", "-run", "TestTLS"}
	tlsFlags   = []string{"./cmd/tansy", "-run", "ServeTLS|WrongArguments|MountCommands"}
	wild       = []string{"./internal/runtime/dtxn", "-run", "Wild|ForeignPlaces"}
	allocators = []string{"./txn", "-run", "Allocator|Size"}
	opened     = []string{"./txn/volume", "-timeout", "1m"}
	making     = []string{"./fs", "-run", "Plan|UsedDevice|Mkfs"}
	entering   = []string{"./packaging/entrypoint", "-timeout", "1m"}
	containers = []string{"./test/image", "-timeout", "1m"}
	concurrent = []string{"./test/linear", "-run", "Linear|Crash", "-histories", "500"}
	foreseen   = []string{"./offline/crash", "-run", "Foreseen|Orders|Idle", "-seed", "1", "-timeout", "2m"}
	crashLists = []string{"./offline/crash", "-run", "List", "-seed", "1", "-timeout", "2m"}
	crashFlags = []string{"./offline/crash", "-run", "Flag|List", "-seed", "1", "-timeout", "2m"}
	modelLists = []string{"./fs/model", "-run", "List|Inherit"}
	noted      = []string{"./internal/runtime/notes"}
	sending    = []string{"./offline/backup", "-short", "-seed", "1", "-timeout", "2m", "-failfast", "-run", "Sent|Have"}
	gentle     = []string{"./offline/backup", "-run", "Gentle"}
	copying    = []string{"./offline/backup", "-short", "-seed", "1", "-timeout", "2m", "-failfast", "-run",
		"RestoreFiles|Withheld"}
	backups = []string{"./offline/backup", "-short", "-seed", "1", "-timeout", "5m", "-failfast", "-run",
		"Contents|Zeros|Change|Sparse|Grown|Source|Superblock|Other|Interrupted$|Left|Released|Rate|Drill"}
	chains = []string{"./offline/backup", "-short", "-seed", "1", "-timeout", "5m", "-failfast", "-run",
		"Chain|Writer|Nodes|DamagedList|Refused"}
	rotten = []string{"./offline/backup", "-seed", "1", "-timeout", "5m", "-failfast", "-run",
		"Flipped|Cut|Rotten|Forged|ToDamaged|AndMore"}
	keepers = []string{"./offline/backup", "-short", "-seed", "1", "-timeout", "5m", "-failfast", "-run",
		"Keep|Prune|Base"}
	bringBack = []string{"./offline/backup", "-short", "-seed", "1", "-timeout", "5m", "-failfast", "-run",
		"Stream$|Restore|OlderLog|Grown|Drill|Cut|Source"}
	backupCmd = []string{"./cmd/tansy", "-run", "Backup", "-timeout", "5m", "-failfast"}
	// Histories of locks, through crashes: what a client may find out by its calls alone.
	lockHistories = []string{"./test/locks", "-histories", "300", "-timeout", "5m"}

	writeMemory = []string{"./internal/runtime/hold", "./internal/runtime/dbytes", "./fs",
		"-run", "Pool|Retain|Source|WriteMemory"}
	caches = []string{"./internal/runtime/cache", "./internal/runtime/hold", "./internal/runtime/dbytes",
		"-run", "Cache|Keep|Hold|Small|Take|Recycle|Any"}
	lends = []string{"./internal/runtime/dtxn", "./internal/runtime/dbytes", "./internal/runtime/hold", "./nfs/oncrpc",
		"-timeout", "1m", "-run", "Lend|Pieces|Hold|TestData|Brief"}
	codes = []string{"./journal", "./internal/runtime/codes", "./internal/runtime/pages", "./internal/runtime/seal",
		"-run", "Damage|Rebuild|Held|Pages|BesideInst|Unreadable|Code|Join"}
	scrubs = []string{"./journal", "./fs/...", "./internal/runtime/notes", "./ops/status",
		"-short", "-run", "Scrub|Pacer|Depends|Another|Clocks|Frozen|Vital|ReadNames|DamagedBitmap"}
)

func main() {
	commandline.Parse("usage: go run ./test/mutants [flags]", 0, 0)
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run() error {
	want, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var rows bytes.Buffer
	var wanted []mutant
	for _, m := range slices.Concat(mutants, crashes) {
		if want.MatchString(m.what) {
			wanted = append(wanted, m)
		}
	}
	if *makeOnly {
		if err := compile(wanted); err != nil {
			return err
		}
		fmt.Printf("%d mutants can be made\n", len(wanted))
		return nil
	}
	missed := 0
	for _, m := range wanted {
		text, err := m.text()
		if err != nil {
			return fmt.Errorf("%s: %w", m.what, err)
		}
		by, took, err := m.foundBy(dir, text)
		if err != nil {
			return fmt.Errorf("%s: %w", m.what, err)
		}
		if by == "" {
			missed++
			by = "**not found**"
		} else if *times {
			by = took
		}
		fmt.Printf("%s: %s\n", m.what, by)
		fmt.Fprintf(&rows, "| `%s`: %s | %s |\n", m.file, m.what, by)
	}
	if *table != "" {
		if err := os.WriteFile(*table, append([]byte("| fault | found by |\n|---|---|\n"), rows.Bytes()...), 0o644); err != nil {
			return err
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d mutants were not found", missed, len(wanted))
	}
	fmt.Printf("%d mutants, all found\n", len(wanted))
	return nil
}

// text is what the file is with the fault.
func (m mutant) text() ([]byte, error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(text, []byte(m.old)) {
		return nil, fmt.Errorf("%s has no %q any more", m.file, m.old)
	}
	return bytes.Replace(text, []byte(m.old), []byte(m.new), 1), nil
}

// foundBy runs the tests on the mutant, whose file is text. It names the one that fails, and how long that took, or
// none.
func (m mutant) foundBy(dir string, text []byte) (by, took string, err error) {
	path, err := filepath.Abs(m.file)
	if err != nil {
		return "", "", err
	}
	changed, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, text, 0o644); err != nil {
		return "", "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", "", err
	}
	if err := os.WriteFile(overlay, list, 0o644); err != nil {
		return "", "", err
	}
	tests := m.tests
	if tests == nil {
		tests = codecs
	}
	run := func(args ...string) ([]byte, error) {
		c := exec.Command("go", args...)
		// So that the programs that tests build have the fault, too.
		c.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay)
		return c.CombinedOutput()
	}
	if out, err := run("test", "-c", "-o", os.DevNull, tests[0]); err != nil {
		return "", "", fmt.Errorf("the mutant does not compile: %s", out)
	}
	out, err := run(append([]string{"test", "-count=1"}, tests...)...)
	if err == nil {
		return "", "", nil
	}
	for _, other := range []string{"[build failed]", "[setup failed]", "panic: test timed out"} {
		if bytes.Contains(out, []byte(other)) {
			return "", "", fmt.Errorf("that says nothing of the fault:\n%s", out)
		}
	}
	if by := regexp.MustCompile(`(?m)^--- FAIL: (\w+) \(([\d.]+)s\)`).FindSubmatch(out); by != nil {
		pkg := regexp.MustCompile(`(?m)^FAIL\s+tansy/(\S+)`).FindSubmatch(out)
		return fmt.Sprintf("`%s` %s", pkg[1], by[1]), fmt.Sprintf("%s s", by[2]), nil
	}
	return "a crash of " + strings.TrimPrefix(tests[0], "./"), "a crash of the test", nil
}
