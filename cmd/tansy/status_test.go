package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	tansyfs "tansy/fs"
	"tansy/ops/status"
	"tansy/test/kit/nfsclient"
	"tansy/test/kit/promtest"
)

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, r.Status, err)
	}
	return string(b)
}

// The status of a server tells what was done with it.
func TestServeStatus(t *testing.T) {
	t.Parallel()
	img := filepath.Join(t.TempDir(), "v.img")
	p := startServe(t, "--volume", img, "--size", "8M", "--status", "127.0.0.1:0")
	c, err := nfsclient.Mount(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cred := &tansyfs.Cred{}
	for _, how := range []tansyfs.CreateHow{tansyfs.Guarded, tansyfs.Guarded} { // the second one fails
		c.Create(cred, c.Root(), []byte("f"), how, &tansyfs.SetAttr{}, 0)
	}
	if got := get(t, p.status+"readyz"); got != "ok\n" {
		t.Errorf("%q", got)
	}
	var r status.Report
	if err := json.Unmarshal([]byte(get(t, p.status+"status.json")), &r); err != nil {
		t.Fatal(err)
	}
	if r.State != status.Serving || r.Address != p.addr || r.Volume != img || len(r.Volumes) != 1 || r.Volumes[0].Image != img || r.Volumes[0].Space.Files-r.Volumes[0].Space.FreeFiles != 1 || len(r.Clients) != 1 || r.Clients[0].Host != "127.0.0.1" || r.Volumes[0].Journal.Groups == 0 {
		t.Errorf("%+v", r)
	}
	metrics := promtest.Parse(t, get(t, p.status+"metrics"))
	for name, want := range map[string]float64{
		`tansy_calls_total{program="nfs3",proc="CREATE"}`: 2, `tansy_call_errors_total{program="nfs3",proc="CREATE",status="EXIST"}`: 1,
		`tansy_calls_total{program="mount3",proc="MNT"}`: 1, `tansy_calls_total{program="mount1",proc="MNT"}`: 0,
		`tansy_connections{}`: 1, `tansy_healthy{volume="/"}`: 1, `tansy_volume_free_inodes{volume="/"}`: float64(r.Volumes[0].Space.FreeFiles),
	} {
		if got, ok := metrics[name]; !ok || got != want {
			t.Errorf("%s is %v (%v), want %v", name, got, ok, want)
		}
	}
	p.stop(t)
}

// There is no status unless it is asked for; an address of it that cannot be had is an error
// before anything is made.
func TestStatusAddress(t *testing.T) {
	dir := t.TempDir()
	img := filepath.Join(dir, "v.img")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for address, want := range map[string]int{l.Addr().String(): exitFailure, "nowhere": exitUsage} {
		if code := run([]string{"serve", "--volume", img, "--create", "--listen", "127.0.0.1:0", "--status", address}); code != want {
			t.Errorf("%s: exit code %d", address, code)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("made: %v", left)
	}
	p := startServe(t, "--volume", img, "--size", "8M")
	if p.status != "" {
		t.Error(p.status)
	}
	p.stop(t)
}

// Addresses that others reach are warned of, and neither the status nor the profiler answers to a name that is not its
// own.
func TestStatusExposed(t *testing.T) {
	p := startServe(t, "--volume", filepath.Join(t.TempDir(), "v.img"), "--create", "--size", "8M", "--status", "0.0.0.0:0",
		"--debug-listen", "[::]:0", "--status-host", "nas.example")
	defer p.stop(t)
	p.says(t, `msg="everybody who reaches this address may read the addresses of clients`)
	p.says(t, `msg="everybody who reaches this address may read the memory of the server`)
	for _, at := range []string{`addresses of clients.*listen=\S*:(\d+)`, `memory of the server.*listen=\S*:(\d+)`} {
		m := regexp.MustCompile(at).FindStringSubmatch(p.stderr.String())
		if m == nil {
			t.Fatalf("no %s in\n%s", at, &p.stderr)
		}
		for host, want := range map[string]int{"127.0.0.1": 200, "nas.example:80": 200, "evil.example": 421} {
			for _, path := range []string{"/metrics", "/debug/vars"} {
				r, err := http.NewRequest("GET", "http://127.0.0.1:"+m[1]+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Host = host
				got, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				got.Body.Close()
				if got.StatusCode != want && (want != 200 || got.StatusCode != 404) {
					t.Errorf("%s of %s: %s", path, host, got.Status)
				}
			}
		}
	}
}
