//go:build linux

// Package xfstests holds the test of what runs xfstests on volumes: its counts, its exit codes, and its list of tests
// that are not run. xfstests itself is not needed.
package xfstests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tansy/test/kit/mounttest"
)

// Each test that is not run has a reason, and stands there once.
func TestExclusions(t *testing.T) {
	list, err := os.ReadFile("exclude")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^(generic/\d{3}) {2}# \S.{15,}$`)
	var tests []string
	for l := range strings.Lines(string(list)) {
		if l = strings.TrimSuffix(l, "\n"); l == "" || strings.HasPrefix(l, "#") {
			continue
		}
		parts := line.FindStringSubmatch(l)
		if parts == nil {
			t.Errorf("no test with a reason: %q", l)
			continue
		}
		tests = append(tests, parts[1])
	}
	if len(tests) == 0 || !slices.IsSorted(tests) || len(slices.Compact(slices.Clone(tests))) != len(tests) {
		t.Errorf("not each once, in order: %s", tests)
	}
}

// standIn is in place of xfstests' program check. The word behind -g says what becomes of the tests: generic/001 uses
// both volumes as xfstests does, generic/002 fails, generic/003 cannot be run, and generic/004 is excluded.
const standIn = `#!/bin/bash
set -eu
. "$HOST_OPTIONS"
[ "$1" = -E ] && grep -q '^generic/004' "$2" && [ "$3" = -g ]
mkdir -p "$RESULT_BASE/generic"
mount -t $FSTYP$FUSE_SUBTYP $TEST_FS_MOUNT_OPTS $TEST_DEV $TEST_DIR
mount -t $FSTYP$FUSE_SUBTYP $MOUNT_OPTIONS $SCRATCH_DEV $SCRATCH_MNT
mkdir -m 777 $TEST_DIR/all
su fsgqa -c "touch $TEST_DIR/all/f"
[ "$(stat -c %U $TEST_DIR/all/f)" = fsgqa ]
echo durable >$SCRATCH_MNT/f
src/godown -f $SCRATCH_MNT
! cat $SCRATCH_MNT/f 2>/dev/null
umount $SCRATCH_MNT
mount -t $FSTYP$FUSE_SUBTYP $MOUNT_OPTIONS $SCRATCH_DEV $SCRATCH_MNT
[ "$(cat $SCRATCH_MNT/f)" = durable ]
echo 'generic/004        [expunged]'
echo "needs $TEST_DIR to be another" >"$RESULT_BASE/generic/003.notrun"
case $4 in
passing)
	echo "Ran: generic/001 generic/003" >>"$RESULT_BASE/check.log" ;;
failing)
	echo "Ran: generic/001 generic/002 generic/003" >>"$RESULT_BASE/check.log"
	echo "Failures: generic/002" >>"$RESULT_BASE/check.log" ;;
nothing)
	echo "Ran: generic/003" >>"$RESULT_BASE/check.log" ;;
damaging)
	echo "Ran: generic/001 generic/003" >>"$RESULT_BASE/check.log"
	umount $SCRATCH_MNT
	until tansy check -q $SCRATCH_DEV; do :; done # closed
	tr '\0' x </dev/zero | dd of=$SCRATCH_DEV bs=4096 seek=1 count=3000 conv=notrunc iflag=fullblock 2>/dev/null ;;
esac
echo "Not run: generic/003" >>"$RESULT_BASE/check.log"
`

// What the tests' outcomes are counted as, and which exit code each has.
func TestOutcomes(t *testing.T) {
	for _, tool := range []string{"bash", "unshare", "xfs_io", "bc", "perl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s", tool)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can run xfstests")
	}
	bin := mounttest.Build(t)
	copied := t.TempDir()
	for name, text := range map[string]string{"check": standIn, "ltp/fsx": "", "src/godown": ""} {
		write(t, filepath.Join(copied, name), text)
	}
	list := filepath.Join(copied, "list")
	write(t, list, "generic/004  # it is not to be run\n")
	for _, c := range []struct {
		group  string
		status int
		says   []string
	}{
		{"passing", 0, []string{"1 passed, 0 failed, 1 excluded, 1 not applicable (Linux ", "1 needs FILE to be another"}},
		{"failing", 1, []string{"1 passed, 1 failed, 1 excluded, 1 not applicable (Linux ", "failed: generic/002"}},
		{"nothing", 1, []string{"0 passed, 0 failed, 1 excluded, 1 not applicable (Linux ", "no test could be run"}},
		{"damaging", 1, []string{"1 passed, 0 failed,", "the volume scratch is damaged"}},
	} {
		t.Run(c.group, func(t *testing.T) {
			results, tmp := t.TempDir(), anybodys(t)
			run := exec.CommandContext(t.Context(), "./run", "-g", c.group, "-o", results)
			run.Env = append(os.Environ(), "XFSTESTS="+copied, "TANSY="+bin, "SIZE=64M", "EXCLUDE="+list, "TMPDIR="+tmp)
			out, _ := run.CombinedOutput()
			if got := run.ProcessState.ExitCode(); got != c.status {
				t.Errorf("it ends with %d, and not %d", got, c.status)
			}
			for _, what := range append(c.says, "what the tests said: "+results) {
				if !strings.Contains(string(out), what) {
					t.Errorf("it does not say %q", what)
				}
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
			if _, err := os.Stat(filepath.Join(results, "check.log")); err != nil {
				t.Error(err)
			}
			if left, _ := filepath.Glob(tmp + "/*"); left != nil {
				t.Errorf("it leaves %s", left)
			}
		})
	}
}

// What is missing is said, with an exit code of its own.
func TestMissing(t *testing.T) {
	empty := t.TempDir()
	unbuilt := t.TempDir()
	write(t, filepath.Join(unbuilt, "check"), "")
	for where, says := range map[string]string{"": "XFSTESTS=DIR", empty: "has no xfstests", unbuilt: "is not built"} {
		run := exec.CommandContext(t.Context(), "./run")
		run.Env = append(os.Environ(), "XFSTESTS="+where)
		out, _ := run.CombinedOutput()
		if run.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), says) {
			t.Errorf("%q: it ends with %d: %s", where, run.ProcessState.ExitCode(), out)
		}
	}
}

// anybodys makes a folder that other users can reach.
func anybodys(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "xfstests")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// write makes a program, with the folder that it is in.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
