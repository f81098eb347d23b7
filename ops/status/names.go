package status

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
)

// AnswerTo passes a request on to h if its Host is a literal address, localhost, the name of this machine, or one of
// names. Others are refused with 421. Otherwise a page elsewhere, whose name was made to lead here (DNS rebinding),
// would read what h answers with the browser of somebody who may. A request without a Host is not a browser's.
func AnswerTo(names []string, h http.Handler) http.Handler {
	known := map[string]bool{"": true, "localhost": true}
	if name, err := os.Hostname(); err == nil {
		known[canonical(name)] = true
	}
	for _, name := range names {
		known[canonical(name)] = true
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := hostOf(r.Host)
		if _, err := netip.ParseAddr(name); err != nil && !known[name] {
			http.Error(w, fmt.Sprintf("this server does not answer to the name %q: use its address, or give it --status-host %s",
				name, name), http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// hostOf is the name or address in a Host header, without port, brackets, and the dot at the end.
func hostOf(header string) string {
	host, _, err := net.SplitHostPort(header)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(header, "["), "]")
	}
	return canonical(host)
}

func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
