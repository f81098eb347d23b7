//go:build linux

package main

import (
	"fmt"
	"os"
	"sync"
	"syscall"
)

// storm makes, renames, links, and removes names in a directory, n workers side by side, until the file stop exists.
// Each knows what every call must answer; the server may be killed meanwhile. It says how many calls there were.
func storm(dir string, n int, stop string) {
	var workers sync.WaitGroup
	counts := make([]int, n)
	for w := range n {
		workers.Go(func() {
			for round := 0; ; round++ {
				if _, err := os.Lstat(stop); err == nil {
					return
				}
				counts[w] += stormRound(fmt.Sprintf("%s/w%d-%d", dir, w, round))
			}
		})
	}
	workers.Wait()
	sum := 0
	for _, c := range counts {
		sum += c
	}
	fmt.Printf("STORM: %d calls of %d workers, each answered as it must be\n", sum, n)
}

// stormRound makes and removes names that begin with p.
func stormRound(p string) (calls int) {
	do := func(what string, err error) {
		calls++
		if err != nil {
			fail(fmt.Sprintf("%s %s: %v", what, p, err))
		}
	}
	do("mkdir", syscall.Mkdir(p, 0o755))
	do("mkdir within", syscall.Mkdir(p+"/d", 0o700))
	f, err := os.OpenFile(p+"/f", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	do("create", err)
	do("close", f.Close())
	do("mkfifo", syscall.Mknod(p+"/p", syscall.S_IFIFO|0o600, 0))
	do("symlink", syscall.Symlink("f", p+"/s"))
	do("link", syscall.Link(p+"/f", p+"/l"))
	do("rename", syscall.Rename(p+"/f", p+"/g"))
	do("rename over", syscall.Rename(p+"/p", p+"/s"))
	do("rename of a directory", syscall.Rename(p+"/d", p+".d"))
	do("rename to another directory", syscall.Rename(p+"/g", p+".d/g"))
	for _, name := range []string{"/l", "/s", ".d/g"} {
		do("unlink", syscall.Unlink(p+name))
	}
	do("rmdir", syscall.Rmdir(p+".d"))
	do("rmdir at last", syscall.Rmdir(p))
	return calls
}
