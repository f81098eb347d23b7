package nfs3

import (
	"encoding/binary"
	"log/slog"
	"sync/atomic"

	"tansy/fs"
	"tansy/nfs/exports"
)

// Config sets up a Service.
type Config struct {
	FS       fs.FileSystem
	VolumeID [8]byte  // in every handle, and the fsid of the attributes
	Key      [16]byte // of the handles
	Log      *slog.Logger

	// Exports says who may do what; it is asked for every call. nil: everybody may do
	// everything.
	Exports *exports.Policy
	// Groups, if not nil, returns the supplementary groups of a user, which take the place
	// of those in AUTH_SYS. It may be called concurrently; the result is not changed.
	Groups func(uid uint32) []uint32
}

// Service is NFS version 3 on one file system.
type Service struct {
	fs     fs.FileSystem
	volume [8]byte
	key    [16]byte
	fsid   uint64
	log    *slog.Logger
	policy *exports.Policy
	groups func(uid uint32) []uint32
	rings  atomic.Pointer[keyring] // of the last table that counted
	failed atomic.Bool             // see Fail
	joined *Volumes                // that it is one of, or nil
}

// New makes a Service.
func New(cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Exports == nil {
		cfg.Exports = exports.NewPolicy(exports.NewTable(exports.Everyone(exports.Open()), nil))
	}
	return &Service{
		fs: cfg.FS, volume: cfg.VolumeID, key: cfg.Key, fsid: binary.BigEndian.Uint64(cfg.VolumeID[:]),
		log: cfg.Log, policy: cfg.Exports, groups: cfg.Groups,
	}
}

// Fail says that the volume cannot be used any more. From now on calls for its files are answered with NFS3ERR_IO.
func (s *Service) Fail() { s.failed.Store(true) }
