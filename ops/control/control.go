// Package control is how programs on a server's own machine reach a volume that it has open: over a socket of the file
// system, which nobody can use but the server's own user, and root. The files of the volume can be read there, whatever
// their modes; so nothing of this is on a port.
//
// It speaks HTTP:
//
//	POST /moment                a moment of the volume (fs.FS.Moment). The answer begins with a line (Taken), and then
//	                            lasts as long as the moment, which ends with the connection; with a line that says why
//	                            (Ended), if the server ends it: it stops, or nothing was asked for ten minutes
//	GET  /moment/ID/blocks?from=&n=   n blocks of the layout at rest, 256 at most, from one on
//	GET  /moment/ID/data?from=        the number of the first block from there on that may hold anything but zeros
//	POST /moment/ID/release?from=&to= what lies from one block on before another is not needed any more
//	GET  /volume                which volume there is, where it lies, and its label (Served)
//	POST /label                 gives it the label of the body (Label)
//	POST /grow                  as POST /grow of package status, for this volume
//
// The errors of blocks and data are 410 Gone, if the moment is lost (disk.ErrMomentLost) or has ended, and else 500,
// with the block in the header Tansy-Block.
//
// The socket of a volume is UUID.sock in a folder. It is made elsewhere, and moved there when nobody else may open it.
// So one that a killed server has left is replaced.
package control

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/volumeend"
)

// run is where root has sockets; a folder below it is another user's.
var run = runOf(runtime.GOOS)

// runOf is run on a system.
func runOf(system string) string {
	if system == "darwin" {
		return "/var/run/tansy"
	}
	return "/run/tansy"
}

// Dir is the folder that a server has its sockets in, if nobody says else: that which systemd has made for it
// (RuntimeDirectory); or else /run/tansy for root, and $XDG_RUNTIME_DIR/tansy for others. "": there is none.
func Dir() string {
	if made, _, _ := strings.Cut(os.Getenv("RUNTIME_DIRECTORY"), ":"); made != "" {
		return made
	}
	if os.Geteuid() == 0 {
		return run
	}
	if own := os.Getenv("XDG_RUNTIME_DIR"); own != "" {
		return filepath.Join(own, "tansy")
	}
	return ""
}

// name is that of the socket of a volume in its folder.
func name(volume [16]byte) string { return hex.EncodeToString(volume[:]) + ".sock" }

// Find returns the socket of a server that has a volume, if there is one that the caller may use: in dir, or if that is
// "", in Dir, and for root where services have theirs as well.
func Find(dir string, volume [16]byte) (socket string, ok bool) {
	places := []string{dir}
	if dir == "" {
		places[0] = Dir()
	}
	if dir == "" && os.Geteuid() == 0 {
		below, _ := filepath.Glob(run + "/*/")
		places = append(append(places, run), below...)
	}
	for _, p := range places {
		socket = filepath.Join(p, name(volume))
		if p != "" && answers(socket) {
			return socket, true
		}
	}
	return "", false
}

// VolumeOf returns the UUID of the volume in an image, or on a device, which a server may have open.
func VolumeOf(path string) (volume [16]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return volume, err
	}
	defer f.Close()
	b := make([]byte, disk.BlockSize)
	if _, err := io.ReadFull(f, b); err != nil {
		return volume, fmt.Errorf("%s: block 0: %w", path, err)
	}
	return volumeIn(path, b)
}

// VolumeOn is VolumeOf for a device that is open.
func VolumeOn(d disk.Disk) (volume [16]byte, err error) {
	b := make([]byte, disk.BlockSize)
	if err := d.ReadAt(0, [][]byte{b}); err != nil {
		return volume, err
	}
	return volumeIn("the device", b)
}

// volumeIn is the UUID in a superblock.
func volumeIn(name string, b []byte) (volume [16]byte, err error) {
	why, s := superblockformat.Decode(&dbytes.Bytes{Data: b})
	if why != 0 {
		return volume, fmt.Errorf("%s: %w", name, errNoVolume)
	}
	return volumeend.UUID(s), nil
}

var errNoVolume = errors.New("no superblock is in block 0 that can be used")

// Served is the answer to GET /volume.
type Served struct {
	Volume string `json:"volume"` // its UUID, in hexadecimal
	Image  string `json:"image"`  // where it lies
	Label  string `json:"label"`  // "": it has none
}

// Label is the body of POST /label.
type Label struct {
	Label string `json:"label"`
}

// Taken is the first line of the answer to POST /moment.
type Taken struct {
	ID uint64 `json:"id"`
	Served
	Blocks uint64 `json:"blocks"` // of the layout at rest
	When   string `json:"when"`   // as RFC 3339 has it
}

// Ended is its last line.
type Ended struct {
	Why string `json:"ended"`
}

// MostBlocks is how many blocks can be asked for at a time.
const MostBlocks = 256

// blockHeader names the block that an error is about.
const blockHeader = "Tansy-Block"
