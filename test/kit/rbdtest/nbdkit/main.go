// Nbdkit stands in for the program of that name in tests of volumes on Ceph that have no test binary for it: package
// rbdtest says what it does. TANSY_RBDTEST is the folder of the images.
package main

import (
	"os"

	"tansy/test/kit/rbdtest"
)

func main() { os.Exit(rbdtest.Main(os.Args[1:])) }
