package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	tansyfs "tansy/fs"
)

// postGrow asks for a growth, and returns the code, and the lines of the answer, or what it says in their place.
func postGrow(t *testing.T, url, body, from string) (code int, got []Growing, text string) {
	t.Helper()
	q, err := http.NewRequest(http.MethodPost, url+"/grow", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if from != "" {
		q.Header.Set("Sec-Fetch-Site", from)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != 200 {
		b, _ := io.ReadAll(r.Body)
		return r.StatusCode, nil, string(b)
	}
	for lines := json.NewDecoder(r.Body); ; {
		var g Growing
		if err := lines.Decode(&g); err != nil {
			return 200, got, ""
		}
		got = append(got, g)
	}
}

// A volume grows by a POST that comes from this machine, and from no page but this one. Its answer says how far it is,
// and how it ended.
func TestGrow(t *testing.T) {
	f := newFake(t)
	s := httptest.NewServer(f.status.Handler())
	defer s.Close()
	if code, _, text := postGrow(t, s.URL, "{}", ""); code != 409 || !strings.Contains(text, "starting") {
		t.Error("at the start:", code, text)
	}
	f.serve()
	var asked Growth
	var fails error
	grown := tansyfs.Growth{
		Before: tansyfs.VolumeSize{Bytes: 1, Inodes: 2}, After: tansyfs.VolumeSize{Bytes: 3, Inodes: 4},
	}
	v := &f.status.from.Volumes[0]
	v.Grow = func(_ context.Context, g Growth, progress func(done, total uint64)) (tansyfs.Growth, uint64, error) {
		asked = g
		progress(5, 10)
		progress(6, 10) // too early to be told
		return grown, 7, fails
	}
	for _, x := range []struct {
		body string
		err  error
		want Growing
	}{
		{`{"size":4096,"inodes":9}`, nil, Growing{}},
		{`{"volume":"/"}`, errors.New("why"), Growing{Error: "why"}},
		{`{"volume":"v.img"}`, fmt.Errorf("%w: size", ErrMisuse), Growing{Error: "wrong arguments: size", Misuse: true}},
		{`{}`, tansyfs.ErrOptions, Growing{Error: tansyfs.ErrOptions.Error(), Misuse: true}},
	} {
		fails = x.err
		x.want.Ended, x.want.Image, x.want.Behind = true, "v.img", 7
		x.want.Before, x.want.After = Size(grown.Before), Size(grown.After)
		code, got, text := postGrow(t, s.URL, x.body, "")
		if code != 200 || len(got) != 2 || got[0] != (Growing{Done: 5, Total: 10}) || got[1] != x.want {
			t.Errorf("%s: %d, %+v, %s", x.body, code, got, text)
		}
		var want Growth
		if err := json.Unmarshal([]byte(x.body), &want); err != nil || asked != want {
			t.Errorf("%s: %+v was asked for", x.body, asked)
		}
	}
	if code, _, _ := postGrow(t, s.URL, "{}", "cross-site"); code != 403 {
		t.Error("from another site:", code)
	}
	if code, _, _ := get(t, s.URL+"/grow"); code != 405 {
		t.Error("GET:", code)
	}
	if code, _, _ := postGrow(t, s.URL, "{", ""); code != 400 {
		t.Error("malformed:", code)
	}
	f.status.from.Volumes = append(f.status.from.Volumes,
		Source{Path: "/closed", Health: func() error { return errors.New("not there") }})
	for body, want := range map[string]string{
		`{}`: "several volumes: give --volume and one of /, /closed", `{"volume":"/none"}`: "has /, /closed",
		`{"volume":"/closed"}`: "not served: not there",
	} {
		if code, _, text := postGrow(t, s.URL, body, ""); code != 409 || !strings.Contains(text, want) {
			t.Errorf("%s: %d, %s", body, code, text)
		}
	}
	for from, want := range map[string]int{
		"192.0.2.1:99": 403, "[2001:db8::1]:99": 403, "": 403, "127.0.0.1": 403,
		"127.0.0.1:99": 200, "[::1]:99": 200, "[::ffff:127.0.0.1]:99": 200,
	} {
		q := httptest.NewRequest(http.MethodPost, "/grow", strings.NewReader(`{"volume":"/"}`))
		q.RemoteAddr = from
		w := httptest.NewRecorder()
		if f.status.Handler().ServeHTTP(w, q); w.Code != want {
			t.Errorf("asked from %q: %d, want %d", from, w.Code, want)
		}
	}
}

// A growth ends when who asked for it goes, and when the server stops, which waits for that.
func TestGrowEnds(t *testing.T) {
	for _, stops := range []bool{false, true} {
		f := newFake(t)
		s := httptest.NewServer(f.status.Handler())
		f.serve()
		began, ended := make(chan struct{}), make(chan error, 1)
		f.status.from.Volumes[0].Grow = func(ctx context.Context, _ Growth, _ func(done, total uint64)) (
			g tansyfs.Growth, behind uint64, err error,
		) {
			close(began)
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return g, 0, context.Cause(ctx)
		}
		ctx, leave := context.WithCancel(context.Background())
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/grow", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			if r, err := http.DefaultClient.Do(q); err == nil {
				io.Copy(io.Discard, r.Body)
				r.Body.Close()
			}
		}()
		<-began
		if stops {
			f.status.Stop()
			select {
			case err := <-ended:
				if err != errStops {
					t.Error(err)
				}
			default:
				t.Error("the server stops, and does not wait for what asks a volume")
			}
		} else {
			leave()
			<-ended
		}
		leave()
		<-answered
		s.Close()
	}
}
