package fs

import "testing"

// used returns what GETATTR says of the room that a file takes, in blocks.
func used(t *testing.T, v *FS, h Handle) uint64 {
	t.Helper()
	a, err := v.Getattr(h)
	want(t, err, 0)
	if a.Used%BlockSize != 0 {
		t.Errorf("used is %d", a.Used)
	}
	return a.Used / BlockSize
}

func wantUsed(t *testing.T, v *FS, h Handle, n uint64, what string) {
	t.Helper()
	if is := used(t, v, h); is != n {
		t.Errorf("%s: %d blocks, not %d", what, is, n)
	}
}

// Used is exactly what the blocks of a file take that have bytes, as long as nothing of it was cut off.
func TestUsed(t *testing.T) {
	v := newFS(t)
	h := create(t, v, root, v.Root(), "f")
	wantUsed(t, v, h, 0, "a new file")
	for i, off := range []uint64{0, 11, 12, 100, 523, 524, 5000, 262667, 262668, 9_000_000} { // under each level of indirect blocks
		write(t, v, h, off*BlockSize, "x")
		wantUsed(t, v, h, uint64(i)+1, "a block more")
	}
	write(t, v, h, 12*BlockSize+7, "over")
	wantUsed(t, v, h, 10, "overwritten")
	write(t, v, h, 13*BlockSize-1, "ab")
	wantUsed(t, v, h, 11, "a hole filled")
	size, mode := uint64(MaxSize), uint32(0o600)
	_, err := v.Setattr(root, h, &SetAttr{Size: &size}, nil)
	want(t, err, 0)
	_, err = v.Setattr(root, h, &SetAttr{Mode: &mode}, nil)
	want(t, err, 0)
	wantUsed(t, v, h, 11, "grown by a hole")
	_, _, _, err = v.Write(root, h, MaxSize, []byte("x"), Unstable)
	want(t, err, ErrFBig)
	_, _, err = v.Rename(root, v.Root(), []byte("f"), v.Root(), []byte("g"))
	want(t, err, 0)
	wantUsed(t, v, h, 11, "renamed")
	n, err := v.Symlink(root, v.Root(), []byte("l"), nil, []byte("target"))
	want(t, err, 0)
	wantUsed(t, v, n.Handle, 1, "a symbolic link")
	n, err = v.Mknod(root, v.Root(), []byte("p"), FIFO, nil, 0, 0)
	want(t, err, 0)
	wantUsed(t, v, n.Handle, 0, "a FIFO")
	d := mkdir(t, v, root, v.Root(), "d")
	wantUsed(t, v, d, 0, "a new directory")
	create(t, v, root, d, "e")
	wantUsed(t, v, d, 1, "a directory with an entry")
}

// What is cut off does not count any more if there are no holes before it. If there are, it may until it is freed.
func TestUsedAfterCut(t *testing.T) {
	v := newFS(t)
	v.free.Close() // from now on only help frees
	h := create(t, v, root, v.Root(), "f")
	data := [MaxIO]byte{}
	_, _, _, err := v.Write(root, h, 0, data[:], Unstable)
	want(t, err, 0)
	write(t, v, h, 4*MaxIO, "x")
	cut := func(size uint64) {
		t.Helper()
		_, err := v.Setattr(root, h, &SetAttr{Size: &size}, nil)
		want(t, err, 0)
	}
	wantUsed(t, v, h, 257, "before")
	cut(3 * MaxIO)
	if n := used(t, v, h); n < 256 || n > 257 {
		t.Errorf("cut: %d blocks, not 256 or 257", n)
	}
	cut(MaxIO / 2)
	wantUsed(t, v, h, 128, "cut where there is no hole")
	cut(0)
	wantUsed(t, v, h, 0, "cut to nothing")
	cut(4 * MaxIO) // which has all freed first
	wantUsed(t, v, h, 0, "grown again")
	write(t, v, h, 2*MaxIO, "x")
	_, _, _, err = v.Write(root, h, 3*MaxIO, data[:], Unstable)
	want(t, err, 0)
	wantUsed(t, v, h, 257, "written again")
	cut(3*MaxIO - 1)
	if n := used(t, v, h); n == 0 || n > 257 {
		t.Errorf("cut: %d blocks, not 1 to 257", n)
	}
	for v.free.Waiting() {
		v.free.Help(1)
	}
	wantUsed(t, v, h, 1, "cut, and all is freed")
}
