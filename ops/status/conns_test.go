package status

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// listen lets the status of a fake answer, as Listen does, and returns its address.
func listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go newFake(t).status.Listen(l)
	return l.Addr().String()
}

// request sends a request with a Host, and returns the status and text of the answer. The connection stays open.
func request(t *testing.T, c net.Conn, path, host string) (int, string, error) {
	t.Helper()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, host)
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return r.StatusCode, strings.TrimSpace(string(b)), err
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Connections that are kept open, or on which nothing comes, do not keep a probe out, and there are never too many.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	for _, silent := range []bool{false, true} {
		addr := listen(t)
		var open []net.Conn
		for range maxConns + 10 {
			c := dial(t, addr)
			if !silent {
				if code, _, err := request(t, c, "/healthz", "localhost"); code != 200 {
					t.Fatalf("connection %d: %d, %v", len(open), code, err)
				}
			}
			open = append(open, c)
		}
		if code, text, err := request(t, dial(t, addr), "/healthz", "localhost"); code != 200 || text != "ok" {
			t.Errorf("silent %v: a probe gets %d %q, %v", silent, code, text, err)
		}
		answered := 0
		for _, c := range open {
			if code, _, _ := request(t, c, "/healthz", "localhost"); code == 200 {
				answered++
			}
		}
		if answered != maxConns-1 { // and the probe's
			t.Errorf("silent %v: %d connections are still open", silent, answered)
		}
	}
}

// Who makes room: the host that has the most, of its connections an idle one, and of these the one that is so longest.
func TestWhoMakesRoom(t *testing.T) {
	b := newBounded(nil, maxConns)
	at := time.Now()
	add := func(host string, state http.ConnState, age int) *boundedConn {
		c := &boundedConn{of: b, host: host, state: state, since: at.Add(-time.Duration(age) * time.Second)}
		b.open[c] = struct{}{}
		return c
	}
	want := func(c, newest *boundedConn) {
		t.Helper()
		for range 50 { // in whatever order they are looked at
			if got := b.victim(newest); got != c {
				t.Fatalf("%+v makes room, not %+v", got, c)
			}
		}
		delete(b.open, c)
	}
	add("a", http.StateIdle, 90)
	longIdle, idle, busy := add("b", http.StateIdle, 5), add("b", http.StateIdle, 4), add("b", http.StateActive, 50)
	newest := add("a", http.StateNew, 0)
	want(longIdle, newest)
	add("b", http.StateActive, 1)
	want(idle, newest)
	add("b", http.StateActive, 2)
	want(busy, newest)
}

// A request that names another host is refused: a name elsewhere may have been made to lead here.
func TestHost(t *testing.T) {
	h := AnswerTo([]string{"NAS.lan."},
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "in") }))
	for host, want := range map[string]int{
		"127.0.0.1:9049": 200, "127.0.0.1": 200, "[::1]:9049": 200, "[::1]": 200, "[fe80::1%25eth0]:80": 200,
		"10.1.2.3:80":    200,
		"localhost:9049": 200, "LOCALHOST": 200, "localhost.": 200, "nas.lan:9049": 200, "Nas.Lan.": 200,
		"evil.example": 421, "evil.example:9049": 421, "nas": 421, "nas.lan.evil.example": 421,
		"127.0.0.1.evil.example:9049": 421,
		"localhost.evil.example":      421, "127.0.0.1:9049:1": 421, "2130706433": 421,
	} {
		r := httptest.NewRequest("GET", "/metrics", nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("Host %q: %d, not %d: %s", host, w.Code, want, w.Body)
		}
	}
	addr := listen(t)
	if code, text, err := request(t, dial(t, addr), "/metrics", "evil.example"); code != http.StatusMisdirectedRequest ||
		!strings.Contains(text, "--status-host evil.example") {
		t.Errorf("a name elsewhere reads the metrics: %d %q, %v", code, text, err)
	}
}
