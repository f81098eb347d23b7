//go:build linux

package eval

import (
	"os"
	"os/exec"
	"slices"
	"strings"
)

// A contender is one of those that are compared.
type contender struct {
	name, about string
	kind        string // of file system: tansy, ext4, btrfs
	options     string // of its mount
	through     bool   // FUSE that passes everything through lies between
	ablated     bool   // Tansy is built so that parts can be taken out
	without     string // what is taken out of Tansy, of package ablation
	cache       string // of Tansy's mount, if not the usual one
}

// The names of those that others are compared with.
const (
	ours       = "tansy"
	native     = "ext4"
	nativeFUSE = "ext4+fuse"
)

var everyFileSystem = []contender{
	{name: ours, kind: "tansy", about: "Tansy's mount"},
	{name: native, kind: "ext4", options: "data=ordered", about: "ext4, data=ordered, which is its default"},
	{name: nativeFUSE, kind: "ext4", options: "data=ordered", through: true,
		about: "the same through go-fuse's loopback file system: what FUSE costs by itself"},
	{name: "ext4-journal", kind: "ext4", options: "data=journal",
		about: "ext4, data=journal: contents go through its journal, too"},
	{name: "ext4-journal+fuse", kind: "ext4", options: "data=journal", through: true, about: "the same through FUSE"},
	{name: "btrfs", kind: "btrfs", about: "Btrfs, if mkfs.btrfs is installed"},
	{name: "btrfs+fuse", kind: "btrfs", through: true, about: "the same through FUSE"},
}

// fileSystems are the contenders of most workloads.
func fileSystems(o options) []contender { return among(o, everyFileSystem) }

// among are those that were asked for, as far as this machine has them.
func among(o options, all []contender) (cs []contender) {
	for _, c := range all {
		wanted := slices.Contains(o.contenders, c.name) || len(o.contenders) == 0
		if wanted && there(c.kind) {
			cs = append(cs, c)
		}
	}
	return cs
}

// there tells whether file systems of a kind can be made and mounted here.
func there(kind string) bool {
	if kind == "tansy" {
		return true
	}
	_, err := exec.LookPath("mkfs." + kind)
	known, _ := os.ReadFile("/proc/filesystems")
	return err == nil && slices.Contains(strings.Fields(string(known)), kind)
}

// allContenders are those of all workloads.
func allContenders() []contender { return slices.Concat(everyFileSystem, everyLibrary, everyAblation) }
