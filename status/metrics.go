package status

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"tansy/disk"
	"tansy/fs"
	"tansy/oncrpc"
)

// exposition is Prometheus' text format, version 0.0.4: families of samples, each after its
// type and help.
type exposition struct {
	b    bytes.Buffer
	name string // of the family at hand
}

// family begins a family. kind is counter, gauge, or histogram.
func (e *exposition) family(name, kind, help string) {
	e.name = "tansy_" + name
	fmt.Fprintf(&e.b, "# HELP %s %s\n# TYPE %s %s\n", e.name, help, e.name, kind)
}

// sample adds one to the family; labels are pairs of a name and a value.
func (e *exposition) sample(v float64, labels ...string) { e.suffixed("", v, labels...) }

func (e *exposition) suffixed(suffix string, v float64, labels ...string) {
	e.b.WriteString(e.name + suffix)
	for i := 0; i < len(labels); i += 2 {
		e.b.WriteByte("{,"[min(i, 1)])
		e.b.WriteString(labels[i] + `="` + labelText.Replace(labels[i+1]) + `"`)
	}
	if len(labels) > 0 {
		e.b.WriteByte('}')
	}
	e.b.WriteString(" " + strconv.FormatFloat(v, 'g', -1, 64) + "\n")
}

var labelText = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func (e *exposition) gauge(name, help string, v float64) {
	e.family(name, "gauge", help)
	e.sample(v)
}

func (e *exposition) counter(name, help string, v uint64) {
	e.family(name, "counter", help)
	e.sample(float64(v))
}

// metrics returns all numbers.
func (s *Status) metrics() []byte {
	e := &exposition{}
	state, _ := s.ready()
	e.family("build_info", "gauge", "Always 1; what is running.")
	e.sample(1, "release", s.cfg.Release, "revision", s.cfg.Revision, "format", strconv.Itoa(int(fs.FormatVersion())), "goversion", runtime.Version())
	e.gauge("start_time_seconds", "When the server started, since 1970.", float64(s.begin.UnixMilli())/1000)
	e.gauge("resident_memory_bytes", "Memory of the process; 0 where it is not known.", float64(resident()))
	e.family("processor_seconds_total", "counter", "Processor time of the process.")
	e.sample(processorTime().Seconds())
	e.gauge("goroutines", "Goroutines.", float64(runtime.NumGoroutine()))
	dropped, held := s.cfg.Log.Lost()
	e.family("log_messages_lost_total", "counter", "Messages that are not in the log: its reader did not take them, or they were so many of a kind that they were counted only.")
	e.sample(float64(dropped), "why", "reader")
	e.sample(float64(held), "why", "limit")

	e.gauge("serving", "1 while the server serves.", flag(state == Serving))
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.from == nil {
		return e.b.Bytes()
	}
	e.gauge("healthy", "0 when the volume refuses changes since its device failed, or it is damaged.", flag(s.from.Health() == nil))
	e.transport(s.from.RPC())
	e.volume(s.from.FS())
	e.device(s.from.Device())
	e.scrub(s.from.Scrub(), s.from.Damaged())
	if sp, err := s.from.Space(); err == nil {
		e.gauge("volume_bytes", "Size of the volume's data.", float64(sp.TotalBytes))
		e.gauge("volume_free_bytes", "Of these not in use, and with room on the host.", float64(sp.FreeBytes))
		e.gauge("volume_inodes", "Files that the volume can have.", float64(sp.TotalFiles))
		e.gauge("volume_free_inodes", "Of these not in use.", float64(sp.FreeFiles))
	}
	return e.b.Bytes()
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// transport adds calls and connections.
func (e *exposition) transport(st oncrpc.Stats) {
	inProgress, queued := 0, 0
	for _, c := range st.Conns {
		inProgress += c.InProgress
		queued += c.Queued
	}
	e.gauge("connections", "Open connections.", float64(len(st.Conns)))
	e.counter("connections_accepted_total", "Connections that were served.", st.Accepted)
	e.counter("connections_refused_total", "Connections that were too many: not accepted, or closed to make room.", st.RefusedConns)
	e.counter("calls_refused_total", "Calls for no procedure, or with credentials that are not taken.", st.RefusedCalls)
	e.counter("received_bytes_total", "Bytes from clients.", st.Received)
	e.counter("sent_bytes_total", "Bytes to clients.", st.Sent)
	e.gauge("calls_in_progress", "Calls whose reply is not sent; short ones are not counted.", float64(inProgress))
	e.gauge("call_memory_bytes", "Memory of calls in progress and of their replies.", float64(st.CallMemory))
	e.gauge("receive_memory_bytes", "Memory of large calls being received or carried out.", float64(st.ReceivingMemory))
	e.gauge("queued_bytes", "Replies that wait to be sent.", float64(queued))

	e.family("calls_total", "counter", "Calls, by procedure.")
	for _, p := range st.Procs {
		e.sample(float64(p.Calls), "program", p.Program, "proc", p.Name)
	}
	e.family("call_errors_total", "counter", "Calls that failed, by procedure and status.")
	for _, p := range st.Procs {
		for accept, n := range p.Failed {
			if n > 0 {
				e.sample(float64(n), "program", p.Program, "proc", p.Name, "status", acceptNames[accept])
			}
		}
		statuses := make([]uint32, 0, len(p.Statuses))
		for status := range p.Statuses {
			statuses = append(statuses, status)
		}
		slices.Sort(statuses)
		for _, status := range statuses {
			e.sample(float64(p.Statuses[status]), "program", p.Program, "proc", p.Name, "status", statusName(status))
		}
	}
	e.family("call_duration_seconds", "histogram", "Time from the start of a call to its result, by procedure.")
	for _, p := range st.Procs {
		if p.Calls == 0 {
			continue
		}
		sum := uint64(0)
		for i, n := range p.Latency {
			sum += n
			le := "+Inf"
			if i < len(p.Latency)-1 {
				le = strconv.FormatFloat(oncrpc.LatencyBound(i).Seconds(), 'g', -1, 64)
			}
			e.suffixed("_bucket", float64(sum), "program", p.Program, "proc", p.Name, "le", le)
		}
		e.suffixed("_sum", p.Time.Seconds(), "program", p.Program, "proc", p.Name)
		e.suffixed("_count", float64(sum), "program", p.Program, "proc", p.Name)
	}
}

// acceptNames are RFC 5531's, section 9.
var acceptNames = [oncrpc.SystemErr + 1]string{"SUCCESS", "PROG_UNAVAIL", "PROG_MISMATCH", "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR"}

// statusName is RFC 1813's name for a status, without what all have in front.
func statusName(status uint32) string {
	if name, ok := strings.CutPrefix(fs.Errno(status).Error(), "NFS3ERR_"); ok {
		return name
	}
	return strconv.FormatUint(uint64(status), 10)
}

// volume adds transactions, journal and cache.
func (e *exposition) volume(st fs.Stats) {
	j := st.Journal
	e.counter("transactions_total", "Transactions that changed something.", st.Transactions.Commits)
	e.counter("transaction_conflicts_total", "Transactions that were run again because of others.", st.Transactions.Conflicts)
	e.counter("journal_commits_total", "Commits.", j.Commits)
	e.counter("journal_groups_total", "Groups of commits that were written to the log.", j.Groups)
	e.counter("journal_installs_total", "Times that blocks were brought home.", j.Installs)
	e.gauge("journal_units", "Groups that the log has room for.", float64(j.Units))
	e.gauge("journal_units_used", "Groups in the log.", float64(j.UnitsUsed))
	e.gauge("journal_ring_bytes", "Room of the log for the data of large groups.", disk.BlockSize*float64(j.Ring))
	e.gauge("journal_ring_used_bytes", "Of this in use.", disk.BlockSize*float64(j.RingUsed))
	e.counter("cache_hits_total", "Blocks that were found in the cache.", j.CacheHits)
	e.counter("cache_misses_total", "Blocks that were not.", j.CacheMisses)
	e.gauge("cache_bytes", "Blocks in the cache.", disk.BlockSize*float64(j.Cached))
	e.gauge("cache_size_bytes", "Room of the cache.", disk.BlockSize*float64(j.CacheLimit))
}

// scrub adds what was found damaged, by reads and by scrubs.
func (e *exposition) scrub(s fs.ScrubStatus, damaged int) {
	e.gauge("damaged_blocks", "Blocks that were found not to be what was last written there, and that nothing in memory stands for, since the start.", float64(damaged))
	e.gauge("scrub_running", "1 while a scrub reads the volume.", flag(s.Running))
	e.counter("scrub_blocks_total", "Blocks that scrubs have read and found as they were written.", s.Checked)
	e.gauge("scrub_damaged_blocks", "Blocks that the scrub that runs, or the last one, has found damaged, or could not read.", float64(s.Pass.Damaged))
	e.gauge("scrub_unchecked_blocks", "Blocks that it could not check because of others.", float64(s.Pass.Unchecked))
	e.counter("scrub_passes_total", "Scrubs that came to their end.", s.Passes)
	e.gauge("scrub_end_time_seconds", "When the last one did, since 1970; 0: none yet.", float64(seconds(s.Ended)))
}

// device adds what goes to the device.
func (e *exposition) device(c disk.Counts) {
	e.counter("device_reads_total", "Reads of the device.", c.Reads)
	e.counter("device_read_bytes_total", "Bytes read from the device.", c.ReadBlocks*disk.BlockSize)
	e.counter("device_writes_total", "Writes to the device.", c.Writes)
	e.counter("device_written_bytes_total", "Bytes written to the device.", c.WrittenBlocks*disk.BlockSize)
	e.counter("device_discarded_bytes_total", "Bytes of free blocks whose room was given back.", c.DiscardedBlocks*disk.BlockSize)
	e.counter("device_barriers_total", "Barriers.", c.Barriers)
	e.family("device_seconds_total", "counter", "Time spent in the device, by kind of operation; that of operations side by side adds up.")
	for _, x := range []struct {
		kind string
		took time.Duration
	}{{"read", c.ReadTime}, {"write", c.WriteTime}, {"barrier", c.BarrierTime}} {
		e.sample(x.took.Seconds(), "kind", x.kind)
	}
}
