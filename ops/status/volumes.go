package status

import (
	"tansy/disk"
	"tansy/fs"
)

// numbers are those of a volume at a time.
type numbers struct {
	fs     fs.Stats
	device disk.Counts
	space  *fs.Stat // nil if it is not known

	moments fs.Moments
	scrub   fs.ScrubStatus
	damaged int
}

// volumes adds what there is of each volume, by its path for clients.
func (e *exposition) volumes(list []Source) {
	e.family("healthy", "gauge",
		"0 when the volume is not served, or refuses changes: its device failed, or it is damaged.")
	for _, v := range list {
		e.sample(flag(v.Health() == nil), "volume", v.Path)
	}
	paths, all := []string{}, []numbers{}
	for _, v := range list {
		if v.open() {
			n := numbers{fs: v.FS(), device: v.Device(), moments: v.Moments(), scrub: v.Scrub(), damaged: v.Damaged()}
			if sp, err := v.Space(); err == nil {
				n.space = &sp
			}
			paths, all = append(paths, v.Path), append(all, n)
		}
	}
	each := func(name, kind, help string, of func(n *numbers) float64) {
		e.family(name, kind, help)
		for i := range all {
			e.sample(of(&all[i]), "volume", paths[i])
		}
	}
	counter := func(name, help string, of func(n *numbers) uint64) {
		each(name, "counter", help, func(n *numbers) float64 { return float64(of(n)) })
	}
	gauge := func(name, help string, of func(n *numbers) float64) { each(name, "gauge", help, of) }

	counter("transactions_total", "Transactions that changed something.",
		func(n *numbers) uint64 { return n.fs.Transactions.Commits })
	counter("transaction_conflicts_total", "Transactions that were run again because of others.",
		func(n *numbers) uint64 { return n.fs.Transactions.Conflicts })
	counter("journal_commits_total", "Commits.", func(n *numbers) uint64 { return n.fs.Journal.Commits })
	counter("journal_groups_total", "Groups of commits that were written to the log.",
		func(n *numbers) uint64 { return n.fs.Journal.Groups })
	counter("journal_installs_total", "Times that blocks were brought home.",
		func(n *numbers) uint64 { return n.fs.Journal.Installs })
	gauge("journal_units", "Groups that the log has room for.",
		func(n *numbers) float64 { return float64(n.fs.Journal.Units) })
	gauge("journal_units_used", "Groups in the log.", func(n *numbers) float64 { return float64(n.fs.Journal.UnitsUsed) })
	gauge("journal_ring_bytes", "Room of the log for the data of large groups.",
		func(n *numbers) float64 { return disk.BlockSize * float64(n.fs.Journal.Ring) })
	gauge("journal_ring_used_bytes", "Of this in use.",
		func(n *numbers) float64 { return disk.BlockSize * float64(n.fs.Journal.RingUsed) })
	counter("cache_hits_total", "Blocks that were found in the cache.",
		func(n *numbers) uint64 { return n.fs.Journal.CacheHits })
	counter("cache_misses_total", "Blocks that were not.", func(n *numbers) uint64 { return n.fs.Journal.CacheMisses })
	gauge("cache_bytes", "Blocks in the cache.",
		func(n *numbers) float64 { return disk.BlockSize * float64(n.fs.Journal.Cached) })
	gauge("cache_size_bytes", "Room of the cache.",
		func(n *numbers) float64 { return disk.BlockSize * float64(n.fs.Journal.CacheLimit) })

	counter("device_reads_total", "Reads of the device.", func(n *numbers) uint64 { return n.device.Reads })
	counter("device_read_bytes_total", "Bytes read from the device.",
		func(n *numbers) uint64 { return n.device.ReadBlocks * disk.BlockSize })
	counter("device_writes_total", "Writes to the device.", func(n *numbers) uint64 { return n.device.Writes })
	counter("device_written_bytes_total", "Bytes written to the device.",
		func(n *numbers) uint64 { return n.device.WrittenBlocks * disk.BlockSize })
	counter("device_discarded_bytes_total", "Bytes of free blocks whose room was given back.",
		func(n *numbers) uint64 { return n.device.DiscardedBlocks * disk.BlockSize })
	counter("device_barriers_total", "Barriers.", func(n *numbers) uint64 { return n.device.Barriers })
	e.family("device_seconds_total", "counter",
		"Time spent in the device, by kind of operation; that of operations side by side adds up.")
	for i, n := range all {
		e.sample(n.device.ReadTime.Seconds(), "volume", paths[i], "kind", "read")
		e.sample(n.device.WriteTime.Seconds(), "volume", paths[i], "kind", "write")
		e.sample(n.device.BarrierTime.Seconds(), "volume", paths[i], "kind", "barrier")
	}

	gauge("moments", "Moments of the volume that are open, for checks and backups.",
		func(n *numbers) float64 { return float64(n.moments.Open) })
	gauge("moment_memory_bytes", "What was overwritten since, and is kept for them in memory.",
		func(n *numbers) float64 { return float64(n.moments.Memory) })
	gauge("moment_file_bytes", "What is kept for them in a file (--moment-spill).",
		func(n *numbers) float64 { return float64(n.moments.File) })

	gauge("damaged_blocks", "Blocks that were found not to be what was last written there, "+
		"and that nothing in memory stands for, since the start.",
		func(n *numbers) float64 { return float64(n.damaged) })
	gauge("scrub_running", "1 while a scrub reads the volume.", func(n *numbers) float64 { return flag(n.scrub.Running) })
	counter("scrub_blocks_total", "Blocks that scrubs have read and found as they were written.",
		func(n *numbers) uint64 { return n.scrub.Checked })
	gauge("scrub_damaged_blocks",
		"Blocks that the scrub that runs, or the last one, has found damaged, or could not read.",
		func(n *numbers) float64 { return float64(n.scrub.Pass.Damaged) })
	gauge("scrub_unchecked_blocks", "Blocks that it could not check because of others.",
		func(n *numbers) float64 { return float64(n.scrub.Pass.Unchecked) })
	counter("scrub_passes_total", "Scrubs that came to their end.", func(n *numbers) uint64 { return n.scrub.Passes })
	gauge("scrub_end_time_seconds", "When the last one did, since 1970; 0: none yet.",
		func(n *numbers) float64 { return float64(seconds(n.scrub.Ended)) })

	space := func(name, help string, of func(s *fs.Stat) uint64) {
		e.family(name, "gauge", help)
		for i, n := range all {
			if n.space != nil {
				e.sample(float64(of(n.space)), "volume", paths[i])
			}
		}
	}
	space("volume_bytes", "Size of the volume's data.", func(s *fs.Stat) uint64 { return s.TotalBytes })
	space("volume_free_bytes", "Of these not in use, and with room on the host.",
		func(s *fs.Stat) uint64 { return s.FreeBytes })
	space("volume_inodes", "Files that the volume can have.", func(s *fs.Stat) uint64 { return s.TotalFiles })
	space("volume_free_inodes", "Of these not in use.", func(s *fs.Stat) uint64 { return s.FreeFiles })
}
