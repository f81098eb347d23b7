package fs

import (
	"fmt"
	"log/slog"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockcopies"
	"tansy/internal/runtime/ddisk"
	"tansy/internal/volumeend"
	"tansy/journal"
)

// restCache is the cache of the journal that brings a volume to rest, in bytes.
const restCache = 4 << 20

// AtRest is what d would hold if a server had opened and closed the volume on it: the log is empty, and all that was
// in it is home. What is behind the volume on d is left out. Nothing is written to d: what recovery writes stays in
// memory, as many blocks as the log has at most, and so does what is written to the result. Nobody may change the
// volume meanwhile. The errors are those of Open. To close the result closes d.
func AtRest(d disk.Disk, log *slog.Logger) (disk.Disk, error) {
	if log == nil {
		log = slog.Default()
	}
	d = volumeend.Bound(d, nil)
	s, damaged, err := readSuper(d)
	if err != nil {
		return nil, err
	}
	below := newOverlay(d)
	if damaged {
		log.Warn("the superblock in block 0 is damaged; its copy serves")
		if dd := ddisk.New(below); !superblockcopies.Restore(dd, s) {
			return nil, dd.Err()
		}
	}
	layout := volumeend.Layout(below, s)
	j, err := journal.Open(layout, journalParams(s), journal.Options{CacheBytes: restCache, Log: log})
	if err != nil {
		return nil, err
	}
	if err := j.Close(); err != nil {
		return nil, fmt.Errorf("the log could not be emptied in memory: %w", err)
	}
	return below, nil
}
