//go:build linux

package eval

import (
	"fmt"
	"io"

	"tansy/bench/internal/rig"
)

// smallfile is LFS's benchmark of small files, as it became for file systems that are synchronous: each client, in a
// folder of its own, looks a name up, makes the file, writes to it, and removes it, and each change is durable before
// the next one begins.
func smallfile(o options) (es []experiment) {
	for _, n := range o.clients {
		es = append(es, sideBySide("files", n, func(folder string) (func(int) error, io.Closer, error) {
			return func(k int) error { return rig.SmallFile(folder, fmt.Sprint("file", k)) }, nil, nil
		}))
	}
	return es
}
