package status

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"tansy/fs"
	"tansy/nfs/oncrpc"
)

// exposition is Prometheus' text format, version 0.0.4: families of samples, each after its
// type and help. A client library would count a second time what the parts of the server count anyway, for the
// page as well, or copy these numbers as this does; so there is none in the binary. What is made here is read
// in tests with Prometheus' own parser (test/kit/promtest).
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
	state, _, _ := s.ready()
	e.family("build_info", "gauge", "Always 1; what is running.")
	e.sample(1, "release", s.cfg.Release, "revision", s.cfg.Revision,
		"format", strconv.Itoa(int(fs.FormatVersion())), "goversion", runtime.Version())
	e.gauge("start_time_seconds", "When the server started, since 1970.", float64(s.begin.UnixMilli())/1000)
	e.gauge("resident_memory_bytes", "Memory of the process; 0 where it is not known.", float64(resident()))
	e.gauge("write_memory_bytes", "Memory for the data of WRITEs that are not home yet.", float64(fs.WriteMemory()))
	e.family("processor_seconds_total", "counter", "Processor time of the process.")
	e.sample(processorTime().Seconds())
	e.gauge("goroutines", "Goroutines.", float64(runtime.NumGoroutine()))
	dropped, held := s.cfg.Log.Lost()
	e.family("log_messages_lost_total", "counter", "Messages that are not in the log: its reader did not take them, "+
		"or they were so many of a kind that they were counted only.")
	e.sample(float64(dropped), "why", "reader")
	e.sample(float64(held), "why", "limit")

	e.gauge("serving", "1 while the server serves.", flag(state == Serving))
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.from == nil {
		return e.b.Bytes()
	}
	e.transport(s.from.RPC())
	e.volumes(s.from.Volumes)
	return e.b.Bytes()
}

// protected is how many connections are protected in a way.
func protected(st oncrpc.Stats, way string) (n int) {
	for _, c := range st.Conns {
		if c.Transport == way {
			n++
		}
	}
	return n
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
	e.family("connections_by_xprtsec", "gauge", "Open connections, by how they are protected.")
	for _, way := range []string{"none", "tls", "mtls"} {
		e.sample(float64(protected(st, way)), "xprtsec", way)
	}
	e.family("tls_handshakes_total", "counter", "Handshakes of TLS that came to their end, by what protects the "+
		"connection since.")
	e.sample(float64(st.Handshakes[0]), "xprtsec", "tls")
	e.sample(float64(st.Handshakes[1]), "xprtsec", "mtls")
	e.counter("tls_handshakes_failed_total", "Handshakes of TLS that did not.", st.FailedShakes)
	e.counter("connections_accepted_total", "Connections that were served.", st.Accepted)
	e.counter("connections_refused_total",
		"Connections that were too many: not accepted, or closed to make room.", st.RefusedConns)
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
var acceptNames = [oncrpc.SystemErr + 1]string{
	"SUCCESS", "PROG_UNAVAIL", "PROG_MISMATCH", "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR",
}

// statusName is RFC 1813's name for a status, without what all have in front.
func statusName(status uint32) string {
	if name, ok := strings.CutPrefix(fs.Errno(status).Error(), "NFS3ERR_"); ok {
		return name
	}
	return strconv.FormatUint(uint64(status), 10)
}
