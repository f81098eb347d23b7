// Package mount makes a volume a file system of this machine, through FUSE: the kernel asks, and the same
// verified procedures answer that serve NFS.
//
// What is promised is what programs know of a local file system. An operation has taken effect, for everybody, when
// it returns. fsync, fdatasync, and fsync of a directory return when all that was done before is durable, and only they
// wait for the device (with Options.Sync every change does). A crash leaves a beginning of all that was
// done, in the order in which it was done, contents included. A file that loses its last name while it is open
// lives until it is closed.
//
// The kernel checks permissions, for it knows all groups of a process, and asks in the name of user 0. It also keeps
// names, attributes and contents in its caches for as long as it likes, if nobody else changes the volume. Of one that
// is served at the same time (Options.Shared) it keeps nothing, and each sees what the other did when the call has
// returned; see shared.go.
//
// Linux has all that this needs. For macOS with macFUSE it is built, and was never run (system_darwin.go): SEEK_DATA,
// fallocate, and extended attributes are not there.
package mount
