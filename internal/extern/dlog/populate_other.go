//go:build !linux

package dlog

import "tansy/internal/extern/dbytes"

const populated = 64

func populate([]dbytes.Blk) {}
