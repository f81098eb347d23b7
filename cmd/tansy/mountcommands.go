package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"strings"

	"tansy/nfs/exports"
)

// exportedPaths are what can be mounted: of each volume its first export.
func exportedPaths(volumes []*volume, policies []*exports.Policy) (all []string) {
	for i, v := range volumes {
		if v.fs == nil { // it could not be opened
			continue
		}
		if policies[i] == nil {
			all = append(all, v.path)
		} else if list := policies[i].Table().Exports(); len(list) > 0 {
			all = append(all, path.Join(v.path, list[0].Path))
		}
	}
	return all
}

// printMount tells how to mount these paths. Linux needs the option with them, which begins with a comma. locks: the
// server has them.
func printMount(w io.Writer, addr net.Addr, paths []string, option string, locks bool) {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			host = "SERVER"
		}
	}
	how := ""
	for _, p := range paths {
		how += mountCommands(host, port, p, option, locks)
	}
	if how == "" {
		how = "Nothing is exported.\n"
	}
	fmt.Fprintf(w, "listening on %s\n\n%s\nStop with Ctrl-C or SIGTERM.\n", addr, how)
}

// mountCommands are the commands that mount a path. Without locks of the server the client has to keep its own to
// itself (macOS's nolocks would refuse them). A client of macOS speaks no TLS, so that an option leaves it out.
func mountCommands(host, port, path, option string, locks bool) string {
	linux, nolock, locallocks := "tcp", "nolock,", "locallocks,"
	if locks {
		nolock, locallocks = "", ""
	}
	if strings.Contains(host, ":") { // an IPv6 address
		host, linux = "["+host+"]", "proto=tcp6" // there plain tcp means IPv4
	}
	from := quoted(host + ":" + path)
	ports := fmt.Sprintf("port=%s,mountport=%s", port, port)
	mount := fmt.Sprintf("Linux:  sudo mount -t nfs -o vers=3,%s,%s,%shard%s %s /mnt\n",
		linux, ports, nolock, option, from)
	if option == "" {
		mount += fmt.Sprintf("macOS:  sudo mount -t nfs -o vers=3,tcp,%s,%shard,resvport,nfc %s /private/mnt\n",
			ports, locallocks, from)
	}
	return mount
}
