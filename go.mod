module tansy

go 1.26.0

require golang.org/x/sys v0.49.0

require github.com/anishathalye/porcupine v1.3.1

require github.com/hanwen/go-fuse/v2 v2.12.1

require go.etcd.io/bbolt v1.4.3
