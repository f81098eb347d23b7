package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tansy/disk"
	tansyfs "tansy/fs"
	"tansy/fs/model"
	"tansy/nfs/server"
	"tansy/test/kit/nfsclient"
)

// Only where nothing speaks for a volume is it advised to make one: mkfs destroys what is there.
func TestAdvice(t *testing.T) {
	const size = 6000
	d := disk.NewMem(size * disk.BlockSize)
	open := func() error {
		v, err := tansyfs.Open(d, tansyfs.Options{})
		if err == nil {
			v.Close()
		}
		return err
	}
	if err := open(); !errors.Is(err, tansyfs.ErrNotVolume) || advice(err) == "" {
		t.Errorf("an empty device: %v%s", err, advice(err))
	}
	if err := tansyfs.Mkfs(d, tansyfs.MkfsOptions{Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	block := func(a uint64) []byte {
		b := make([]byte, tansyfs.BlockSize)
		if err := d.ReadAt(a, [][]byte{b}); err != nil {
			t.Fatal(err)
		}
		return b
	}
	write := func(a uint64, b []byte) {
		if err := d.WriteAt(a, [][]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	good := block(0)
	seal := func(b []byte) []byte {
		sum := sha256.Sum256(b[:len(b)-sha256.Size])
		copy(b[len(b)-sha256.Size:], sum[:])
		return b
	}
	for want, damage := range map[string]func(b []byte) (first, last []byte){
		"another version":           func(b []byte) ([]byte, []byte) { b[8]++; seal(b); return b, b },
		"features":                  func(b []byte) ([]byte, []byte) { b[12]++; seal(b); return b, b },
		"and so is the copy":        func(b []byte) ([]byte, []byte) { b[100]++; return b, b },
		"but the copy of one":       func(b []byte) ([]byte, []byte) { return make([]byte, len(b)), b },
		"copy of one in block 5999": func(b []byte) ([]byte, []byte) { b[100]++; return make([]byte, len(b)), b },
	} {
		first, last := damage(append([]byte(nil), good...))
		write(0, first)
		write(size-1, last)
		if err := open(); !errors.Is(err, tansyfs.ErrNotVolume) || !strings.Contains(err.Error(), want) || advice(err) != "" {
			t.Errorf("%s: %v%s", want, err, advice(err))
		}
	}
}

// slowStat is a file system whose FSSTAT says that it began, and waits.
type slowStat struct {
	tansyfs.FileSystem
	began, end chan struct{}
}

func (f *slowStat) Fsstat(h tansyfs.Handle) (tansyfs.Stat, *tansyfs.Attr, error) {
	f.began <- struct{}{}
	<-f.end
	return f.FileSystem.Fsstat(h)
}

// A server that stops says whether operations still run, for then the file system
// may not be closed.
func TestStop(t *testing.T) {
	t.Parallel()
	for _, patient := range []bool{false, true} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		f := &slowStat{model.New(model.Options{}), make(chan struct{}), make(chan struct{})}
		drain := time.Nanosecond
		if patient {
			drain = time.Minute
		}
		stop, signal := context.WithCancel(context.Background())
		var idle bool
		stopped, replied := make(chan error), make(chan error)
		go func() {
			var err error
			log := slog.New(slog.DiscardHandler)
			idle, err = serveUntil(stop, []net.Listener{l}, server.New(server.Config{Volumes: []server.Volume{{FS: f}}, Log: log}), log, drain)
			stopped <- err
		}()
		c, err := nfsclient.Mount(l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _, err := c.Fsstat(c.Root())
			replied <- err
		}()
		<-f.began
		signal()
		if patient {
			f.end <- struct{}{}
		}
		if err := <-stopped; idle != patient || (err == nil) != patient {
			t.Errorf("idle %v (%v), want %v", idle, err, patient)
		}
		if err := <-replied; (err == nil) != patient {
			t.Errorf("the request in flight: %v", err)
		}
		close(f.end)
		c.Close()
	}
}

func TestMountCommands(t *testing.T) {
	for host, want := range map[string][]string{
		"127.0.0.1": {"-o vers=3,tcp,port=9,mountport=9,nolock,hard 127.0.0.1:/ /mnt\n", "-o vers=3,tcp,port=9,mountport=9,locallocks,hard,resvport,nfc 127.0.0.1:/ /private/mnt\n"},
		"somewhere": {" somewhere:/ /mnt\n"},
		"::1":       {"-o vers=3,proto=tcp6,port=9,mountport=9,nolock,hard '[::1]:/' /mnt\n", "resvport,nfc '[::1]:/' /private/mnt\n"},
	} {
		for _, s := range want {
			if got := mountCommands(host, "9", "/", "", false); !strings.Contains(got, s) {
				t.Errorf("%s: no %q in\n%s", host, s, got)
			}
		}
	}
	want := "Linux:  sudo mount -t nfs -o vers=3,tcp,port=9,mountport=9,nolock,hard,xprtsec=tls somewhere:/a /mnt\n"
	if got := mountCommands("somewhere", "9", "/a", ",xprtsec=tls", false); got != want {
		t.Errorf("with TLS: %s, want %s", got, want)
	}
	if got := mountCommands("somewhere", "9", "/", "", true); strings.Contains(got, "lock") {
		t.Errorf("with locks of the server: %s", got)
	}
}

// An image that exists keeps its size, and who asks for another is told.
func TestServeOtherSize(t *testing.T) {
	img := filepath.Join(t.TempDir(), "v.img")
	for i, x := range []struct {
		flags  []string
		warned bool
	}{
		{[]string{"--size", "8M"}, false}, // makes it
		{[]string{"--size", "8M"}, false},
		{nil, false},
		{[]string{"--size", "1.5G"}, true},
	} {
		p := startServe(t, append(x.flags, "--volume", img)...)
		p.stop(t)
		if got := strings.Contains(p.stderr.String(), "keeps its size of 8M"); got != x.warned {
			t.Errorf("start %d, %v: warned %v\n%s", i, x.flags, got, &p.stderr)
		}
	}
	if st, err := os.Stat(img); err != nil || st.Size() != 8<<20 {
		t.Error(st, err)
	}
}
