package fs

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"tansy/internal/runtime/dtxn"
)

// What earlier systems of this kind got wrong, and the cases of RFC 1813 that
// are easy to get wrong, each on its own.

var (
	root  = &Cred{}
	alice = &Cred{UID: 1000, GID: 1000, GIDs: []uint32{27, 50}}
	bob   = &Cred{UID: 1001, GID: 1001}
)

func ptr[T any](x T) *T { return &x }

func mode(m uint32) *SetAttr { return &SetAttr{Mode: &m} }

// want fails the test unless err is the status st (0: success).
func want(t testing.TB, err error, st Errno) {
	t.Helper()
	if st == 0 && err != nil || st != 0 && err != st {
		t.Fatalf("got %v, want %v", err, st)
	}
}

func create(t testing.TB, v *FS, c *Cred, dir Handle, name string) Handle {
	t.Helper()
	n, err := v.Create(c, dir, []byte(name), Guarded, mode(0o644), 0)
	want(t, err, 0)
	return n.Handle
}

func mkdir(t testing.TB, v *FS, c *Cred, dir Handle, name string) Handle {
	t.Helper()
	n, err := v.Mkdir(c, dir, []byte(name), mode(0o755))
	want(t, err, 0)
	return n.Handle
}

func write(t testing.TB, v *FS, h Handle, off uint64, s string) {
	t.Helper()
	n, _, _, err := v.Write(root, h, off, []byte(s), FileSync)
	if err != nil || int(n) != len(s) {
		t.Fatal(n, err)
	}
}

func read(t testing.TB, v *FS, h Handle, off uint64, n uint32) string {
	t.Helper()
	b, _, _, err := v.Read(root, h, off, n)
	want(t, err, 0)
	return string(b)
}

func names(t testing.TB, v *FS, dir Handle) (s []string) {
	t.Helper()
	l, err := v.Readdir(root, dir, 0, 0, false, Limit{Bytes: 1 << 20, Size: func(n int) int { return n + 24 }})
	want(t, err, 0)
	if !l.EOF {
		t.Fatal("listing is not complete")
	}
	for _, e := range l.Entries {
		s = append(s, string(e.Name))
	}
	return s
}

// A WRITE keeps no reference to the caller's buffer.
func TestWriteCopies(t *testing.T) {
	v := newFS(t)
	h := create(t, v, root, v.Root(), "f")
	b := bytes.Repeat([]byte{'x'}, 3*BlockSize)
	if _, _, _, err := v.Write(root, h, 0, b, Unstable); err != nil {
		t.Fatal(err)
	}
	clear(b)
	if s := read(t, v, h, 0, 3*BlockSize); s != strings.Repeat("x", 3*BlockSize) {
		t.Fatal("the data written changed with the buffer")
	}
}

// REMOVE does not remove directories, RMDIR no directory that has entries.
func TestRemoveNonEmptyDirectory(t *testing.T) {
	v := newFS(t)
	d := mkdir(t, v, root, v.Root(), "d")
	create(t, v, root, d, "f")
	_, err := v.Remove(root, v.Root(), []byte("d"))
	want(t, err, ErrIsDir)
	_, err = v.Rmdir(root, v.Root(), []byte("d"))
	want(t, err, ErrNotEmpty)
	e := mkdir(t, v, root, v.Root(), "e")
	_, _, err = v.Rename(root, v.Root(), []byte("e"), v.Root(), []byte("d"))
	want(t, err, ErrNotEmpty)
	if got := names(t, v, d); len(got) != 3 {
		t.Fatal(got)
	}
	_, err = v.Remove(root, d, []byte("f"))
	want(t, err, 0)
	_, _, err = v.Rename(root, v.Root(), []byte("e"), v.Root(), []byte("d"))
	want(t, err, 0)
	_, err = v.Getattr(d)
	want(t, err, ErrStale)
	n, err := v.Lookup(root, v.Root(), []byte("d"))
	want(t, err, 0)
	if n.Handle != e {
		t.Fatal("the name leads elsewhere")
	}
	_, err = v.Rmdir(root, v.Root(), []byte("d"))
	want(t, err, 0)
	a, err := v.Getattr(v.Root())
	want(t, err, 0)
	if a.Nlink != 2 {
		t.Fatalf("the root has %d links", a.Nlink)
	}
}

// A SETATTR that fails says so and changes nothing.
func TestFailedSetattr(t *testing.T) {
	v := newFS(t)
	h := create(t, v, alice, mkdirMode(t, v, v.Root(), "pub", 0o777), "f")
	before, err := v.Getattr(h)
	want(t, err, 0)
	_, err = v.Setattr(bob, h, mode(0o777), nil)
	want(t, err, ErrPerm)
	_, err = v.Setattr(alice, h, &SetAttr{UID: ptr(uint32(5)), Size: ptr(uint64(5))}, nil)
	want(t, err, ErrPerm)
	_, err = v.Setattr(alice, h, &SetAttr{Size: ptr(uint64(MaxSize + 1))}, nil)
	want(t, err, ErrFBig)
	_, err = v.Setattr(alice, h, mode(0o600), &Time{1, 2})
	want(t, err, ErrNotSync)
	w, err := v.Setattr(alice, v.Root(), &SetAttr{Size: ptr(uint64(0))}, nil)
	want(t, err, ErrInval)
	if w.Before == nil || w.After == nil || *w.Before != *w.After {
		t.Fatal("no attributes with the error")
	}
	after, err := v.Getattr(h)
	want(t, err, 0)
	if before != after {
		t.Fatalf("%+v became %+v", before, after)
	}
	w, err = v.Setattr(alice, h, mode(0o600), &before.Ctime)
	want(t, err, 0)
	if w.After.Mode != 0o600 || *w.Before != before {
		t.Fatalf("%+v", w)
	}
}

func mkdirMode(t testing.TB, v *FS, dir Handle, name string, m uint32) Handle {
	t.Helper()
	n, err := v.Mkdir(root, dir, []byte(name), mode(m))
	want(t, err, 0)
	return n.Handle
}

// A handle never reaches another file than the one it was made for.
func TestHandlesHaveGenerations(t *testing.T) {
	v := newFS(t)
	seen := map[Handle]bool{}
	inos := map[uint64]bool{}
	for i := range 50 {
		h := create(t, v, root, v.Root(), "f")
		if seen[h] {
			t.Fatal("the handle was used before", h)
		}
		seen[h] = true
		inos[h.Ino] = true
		for old := range seen {
			if _, err := v.Getattr(old); old != h && err != ErrStale {
				t.Fatal(i, old, err)
			}
		}
		_, err := v.Remove(root, v.Root(), []byte("f"))
		want(t, err, 0)
	}
	r := v.Root()
	for _, h := range []Handle{{0, 1}, {2, 0}, {2, 1}, {3, 0}, {1 << 40, 1}, {^uint64(0), 0}, {r.Ino, r.Gen + 1}} {
		_, err := v.Getattr(h)
		want(t, err, ErrStale)
		_, err = v.Create(root, h, []byte("x"), Guarded, &SetAttr{}, 0)
		want(t, err, ErrStale)
		_, _, err = v.Rename(root, r, []byte("x"), h, []byte("x"))
		want(t, err, ErrStale)
	}
}

// ".", "..", empty and long names; names with a slash or a zero byte.
func TestNames(t *testing.T) {
	v := newFS(t)
	r := v.Root()
	f := create(t, v, root, r, "f")
	d := mkdir(t, v, root, r, "d")
	mkdir(t, v, root, d, "sub")
	bad := map[string]Errno{"": ErrAcces, "a/b": ErrAcces, "/": ErrAcces, "a\x00": ErrAcces,
		strings.Repeat("n", 256): ErrNameTooLong}
	for n, st := range bad {
		name := []byte(n)
		_, err := v.Lookup(root, r, name)
		want(t, err, st)
		_, err = v.Create(root, r, name, Unchecked, &SetAttr{}, 0)
		want(t, err, st)
		_, err = v.Mkdir(root, r, name, &SetAttr{})
		want(t, err, st)
		_, err = v.Symlink(root, r, name, &SetAttr{}, []byte("t"))
		want(t, err, st)
		_, err = v.Mknod(root, r, name, FIFO, &SetAttr{}, 0, 0)
		want(t, err, st)
		_, err = v.Remove(root, r, name)
		want(t, err, st)
		_, err = v.Rmdir(root, r, name)
		want(t, err, st)
		_, _, err = v.Link(root, f, r, name)
		want(t, err, st)
		_, _, err = v.Rename(root, r, name, r, []byte("x"))
		want(t, err, st)
		_, _, err = v.Rename(root, r, []byte("f"), r, name)
		want(t, err, st)
	}
	for _, n := range []string{".", ".."} {
		name := []byte(n)
		for i, err := range []error{
			second(v.Create(root, d, name, Unchecked, &SetAttr{}, 0)), second(v.Mkdir(root, d, name, &SetAttr{})),
			second(v.Symlink(root, d, name, &SetAttr{}, []byte("t"))), third(v.Link(root, f, d, name)),
		} {
			if err != ErrExist {
				t.Fatal(n, i, err)
			}
		}
		_, err := v.Remove(root, d, name)
		want(t, err, ErrInval)
		_, _, err = v.Rename(root, d, name, r, []byte("x"))
		want(t, err, ErrInval)
		_, _, err = v.Rename(root, d, []byte("sub"), r, name)
		want(t, err, ErrInval)
	}
	_, err := v.Rmdir(root, d, []byte("."))
	want(t, err, ErrInval)
	_, err = v.Rmdir(root, d, []byte(".."))
	want(t, err, ErrExist)
	for dir, up := range map[Handle]Handle{d: r, r: r} {
		n, err := v.Lookup(root, dir, []byte(".."))
		want(t, err, 0)
		if n.Handle != up {
			t.Fatal("..", dir, n.Handle)
		}
		n, err = v.Lookup(root, dir, []byte("."))
		want(t, err, 0)
		if n.Handle != dir {
			t.Fatal(".", dir, n.Handle)
		}
	}
	long := strings.Repeat("n", 255)
	h := create(t, v, root, r, long)
	n, err := v.Lookup(root, r, []byte(long))
	want(t, err, 0)
	if n.Handle != h {
		t.Fatal("a name of 255 bytes")
	}
}

func second[A any](_ A, err error) error        { return err }
func third[A, B any](_ A, _ B, err error) error { return err }

// A directory does not move below itself, and ".." follows a move.
func TestRenameCycle(t *testing.T) {
	v := newFS(t)
	r := v.Root()
	a := mkdir(t, v, root, r, "a")
	b := mkdir(t, v, root, a, "b")
	c := mkdir(t, v, root, b, "c")
	for _, to := range []Handle{a, b, c} {
		_, _, err := v.Rename(root, r, []byte("a"), to, []byte("x"))
		want(t, err, ErrInval)
	}
	_, _, err := v.Rename(root, b, []byte("c"), r, []byte("c"))
	want(t, err, 0)
	n, err := v.Lookup(root, c, []byte(".."))
	want(t, err, 0)
	if n.Handle != r {
		t.Fatal("the parent did not change")
	}
	_, _, err = v.Rename(root, r, []byte("a"), c, []byte("a"))
	want(t, err, 0)
	for h, nl := range map[Handle]uint32{r: 3, a: 3, b: 2, c: 3} {
		at, err := v.Getattr(h)
		want(t, err, 0)
		if at.Nlink != nl {
			t.Fatalf("%v has %d links, want %d", h, at.Nlink, nl)
		}
	}
}

// RENAME onto another name of the same file does nothing; onto a file replaces it.
func TestRenameOntoFile(t *testing.T) {
	v := newFS(t)
	r := v.Root()
	f := create(t, v, root, r, "f")
	_, _, err := v.Link(root, f, r, []byte("g"))
	want(t, err, 0)
	_, _, err = v.Rename(root, r, []byte("f"), r, []byte("g"))
	want(t, err, 0)
	_, _, err = v.Rename(root, r, []byte("f"), r, []byte("f"))
	want(t, err, 0)
	if got := names(t, v, r); len(got) != 4 {
		t.Fatal(got)
	}
	h := create(t, v, root, r, "h")
	_, _, err = v.Rename(root, r, []byte("h"), r, []byte("g"))
	want(t, err, 0)
	a, err := v.Getattr(f)
	want(t, err, 0)
	if a.Nlink != 1 {
		t.Fatal("links", a.Nlink)
	}
	_, _, err = v.Rename(root, r, []byte("g"), r, []byte("f"))
	want(t, err, 0)
	_, err = v.Getattr(f)
	want(t, err, ErrStale)
	n, err := v.Lookup(root, r, []byte("f"))
	want(t, err, 0)
	if n.Handle != h {
		t.Fatal("f is not h")
	}
	mkdir(t, v, root, r, "d")
	_, _, err = v.Rename(root, r, []byte("d"), r, []byte("f"))
	want(t, err, ErrNotDir)
	_, _, err = v.Rename(root, r, []byte("f"), r, []byte("d"))
	want(t, err, ErrIsDir)
}

// Exclusive and guarded CREATE.
func TestCreateModes(t *testing.T) {
	v := newFS(t)
	r := v.Root()
	n, err := v.Create(alice, mkdirMode(t, v, r, "pub", 0o777), []byte("x"), Exclusive, nil, 77)
	want(t, err, 0)
	d := n.Dir.After.Ino
	dh, err := v.Lookup(root, r, []byte("pub"))
	want(t, err, 0)
	if dh.Handle.Ino != d {
		t.Fatal("attributes of another directory")
	}
	m, err := v.Create(alice, dh.Handle, []byte("x"), Exclusive, nil, 77)
	want(t, err, 0)
	if m.Handle != n.Handle {
		t.Fatal("the repeated call made another file")
	}
	_, err = v.Create(alice, dh.Handle, []byte("x"), Exclusive, nil, 78)
	want(t, err, ErrExist)
	_, err = v.Create(alice, dh.Handle, []byte("x"), Guarded, nil, 0)
	want(t, err, ErrExist)
	// the client that made it sets attributes next; another one's call with the same verifier is no repetition
	_, err = v.Setattr(alice, n.Handle, mode(0o644), nil)
	want(t, err, 0)
	_, err = v.Create(alice, dh.Handle, []byte("x"), Exclusive, nil, 77)
	want(t, err, ErrExist)
	create(t, v, alice, dh.Handle, "plain")
	_, err = v.Create(alice, dh.Handle, []byte("plain"), Exclusive, nil, 0)
	want(t, err, ErrExist)
	write(t, v, n.Handle, 0, "hello")
	// size is applied to a file that is there, the mode is not
	m, err = v.Create(alice, dh.Handle, []byte("x"), Unchecked,
		&SetAttr{Mode: ptr(uint32(0o777)), Size: ptr(uint64(3))}, 0)
	want(t, err, 0)
	if m.Attr.Size != 3 || m.Attr.Mode == 0o777 || m.Handle != n.Handle {
		t.Fatalf("%+v", m)
	}
	_, err = v.Create(bob, dh.Handle, []byte("x"), Unchecked, &SetAttr{Size: ptr(uint64(0))}, 0)
	want(t, err, ErrAcces)
}

// Holes read as zeros, also where there was data before the file was cut.
func TestTruncateAndGrow(t *testing.T) {
	v := newFS(t)
	h := create(t, v, root, v.Root(), "f")
	data := strings.Repeat("abcdefg", 3000)
	write(t, v, h, 0, data)
	for _, cut := range []uint64{20000, 4096, 5000, 1, 0} {
		for _, n := range []uint64{cut, 30000} {
			if _, err := v.Setattr(root, h, &SetAttr{Size: ptr(n)}, nil); err != nil {
				t.Fatal(err)
			}
		}
		s := read(t, v, h, 0, 40000)
		if len(s) != 30000 || strings.Trim(s[min(cut, 4096):], "\x00") != "" && cut <= 4096 {
			t.Fatal(cut, len(s))
		}
		if s[:min(cut, 4096)] != data[:min(cut, 4096)] {
			t.Fatal(cut, "lost data")
		}
	}
	// far beyond the direct blocks
	far := uint64(MaxSize - 10)
	write(t, v, h, far, "0123456789")
	if s := read(t, v, h, far-5, 100); s != "\x00\x00\x00\x00\x000123456789" {
		t.Fatalf("%q", s)
	}
	_, _, _, err := v.Write(root, h, far, []byte("0123456789a"), FileSync)
	want(t, err, ErrFBig)
	_, _, _, err = v.Write(root, h, ^uint64(0)-3, []byte("0123456789a"), FileSync)
	want(t, err, ErrFBig)
}

// A large file gives all its blocks back, in the background.
func TestLargeFilesAreFreed(t *testing.T) {
	v := newFS(t)
	before, _, err := v.Fsstat(v.Root())
	want(t, err, 0)
	chunk := strings.Repeat("0123456789abcdef", 1<<16/16)
	var hs []Handle
	for i := range 4 {
		h := create(t, v, root, v.Root(), fmt.Sprint("f", i))
		for k := range uint64(40) {
			write(t, v, h, k*1<<16, chunk)
		}
		hs = append(hs, h)
	}
	// a file that is cut can grow again at once, and holds zeros there
	_, err = v.Setattr(root, hs[0], &SetAttr{Size: ptr(uint64(10))}, nil)
	want(t, err, 0)
	write(t, v, hs[0], 100000, "x")
	if s := read(t, v, hs[0], 0, 1<<20); strings.Trim(s[10:100000], "\x00") != "" || len(s) != 100001 {
		t.Fatal("old data shows")
	}
	_, err = v.Create(root, v.Root(), []byte("f1"), Unchecked, &SetAttr{Size: ptr(uint64(0))}, 0)
	want(t, err, 0)
	for i := range 4 {
		_, err := v.Remove(root, v.Root(), []byte(fmt.Sprint("f", i)))
		want(t, err, 0)
		_, err = v.Getattr(hs[i])
		want(t, err, ErrStale)
	}
	v.free.Help(math.MaxInt)
	after, _, err := v.Fsstat(v.Root())
	want(t, err, 0)
	// the directory keeps its block
	if after.FreeFiles != before.FreeFiles || after.FreeBytes+BlockSize < before.FreeBytes {
		t.Fatalf("%+v became %+v", before, after)
	}
}

// A full volume says NOSPC, loses nothing, and takes files again when others went.
func TestFull(t *testing.T) {
	v := memFS(t, 3000, 200, Options{})
	h := create(t, v, root, v.Root(), "big")
	chunk := strings.Repeat("x", 1<<16)
	var n uint64
	for {
		k, _, _, err := v.Write(root, h, n, []byte(chunk), FileSync)
		if err == ErrNoSpc {
			break
		}
		want(t, err, 0)
		n += uint64(k)
	}
	a, err := v.Getattr(h)
	want(t, err, 0)
	if a.Size != n || n < 8<<20 {
		t.Fatal(a.Size, n)
	}
	_, err = v.Remove(root, v.Root(), []byte("big"))
	want(t, err, 0)
	h = create(t, v, root, v.Root(), "next") // whether the background is through or not
	for k := uint64(0); k < n; k += 1 << 16 {
		write(t, v, h, k, chunk)
	}
	for i := 0; ; i++ {
		_, err := v.Create(root, v.Root(), []byte(fmt.Sprint(i)), Guarded, nil, 0)
		if err == ErrNoSpc {
			break
		}
		want(t, err, 0)
		if i > 200 {
			t.Fatal("more files than inodes")
		}
	}
}

// A listing goes on after its cookie, and every entry comes once.
func TestReaddirPages(t *testing.T) {
	v := newFS(t)
	d := mkdir(t, v, root, v.Root(), "d")
	for i := range 300 {
		create(t, v, root, d, fmt.Sprint("file", i))
	}
	seen := map[string]int{}
	var cookie uint64
	for page := 0; ; page++ {
		l, err := v.Readdir(root, d, cookie, 0, page%2 == 0, Limit{Bytes: 500, Size: func(n int) int { return n + 24 }})
		want(t, err, 0)
		for _, e := range l.Entries {
			seen[string(e.Name)]++
			cookie = e.Cookie
			if page%2 == 0 && (e.Attr == nil || e.Attr.Ino != e.Ino || e.Handle.Ino != e.Ino) {
				t.Fatal("attributes missing", e)
			}
		}
		if l.EOF {
			break
		}
	}
	if len(seen) != 302 {
		t.Fatal(len(seen))
	}
	for n, k := range seen {
		if k != 1 {
			t.Fatal(n, k)
		}
	}
	_, err := v.Readdir(root, d, 0, 0, false, Limit{Bytes: 10, Size: func(n int) int { return n + 24 }})
	want(t, err, ErrTooSmall)
	for _, plus := range []bool{false, true} { // behind the last entry
		_, err = v.Readdir(root, d, cookie, 0, plus, Limit{Bytes: -1, Size: func(n int) int { return n + 24 }})
		want(t, err, ErrTooSmall)
		l, err := v.Readdir(root, d, cookie, 0, plus, Limit{Bytes: 0, Size: func(n int) int { return n + 24 }})
		want(t, err, 0)
		if len(l.Entries) > 0 || !l.EOF {
			t.Errorf("%d entries, eof %v", len(l.Entries), l.EOF)
		}
	}
	_, err = v.Readdir(root, d, 1, 99, false, Limit{Bytes: 1000, Size: func(n int) int { return n + 24 }})
	want(t, err, ErrBadCookie)
}

// setuid and setgid go when somebody else than root writes; the group of a setgid directory is inherited.
func TestSetID(t *testing.T) {
	v := newFS(t)
	d := mkdirMode(t, v, v.Root(), "d", 0o2777)
	_, err := v.Setattr(root, d, &SetAttr{GID: ptr(uint32(27))}, nil)
	want(t, err, 0)
	n, err := v.Create(alice, d, []byte("f"), Guarded, mode(0o6777), 0)
	want(t, err, 0)
	if n.Attr.GID != 27 || n.Attr.UID != 1000 || n.Attr.Mode != 0o6777 {
		t.Fatalf("%+v", n.Attr)
	}
	_, _, w, err := v.Write(bob, n.Handle, 0, []byte("x"), FileSync)
	want(t, err, 0)
	if w.After.Mode != 0o777 {
		t.Fatalf("%o", w.After.Mode)
	}
	// the size too, also one the file has already (a Linux client does not send that)
	w, err = v.Setattr(alice, n.Handle, mode(0o4700), nil)
	want(t, err, 0)
	w, err = v.Setattr(alice, n.Handle, &SetAttr{Size: &w.After.Size}, nil)
	want(t, err, 0)
	if w.After.Mode != 0o700 {
		t.Fatalf("%o", w.After.Mode)
	}
	sub, err := v.Mkdir(alice, d, []byte("sub"), mode(0o755))
	want(t, err, 0)
	if sub.Attr.Mode != 0o2755 || sub.Attr.GID != 27 {
		t.Fatalf("%o %d", sub.Attr.Mode, sub.Attr.GID)
	}
	// a new file has the mode asked for, whatever its size: nobody's bytes are cut off
	n, err = v.Create(alice, d, []byte("sized"), Unchecked, &SetAttr{Mode: ptr(uint32(0o4755)), Size: ptr(uint64(0))}, 0)
	want(t, err, 0)
	if n.Attr.Mode != 0o4755 {
		t.Fatalf("%o", n.Attr.Mode)
	}
	n, err = v.Create(bob, d, []byte("g"), Guarded, mode(0o2755), 0)
	want(t, err, 0)
	if n.Attr.Mode != 0o755 {
		t.Fatalf("setgid for a group bob is not in: %o", n.Attr.Mode)
	}
}

// The verifier is a new one at every start.
func TestVerifierChanges(t *testing.T) {
	if a, b := newFS(t), newFS(t); a.Verifier() == b.Verifier() {
		t.Fatal("two starts, one verifier")
	}
}

// Time stamps come from the clock, to the nanosecond.
func TestClock(t *testing.T) {
	now := time.Unix(5e9, 123456789)
	v := memFS(t, 3000, 200, Options{Clock: func() time.Time { return now }})
	h := create(t, v, root, v.Root(), "f")
	a, err := v.Getattr(h)
	want(t, err, 0)
	ts := Time{5e9, 123456789}
	if a.Mtime != ts || a.Ctime != ts || a.Atime != ts {
		t.Fatalf("%+v", a)
	}
	now = now.Add(time.Hour)
	_, err = v.Setattr(root, h, &SetAttr{MtimeHow: ClientTime, Mtime: Time{7, 8}, AtimeHow: ServerTime}, nil)
	want(t, err, 0)
	a, err = v.Getattr(h)
	want(t, err, 0)
	ts.Sec += 3600
	if a.Mtime != (Time{7, 8}) || a.Ctime != ts || a.Atime != ts {
		t.Fatalf("%+v", a)
	}
}

// Damage that verified code trips over makes the volume read-only and an error, not a crash.
func TestDamage(t *testing.T) {
	v := newFS(t)
	var c call
	err := v.run(&c, procSetattr, func(*dtxn.Txn) { panic("index out of range") })
	want(t, err, ErrIO)
	_, err = v.Create(root, v.Root(), []byte("f"), Guarded, nil, 0)
	want(t, err, ErrROFS)
	_, err = v.Getattr(v.Root())
	want(t, err, 0)
	c.Make(procGetattr, 0, false, 0)
	if _, err := v.transact(&c, func(*dtxn.Txn) { panic(1) }); !errors.Is(err, errDamaged) {
		t.Fatal("not called damage")
	}
}

// A directory that was large gives its blocks back, too.
func TestLargeDirectoryIsFreed(t *testing.T) {
	v := memFS(t, 20000, 6000, Options{})
	mkdir(t, v, root, v.Root(), "d") // so that the root has its block
	before, _, err := v.Fsstat(v.Root())
	want(t, err, 0)
	d := mkdir(t, v, root, v.Root(), "big")
	const n = 4000
	name := func(i int) []byte { return []byte(fmt.Sprintf("%0100d", i)) }
	for i := range n {
		create(t, v, root, d, string(name(i)))
	}
	a, err := v.Getattr(d)
	want(t, err, 0)
	if a.Size < n*100 {
		t.Fatal(a.Size)
	}
	for i := range n {
		_, err := v.Remove(root, d, name(i))
		want(t, err, 0)
	}
	_, err = v.Rmdir(root, v.Root(), []byte("big"))
	want(t, err, 0)
	_, err = v.Create(root, d, []byte("x"), Guarded, nil, 0)
	want(t, err, ErrStale)
	v.free.Help(math.MaxInt)
	after, _, err := v.Fsstat(v.Root())
	want(t, err, 0)
	if after != before {
		t.Fatalf("%+v became %+v", before, after)
	}
}
