package load

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// serverProcess is the process on this machine that listens there, as far as the user may see it, or 0.
func serverProcess(addr string) int {
	host, port, err := net.SplitHostPort(addr)
	n, err2 := net.LookupPort("tcp", port)
	if err != nil || err2 != nil || !isLocal(host) {
		return 0
	}
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		for _, inode := range listeners(table, n) {
			sockets["socket:["+inode+"]"] = true
		}
	}
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && sockets[to] {
			pid, _ := strconv.Atoi(strings.Split(fd, "/")[2])
			return pid
		}
	}
	return 0
}

// isLocal tells if a host is this one.
func isLocal(host string) bool {
	ips, _ := net.LookupIP(host)
	own, _ := net.InterfaceAddrs()
	for _, ip := range ips {
		for _, a := range own {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) || ip.IsLoopback() {
				return true
			}
		}
	}
	return false
}

// listeners are the inodes of the sockets that listen on a port, of a table as /proc/net/tcp is (proc(5)).
func listeners(table string, port int) (inodes []string) {
	f, err := os.Open(table)
	if err != nil {
		return nil
	}
	defer f.Close()
	const listening = "0A"
	local := fmt.Sprintf(":%04X", port)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if w := strings.Fields(lines.Text()); len(w) > 9 && w[3] == listening && strings.HasSuffix(w[1], local) {
			inodes = append(inodes, w[9])
		}
	}
	return inodes
}

// ProcessTime is the time that a process has had on the processors; 0 if that is not known.
func ProcessTime(pid int) time.Duration {
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick
}
