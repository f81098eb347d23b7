package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"tansy/tools/load"
)

func benchmark(args []string) int {
	var about strings.Builder
	for _, w := range load.Workloads() {
		fmt.Fprintf(&about, "  %-10s %s\n", w.Name, w.About)
	}
	f := newFlags("bench", "HOST:PORT [WORKLOAD...] [flags]", `  tansy bench 127.0.0.1:2049                              all workloads, in new directories of the export, removed in the end
  tansy bench 127.0.0.1:2049 smallfile --clients 32 --time 20s
  tansy bench filer:2049 --export /vol/test --mount-port 20048 write read --file 256M --io 1M
  tansy bench 127.0.0.1:2049 --json > today.json          for programs
  tansy bench 127.0.0.1:2049 --plot today.svg             how long calls take, drawn

Workloads:
`+about.String()+`
Any NFSv3 server over TCP can be measured. The caller's user must be allowed to make directories there. All data that is read is
compared with what was written. The load takes processors, too: of a server on the same machine the rates are those of both, and
its own time on the processors is told as well, where the system tells whose it is.
Exit code: 0 = done, 1 = an error, or wrong data, 2 = wrong arguments.
`)
	var cfg load.Config
	export := f.String("export", "/", "`PATH` to mount")
	var mountPort portNumber
	f.Var(&mountPort, "mount-port", "`PORT` of the MOUNT protocol (default: the same as NFS)")
	f.IntVar(&cfg.Clients, "clients", 8, "`N` clients, each with a connection, a directory and a file of its own")
	f.IntVar(&cfg.Depth, "depth", 16, "`N` calls in flight of a client that reads or writes in order; else it waits for each")
	f.DurationVar(&cfg.Duration, "time", 5*time.Second, "`TIME` of a workload, such as 500ms or 1m; a tenth of that comes before, to warm up")
	fileSize, ioSize := byteSize(32<<20), byteSize(64<<10)
	f.Var(&fileSize, "file", "`SIZE` of each client's file")
	f.Var(&ioSize, "io", "`SIZE` of READs and WRITEs in order, up to 1M")
	asJSON := f.Bool("json", false, "print the results as JSON")
	plot := f.String("plot", "", "draw how long calls took, as SVG, into `FILE`")
	pos, code, done := parse(f, args, 1, 1+len(load.Workloads()))
	if done {
		return code
	}
	addr, err := hostPort(pos[0], nfsPort)
	if err != nil {
		return misused(f, fmt.Sprintf("%q: %v", pos[0], err))
	}
	cfg.Addr, cfg.Export, cfg.Workloads = addr, *export, pos[1:]
	cfg.FileSize, cfg.IOSize = uint64(fileSize), int(ioSize)
	cfg.MountAddr = mountAddress(cfg.Addr, mountPort)
	if err := cfg.Check(); err != nil {
		return misused(f, err.Error())
	}
	cfg.Progress = workloadProgress()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	results, err := load.Run(ctx, cfg)
	if cfg.Progress != nil {
		fmt.Fprint(os.Stderr, clearLine)
	}
	if werr := writeResults(results, cfg.Addr, *asJSON, *plot); err == nil {
		err = werr
	}
	if err != nil {
		return fail("bench", fmt.Errorf("%s: %w", cfg.Addr, err))
	}
	return exitOK
}

// writeResults prints what was measured, also if not all was.
func writeResults(results []load.Result, addr string, asJSON bool, plot string) error {
	if len(results) == 0 {
		return nil
	}
	if asJSON {
		if err := load.WriteJSON(os.Stdout, results); err != nil {
			return err
		}
	} else {
		load.WriteText(os.Stdout, results)
	}
	if plot == "" {
		return nil
	}
	return createFile(plot, func(w io.Writer) error { return load.WriteSVG(w, "NFSv3 server at "+addr, results) })
}

// createFile makes a file of what is written.
func createFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = write(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// workloadProgress shows on standard error, if that is a terminal, what is being measured.
func workloadProgress() func(done, total int, name string) {
	if _, _, terminal := window(os.Stderr); !terminal {
		return nil
	}
	return func(done, total int, name string) {
		fmt.Fprintf(os.Stderr, "%s%d/%d: %s", clearLine, done, total, name)
	}
}

// workloadNames are those of all workloads, with spaces between them.
func workloadNames() string {
	var names []string
	for _, w := range load.Workloads() {
		names = append(names, w.Name)
	}
	return strings.Join(names, " ")
}
