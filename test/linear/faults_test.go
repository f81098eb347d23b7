package linear

import "tansy/fs"

// fault wraps a file system in one that does something wrong.
type fault func(fs.FileSystem) fs.FileSystem
