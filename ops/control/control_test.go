package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tansy/disk"
	"tansy/fs"
	"tansy/offline/check"
	"tansy/ops/status"
)

var root = &fs.Cred{}

// folder is one for sockets, whose names are short enough there.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "c")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "d")
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// served is a volume with a server on its socket.
type served struct {
	fs    *fs.FS
	s     *Server
	dir   string
	ended chan string // why moments end, in order
	file  fs.Handle
	at    int64 // what time the volume has, in seconds since 1970
}

// endings is a log that tells of moments that end, which nobody may have any more then.
type endings struct {
	slog.Handler
	t      *testing.T
	server *atomic.Pointer[Server]
	ended  chan string
}

func (e endings) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "a moment of the volume ends" {
		r.Attrs(func(a slog.Attr) bool {
			switch a.Key {
			case "moment":
				s := e.server.Load()
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.held[a.Value.Uint64()] != nil {
					e.t.Error("a moment whose end is told can be read")
				}
			case "why":
				e.ended <- fmt.Sprint(a.Value)
			}
			return true
		})
	}
	return nil
}

func (e endings) Enabled(context.Context, slog.Level) bool { return true }

// serving serves a volume on d.
func serving(t *testing.T, d disk.Disk, o fs.Options, idle time.Duration) *served {
	t.Helper()
	must(t, fs.Mkfs(d, fs.MkfsOptions{Zeroed: true}))
	x := &served{dir: folder(t), ended: make(chan string, 100), at: 1_000_000_000}
	o.Clock = func() time.Time { return time.Unix(x.at, 0) }
	v, err := fs.Open(d, o)
	must(t, err)
	made, err := v.Create(root, v.Root(), []byte("file"), fs.Guarded, &fs.SetAttr{}, 0)
	must(t, err)
	x.fs, x.file = v, made.Handle
	x.write(t, 1)
	vol := Volume{ID: v.VolumeID(), Take: v.Moment, Label: v, Source: status.Source{Image: "data.img"}}
	server := new(atomic.Pointer[Server])
	x.s, err = serve(x.dir, vol, slog.New(endings{slog.DiscardHandler, t, server, x.ended}), idle)
	must(t, err)
	server.Store(x.s)
	t.Cleanup(func() {
		x.s.Close()
		must(t, v.Close())
	})
	return x
}

// write fills the file with a byte.
func (x *served) write(t *testing.T, b byte) {
	t.Helper()
	_, _, _, err := x.fs.Write(root, x.file, 0, bytes.Repeat([]byte{b}, 1<<20), fs.FileSync)
	must(t, err)
}

// take takes a moment over the socket.
func (x *served) take(t *testing.T) *Moment {
	t.Helper()
	socket, ok := Find(x.dir, x.fs.VolumeID())
	if !ok {
		t.Fatal("the socket is not found")
	}
	m, err := Take(context.Background(), socket)
	must(t, err)
	return m
}

// A moment over the socket has each block, and each hole, that it has in the server, also while the volume changes, and
// is a volume without fault; what is released is gone. When it is closed the server keeps nothing of it.
func TestMoment(t *testing.T) {
	x := serving(t, disk.NewMem(32<<20), fs.Options{}, idleAfter)
	here, err := x.fs.Moment(context.Background())
	must(t, err)
	want := here.AtRest()
	m := x.take(t)
	if m.Volume != x.fs.VolumeID() || m.Image != "data.img" || m.Size() != want.Size() || m.When.Unix() != x.at {
		t.Errorf("%+v", m)
	}
	x.write(t, 2)
	r, err := check.Volume(m, check.Options{Data: true})
	must(t, err)
	if !r.Clean() {
		t.Errorf("a problem: %v", r.Problems)
	}
	got, have := block(0xee, int(m.Size())), block(0xdd, int(m.Size()))
	must(t, m.ReadAt(0, got), want.ReadAt(0, have))
	// What recovery writes for each is another header: so what the log and the headers lie in is left out.
	same := 0
	for i := range got {
		if bytes.Equal(got[i], have[i]) {
			same++
		}
	}
	if same < len(got)-4 {
		t.Errorf("%d of %d blocks are others", len(got)-same, len(got))
	}
	for a := uint64(0); a < m.Size(); a++ {
		n1, err1 := m.NextData(a)
		n2, err2 := disk.NextData(want, a)
		if must(t, err1, err2); n1 != n2 {
			t.Fatalf("behind block %d there is data in %d, not %d", a, n1, n2)
		}
		a = n1
	}
	disk.Release(m, 0, 1)
	must(t, m.ReadAt(0, got[:1]))
	if !bytes.Equal(got[0], make([]byte, disk.BlockSize)) {
		t.Error("what was released is there")
	}
	must(t, here.Close(), m.Close())
	if why := <-x.ended; why != errGone.Error() {
		t.Errorf("it ends, as %s", why)
	}
	x.s.Close()
	if n := x.fs.Moments(); n != (fs.Moments{}) {
		t.Errorf("of moments there is left %+v", n)
	}
}

// block makes n blocks full of a byte.
func block(b byte, n int) [][]byte {
	bufs := make([][]byte, n)
	for i := range bufs {
		bufs[i] = bytes.Repeat([]byte{b}, disk.BlockSize)
	}
	return bufs
}

// A moment ends when nothing is asked of it, when the server stops, and when what is needed cannot be kept; who has it
// is told why.
func TestMomentEnds(t *testing.T) {
	for _, c := range []struct {
		says string
		idle time.Duration
		end  func(t *testing.T, x *served)
	}{
		{"nothing was asked of it", 1, func(t *testing.T, x *served) { <-x.ended }},
		{errStops.Error(), idleAfter, func(t *testing.T, x *served) { x.s.Close() }},
		{"no room for more", idleAfter, func(t *testing.T, x *served) {
			_, err := x.fs.Remove(root, x.fs.Root(), []byte("file"))
			must(t, err)
			made, err := x.fs.Create(root, x.fs.Root(), []byte("file"), fs.Guarded, &fs.SetAttr{}, 0)
			must(t, err)
			for i := range uint64(20) { // all of the room, with that of the file that was removed
				_, _, _, err := x.fs.Write(root, made.Handle, i<<20, block(7, 256)[0], fs.FileSync)
				must(t, err)
				x.file = made.Handle
				x.write(t, byte(i))
			}
		}},
	} {
		o := fs.Options{Moments: disk.MomentOptions{Memory: 1, Spill: disk.BlockSize, Dir: t.TempDir()}}
		x := serving(t, disk.NewMem(24<<20), o, c.idle)
		m := x.take(t)
		c.end(t, x)
		err := m.ReadAt(0, block(0, 1))
		if !errors.Is(err, disk.ErrMomentLost) {
			t.Errorf("%s: %v", c.says, err)
		}
		if _, err := m.NextData(0); !errors.Is(err, disk.ErrMomentLost) ||
			c.says != errStops.Error() && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the next data: %v", c.says, err)
		}
		must(t, m.Close())
		if err := m.ReadAt(0, block(0, 1)); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: closed: %v", c.says, err)
		}
		if err := m.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: closed again: %v", c.says, err)
		}
	}
}

// A reader that is stopped, and takes nothing of what it has asked for, does not keep the server from its end.
func TestReaderStopped(t *testing.T) {
	x := serving(t, disk.NewMem(24<<20), fs.Options{}, idleAfter)
	m := x.take(t)
	defer m.Close()
	socket, _ := Find(x.dir, x.fs.VolumeID())
	for _, asks := range []string{
		"GET /moment/1/blocks?from=0&n=256 HTTP/1.1\r\nHost: tansy\r\n\r\n",
		"POST /grow HTTP/1.1\r\nHost: tansy\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n",
	} {
		c, err := net.Dial("unix", socket)
		must(t, err)
		defer c.Close()
		_, err = io.WriteString(c, asks)
		must(t, err)
		_, err = io.ReadFull(c, make([]byte, 1)) // it is being answered, or the rest waited for
		must(t, err)
	}
	closed := make(chan struct{})
	go func() {
		x.s.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(20 * time.Second):
		t.Fatal("the server does not end")
	}
}

// An error of the device names the block, and is no loss of the moment.
func TestMomentUnreadable(t *testing.T) {
	f := disk.NewFault(disk.NewMem(24<<20), 1, nil)
	x := serving(t, f, fs.Options{}, idleAfter)
	m := x.take(t)
	var bad uint64 = 1
	f.SetPlan(disk.FailFrom(1, errors.New("a bad spot"), disk.Read))
	err := m.ReadAt(bad, block(0, 2))
	f.SetPlan(nil)
	e := new(disk.Error)
	if !errors.As(err, &e) || e.Block != bad || e.Op != "read" || errors.Is(err, disk.ErrMomentLost) ||
		!strings.Contains(err.Error(), "a bad spot") {
		t.Errorf("%v", err)
	}
	must(t, m.ReadAt(bad, block(0, 2)), m.Close())
}

// What is wrong is refused: by the Disk, as others do, and by the server.
func TestRefused(t *testing.T) {
	x := serving(t, disk.NewMem(24<<20), fs.Options{}, idleAfter)
	m := x.take(t)
	for _, c := range []struct{ err, want error }{
		{m.WriteAt(0, block(1, 1)), disk.ErrReadOnly},
		{m.Barrier(), disk.ErrReadOnly},
		{m.ReadAt(m.Size(), block(1, 1)), disk.ErrRange},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%v, want %v", c.err, c.want)
		}
	}
	socket, _ := Find(x.dir, x.fs.VolumeID())
	for what, code := range map[string]int{
		"GET /moment/1/blocks?from=0&n=257": http.StatusBadRequest,
		"GET /moment/1/blocks?from=0&n=0":   http.StatusBadRequest,
		"GET /moment/1/blocks?from=0":       http.StatusBadRequest,
		"GET /moment/1/blocks?n=1":          http.StatusInternalServerError,
		"GET /moment/7/blocks?from=0&n=1":   http.StatusGone,
		"GET /moment/x/data?from=0":         http.StatusGone,
		"POST /moment/7/release":            http.StatusGone,
		"GET /moment":                       http.StatusMethodNotAllowed,
		"POST /grow":                        http.StatusBadRequest,
		"GET /moment/1/data?from=0":         http.StatusOK,
	} {
		method, path, _ := strings.Cut(what, " ")
		q, err := http.NewRequest(method, URL(path), nil)
		must(t, err)
		a, err := Client(socket).Do(q)
		must(t, err)
		a.Body.Close()
		if a.StatusCode != code {
			t.Errorf("%s: %s", what, a.Status)
		}
	}
	for range mostMoments - 1 {
		x.take(t)
	}
	if _, err := Take(context.Background(), socket); err == nil || !strings.Contains(err.Error(), "open already") {
		t.Errorf("one moment more: %v", err)
	}
	must(t, m.Close())
	<-x.ended
	for { // its place is free soon
		last, err := Take(context.Background(), socket)
		if err == nil {
			must(t, last.Close())
			break
		}
	}
	if _, err := Take(context.Background(), socket+"x"); err == nil {
		t.Error("there is no such socket")
	}
}

// A volume grows over its socket.
func TestGrow(t *testing.T) {
	x := serving(t, disk.NewMem(24<<20), fs.Options{}, idleAfter)
	x.s.v.Source.Grow = func(_ context.Context, g status.Growth, progress func(done, total uint64)) (
		fs.Growth, uint64, error) {
		return fs.Growth{After: fs.VolumeSize{Bytes: g.Size}}, 5, nil
	}
	socket, _ := Find(x.dir, x.fs.VolumeID())
	a, err := Client(socket).Post(URL("/grow"), "application/json", strings.NewReader(`{"size": 4096000}`))
	must(t, err)
	defer a.Body.Close()
	var g status.Growing
	must(t, json.NewDecoder(a.Body).Decode(&g))
	if !g.Ended || g.After.Bytes != 4096000 || g.Behind != 5 || g.Image != "data.img" || g.Error != "" {
		t.Errorf("%+v", g)
	}
}

// The label of a volume is seen, and changed, over the socket; what is none is refused.
func TestLabel(t *testing.T) {
	x := serving(t, disk.NewMem(32<<20), fs.Options{}, idleAfter)
	socket, _ := Find(x.dir, x.fs.VolumeID())
	for _, label := range []string{"", "one", "two words", ""} {
		must(t, SetLabel(socket, label))
		if s, err := Which(socket); err != nil || s.Label != label || s.Image != "data.img" {
			t.Errorf("%+v, %v, want the label %q", s, err, label)
		}
		if got, err := x.fs.Label(); err != nil || got != label {
			t.Errorf("the volume's label is %q, %v, want %q", got, err, label)
		}
	}
	if err := SetLabel(socket, "a/b"); err == nil || err.Error() != fs.CheckLabel("a/b").Error() {
		t.Errorf("of what cannot be one: %v", err)
	}
	x.s.Close()
	if SetLabel(socket, "late") == nil {
		t.Error("a server that has ended takes a label")
	}
}

// Nobody else can use a socket, nor put one into its folder. One that a killed server has left is replaced, another
// server's is not, and each takes away its own alone.
func TestSocket(t *testing.T) {
	dir := folder(t)
	v := Volume{ID: [16]byte{1, 2}}
	path := filepath.Join(dir, name(v.ID))
	one, err := Serve(dir, v, slog.New(slog.DiscardHandler))
	must(t, err)
	for p, mode := range map[string]os.FileMode{dir: 0o700, path: 0o600} {
		if st, err := os.Lstat(p); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", p, st, err)
		}
	}
	if _, err := Serve(dir, v, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("a second server: %v", err)
	}
	one.Close()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, ok := Find(dir, v.ID); ok {
		t.Error("it answers")
	}
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	stale.SetUnlinkOnClose(false)
	must(t, stale.Close())
	two, err := Serve(dir, v, slog.New(slog.DiscardHandler))
	must(t, err)
	if socket, ok := Find(dir, v.ID); !ok || socket != path {
		t.Error("what was left is not replaced")
	}
	must(t, os.Remove(path), os.WriteFile(path, nil, 0o600)) // by somebody else
	two.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("what another has put there was removed: %v", err)
	}
	must(t, os.Chmod(dir, 0o777))
	if _, err := Serve(dir, v, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "others may") {
		t.Errorf("a folder for all: %v", err)
	}
	if _, err := Serve(path, v, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a file in the place of the folder")
	}
	var none *Server
	none.Close()
}

// A server has its sockets where its user alone has.
func TestDir(t *testing.T) {
	t.Setenv("RUNTIME_DIRECTORY", "/run/x:/run/y")
	if Dir() != "/run/x" {
		t.Error(Dir())
	}
	t.Setenv("RUNTIME_DIRECTORY", "")
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	want := "/run/user/7/tansy"
	if os.Geteuid() == 0 {
		want = run
	}
	if Dir() != want {
		t.Error(Dir())
	}
}

// The UUID of a volume can be read while a server has it.
func TestVolumeOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.img")
	d, err := disk.CreateFile(path, 24<<20)
	must(t, err)
	defer d.Close()
	if _, err := VolumeOf(path); !errors.Is(err, errNoVolume) {
		t.Errorf("an empty image: %v", err)
	}
	x := serving(t, d, fs.Options{}, idleAfter)
	id, err := VolumeOf(path)
	other, err2 := VolumeOn(d)
	if must(t, err, err2); id != x.fs.VolumeID() || other != id {
		t.Errorf("%x, %x, not %x", id, other, x.fs.VolumeID())
	}
	must(t, os.WriteFile(path+"x", []byte("short"), 0o600))
	if _, err := VolumeOf(path + "x"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a short file: %v", err)
	}
}

// A folder whose name is so long that nobody could reach a socket there is refused, and nothing is left in it.
func TestLongFolder(t *testing.T) {
	dir := folder(t)
	dir += strings.Repeat("d", 80-len(dir))
	l, err := listen(dir, name([16]byte{1}))
	if err == nil {
		l.remove()
		t.Fatal("it is not refused")
	}
	left, e := os.ReadDir(dir)
	if must(t, e); len(left) > 0 || !strings.Contains(err.Error(), "too long") {
		t.Errorf("%v; left: %v", err, left)
	}
}

// Who has a moment, and asks nothing of it for long, has it for as long as the process runs.
func TestMomentStays(t *testing.T) {
	asked := make(chan string)
	m := http.NewServeMux()
	m.HandleFunc("POST /moment", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, `{"id": 7, "blocks": 9, "when": "2026-11-30T04:45:12Z"}`)
		must(t, http.NewResponseController(w).Flush())
		<-r.Context().Done()
	})
	m.HandleFunc("POST /moment/7/release", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.URL.RawQuery:
		case <-r.Context().Done():
		}
	})
	socket := filepath.Join(t.TempDir(), "s")
	at, err := net.Listen("unix", socket)
	must(t, err)
	s := http.Server{Handler: m}
	go s.Serve(at)
	defer s.Close()
	x, err := takeAsking(t.Context(), socket, 1)
	must(t, err)
	for range 3 {
		select {
		case q := <-asked:
			if q != "from=0&to=0" {
				t.Errorf("%q is asked for", q)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("nothing is asked for")
		}
	}
	must(t, x.Close())
}
