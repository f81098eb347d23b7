package main

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tansy/ops/status"
)

// screen sets a report in lines of at most width characters, at most height of them.
func screen(r *status.Report, width, height int) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, cut(fmt.Sprintf(format, args...), width)) }

	state := string(r.State)
	if r.Problem != "" && len(r.Volumes) > 1 {
		state = "NOT ALL VOLUMES ARE WELL"
	} else if r.Problem != "" {
		state = "REFUSES CHANGES: " + r.Problem
	}
	add("Tansy %s: %s, on %s for %s; release %s",
		r.Volume, state, r.Address, time.Duration(r.Uptime)*time.Second, r.Release)
	add("")
	plot := func(name, value string, of func(s *status.Sample) float64) {
		const left = 30
		add("%-14s%14s  %s", name, value, sparks(r.Samples, of, width-left))
	}
	var now status.Sample
	if n := len(r.Samples); n > 0 {
		now = r.Samples[n-1]
	}
	plot("Calls/s", amount(now.Calls), func(s *status.Sample) float64 { return s.Calls })
	plot("Errors/s", amount(now.Errors), func(s *status.Sample) float64 { return s.Errors })
	plot("To clients", rate(now.Sent), func(s *status.Sample) float64 { return s.Sent })
	plot("From clients", rate(now.Received), func(s *status.Sample) float64 { return s.Received })
	plot("Median", latency(now.P50), func(s *status.Sample) float64 { return s.P50 })
	plot("99 %", latency(now.P99), func(s *status.Sample) float64 { return s.P99 })
	plot("Barriers/s", amount(now.Barriers), func(s *status.Sample) float64 { return s.Barriers })
	add("")
	for i := range r.Volumes {
		v := &r.Volumes[i]
		if len(r.Volumes) > 1 {
			add("%s (%s) %s", v.Path, v.Image, v.Problem)
		}
		if v.Open {
			screenVolume(add, v)
		}
	}
	add("Memory of calls %s, of large ones %s, to be sent %s, of the process %s; refused %s, %s",
		about(uint64(r.Memory.Calls)), about(uint64(r.Memory.Receiving)), about(uint64(r.Memory.Queued)),
		about(r.Memory.Resident), count(r.RefusedConns, "connection", "connections"),
		count(r.RefusedCalls, "call", "calls"))

	// What is left is shared: clients and procedures get what they need of two fifths each.
	left := height - len(lines) - 6
	clients := min(len(r.Clients), max(1, left*2/5))
	procs := min(len(r.Procs), max(1, left*2/5))
	warnings := min(len(r.Warnings), max(1, left-clients-procs))
	add("")
	add("%-28s%6s%10s%14s%14s%8s%10s", "CLIENT", "CONNS", "CALLS/S", "TO", "FROM", "BUSY", "QUEUED")
	for _, c := range r.Clients[:clients] {
		add("%-28s%6d%10s%14s%14s%8d%10s",
			c.Host, c.Conns, amount(c.Calls), rate(c.Sent), rate(c.Received), c.InProgress, about(uint64(c.Queued)))
	}
	add("")
	add("%-20s%10s%12s%12s%12s%12s", "PROCEDURE", "CALLS/S", "MEDIAN", "99 %", "CALLS", "ERRORS")
	for _, p := range r.Procs[:procs] {
		add("%-20s%10s%12s%12s%12d%12d", p.Name, amount(p.Rate), latency(p.P50), latency(p.P99), p.Calls, p.Errors)
	}
	if warnings > 0 {
		add("")
		add("WARNINGS, the latest first")
	}
	for _, w := range r.Warnings[:warnings] {
		add("%s %s %s", w.Time.Local().Format(time.DateTime), w.Level, w.Text)
	}
	return lines[:min(len(lines), max(height, 1))]
}

// screenVolume adds the lines of a volume.
func screenVolume(add func(format string, args ...any), v *status.Volume) {
	used, files := v.Space.Bytes-v.Space.FreeBytes, v.Space.Files-v.Space.FreeFiles
	add("Space  %s %s of %s, %s free",
		bar(used, v.Space.Bytes), about(used), about(v.Space.Bytes), about(v.Space.FreeBytes))
	add("Inodes %s %d of %d", bar(files, v.Space.Files), files, v.Space.Files)
	add("Log    %s %d of %d groups; %s of %s of large data", bar(v.Journal.UnitsUsed, v.Journal.Units),
		v.Journal.UnitsUsed, v.Journal.Units, about(v.Journal.RingUsed), about(v.Journal.Ring))
	found := ""
	if asked := v.Cache.Hits + v.Cache.Misses; asked > 0 {
		found = fmt.Sprintf("; %.0f %% found there", 100*float64(v.Cache.Hits)/float64(asked))
	}
	add("Cache  %s %s of %s%s", bar(v.Cache.Used, v.Cache.Size), about(v.Cache.Used), about(v.Cache.Size), found)
	if s := scrubLine(&v.Scrub); s != "" {
		add("Scrub  %s", s)
	}
}

// cut makes a line of text that came from elsewhere.
func cut(s string, width int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '·'
		}
		return r
	}, s)
	if utf8.RuneCountInString(s) > width {
		s = string([]rune(s)[:max(width, 0)])
	}
	return s
}

// sparks draws the last samples, one character each, as parts of the highest.
func sparks(samples []status.Sample, of func(*status.Sample) float64, width int) string {
	if width <= 0 {
		return ""
	}
	samples = samples[max(0, len(samples)-width):]
	highest := 0.0
	for i := range samples {
		highest = max(highest, of(&samples[i]))
	}
	levels := []rune(" ▁▂▃▄▅▆▇█")
	var b strings.Builder
	for i := range samples {
		k := 0
		if v := of(&samples[i]); v > 0 {
			k = 1 + int(v/highest*float64(len(levels)-2)+0.5)
		}
		b.WriteRune(levels[min(k, len(levels)-1)])
	}
	return b.String()
}

// bar draws how much of all is used.
func bar(used, all uint64) string {
	const width = 20
	n := 0
	if all > 0 {
		n = int(float64(min(used, all))/float64(all)*width + 0.5)
	}
	return "[" + strings.Repeat("#", n) + strings.Repeat("-", width-n) + "]"
}

func amount(x float64) string {
	if x > 0 && x < 10 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

func rate(bytes float64) string { return strings.TrimSuffix(about(uint64(bytes)), " bytes") + "/s" }

func latency(seconds float64) string {
	switch d := time.Duration(seconds * float64(time.Second)); {
	case d == 0:
		return "-"
	case d < time.Millisecond:
		return fmt.Sprintf("%.0f µs", seconds*1e6)
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", seconds*1e3)
	}
	return fmt.Sprintf("%.1f s", seconds)
}
