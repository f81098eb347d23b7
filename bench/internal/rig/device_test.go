//go:build linux

package rig

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"golang.org/x/sys/unix"
)

func TestKinds(t *testing.T) {
	for _, s := range []string{"file", "loop", "zram", "memory", "2ms", "10ms"} {
		var k Kind
		if err := k.Set(s); err != nil || k.String() != s || k.Device() != (s != "file") {
			t.Errorf("%s is %v, a device: %v, %v", s, k, k.Device(), err)
		}
	}
	for _, s := range []string{"", "tape", "0s", "-2ms", "2", "2s"} {
		if err := new(Kind).Set(s); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
	if k := (Kind{}); k.Device() || k.String() != "file" {
		t.Errorf("nothing said is %v", k)
	}
}

// Devices have their size and keep what is written; a barrier takes its time, if it is to; and nothing is left of them.
func TestDevices(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make devices")
	}
	const size, slow = 16 << 20, 20 * time.Millisecond
	for _, kind := range []Kind{Loop, Zram, Memory, {Memory.name, slow}} {
		t.Run(kind.String(), func(t *testing.T) {
			if _, err := os.Stat("/sys/class/zram-control"); kind == Zram && err != nil {
				t.Skip(err)
			}
			dir := t.TempDir()
			d, err := NewDevice(t.Context(), kind, dir, size)
			if err != nil {
				t.Fatal(err)
			}
			if took := keeps(t, d.Node, size); took < kind.barrier {
				t.Errorf("a barrier took %v", took)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			mounts, _ := os.ReadFile("/proc/self/mounts")
			if bytes.Contains(mounts, []byte(dir)) {
				t.Errorf("something is still mounted:\n%s", mounts)
			}
			if _, err := os.Stat("/sys/block/" + strings.TrimPrefix(d.Node, "/dev/")); kind == Zram && err == nil {
				t.Error("the device is still there")
			}
		})
	}
}

// keeps writes to the last block of a device and reads it back. It returns how long the barrier took.
func keeps(t *testing.T, node string, size int64) time.Duration {
	f, err := os.OpenFile(node, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want, got := bytes.Repeat([]byte{7}, 4096), make([]byte, 4096)
	if _, err := f.WriteAt(want, size-4096); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	if _, err := f.ReadAt(got, size-4096); err != nil || !bytes.Equal(got, want) {
		t.Errorf("what was written is not read: %v", err)
	}
	return took
}

// What the kernel has not said to be closed when its mount has ended is closed then.
func TestHandles(t *testing.T) {
	fd, err := unix.Open(t.TempDir(), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	opened := new(handles)
	opened.add(fs.NewLoopbackFile(fd))
	opened.release()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != unix.EBADF {
		t.Errorf("a file is open still: %v", err)
	}
	opened.release() // what is closed already
}
