//go:build linux

// Package xfstests holds the test of what runs xfstests on volumes: its counts, its exit codes, and its list of tests
// that are not run. xfstests itself is not needed.
package xfstests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tansy/test/kit/mounttest"
	"tansy/test/kit/suitetest"
)

// Each test that is not run has a reason, and stands there once.
func TestExclusions(t *testing.T) {
	suitetest.Exclusions(t, "exclude", `generic/\d{3}`)
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
	suitetest.Tools(t, "bash", "unshare", "xfs_io", "bc", "perl")
	if os.Geteuid() != 0 {
		t.Skip("only root can run xfstests")
	}
	bin := mounttest.Build(t)
	copied := t.TempDir()
	for name, text := range map[string]string{"check": standIn, "ltp/fsx": "", "src/godown": ""} {
		suitetest.Program(t, filepath.Join(copied, name), text)
	}
	list := filepath.Join(copied, "list")
	suitetest.Program(t, list, "generic/004  # it is not to be run\n")
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
			results, tmp := t.TempDir(), suitetest.Folder(t)
			env := []string{"XFSTESTS=" + copied, "TANSY=" + bin, "SIZE=64M", "EXCLUDE=" + list, "TMPDIR=" + tmp}
			status, out := suitetest.Run(t, env, "-g", c.group, "-o", results)
			if status != c.status {
				t.Errorf("it ends with %d, and not %d", status, c.status)
			}
			for _, what := range append(c.says, "what the tests said: "+results) {
				if !strings.Contains(out, what) {
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
	suitetest.Program(t, filepath.Join(unbuilt, "check"), "")
	for where, says := range map[string]string{"": "XFSTESTS=DIR", empty: "has no xfstests", unbuilt: "is not built"} {
		if status, out := suitetest.Run(t, []string{"XFSTESTS=" + where}); status != 2 || !strings.Contains(out, says) {
			t.Errorf("%q: it ends with %d: %s", where, status, out)
		}
	}
}
