module tansy

// The least Go. From 1.21 on, any Go fetches it by itself; an older one says "invalid go version": go.dev/doc/install.
// (With "go 1.26", Go 1.21 looks for a release that does not exist.)
go 1.26.0

require golang.org/x/sys v0.49.0

require github.com/anishathalye/porcupine v1.3.1

require github.com/hanwen/go-fuse/v2 v2.12.1

require (
	github.com/prometheus/client_model v0.6.3
	github.com/prometheus/common v0.73.1
)

require (
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/pandatix/go-abnf v0.5.3 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

require go.etcd.io/bbolt v1.4.3
