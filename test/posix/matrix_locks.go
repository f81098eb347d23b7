//go:build linux

package main

import (
	"fmt"
	"strings"
)

// Tables of checks of locks. The process far is on another host, where there is one.

var lockGenerators = []generator{
	{"lock-ranges", lockRanges},
	{"lock-edges", lockEdges},
	{"lock-parts", lockParts},
	{"lock-bytes", lockBytes},
	{"lock-turns", lockTurns},
}

// lockRanges: two locks, of other hosts, processes, or open files, and whether they are in each other's way.
func lockRanges() string {
	var w strings.Builder
	for _, kind := range []struct{ name, word, by, handle string }{
		{"lock", "lock", "second: ", "o"}, {"ofdlock", "ofdlock", "", "i"}, {"far", "lock", "far: ", "o"},
	} {
		for _, first := range []string{"read", "write"} {
			for _, second := range []string{"read", "write"} {
				for _, at := range []struct {
					name   string
					start  int
					length int
					meets  bool
				}{
					{"the same range", 10, 10, true}, {"all before", 0, 10, false}, {"a byte of it", 19, 1, true},
					{"all behind", 20, 0, false}, {"from the start on", 0, 0, true}, {"from within on", 15, 0, true},
				} {
					want := pick(at.meets && (first == "write" || second == "write"), "EAGAIN", "ok")
					fmt.Fprintf(&w, "check %s: %s, then %s of %s\nfile f 0644 data\nopen h f rdwr\n%sopen %s f rdwr\n",
						kind.name, first, second, at.name, kind.by, kind.handle)
					fmt.Fprintf(&w, "%s h %s 10 10\n%s%s %s %s %d %d => %s\n",
						kind.word, first, kind.by, kind.word, kind.handle, second, at.start, at.length, want)
					fmt.Fprintf(&w, "close h\n%ssoon %s %s write 0 0\n", kind.by, kind.word, kind.handle)
				}
			}
		}
	}
	return w.String()
}

// lockEdges: a byte where numbers of 31, 32, and 63 bits end, and at the end of a file; its neighbours are free.
func lockEdges() string {
	var w strings.Builder
	for _, at := range []string{"0", "1", "3", "4", "2^31-1", "2^31", "2^32-1", "2^32", "2^62", "2^63-2", "2^63-1"} {
		n := number(at)
		for _, kind := range []string{"read", "write"} {
			fmt.Fprintf(&w, "check the byte %s, for %sing\nfile f 0644 data\nopen a f rdwr\nfar: open b f rdwr\n",
				at, strings.TrimSuffix(kind, "e"))
			fmt.Fprintf(&w, "lock a %s %d 1\nfar: lock b write %d 1 => EAGAIN\nfar: locked b write 0 0 \"%s %d %s\"\n",
				kind, n, n, kind, n, pick(at == "2^63-1", "0", "1"))
			if n > 0 {
				fmt.Fprintf(&w, "far: lock b write %d 1\nfar: lock b write 0 %d\n", n-1, n)
				fmt.Fprint(&w, "far: lock b write 0 0 => EAGAIN\n")
			}
			if at != "2^63-1" {
				fmt.Fprintf(&w, "far: lock b write %d 1\nfar: lock b write %d 0\n", n+1, n+1)
			}
			fmt.Fprintf(&w, "lock a un %d 1\nfar: lock b write 0 0\n", n)
		}
	}
	return w.String()
}

// lockParts: of a lock of the bytes 10 to 19 a part is given back, or becomes another kind. What remains is what was
// not in that part, and another host sees just that.
func lockParts() string {
	var w strings.Builder
	letter := map[string]string{"read": "R", "write": "W", "un": "-"}
	for _, first := range []string{"read", "write"} {
		for _, then := range []string{"un", "read", "write"} {
			for _, part := range [][2]int{
				{10, 10}, {10, 1}, {10, 4}, {19, 1}, {14, 6}, {14, 1}, {12, 5}, {5, 5}, {5, 6}, {5, 30}, {20, 5}, {19, 5},
			} {
				state := [30]string{}
				for i := range state {
					state[i] = pick(i >= 10 && i < 20, letter[first], "-")
					if i >= part[0] && i < part[0]+part[1] {
						state[i] = letter[then]
					}
				}
				fmt.Fprintf(&w, "check %s 10 10, then %s %d %d\nfile f 0644 data\nopen a f rdwr\nfar: open b f rdwr\n",
					first, then, part[0], part[1])
				fmt.Fprintf(&w, "lock a %s 10 10\nlock a %s %d %d\n", first, then, part[0], part[1])
				fmt.Fprintf(&w, "far: bytes b 4 %s\nlock a un 0 0\nfar: lock b write 0 0\n", strings.Join(state[4:26], ""))
			}
		}
	}
	return w.String()
}

// lockBytes: two lock every other byte each, and neither gets one of the other's.
func lockBytes() string {
	var w strings.Builder
	const most = 32
	for _, other := range []string{"second", "far"} {
		for _, order := range []string{"upwards", "downwards"} {
			fmt.Fprintf(&w, "check byte by byte, %s, %s\nfile f 0644 data\n", other, order)
			fmt.Fprintf(&w, "open a f rdwr\n%s: open b f rdwr\n", other)
			for i := range most {
				at := pick(order == "upwards", i, most-1-i)
				fmt.Fprintf(&w, "%slock %s write %d 1\n", pick(at%2 == 0, "", other+": "), pick(at%2 == 0, "a", "b"), at)
			}
			fmt.Fprintf(&w, "bytes a 0 {-W*%d}--\n%s: bytes b 0 {W-*%d}--\n", most/2, other, most/2)
			for i := range most {
				who, handle := pick(i%2 == 1, "", other+": "), pick(i%2 == 1, "a", "b")
				fmt.Fprintf(&w, "%slock %s write %d 1 => EAGAIN\n", who, handle, i)
			}
			fmt.Fprint(&w, "lock a un 0 0\nlock a write 0 1\nlock a write 1 1 => EAGAIN\n")
			fmt.Fprintf(&w, "%[1]s: lock b write 0 0 => EAGAIN\n%[1]s: close b\nlock a write 0 0\n", other)
		}
	}
	return w.String()
}

// lockTurns: two pass a lock to and fro, and each reads what the other wrote while it had it.
func lockTurns() string {
	var w strings.Builder
	for _, kind := range []struct{ name, take, wait, free, mode string }{
		{"lock", "lock %s write 0 0", "waitlock %s write 0 0", "lock %s un 0 0", "rdwr"},
		{"flock", "flock %s ex", "waitflock %s ex", "flock %s un", "rdwr"},
		{"ofdlock", "ofdlock %s write 5 5", "waitofdlock %s write 0 9", "ofdlock %s un 0 0", "rdwr"},
	} {
		for _, other := range []string{"second", "far"} {
			fmt.Fprintf(&w, "check %s: to %s and fro\nfile f 0644 start\nopen a f %s\n%s: open b f %s\n",
				kind.name, other, kind.mode, other, kind.mode)
			say := func(who, handle, form string) {
				fmt.Fprintf(&w, "%s%s\n", pick(who == "root", "", who+": "), fmt.Sprintf(form, handle))
			}
			has, hasHandle, next, nextHandle := "root", "a", other, "b"
			say(has, hasHandle, kind.take)
			for turn := range 6 {
				say(next, nextHandle, kind.wait)
				say(has, hasHandle, fmt.Sprintf("pwrite %%s 0 turn%d", turn))
				fmt.Fprintf(&w, "%swaits\n", pick(next == "root", "", next+": "))
				say(has, hasHandle, kind.free)
				fmt.Fprintf(&w, "%sgets\n", pick(next == "root", "", next+": "))
				say(next, nextHandle, fmt.Sprintf("pread %%s 0 9 turn%d", turn))
				has, hasHandle, next, nextHandle = next, nextHandle, has, hasHandle
			}
		}
	}
	return w.String()
}
