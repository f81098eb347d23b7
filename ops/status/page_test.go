package status

import (
	"encoding/base64"
	"encoding/json"
	flags "flag"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tansy/nfs/oncrpc"
)

var pictures = flags.String("pictures", "", "folder for pictures of the page, as a browser draws it")

// The page asks nobody else for anything.
func TestPageIsAlone(t *testing.T) {
	outside := regexp.MustCompile(`(?i)(https?:)?//[a-z0-9]`)
	err := fs.WalkDir(page, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := page.ReadFile(path)
		for _, m := range outside.FindAllIndex(b, -1) {
			if text := string(b[m[0]:min(len(b), m[0]+40)]); !strings.HasPrefix(text, "http://www.w3.org/2000/svg") { // a name, not an address
				t.Errorf("%s: %s", path, text)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestBrowser: a browser draws what the report says, names as text, on a telephone and on a desk, asks nobody but the
// server, and finds no fault with the script; what changes is seen, and that the server is gone.
func TestBrowser(t *testing.T) {
	b := startChromium(t)
	f := newFake(t)
	f.serve()
	at := time.Now().Add(-time.Minute)
	f.rpc.Conns = []oncrpc.ConnStats{{ID: 1, Peer: "10.0.0.1:5"},
		{ID: 2, Peer: "[2001:db8:1111:2222:3333:4444:5555:6666]:5"}}
	f.log.Error("mount refused", "path", "<script>document.title='bad'</script>"+strings.Repeat("/long", 50))
	for i := range 20 {
		f.call(0, i%5, uint64(100*i))
		f.call(1, i%7, 1e6)
		f.status.sample(at.Add(time.Duration(i) * sampleEvery))
	}
	s := httptest.NewServer(f.status.Handler())
	defer s.Close()

	for name, at := range map[string]struct {
		width, height int
		phone         bool
	}{
		"small-telephone": {320, 568, true}, "telephone": {390, 844, true}, "tablet": {820, 1180, true},
		"desk": {1440, 900, false},
	} {
		b.screen(at.width, at.height, at.phone)
		b.call("Page.navigate", map[string]any{"url": s.URL + "/"}, nil)
		b.until(`document.querySelectorAll("#procs tbody tr").length === 2`)
		var dom string
		b.eval("document.documentElement.outerHTML", &dom)
		for _, want := range []string{
			`<title>Tansy &lt;b&gt;v\</title>`, `class="badge serving">serving<`, `on 192.0.2.1:2049`,
			`<td>10.0.0.1</td>`, `<td>2001:db8:1111:2222:3333:4444:5555:6666</td>`, `<td>GETATTR</td>`,
			`512 MiB of 1.00 GiB, 512 MiB free`, `7 of 512 groups`,
			`<li class="ERROR">`, `&lt;script&gt;document.title='bad'&lt;/script&gt;`,
		} {
			if !strings.Contains(dom, want) {
				t.Errorf("%s: no %q", name, want)
			}
		}
		for _, id := range []string{"p-calls", "p-bytes", "p-latency", "p-barriers"} {
			if !regexp.MustCompile(`id="` + id + `"[^>]*>.*?<path class="a" d="M[0-9. ]+L`).MatchString(dom) {
				t.Errorf("%s: %s: nothing is drawn", name, id)
			}
		}
		// Nothing goes over the side but tables, which scroll in their boxes; nothing is too small to read.
		var wide []string
		b.eval(`[...document.querySelectorAll("body *")].filter(e => !e.closest(".wide table") && e.getBoundingClientRect().width > 0 &&
			(e.getBoundingClientRect().right > innerWidth + 1 || e.getBoundingClientRect().left < 0)).map(e => e.outerHTML.slice(0, 80))`, &wide)
		var page, window float64
		b.eval("document.documentElement.scrollWidth", &page)
		b.eval("innerWidth", &window)
		if len(wide) > 0 || page > window || int(window) != at.width {
			t.Errorf("%s: the page is %v wide, the window %v; out of it: %q", name, page, window, wide)
		}
		var least float64
		b.eval(`Math.min(...[...document.querySelectorAll("body *")].filter(e => e.textContent.trim() && e.getClientRects().length).map(e => parseFloat(getComputedStyle(e).fontSize)))`, &least)
		if least < 11 {
			t.Errorf("%s: text of %v pixels", name, least)
		}
		if *pictures != "" {
			var shot struct{ Data string }
			b.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &shot)
			picture, err := base64.StdEncoding.DecodeString(shot.Data)
			if err == nil {
				err = os.WriteFile(filepath.Join(*pictures, name+".png"), picture, 0o644)
			}
			if err != nil {
				t.Error(err)
			}
		}
		if t.Failed() {
			t.Fatalf("%s", dom)
		}
	}

	// What happens meanwhile is on the page at its next look; what fails, too.
	err := error(os.ErrDeadlineExceeded)
	f.sick.Store(&err)
	b.until(fmt.Sprintf(`!$("problem").hidden && $("problem").textContent === %q && $("state").className === "badge bad"`,
		err.Error()))
	var now any
	look := "update().then(() => true)" // which else comes every two seconds
	f.sick.Store(nil)
	f.status.Stop()
	b.eval(look, &now)
	b.until(`$("state").textContent === "stopping" && $("problem").hidden`)
	for _, e := range b.seen("Network.requestWillBeSent") {
		var p struct{ Request struct{ URL string } }
		if json.Unmarshal(e.Params, &p) != nil || !strings.HasPrefix(p.Request.URL, s.URL+"/") && !strings.HasPrefix(p.Request.URL, "data:") {
			t.Errorf("it asks for %s", e.Params)
		}
	}
	for _, e := range b.seen("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Network.loadingFailed") {
		t.Errorf("%s: %s", e.Method, e.Params)
	}
	s.CloseClientConnections()
	s.Close()
	b.eval(look, &now)
	b.until(`$("state").textContent === "no answer"`)
}
