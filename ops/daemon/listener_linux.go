package daemon

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"tansy/internal/process"
)

// taken is the error of an address that is in use, with who listens on its port, as far as that can be found out.
func taken(port int, err error) error {
	if err != syscall.EADDRINUSE {
		return err
	}
	sockets := listening(port)
	who := process.Names(process.WithOpen(func(st os.FileInfo) bool {
		s, ok := st.Sys().(*syscall.Stat_t)
		return ok && st.Mode()&os.ModeSocket != 0 && sockets[s.Ino]
	}))
	if _, e := os.Stat("/proc/fs/nfsd"); e == nil && who == "" && port == 2049 {
		who = "perhaps the kernel's own NFS server"
	}
	if who == "" {
		return fmt.Errorf("%w: give another port; 0 is one that is free", err)
	}
	return fmt.Errorf("%w: %s; end that, or give another port", err, who)
}

// listening are the numbers of the sockets that listen on a port over TCP.
func listening(port int) map[uint64]bool {
	found := map[uint64]bool{}
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(file)
		for line := range strings.SplitSeq(string(text), "\n") {
			f := strings.Fields(line) // N: ADDRESS:PORT REMOTE STATE ... INODE; 0A is LISTEN
			if len(f) < 10 || f[3] != "0A" || !strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
				continue
			}
			if n, err := strconv.ParseUint(f[9], 10, 64); err == nil {
				found[n] = true
			}
		}
	}
	return found
}
