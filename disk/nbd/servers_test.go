package nbd

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tansy/disk"
	"tansy/disk/disktest"
)

// TestServers runs the suite of all disks by the servers that people use, as far as they are installed.
func TestServers(t *testing.T) {
	for what, command := range map[string]string{
		"nbdkit file":           "nbdkit -f -U SOCKET file IMAGE",
		"nbdkit small requests": "nbdkit -f -U SOCKET --filter=blocksize-policy file IMAGE blocksize-minimum=4096 blocksize-preferred=4096 blocksize-maximum=65536 blocksize-error-policy=error",
		"nbdkit oldest clients": "nbdkit -f -U SOCKET --mask-handshake=1 file IMAGE",
		"nbdkit TLS":            "nbdkit -f -U SOCKET --tls=require --tls-certificates=CERTIFICATES --tls-verify-peer file IMAGE",
		"qemu-nbd":              "qemu-nbd -k SOCKET -f raw IMAGE",
		"qemu-nbd direct":       "qemu-nbd -k SOCKET -f raw --cache=none --aio=native --discard=unmap IMAGE",
	} {
		t.Run(what, func(t *testing.T) {
			words := strings.Fields(command)
			program, err := exec.LookPath(words[0])
			if err != nil {
				t.Skip("it is not installed: ", words[0])
			}
			certs := certificates(t)
			disktest.Run(t, func(t *testing.T) disk.Disk {
				dir := t.TempDir()
				socket, image := filepath.Join(dir, "socket"), filepath.Join(dir, "image")
				must(t, os.WriteFile(image, nil, 0o600))
				must(t, os.Truncate(image, disktest.Blocks*disk.BlockSize))
				args := strings.Fields(strings.NewReplacer("SOCKET", socket, "IMAGE", image, "CERTIFICATES",
					certs).Replace(command))
				var said bytes.Buffer
				c := exec.Command(program, args[1:]...)
				c.Stdout, c.Stderr = &said, &said
				must(t, c.Start())
				ended := make(chan struct{})
				go func() { c.Wait(); close(ended) }()
				t.Cleanup(func() { c.Process.Kill(); <-ended })
				name := "nbd+unix:///?socket=" + socket
				if strings.Contains(what, "TLS") {
					name = secure(name, "localhost", certs)
				}
				for {
					d, err := Open(name, Options{})
					if err == nil {
						t.Logf("discards: %v, FUA: %v, blocks of a request: %d", d.Discards(), d.writes.known.Fua, d.most)
						return d
					}
					select {
					case <-ended:
						t.Fatalf("%v\n%s", err, &said)
					default:
					}
					if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) { // else it has not begun to listen
						t.Fatal(err)
					}
				}
			})
		})
	}
}
