package fs

// Limits of the file system, in bytes and links. FSINFO and PATHCONF report
// them, the operations enforce them.
const (
	MaxName    = 255       // bytes in a name
	MaxSymlink = 4095      // bytes in the target of a symbolic link
	MaxSize    = 1 << 39   // bytes in a file (512 GiB)
	MaxLinks   = 1<<31 - 1 // links to a file, sub-directories of a directory
	MaxIO      = 1 << 20   // bytes in one READ or WRITE
	BlockSize  = 4096      // bytes in a block, the unit of Attr.Used
	MaxListing = 64 << 10  // bytes that one READDIR or READDIRPLUS returns
)
