package status

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// chromium is a browser without a window, spoken to by its DevTools protocol over two pipes: a message is JSON
// with a zero byte behind it.
type chromium struct {
	t       *testing.T
	to      *os.File
	session string // of the page

	mu      sync.Mutex
	last    int
	answers map[int]chan message
	events  []message // of the page
}

type message struct {
	ID        int             `json:"id,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     json.RawMessage `json:"error,omitempty"`
}

// startChromium starts one with an empty page, until the test ends.
func startChromium(t *testing.T) *chromium {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no browser here: install Debian's chromium")
	}
	theirs, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, theirsToo, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	c.Env = append(os.Environ(), "HOME="+t.TempDir())
	c.ExtraFiles = []*os.File{theirs, theirsToo} // 3 and 4, as it expects
	var log strings.Builder
	c.Stderr = &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	theirsToo.Close()
	b := &chromium{t: t, to: to, answers: map[int]chan message{}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b.read(from)
	}()
	hung := time.AfterFunc(2*time.Minute, func() { c.Process.Kill() })
	t.Cleanup(func() {
		b.send(message{Method: "Browser.close"})
		to.Close()
		if err := c.Wait(); err != nil || t.Failed() {
			t.Logf("the browser: %v\n%s", err, &log)
		}
		hung.Stop()
		<-read
		from.Close()
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, what := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(what+".enable", nil, nil)
	}
	return b
}

// read takes what the browser says until it ends; then nobody waits for an answer any more.
func (b *chromium) read(from *os.File) {
	r := bufio.NewReader(from)
	for {
		text, err := r.ReadBytes(0)
		var m message
		if err == nil {
			err = json.Unmarshal(text[:len(text)-1], &m)
		}
		b.mu.Lock()
		if err != nil {
			for _, c := range b.answers {
				close(c)
			}
			b.answers = nil
			b.mu.Unlock()
			return
		}
		if m.ID == 0 {
			b.events = append(b.events, m)
		} else if c := b.answers[m.ID]; c != nil {
			c <- m
			delete(b.answers, m.ID)
		}
		b.mu.Unlock()
	}
}

func (b *chromium) send(m message) (answer chan message, err error) {
	answer = make(chan message, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.answers == nil {
		return nil, fmt.Errorf("the browser has ended")
	}
	b.last++
	m.ID = b.last
	b.answers[m.ID] = answer
	text, err := json.Marshal(m)
	if err == nil {
		_, err = b.to.Write(append(text, 0))
	}
	return answer, err
}

// call has the page do something.
func (b *chromium) call(method string, params, result any) {
	b.t.Helper()
	text, err := json.Marshal(params)
	if err != nil {
		b.t.Fatal(err)
	}
	c, err := b.send(message{Method: method, Params: text, SessionID: b.session})
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	m, ok := <-c
	if !ok || m.Error != nil {
		b.t.Fatalf("%s: %s", method, m.Error)
	}
	if result != nil {
		if err := json.Unmarshal(m.Result, result); err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
	}
}

// eval returns what an expression of the page's script is. A promise is waited for.
func (b *chromium) eval(expression string, value any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	if err := json.Unmarshal(r.Result.Value, value); err != nil {
		b.t.Fatalf("%s: %v in %s", expression, err, r.Result.Value)
	}
}

// until waits until an expression is true.
func (b *chromium) until(expression string) {
	b.t.Helper()
	var done bool
	b.eval(`new Promise((resolve, reject) => {
		const begin = Date.now(), look = () => {
			if (`+expression+`) resolve(true);
			else if (Date.now() - begin > 30000) resolve(false);
			else setTimeout(look, 20);
		};
		look();
	})`, &done)
	if !done {
		b.t.Fatalf("it is not so: %s", expression)
	}
}

// screen makes the page's window such a one.
func (b *chromium) screen(width, height int, phone bool) {
	b.t.Helper()
	scale := 1
	if phone {
		scale = 3
	}
	b.call("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": width, "height": height, "deviceScaleFactor": scale, "mobile": phone}, nil)
}

// seen returns the events of the page of such a kind.
func (b *chromium) seen(methods ...string) (all []message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		for _, m := range methods {
			if e.Method == m {
				all = append(all, e)
			}
		}
	}
	return all
}
