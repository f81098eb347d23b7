//go:build !linux

package dlog

import "tansy/internal/runtime/dbytes"

const populated = 64

func populate([]dbytes.Blk) {}
