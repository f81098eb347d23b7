// Package background decides when the work of a volume is done that nobody asked for: naming what is damaged. What that
// work does to the volume is the volume's own, in transactions that are verified. Each part says in an interface what
// it needs of a volume, so that each can be read, and tested, alone.
//
//	Damage    what is done about blocks that are not what was written: the log names them and their files
package background

import "tansy/disk"

const blockSize = disk.BlockSize // bytes
