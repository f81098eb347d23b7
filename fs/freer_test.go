package fs

import "testing"

// An operation that finds the volume full waits for as much space as it needs to be
// freed, not for all that the freer has to do.
func TestFullVolumeFreesWhatItNeeds(t *testing.T) {
	v := newFS(t)
	root := &Cred{}
	make := func(name string) Handle {
		t.Helper()
		n, err := v.Create(root, v.Root(), []byte(name), Guarded, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n.Handle
	}
	v.free.close() // from now on nothing is freed in the background
	large := make("large")
	data := [MaxIO]byte{}
	for off := uint64(0); ; off += MaxIO {
		_, _, _, err := v.Write(root, large, off, data[:], Unstable)
		if err == ErrNoSpc {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := v.Remove(root, v.Root(), []byte("large")); err != nil {
		t.Fatal(err)
	}
	small := make("small")
	if n, _, _, err := v.Write(root, small, 0, data[:], Unstable); err != nil || n != MaxIO {
		t.Fatalf("%d bytes written: %v", n, err)
	}
	if !v.free.waiting() {
		t.Error("one write had to wait until all was freed")
	}
	for off := uint64(0); off < 70*MaxIO; off += MaxIO { // nearly all there is
		if _, _, _, err := v.Write(root, small, off, data[:], Unstable); err != nil {
			t.Fatalf("at %d: %v", off, err)
		}
	}
}

// An operation that found the volume full tries again when the freer was through
// with its work in the meantime.
func TestFreedWhileFull(t *testing.T) {
	v := newFS(t)
	v.free.close()
	v.free.wake()
	tries := 0
	err := v.run(false, false, func(*txn) uint32 {
		if tries++; tries == 1 {
			v.free.help(1) // as the background would, a moment before the end of this try
			return uint32(ErrNoSpc)
		}
		return 0
	})
	if err != nil || tries != 2 {
		t.Error(tries, err)
	}
	if err := v.run(false, false, func(*txn) uint32 { return uint32(ErrNoSpc) }); err != ErrNoSpc {
		t.Error(err)
	}
}

// A file that was cut by very much does not keep the operation that lets it grow
// again: the client is told to come again, and gets on.
func TestGrowingAgainDoesNotWaitLong(t *testing.T) {
	v := newFS(t)
	v.free.close()
	v.shrinkSteps = 2
	h := create(t, v, root, v.Root(), "f")
	data := [MaxIO]byte{}
	for off := uint64(0); off < 8*MaxIO; off += MaxIO {
		_, _, _, err := v.Write(root, h, off, data[:], Unstable)
		want(t, err, 0)
	}
	_, err := v.Setattr(root, h, &SetAttr{Size: new(uint64)}, nil)
	want(t, err, 0)
	tries := 1
	for {
		_, _, _, err = v.Write(root, h, 0, data[:10], Unstable)
		if err != ErrJukebox {
			break
		}
		tries++
	}
	want(t, err, 0)
	if most := 8 * MaxIO / BlockSize / freeStep; tries < most/4 || tries > most {
		t.Errorf("%d tries", tries)
	}
}
