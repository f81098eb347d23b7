package nfs3

import (
	"encoding/binary"
	"log/slog"

	"tansy/fs"
)

// Config sets up a Service.
type Config struct {
	FS       fs.FileSystem
	VolumeID [8]byte  // in every handle, and the fsid of the attributes
	Key      [16]byte // of the handles
	Log      *slog.Logger

	// AnonUID and AnonGID are who a caller without credentials is.
	AnonUID, AnonGID uint32
	// RootSquash maps user 0 to AnonUID and group 0 to AnonGID, also among the
	// supplementary groups.
	RootSquash bool
}

// Service is NFS version 3 on one file system.
type Service struct {
	fs         fs.FileSystem
	handles    *handles
	fsid       uint64
	log        *slog.Logger
	anon       fs.Cred
	rootSquash bool
}

// New makes a Service.
func New(cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Service{
		fs: cfg.FS, handles: newHandles(cfg.VolumeID, cfg.Key), fsid: binary.BigEndian.Uint64(cfg.VolumeID[:]),
		log: cfg.Log, anon: fs.Cred{UID: cfg.AnonUID, GID: cfg.AnonGID}, rootSquash: cfg.RootSquash,
	}
}
