package main

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tansy/disk"
	tansyfs "tansy/fs"
	volbackup "tansy/offline/backup"
	"tansy/ops/control"
	"tansy/ops/status"
)

// filled makes an image with a file of some contents, and returns its path.
func filled(t *testing.T, dir, name string, contents []byte, args ...string) string {
	t.Helper()
	img := filepath.Join(dir, name)
	if code, _, errs := saying(t, append([]string{"mkfs", img}, args...)...); code != exitOK {
		t.Fatal(errs)
	}
	write(t, img, "file", contents)
	return img
}

// write makes a file in a volume.
func write(t *testing.T, img, name string, contents []byte) {
	t.Helper()
	d, err := disk.OpenFile(img, disk.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	v, err := tansyfs.Open(d, tansyfs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := v.Create(&tansyfs.Cred{}, v.Root(), []byte(name), tansyfs.Guarded, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := v.Write(&tansyfs.Cred{}, n.Handle, 0, contents, tansyfs.FileSync); err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
}

// contents are those of a file in a volume, or in a backup of one.
func contentsOf(t *testing.T, image, name string) []byte {
	t.Helper()
	d, err := openDevice(image, disk.FileOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	v, err := tansyfs.Open(d, tansyfs.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	n, err := v.Lookup(&tansyfs.Cred{}, v.Root(), []byte(name))
	if err != nil {
		t.Fatal(err)
	}
	b, _, _, err := v.Read(&tansyfs.Cred{}, n.Handle, 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// says runs a command, and compares its exit code, and what is in its output.
func says(t *testing.T, code int, want string, args ...string) string {
	t.Helper()
	got, out, errs := saying(t, args...)
	if got != code || !strings.Contains(out+errs, want) {
		t.Errorf("tansy %q: exit code %d, %s%s; want %d, %q", args, got, out, errs, code, want)
	}
	return out
}

// A volume is backed up twice, looked at, and restored: to a new image, to a larger one, over what exists, from a pipe.
func TestBackupAndRestore(t *testing.T) {
	dir := t.TempDir()
	img := filled(t, dir, "v.img", []byte("first"), "--size", "16M", "--max-size", "1G")
	to := filepath.Join(dir, "backups")
	says(t, exitOK, ": full, ", "backup", img, to)
	write(t, img, "more", bytes.Repeat([]byte("second"), 1000))
	says(t, exitOK, ": what changed since the last one, ", "backup", img, to)
	all, err := volbackup.List(to)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	listed := says(t, exitOK, "", "backup", "--list", to)
	if strings.Count(listed, "\n") != 2 || !strings.Contains(listed, "  full  ") || !strings.Contains(listed, "  added ") {
		t.Error(listed)
	}
	says(t, exitOK, ": clean; 2 files", "check", to, "--data")
	says(t, exitOK, ": clean; 1 file", "check", all[0].Path, "--data")
	says(t, exitOK, "most        262144 blocks", "dump", to)
	says(t, exitFailure, "is a backup, which is only read: tansy restore", "grow", to)

	again, larger := filepath.Join(dir, "again.img"), filepath.Join(dir, "larger.img")
	says(t, exitOK, ": restored 16M from ", "restore", to, again)
	if got := contentsOf(t, again, "more"); len(got) != 6000 {
		t.Errorf("%d bytes", len(got))
	}
	says(t, exitOK, ", clean; it had 16M", "restore", to, larger, "--size", "32M")
	says(t, exitUsage, "the volume needs 16777216 bytes: give --size 16777216", "restore", to, again+"2", "--size", "8M")
	smaller := filepath.Join(dir, "smaller.img")
	says(t, exitOK, ": restored 12M from ", "restore", to, smaller, "--size", "12M", "--files")
	if got := contentsOf(t, smaller, "more"); len(got) != 6000 {
		t.Errorf("%d bytes", len(got))
	}
	says(t, exitOK, ", clean; a new volume, with 2 files in 1 directory", "restore", to, smaller, "--files", "--force")
	says(t, exitUsage, "the device is too small", "restore", to, smaller+"2", "--size", "2M", "--files")
	says(t, exitUsage, "--files takes a folder or a file", "restore", "-", smaller, "--files")
	if left, err := filepath.Glob(smaller + "2*"); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
	says(t, exitFailure, "exists already, and holds a Tansy volume: --force makes a volume over it", "restore", to, again)
	says(t, exitOK, ", not checked", "restore", all[0].Path, again, "--force", "--no-check")
	if got := contentsOf(t, again, "file"); string(got) != "first" {
		t.Errorf("%q", got)
	}
	says(t, exitOK, ": clean; 1 file", "check", again, "--data")
	small := filled(t, dir, "small.img", []byte("small"), "--size", "8M")
	says(t, exitUsage, "the device is too small: it has 8388608 bytes, and the volume needs 16777216", "restore", to,
		small, "--force")
	if got := contentsOf(t, small, "file"); string(got) != "small" {
		t.Errorf("a refused restore changed the volume: %q", got)
	}
	says(t, exitFailure, "give another folder; one has the backups of one volume", "backup", small, to)
	says(t, exitOK, "", "backup", img, to, "--full", "-q", "--rate", "1G")
	if got := contentsOf(t, to, "file"); string(got) != "first" {
		t.Errorf("in the backup: %q", got)
	}
}

// What is not kept goes, and the rest stays what it was. What is wrong with the rules is said.
func TestBackupKeep(t *testing.T) {
	dir := t.TempDir()
	img := filled(t, dir, "v.img", bytes.Repeat([]byte("kept"), 1000), "--size", "16M")
	to := filepath.Join(dir, "backups")
	for range 3 {
		says(t, exitOK, "", "backup", img, to)
	}
	write(t, img, "more", []byte("more"))
	out := says(t, exitOK, ": not kept\n", "backup", img, to, "--keep", "last=1,daily=1")
	all, err := volbackup.List(to)
	if err != nil || len(all) > 2 || strings.Count(out, "not kept\n") != 4-len(all) {
		t.Errorf("%v, %v\n%s", all, err, out)
	}
	says(t, exitOK, ": clean; 2 files", "check", to, "--data")
	says(t, exitUsage, `--keep "daily": give last, hourly, daily, `, "backup", img, to, "--keep", "daily")
	says(t, exitUsage, "--full and --keep are for a folder", "backup", img, "-", "--keep", "daily=1")
	says(t, exitUsage, "the argument FOLDER|- is missing", "backup", img)
	says(t, exitUsage, "--list takes a folder alone", "backup", "--list", img, to)
	says(t, exitFailure, ": not a backup of a Tansy volume", "backup", "--list", dir)
}

// A volume whose file has the name of a backup is a volume.
func TestVolumeNamedAsBackup(t *testing.T) {
	img := filled(t, t.TempDir(), "v"+volbackup.Suffix, []byte("a"), "--size", "8M")
	says(t, exitOK, ": clean; 1 file", "check", img)
	write(t, img, "more", nil)
	if volbackup.Is(img) {
		t.Error("it is taken for a backup")
	}
	f, err := os.OpenFile(img, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt(make([]byte, disk.BlockSize), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if volbackup.Is(img) {
		t.Error("without its superblock, of which it has the copy, it is taken for a backup")
	}
}

// A backup of a served volume is of the time of the moment, by the server's clock.
func TestBackupTime(t *testing.T) {
	img, to := filled(t, t.TempDir(), "a.img", []byte("a"), "--size", "8M"), filepath.Join(t.TempDir(), "to")
	sockets, err := os.MkdirTemp("", "c") // a short name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(sockets) })
	t.Setenv("RUNTIME_DIRECTORY", sockets)
	d, err := disk.OpenFile(img, disk.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const at = 1_000_000_000
	v, err := tansyfs.Open(d, tansyfs.Options{Clock: func() time.Time { return time.Unix(at, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	s, err := control.Serve(sockets, control.Volume{
		ID: v.VolumeID(), Take: v.Moment, Label: v, Source: status.Source{Image: img},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	says(t, exitOK, "backed up to", "backup", img, to)
	all, err := volbackup.List(to)
	if err != nil || len(all) != 1 || all[0].When.Unix() != at {
		t.Errorf("%v, %v", all, err)
	}
}

// Nobody else comes to the folder between a backup and what is taken away after it.
func TestBackupKeepsFolder(t *testing.T) {
	dir := t.TempDir()
	img := filled(t, dir, "a.img", []byte("a"), "--size", "8M")
	b := backingUp{volume: img, to: filepath.Join(dir, "to"), quiet: true}
	if err := b.keep.Set("last=1"); err != nil {
		t.Fatal(err)
	}
	others := func() error {
		f, err := volbackup.OpenFolder(b.to)
		if err == nil {
			f.Close()
		}
		return err
	}
	if _, err := b.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := others(); !errors.Is(err, volbackup.ErrBusy) {
		t.Errorf("before it is pruned: %v", err)
	}
	if err := b.prune(t.Context()); err != nil {
		t.Error(err)
	}
	b.close()
	if err := others(); err != nil {
		t.Errorf("at the end: %v", err)
	}
}

// A backup goes through a pipe, and what is cut short is noticed.
func TestBackupThroughPipe(t *testing.T) {
	dir := t.TempDir()
	img := filled(t, dir, "v.img", []byte("piped"), "--size", "16M")
	stream := tansy(t, "backup", img, "-")
	for n, code := range map[int]int{len(stream): exitOK, len(stream) - 1: exitFailure, 100: exitFailure} {
		to := filepath.Join(t.TempDir(), "w.img")
		c := exec.Command(os.Args[0], "-test.run=^TestHelperTansy$")
		c.Env = append(os.Environ(), "TANSY_ARGS=restore\n-\n"+to)
		c.Stdin = strings.NewReader(stream[:n])
		out, err := c.CombinedOutput()
		if got := c.ProcessState.ExitCode(); got != code {
			t.Errorf("%d of %d bytes: exit code %d, %v, %s", n, len(stream), got, err, out)
		}
		if code != exitOK {
			if left, err := os.ReadDir(filepath.Dir(to)); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		} else if got := contentsOf(t, to, "file"); string(got) != "piped" {
			t.Errorf("%q", got)
		}
	}
}

// A signal ends a backup, and a restore that waits for its input: nothing is left of either, and that is said.
func TestBackupInterrupted(t *testing.T) {
	if signal.Ignored(syscall.SIGINT) {
		t.Skip("SIGINT is ignored by whom this process starts")
	}
	dir := t.TempDir()
	img := filled(t, dir, "v.img", make([]byte, 1<<20), "--size", "16M")
	stream := tansy(t, "backup", img, "-")
	to, again := filepath.Join(dir, "backups"), filepath.Join(dir, "again.img")
	for _, x := range []struct{ args, unfinished, says string }{
		{"backup\n" + img + "\n" + to + "\n--rate\n1K", to + "/*" + unfinished, "interrupted: " + to + " is as it was\n"},
		{"restore\n-\n" + again, again + unfinished,
			"interrupted: " + again + " is not made, and nothing of it is left\n"},
	} {
		c := exec.Command(os.Args[0], "-test.run=^TestHelperTansy$")
		c.Env = append(os.Environ(), "TANSY_ARGS="+x.args)
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		var errs bytes.Buffer
		c.Stderr = &errs
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(in, stream[:5*disk.BlockSize]); err != nil && !errors.Is(err, syscall.EPIPE) {
			t.Error(err)
		}
		for there := []string(nil); len(there) == 0; { // it takes signals from before that on
			if there, err = filepath.Glob(x.unfinished); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		c.Wait()
		in.Close()
		if code := c.ProcessState.ExitCode(); code != 130 || !strings.HasSuffix(errs.String(), x.says) {
			t.Errorf("%s: exit code %d, %s", x.args, code, &errs)
		}
		if left, err := filepath.Glob(x.unfinished); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
}

// A damaged backup is said to be, with the files that it concerns, by check and by restore; an earlier one may serve.
func TestDamagedBackup(t *testing.T) {
	dir := t.TempDir()
	img := filled(t, dir, "v.img", bytes.Repeat([]byte("damaged "), 512), "--size", "16M")
	to := filepath.Join(dir, "backups")
	says(t, exitOK, "", "backup", img, to)
	says(t, exitOK, "", "backup", img, to)
	all, err := volbackup.List(to)
	if err != nil {
		t.Fatal(err)
	}
	flip(t, all[0].Path, []byte("damaged damaged "))
	says(t, exitFailure, `["/file"]`, "check", to, "--data")
	says(t, exitFailure, "; tansy backup --list prints what other backups there are", "check", to, "--data")
	says(t, exitFailure, "1 block is not as it was written: block", "check", to, "--data")
	again := filepath.Join(dir, "again.img")
	says(t, exitFailure, `["/file"]`, "restore", to, again)
	says(t, exitFailure, ", damaged, 1 problem", "restore", to, again, "--force")
	says(t, exitFailure, "the backup is not as it was written in 1 place", "restore", to, again, "--force", "--no-check")
	flip(t, all[1].Path, []byte("TansyBackup1"))
	says(t, exitFailure, "warning: "+all[1].Path+": the backup is damaged: its header is not as it was written", "restore",
		to, again, "--force")
	says(t, exitFailure, ": its header is not as it was written", "backup", "--list", to)
	says(t, exitFailure, "but there can be another full backup: "+all[1].Path+": the backup is damaged: its header",
		"backup", img, to)
	flip(t, all[1].Path, []byte("TansyEnd"))
	says(t, exitFailure, ": it does not begin as a backup does; an earlier backup may be sound: name its file", "restore",
		to, again, "--force")
	says(t, exitFailure, ": it does not begin as a backup does", "backup", "--list", to)
	says(t, exitFailure, ": damaged", "check", to)
	out := says(t, exitFailure, ": what changed since the last one", "backup", img, to)
	if !strings.Contains(out, all[1].Path+": the backup is damaged: it does not begin as a backup does\n") {
		t.Error(out)
	}
	says(t, exitFailure, "its end is missing", "check", filepath.Join(dir, "cut"+cutOf(t, all[0].Path, dir)))
}

// cutOf makes a file cut.backup of the beginning of another, and returns the end of its name.
func cutOf(t *testing.T, path, dir string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "cut"+volbackup.Suffix), b[:len(b)/2], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return volbackup.Suffix
}

// flip changes a byte where a file has some bytes.
func flip(t *testing.T, path string, where []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, where)
	if at < 0 {
		t.Fatalf("%s has no %q", path, where)
	}
	b[at] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A damaged block of the volume is named with its file, and the backup is made.
func TestBackupOfDamage(t *testing.T) {
	dir := t.TempDir()
	img := filled(t, dir, "v.img", bytes.Repeat([]byte("damaged "), 512), "--size", "16M")
	b, err := os.ReadFile(img)
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.LastIndex(b, []byte("damaged damaged "))] ^= 1
	if err := os.WriteFile(img, b, 0o600); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "backups")
	out := says(t, exitFailure, "; 1 block of the volume is damaged, and so in the backup", "backup", img, to)
	if !strings.Contains(out, `damaged: "/file"`) {
		t.Error(out)
	}
	says(t, exitFailure, `["/file"]`, "check", to, "--data")
}
