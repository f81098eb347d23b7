package tutorial

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// standIns are programs that stand for those of a machine with the service, and for another machine. The service is a
// server on a free port.
var standIns = map[string]string{
	"ssh":   "shift\nexec bash -c \"$*\"",
	"chown": "test -e \"$2\"",
	"systemctl": `set -e
case "$1" in
start)
	rm -f "$HERE/log" # what the last one said is not for this one
	"$HERE/bin/tansy" serve --volume "$HERE/var/lib/tansy/tansy.img" --listen 127.0.0.1:0 --control "$HERE/run" \
		> "$HERE/log" 2>&1 &
	echo $! > "$HERE/pid"
	while ! grep -qs "Stop with" "$HERE/log"; do
		kill -0 $(cat "$HERE/pid") || { cat "$HERE/log"; exit 1; }
		sleep 0.05
	done;;
stop)
	pid=$(cat "$HERE/pid")
	kill $pid
	tail --pid=$pid -f /dev/null;;
esac`,
}

var shell = regexp.MustCompile("(?ms)^( *)```sh\n(.*?)^ *```$")

// TestTasks does all that docs/guide/tasks.md says, in one folder in the place of the root: its paths lead there.
func TestTasks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: a mount is needed")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip(err)
	}
	doc, err := os.ReadFile(filepath.Join(root, "docs/guide/tasks.md"))
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.MkdirTemp("", "t") // a short name, for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(here) })
	for _, dir := range []string{"bin", "var/lib/tansy", "backup", "large", "mnt", "root", "run"} {
		if err := os.MkdirAll(filepath.Join(here, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", filepath.Join(here, "bin/tansy"), "./cmd/tansy")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, text := range standIns {
		if err := os.WriteFile(filepath.Join(here, "bin", name), []byte("#!/bin/bash\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	run := func(text string) string {
		t.Helper()
		cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", text)
		cmd.Dir = here
		cmd.Env = append(os.Environ(), "HERE="+here, "PATH="+here+"/bin:"+os.Getenv("PATH"),
			"RUNTIME_DIRECTORY="+here+"/run")
		said := filepath.Join(here, "said") // a file, and not a pipe, which the service would keep open
		f, err := os.Create(said)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd.Stdout, cmd.Stderr = f, f
		err = cmd.Run()
		out, _ := os.ReadFile(said)
		t.Logf("%s%s", text, out)
		if strings.Contains(string(out), "level=WARN") {
			t.Errorf("there is a warning: %s", out)
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return string(out)
	}
	run(`tansy mkfs var/lib/tansy/tansy.img --size 10G
tansy mount var/lib/tansy/tansy.img mnt --background
echo report > mnt/report.txt; head -c 3M /dev/urandom > mnt/more; touch -d 2001-02-03 mnt/more
tansy umount mnt
systemctl start`)
	t.Cleanup(func() { exec.Command("bash", "-c", "kill $(cat "+here+"/pid)").Run() })
	paths := regexp.MustCompile(`(^|[ '"])/(var/lib/tansy|backup|large|mnt|root)\b`)
	done := 0
	for _, m := range shell.FindAllStringSubmatch(string(doc), -1) {
		text := regexp.MustCompile("(?m)^"+m[1]).ReplaceAllString(m[2], "")
		run(paths.ReplaceAllString(text, "$1"+here+"/$2"))
		done++
	}
	if done < 9 {
		t.Errorf("%d blocks of commands", done)
	}
	run(`systemctl stop
test "$(cat root/report.txt)" = report
for v in var/lib/tansy/tansy.img large/small.img backup/copy backup/data2; do
	tansy mount $v mnt --read-only --background
	test "$(cat mnt/report.txt)" = report
	test "$(date -r mnt/more +%F)" = 2001-02-03
	tansy umount mnt
done`)
	if out := run("tansy dump var/lib/tansy/tansy.img super"); !strings.Contains(out, "most") {
		t.Error(out)
	}
}
