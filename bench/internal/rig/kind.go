package rig

import (
	"cmp"
	"fmt"
	"time"
)

// A Kind is what a device is made of. As a flag it is its name, or how long a barrier of one in memory takes.
type Kind struct {
	name    string
	barrier time.Duration // it takes so much longer
}

// The kinds of devices. The zero value is none yet.
var (
	File   = Kind{name: "file"}   // no device: a volume is an ordinary file
	Loop   = Kind{name: "loop"}   // on an image on a disk
	Zram   = Kind{name: "zram"}   // compressed memory, where a barrier costs nothing
	Memory = Kind{name: "memory"} // a loop device on an image in memory
)

// KindUsage says what Kind.Set takes, for a flag.
const KindUsage = "`kind` of device: loop (on an image in the folder), zram (compressed memory), memory (a loop " +
	"device on an image there), or a time, such as 2ms: memory whose barriers take that much longer"

// longestBarrier is the most that Set takes: a measurement of a slower one would say nothing.
const longestBarrier = time.Second

// Device tells whether it is one.
func (k Kind) Device() bool { return k.String() != File.name }

// Set implements flag.Value.
func (k *Kind) Set(s string) error {
	for _, known := range []Kind{File, Loop, Zram, Memory} {
		if s == known.name {
			*k = known
			return nil
		}
	}
	barrier, err := time.ParseDuration(s)
	if err != nil || barrier <= 0 || barrier > longestBarrier {
		return fmt.Errorf("neither file, loop, zram, nor memory, nor a time up to %v", longestBarrier)
	}
	*k = Kind{Memory.name, barrier}
	return nil
}

// String implements flag.Value.
func (k Kind) String() string {
	if k.barrier > 0 {
		return k.barrier.String()
	}
	return cmp.Or(k.name, File.name)
}
