package fs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/test/kit/replay"
)

// sealed is a device that nobody may use once it is.
type sealed struct {
	disk.Disk
	t    *testing.T
	seal atomic.Bool
}

func (d *sealed) used(what string) {
	if d.seal.Load() {
		d.t.Errorf("a closed volume uses its device: %s", what)
	}
}

func (d *sealed) ReadAt(a uint64, bufs [][]byte) error {
	d.used("read")
	return d.Disk.ReadAt(a, bufs)
}

func (d *sealed) WriteAt(a uint64, bufs [][]byte) error {
	d.used("write")
	return d.Disk.WriteAt(a, bufs)
}

func (d *sealed) Barrier() error {
	d.used("barrier")
	return d.Disk.Barrier()
}

// noErrors is a log in which an error is a mistake.
type noErrors struct{ t *testing.T }

func (h noErrors) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }
func (h noErrors) WithAttrs([]slog.Attr) slog.Handler           { return h }
func (h noErrors) WithGroup(string) slog.Handler                { return h }
func (h noErrors) Handle(_ context.Context, r slog.Record) error {
	attrs := ""
	r.Attrs(func(a slog.Attr) bool { attrs += " " + a.String(); return true })
	h.t.Errorf("the log has an error: %s%s", r.Message, attrs)
	return nil
}

// openSealed makes a volume, and opens it.
func openSealed(t *testing.T) (*sealed, *fs.FS) {
	d := &sealed{Disk: disk.NewMem(20000 * disk.BlockSize), t: t}
	mkfs(t, d, fs.MkfsOptions{Zeroed: true})
	return d, open(t, d, fs.Options{Log: slog.New(noErrors{t})})
}

// argument is one of type x, for a call that would succeed on most methods.
func argument(x reflect.Type, v *fs.FS) reflect.Value {
	switch x {
	case reflect.TypeFor[*fs.Cred]():
		return reflect.ValueOf(&fs.Cred{})
	case reflect.TypeFor[fs.Handle]():
		return reflect.ValueOf(v.Root())
	case reflect.TypeFor[[]byte]():
		return reflect.ValueOf([]byte("name"))
	case reflect.TypeFor[*fs.SetAttr]():
		return reflect.ValueOf(&fs.SetAttr{})
	case reflect.TypeFor[fs.Limit]():
		return reflect.ValueOf(fs.Limit{Bytes: 4096, Size: func(int) int { return 1 }})
	}
	return reflect.Zero(x)
}

// mayAnswer are the methods that still answer when a volume is closed: with what is known of it, or nil.
var mayAnswer = map[string]bool{"Close": true, "Health": true, "Look": true, "Lost": true}

// TestClosed: after Close every call fails with ErrClosed, and the device is not touched. Close may be called again.
func TestClosed(t *testing.T) {
	d, v := openSealed(t)
	id := fs.NewCallID(netip.MustParseAddr("10.0.0.1"), "", 1, "MKDIR", &fs.Cred{}, nil, nil)
	faces := map[string]any{"FS": v, "Deferring": v.Deferring(), "Once": v.Once(id)}
	if _, err := v.Create(&fs.Cred{}, v.Root(), []byte("name"), fs.Unchecked, &fs.SetAttr{}, 0); err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	d.seal.Store(true)
	isError := reflect.TypeFor[error]()
	for face, x := range faces {
		all, refused := reflect.TypeOf(x), 0
		for i := range all.NumMethod() {
			m := all.Method(i)
			args := []reflect.Value{reflect.ValueOf(x)}
			for k := 1; k < m.Type.NumIn(); k++ {
				args = append(args, argument(m.Type.In(k), v))
			}
			results := m.Func.Call(args)
			if n := len(results); n == 0 || m.Type.Out(n-1) != isError {
				continue
			}
			err, _ := results[len(results)-1].Interface().(error)
			switch {
			case mayAnswer[m.Name]:
				if err != nil {
					t.Errorf("%s.%s: %v", face, m.Name, err)
				}
			case !errors.Is(err, fs.ErrClosed):
				t.Errorf("%s.%s: %v, not ErrClosed", face, m.Name, err)
			default:
				refused++
			}
		}
		if refused < 30 {
			t.Errorf("%s has %d methods that are refused", face, refused)
		}
	}
}

// TestCloseRace: calls that are under way when a volume is closed end, and what they have said is durable; those that
// come later are refused; the log has no error.
func TestCloseRace(t *testing.T) {
	seed := replay.Seed(t)
	for round := range uint64(12) {
		d, v := openSealed(t)
		if round%2 == 0 { // with attributes, calls have several parts
			f, err := v.Create(&fs.Cred{}, v.Root(), []byte("with attributes"), fs.Unchecked, &fs.SetAttr{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := v.SetXattr(f.Handle, []byte("security.capability"), []byte("all"), false, false); err != nil {
				t.Fatal(err)
			}
		}
		var calls, begun sync.WaitGroup
		made := make([]map[string]bool, 6) // by worker: the names that are there, or not there any more
		for w := range made {
			made[w] = map[string]bool{}
			begun.Add(1)
			calls.Go(func() {
				r := rand.New(rand.NewPCG(seed, round*100+uint64(w)))
				work(t, v, r, w, made[w], begun.Done)
			})
		}
		begun.Wait()
		for range 2 {
			calls.Go(func() {
				if err := v.Close(); err != nil {
					t.Error(err)
				}
				d.seal.Store(true)
			})
		}
		calls.Wait()
		d.seal.Store(false)
		again := open(t, d.Disk, fs.Options{Log: slog.New(noErrors{t})})
		for _, names := range made {
			for name, there := range names {
				_, err := again.Lookup(&fs.Cred{}, again.Root(), []byte(name))
				if there && err != nil || !there && err != fs.ErrNoEnt {
					t.Errorf("seed %d, round %d: %s, which is there (%v): %v", seed, round, name, there, err)
				}
			}
		}
		closeFS(t, again)
	}
}

// work makes and removes files until the volume is closed, and notes what it was told of them; begun is called when it
// has done some.
func work(t *testing.T, v *fs.FS, r *rand.Rand, w int, told map[string]bool, begun func()) {
	root := &fs.Cred{}
	for i := 0; ; i++ {
		if i == 20 {
			begun()
		}
		name := fmt.Sprintf("%d-%d", w, r.IntN(20))
		var err error
		switch r.IntN(8) {
		case 0, 1:
			if err = ignore(second(v.Remove(root, v.Root(), []byte(name))), fs.ErrNoEnt); err == nil {
				told[name] = false
			}
		case 2:
			var n fs.Node
			if n, err = v.Lookup(root, v.Root(), []byte(name)); err == nil {
				_, _, _, err = v.Write(root, n.Handle, 0, make([]byte, 100_000), fs.Stability(r.IntN(3)))
			}
			err = ignore(err, fs.ErrNoEnt)
		case 3:
			_, _, err = v.Fsstat(v.Root())
		case 4:
			_, err = v.Space()
		case 5:
			err = v.Sync()
		default:
			size := uint64(r.IntN(1 << 20))
			if _, err = v.Create(root, v.Root(), []byte(name), fs.Unchecked, &fs.SetAttr{Size: &size}, 0); err == nil {
				told[name] = true
			}
		}
		if errors.Is(err, fs.ErrClosed) {
			if i < 20 {
				begun()
				t.Error("closed before Close")
			}
			return
		}
		if err != nil {
			t.Errorf("under way when the volume was closed: %v", err)
			return
		}
	}
}

func second[A any](_ A, err error) error { return err }

func ignore(err, expected error) error {
	if err == expected {
		return nil
	}
	return err
}
