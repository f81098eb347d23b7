package main

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"tansy/fs"
	"tansy/test/kit/nfsclient"
)

// What a server has answered is there after it was killed, and on another start.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	binary, image := filepath.Join(dir, "serve"), filepath.Join(dir, "image")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for i := range 3 {
		cmd := exec.Command(binary, "-listen", "127.0.0.1:0", image)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, _ := bufio.NewReader(out).ReadString('\n')
		m := regexp.MustCompile(`,port=(\d+),`).FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("the server says %q", line)
		}
		c, err := nfsclient.Mount("127.0.0.1:" + m[1])
		if err != nil {
			t.Fatal(err)
		}
		n, err := c.Lookup(nil, c.Root(), []byte("file3"))
		if err != nil || n.Attr.Size != uint64(i) {
			t.Errorf("start %d: %d bytes, %v", i, n.Attr.Size, err)
		}
		if _, _, _, err := c.Write(nil, n.Handle, uint64(i), []byte{1}, fs.FileSync); err != nil {
			t.Error(err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		c.Close()
	}
}
