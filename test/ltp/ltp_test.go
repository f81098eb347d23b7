//go:build linux

// Package ltp holds the test of what runs LTP's tests of files on volumes: which of them it takes, its counts, its exit
// codes, and its list of tests that are not run. LTP itself is not needed.
package ltp

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tansy/test/kit/mounttest"
	"tansy/test/kit/suitetest"
)

// Each test that is not run has a reason, and stands there once.
func TestExclusions(t *testing.T) {
	suitetest.Exclusions(t, "exclude", `\w+`)
}

// Of a list all tests are taken, of the list syscalls those of the calls alone, and each once.
func TestSelection(t *testing.T) {
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	suitetest.Program(t, calls, "# calls of files\nopen close # and\nchown umount2\n")
	suitetest.Program(t, filepath.Join(dir, "fs"),
		"#DESCRIPTION:stress\n\ngf01\tgrow -f a_$$ # b\n  # none\nopen01 open01\n")
	suitetest.Program(t, filepath.Join(dir, "syscalls"), "open01 open01\nopenat01 openat01\nopen02 open02\n"+
		"umount2_01 umount2_01\nchown01_16 chown01_16\nclose_range01 close_range01\nfork01 fork01\n")
	for _, c := range []struct {
		lists, says string
		tests       []string
		fails       bool
	}{
		{"fs", "gf01 grow -f a_$$ # b\nopen01 open01\n", nil, false},
		{"syscalls", "open01 open01\nopen02 open02\numount2_01 umount2_01\nchown01_16 chown01_16\n", nil, false},
		{"fs syscalls", "open01 open01\nopen02 open02\n", []string{"open02", "open01"}, false},
		{"fs syscalls", "run: no test fork01 is in these lists\n", []string{"fork01"}, true},
	} {
		args := append([]string{calls, dir, c.lists}, c.tests...)
		out, err := exec.CommandContext(t.Context(), "./select", args...).CombinedOutput()
		if string(out) != c.says || (err != nil) != c.fails {
			t.Errorf("of %s %q it takes %q (%v), and not %q", c.lists, c.tests, out, err, c.says)
		}
	}
}

// standIn makes an installation of LTP whose lists each show one outcome. Its tests do what LTP's do: they work in
// $TMPDIR, or on a volume that they make on $LTP_DEV themselves, and their exit status tells what became of them.
func standIn(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good":    `[ "$(stat -f -c %T .)" = fuseblk ] && touch left`,
		"anew":    `[ -z "$(ls -A .)" ]`, // what the test before left is gone
		"bad":     `echo "bad.c:7: TFAIL: open() gave 5"; exit 1`,
		"other":   `echo "other.c:1: TCONF: it needs another kernel"; exit 32`,
		"endless": `tail -f /dev/null`,
		"device": `mkfs.$LTP_DEV_FS_TYPE -q $LTP_DEV && mkdir at && mount.$LTP_DEV_FS_TYPE $LTP_DEV at &&
			echo one >at/f && umount at && mount.$LTP_DEV_FS_TYPE -o ro $LTP_DEV at && [ "$(cat at/f)" = one ] &&
			! touch at/f 2>/dev/null && umount at`,
		"broken": `mkfs.$LTP_DEV_FS_TYPE $LTP_DEV && mkdir at && mount.$LTP_DEV_FS_TYPE $LTP_DEV at && umount at &&
			closed && tr '\0' x </dev/zero | dd of=$LTP_DEV bs=4096 seek=1 count=3000 iflag=fullblock`,
		"damage": `dd if=/dev/urandom of=f bs=4096 count=100 && sync f &&
			tr '\0' x </dev/zero | dd of=$TMPDIR/../../test.img bs=4096 seek=1 count=3000 conv=notrunc iflag=fullblock`,
		"end": `for p in /proc/[0-9]*; do case $(readlink $p/exe) in */bin/tansy) kill -9 ${p#/proc/} ;; esac; done`,
	} {
		suitetest.Program(t, filepath.Join(dir, "testcases/bin", name), "#!/bin/bash\n"+text+"\n")
	}
	suitetest.Program(t, filepath.Join(dir, "testcases/bin/tst_test.sh"), "# LTP_FORCE_SINGLE_FS_TYPE\n")
	for name, text := range map[string]string{
		"passing":  "one good\ntwo anew\nthree device\nfour other\nfive nothere\nsix bad\n",
		"failing":  "one good\ntwo bad\nsix bad\n",
		"late":     "one good\ntwo endless\n",
		"nothing":  "four other\nsix bad\n",
		"breaking": "one broken\ntwo good\n",
		"damaging": "one damage\n",
		"killing":  "one end\ntwo good\n",
	} {
		suitetest.Program(t, filepath.Join(dir, "runtest", name), text)
	}
	return dir
}

// What the tests' outcomes are counted as, and which exit code each has.
func TestOutcomes(t *testing.T) {
	suitetest.Tools(t, "bash", "unshare", "losetup", "timeout")
	if os.Geteuid() != 0 {
		t.Skip("only root can mount here")
	}
	if out, err := exec.CommandContext(t.Context(), "losetup", "--find").CombinedOutput(); err != nil {
		t.Skipf("there is no loop device: %s", out)
	}
	bin, installed := mounttest.Build(t), standIn(t)
	list := filepath.Join(installed, "list")
	suitetest.Program(t, list, "six  # it is not to be run\n")
	for _, c := range []struct {
		list   string
		status int
		says   []string
	}{
		{"passing", 0, []string{"3 passed, 0 failed, 1 excluded, 2 not applicable (Linux ", "1 it needs another kernel",
			"1 nothere: not found"}},
		{"failing", 1, []string{"1 passed, 1 failed, 1 excluded, 0 not applicable (Linux ", "failed: two"}},
		{"late", 1, []string{"1 passed, 1 failed, 0 excluded,", "failed: two"}},
		{"nothing", 1, []string{"0 passed, 0 failed, 1 excluded, 1 not applicable", "no test could be run"}},
		{"breaking", 1, []string{"1 passed, 1 failed,", "failed: one"}},
		{"damaging", 1, []string{"1 passed, 0 failed,", "the volume test is damaged"}},
		{"killing", 1, []string{"the mount ended in one"}},
	} {
		t.Run(c.list, func(t *testing.T) {
			results, tmp := t.TempDir(), suitetest.Folder(t)
			env := []string{"LTP=" + installed, "TANSY=" + bin, "SIZE=64M", "EXCLUDE=" + list, "TMPDIR=" + tmp}
			if c.list == "late" {
				env = append(env, "LIMIT=3")
			}
			status, out := suitetest.Run(t, env, "-g", c.list, "-o", results)
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
			if left, _ := filepath.Glob(tmp + "/*"); left != nil {
				t.Errorf("it leaves %s", left)
			}
			if loops, _ := exec.CommandContext(t.Context(), "losetup", "-l").Output(); strings.Contains(string(loops), tmp) {
				t.Errorf("it leaves a loop device:\n%s", loops)
			}
		})
	}
}

// What is missing is said, with an exit code of its own.
func TestMissing(t *testing.T) {
	installed, old := standIn(t), t.TempDir()
	suitetest.Program(t, filepath.Join(old, "testcases/bin/tst_test.sh"), "")
	for _, c := range []struct{ where, list, says string }{
		{"", "fs", "LTP=DIR"},
		{t.TempDir(), "fs", "has no LTP that is installed"},
		{old, "fs", "from before June 2025"},
		{installed, "fs", "has no list fs"},
	} {
		if status, out := suitetest.Run(t, []string{"LTP=" + c.where}, "-g", c.list); status != 2 ||
			!strings.Contains(out, c.says) {
			t.Errorf("%q: it ends with %d: %s", c.where, status, out)
		}
	}
}
