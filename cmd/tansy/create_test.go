package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// said runs the program in a folder, and returns its exit code and what it says of errors. One that serves is ended.
func said(t *testing.T, dir string, args ...string) (int, string) {
	t.Helper()
	var errs strings.Builder
	ctx, done := context.WithTimeout(t.Context(), 10*time.Second)
	defer done()
	c := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestHelperTansy$")
	c.Dir, c.Stderr = dir, &errs
	c.Env = append(os.Environ(), "TANSY_ARGS="+strings.Join(args, "\n"))
	c.Run()
	return c.ProcessState.ExitCode(), errs.String()
}

// names are those of the files in a folder.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		all = append(all, e.Name())
	}
	return all
}

// No command makes a volume for a name that was mistyped, and each says what may have been meant.
func TestMistyped(t *testing.T) {
	const listen = "--listen 127.0.0.1:0 --volume "
	dir := t.TempDir()
	t.Cleanup(func() { // what a fault has made
		if st, err := os.Stat("/dev/typo"); err == nil && st.Mode().IsRegular() {
			os.Remove("/dev/typo")
		}
	})
	if err := os.Symlink("gone.img", filepath.Join(dir, "link.img")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev", filepath.Join(dir, "devices")); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		args string
		code int
		says []string
	}{
		{"mout data.img mnt -o ro", exitUsage, []string{"mout", "mount"}},
		{"mout data.img -o ro", exitUsage, []string{"mout", "mount"}},
		{"serve " + listen + "typo.img", exitFailure, []string{"tansy mkfs typo.img --size", "--create"}},
		{"serve " + listen + "typo.img:/a", exitFailure, []string{"tansy mkfs typo.img --size", "--create"}},
		{"serve " + listen + "typo.img --size 8M --owner 1:1", exitFailure, []string{"--create"}},
		{"serve " + listen + "typo.img --read-only", exitFailure, []string{"tansy mkfs typo.img --size"}},
		{"serve " + listen + "typo.img --read-only --create", exitUsage, []string{"--read-only"}},
		{"serve " + listen + "/dev/typo", exitFailure, []string{"no device /dev/typo"}},
		{"serve " + listen + "/dev/typo --create --size 8M", exitFailure, []string{"no device /dev/typo"}},
		{"serve " + listen + "/dev/typo:/a --create --size 8M", exitFailure, []string{"no device /dev/typo"}},
		{"serve " + listen + "devices/typo --create --size 8M", exitFailure, []string{"no device devices/typo"}},
		{"serve " + listen + "link.img --create --size 8M", exitFailure, []string{"link.img is a link to gone.img"}},
		{"serve " + listen + "nbd:/x --create", exitUsage, []string{`"nbd:"`, "nbd://HOST:PORT/EXPORT", "./nbd:/x"}},
		{"serve " + listen + "nbd+unix:/x?socket=/s --create", exitUsage, []string{`"nbd+unix:"`, "nbd+unix:///EXPORT"}},
		{"serve " + listen + "file:/srv/v.img --create", exitUsage, []string{`"file:"`, "give a file"}},
		{"serve " + listen + "b.img:b --create", exitUsage, []string{"slash: give b.img:/b"}},
		{"mkfs nbd:/x --size 8M", exitUsage, []string{`"nbd:"`, "nbd://HOST:PORT/EXPORT"}},
		{"serve " + listen + "ndb://host/x --create", exitUsage, []string{`"ndb:"`, "nbd://"}},
		{"serve " + listen + "https://host/v.img --create", exitUsage, []string{`"https:"`}},
		{"serve " + listen + "foo:bar --create", exitUsage, []string{`"foo:"`, "./foo:bar"}},
		{"serve " + listen + "foo:bar:/a --create", exitUsage, []string{`"foo:"`}},
		{"serve " + listen + "NBD://host/x --create", exitUsage, []string{`"NBD:"`}},
		{"serve " + listen + "rdb:pool/image --create", exitUsage, []string{"rbd:POOL/IMAGE"}},
		{"serve " + listen + "rdb:pool/image --standby", exitUsage, []string{"rbd:POOL/IMAGE"}},
		{"serve " + listen + "nbd://127.0.0.1:1/x --create", exitUsage, []string{"mkfs --force"}},
		{"mkfs ndb://host/x --size 8M", exitUsage, []string{`"ndb:"`}},
		{"mkfs foo:bar --size 8M", exitUsage, []string{`"foo:"`}},
		{"mkfs /dev/typo --size 8M", exitFailure, []string{"no device /dev/typo"}},
		{"mkfs /dev/typo --size 8M --force", exitFailure, []string{"no device /dev/typo"}},
		{"mkfs /dev/typo --size 8M --if-missing", exitFailure, []string{"no device /dev/typo"}},
		{"mkfs link.img --size 8M", exitFailure, []string{"a link to gone.img"}},
		{"mkfs nbd://127.0.0.1:1/x --if-missing", exitUsage, []string{"--if-missing"}},
		{"mount typo.img " + dir, exitFailure, []string{"tansy mkfs", "typo.img --size"}},
		{"mount foo:bar " + dir, exitUsage, []string{`"foo:"`}},
		{"mount /dev/typo " + dir, exitFailure, []string{"no device /dev/typo"}},
		{"check ndb://host/x", exitUsage, []string{`"ndb:"`}},
		{"dump foo:bar super", exitUsage, []string{`"foo:"`}},
		{"trim foo:bar", exitUsage, []string{`"foo:"`}},
		{"repair https://host/x", exitUsage, []string{`"https:"`}},
	} {
		code, text := said(t, dir, strings.Fields(x.args)...)
		if code != x.code {
			t.Errorf("tansy %s: exit code %d, want %d", x.args, code, x.code)
		}
		for _, want := range x.says {
			if !strings.Contains(text, want) {
				t.Errorf("tansy %s: no %q in %s", x.args, want, text)
			}
		}
		if left := names(t, dir); !slices.Equal(left, []string{"devices", "link.img"}) {
			t.Fatalf("tansy %s has made %v", x.args, left)
		}
		if _, err := os.Lstat("/dev/typo"); err == nil {
			t.Fatalf("tansy %s has made /dev/typo", x.args)
		}
	}
}

// The name of a volume that is missing is answered with one in the same folder that it is like, if there is one.
func TestDidYouMeanVolume(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "sub", "data.imh"), 0o700); err != nil { // a folder is none
		t.Fatal(err)
	}
	for _, name := range []string{"sub/data.img", "sub/data.img.undo", "sub/data.imm.unfinished"} {
		writeFile(t, filepath.Join(dir, name), "no volume")
	}
	at := t.TempDir()
	for _, x := range []struct{ args, meant string }{
		{"serve --listen 127.0.0.1:0 --volume sub/dta.img", "sub/data.img"},
		{"serve --listen 127.0.0.1:0 --volume sub/dta.img:/a", "sub/data.img"},
		{"mount sub/dtaa.img " + at, filepath.Join(dir, "sub/data.img")},
		{"check sub/data.iimg", "sub/data.img"},
		{"check sub/Data.img", "sub/data.img"},
		{"dump sub/data", "sub/data.img"},
		{"trim sub/daat.img", "sub/data.img"},
		{"repair sub/data.imf", "sub/data.img"},
		{"check sub/other.raw", ""},
		{"check sub/none/data.img", ""},
	} {
		_, text := said(t, dir, strings.Fields(x.args)...)
		if want := ": did you mean " + x.meant + "?"; x.meant != "" && !strings.Contains(text, want) ||
			x.meant == "" && strings.Contains(text, "did you mean") {
			t.Errorf("tansy %s: no %q in %s", x.args, want, text)
		}
	}
}

// What is no volume is a failure, but to commands whose 1 is a verdict.
func TestExitCodesOfNoVolume(t *testing.T) {
	dir, at := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(dir, "text"), strings.Repeat("no volume", 1<<14))
	for _, name := range []string{"text", "missing.img", "."} {
		for args, want := range map[string]int{
			"serve --listen 127.0.0.1:0 --volume ": exitFailure,
			"mount --read-only " + at + " ":        exitFailure,
			"dump ":                                exitFailure,
			"trim ":                                exitFailure,
			"check ":                               exitUsage,
			"repair ":                              exitUsage,
		} {
			fields := append(strings.Fields(args), name)
			if fields[0] == "mount" { // VOLUME DIR
				fields[2], fields[3] = name, at
			}
			if code, text := said(t, dir, fields...); code != want {
				t.Errorf("tansy %q: exit code %d, want %d: %s", fields, code, want, text)
			}
		}
	}
}

// A file may have a name with a colon, if it is there or a folder is named, too; and what exists is served as ever.
func TestColons(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"./a:b", filepath.Join(dir, "c:d"), "v.img:2"} {
		if code, text := said(t, dir, "mkfs", name, "--size", "6M"); code != exitOK {
			t.Errorf("mkfs %s: exit code %d, %s", name, code, text)
		}
	}
	for _, name := range []string{"a:b", "./a:b", "c:d", "v.img:2"} {
		if code, text := said(t, dir, "check", name); code != exitOK {
			t.Errorf("check %s: exit code %d, %s", name, code, text)
		}
	}
	p := newServe("--volume", "a:b")
	p.cmd.Dir = dir
	p.start(t)
	p.stop(t)
}

// What serve makes by itself is tansy.img, and with --create what is named.
func TestCreate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, x := range []struct {
		flags []string
		made  string
	}{
		{nil, "tansy.img"},
		{[]string{"--volume", "v.img", "--create"}, "v.img"},
		{[]string{"--volume", "v.img"}, "v.img"},
	} {
		p := newServe(x.flags...)
		p.cmd.Dir = dir
		p.start(t)
		p.stop(t)
		if _, err := os.Stat(filepath.Join(dir, x.made)); err != nil {
			t.Errorf("serve %v: %v", x.flags, err)
		}
	}
}

// What counts only when a volume is made is told of one that is there, if it is not so.
func TestFlagsOfNewVolume(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	img := filepath.Join(dir, "v.img")
	tansy(t, "mkfs", img, "--size", "64M", "--owner", "7:8", "--mode", "1770")
	for _, x := range []struct {
		flags string
		says  []string
	}{
		{"--size 64M --owner 7:8 --mode 1770", nil},
		{"--size 8M", []string{"v.img exists and keeps its size of 64M: --size 8M is for a new image"}},
		{"--owner 7:9", []string{"root directory stays that of 7:8: --owner 7:9 is for a new volume"}},
		{"--mode 755", []string{"root directory keeps the mode 1770: --mode 0755 is for a new volume"}},
		{"--preallocate --owner 0:8 --mode 777 --create", []string{
			"v.img exists and stays sparse: --preallocate is for a new image", "stays that of 7:8: --owner 0:8", "keeps the mode 1770: --mode 0777"}},
	} {
		p := startServe(t, append([]string{"--volume", img}, strings.Fields(x.flags)...)...)
		p.stop(t)
		log := p.stderr.String()
		if n := strings.Count(log, "level=WARN"); n != len(x.says) {
			t.Errorf("%s: %d warnings, want %d: %s", x.flags, n, len(x.says), log)
		}
		for _, want := range x.says {
			if !strings.Contains(log, want) {
				t.Errorf("%s: no %q in %s", x.flags, want, log)
			}
		}
	}
	full := filepath.Join(dir, "full.img")
	tansy(t, "mkfs", full, "--size", "64M", "--preallocate")
	p := startServe(t, "--volume", full, "--preallocate")
	p.stop(t)
	if log := p.stderr.String(); strings.Contains(log, "level=WARN") {
		t.Errorf("of an image that has all its room: %s", log)
	}
}

// A step that makes a volume can be repeated, and leaves alone what exists, whatever it is.
func TestMkfsIfMissing(t *testing.T) {
	dir := t.TempDir()
	img, other := filepath.Join(dir, "v.img"), filepath.Join(dir, "other")
	writeFile(t, other, "no volume")
	for range 2 {
		for _, name := range []string{img, other} {
			tansy(t, "mkfs", name, "--size", "6M", "--if-missing")
		}
		if code := run([]string{"check", img}); code != exitOK {
			t.Fatalf("check: exit code %d", code)
		}
	}
	if b, err := os.ReadFile(other); err != nil || string(b) != "no volume" {
		t.Errorf("%q, %v", b, err)
	}
	if code := run([]string{"mkfs", img, "--if-missing", "--force"}); code != exitUsage {
		t.Errorf("both: exit code %d", code)
	}
}

// A start that fails for what has nothing to do with the volume makes none.
func TestFailedStartMakesNothing(t *testing.T) {
	dir := t.TempDir()
	img := filepath.Join(dir, "new.img")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().String()
	for _, flags := range [][]string{
		{"--listen", port}, {"--status", port}, {"--debug-listen", port}, {"--exports", filepath.Join(dir, "nothing")},
		{"--mount", filepath.Join(dir, "nothing")}, {"--mount", os.Args[0]},
	} {
		args := []string{"serve", "--volume", img, "--create", "--size", "64M"}
		if flags[0] != "--listen" {
			args = append(args, "--listen", "127.0.0.1:0")
		}
		if code := run(append(args, flags...)); code != exitFailure {
			t.Errorf("%v: exit code %d", flags, code)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%v: made %v", flags, left)
			os.Remove(img)
		}
	}
}

// What of a table like /etc/fstab is missing where a volume would lie.
func TestNotMounted(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"disk/sub", "disk/inner", "with space", "mounted/deep"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("disk", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	lines := []string{
		"# DIR/comment is one", "", "short", "swap none swap sw", "UUID=1 / ext4 defaults 0 1", "x relative ext4 defaults",
		"UUID=2 DIR/disk ext4 noauto,nofail 0 2", `UUID=3 DIR/with\040space ext4 defaults`,
		`UUID=8 DIR/ha\043sh ext4 defaults`,
		"UUID=4 DIR/mounted ext4 defaults 0 2",
		"UUID=5 DIR/mounted/deep xfs defaults", "UUID=6 DIR/comment ext4 # no",
	}
	table := strings.ReplaceAll(strings.Join(lines, "\n"), "DIR", dir)
	mounted := func(at string) bool {
		return at == filepath.Join(dir, "mounted") || at == filepath.Join(dir, "disk/inner")
	}
	for at, want := range map[string]string{
		"": "", "disk": "disk", "disk/sub": "disk", "disk/gone/too": "disk", "disk/inner": "", "disk/inner/deep": "", "diskette": "",
		"with space": "with space", "ha#sh/sub": "ha#sh",
		"link": "disk", "link/sub": "disk", "mounted": "", "mounted/else": "", "mounted/deep": "mounted/deep", "other": "",
	} {
		if want != "" {
			want = filepath.Join(dir, want)
		}
		if got := notMounted(table, resolve(filepath.Join(dir, at)), mounted); got != want {
			t.Errorf("%q: %q, want %q", at, got, want)
		}
	}
	// the mount point may be named by a link as well
	table = "UUID=7 " + filepath.Join(dir, "link") + " ext4 defaults"
	if got := notMounted(table, filepath.Join(dir, "disk/sub"), mounted); got != filepath.Join(dir, "link") {
		t.Errorf("by a link: %q", got)
	}
}
