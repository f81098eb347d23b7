package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"tansy/tools/conform"
	"tansy/tools/load"
)

func benchmark() (*flagSet, action) {
	var about strings.Builder
	for _, w := range load.Workloads() {
		fmt.Fprintf(&about, "  %-10s %s\n", w.Name, wrap(w.About, 13, helpWidth))
	}
	f := newFlags("bench", "HOST:PORT [WORKLOAD...] [flags]", `
  tansy bench 127.0.0.1:2049     all workloads, in new directories of the
                                 export, removed in the end
  tansy bench 127.0.0.1:2049 smallfile --clients 32 --time 20s
                                 one of them, with more clients
  tansy bench filer:2049 --export /vol/test --mount-port 20048 \
      write read --file 256M --io 1M
                                 two of them, on another server
  tansy bench nas:2049 --tls --ca ca-cert.pem
                                 through TLS
  tansy bench 127.0.0.1:2049 --json > today.json
                                 for programs
  tansy bench 127.0.0.1:2049 --plot today.svg
                                 how long calls take, drawn

workloads:
`+about.String()+`
Any NFSv3 server over TCP can be measured. The caller's user must be allowed to
make directories there. All data that is read is compared with what was written.
The load takes processors, too: of a server on the same machine the rates are
those of both, and its own time on the processors is told as well, where the
system tells whose it is.

exit codes:
  0         done
  1         an error, or wrong data
  2         wrong arguments
  129, 130, 143
            interrupted by SIGHUP, SIGINT (Ctrl-C), or SIGTERM; what was
            measured until then is printed
`)
	var cfg load.Config
	export := f.String("export", "/", "`PATH` to mount")
	var mountPort portNumber
	f.Var(&mountPort, "mount-port", "`PORT` of the MOUNT protocol (default: the same as NFS)")
	f.IntVar(&cfg.Clients, "clients", 8, "`N` clients, each with a connection, a directory and a file of its own")
	f.IntVar(&cfg.Depth, "depth", 16, "`N` calls in flight of a client that reads or writes in order; else it waits "+
		"for each")
	f.DurationVar(&cfg.Duration, "time", 5*time.Second,
		"`TIME` of a workload, such as 500ms or 1m; a tenth of that comes before, to warm up")
	fileSize, ioSize := byteSize(32<<20), byteSize(64<<10)
	f.Var(&fileSize, "file", "`SIZE` of each client's file")
	f.Var(&ioSize, "io", "`SIZE` of READs and WRITEs in order, up to 1M")
	var with clientTLS
	with.flags(f)
	asJSON := f.Bool("json", false, "print the results as JSON")
	plot := f.String("plot", "", "draw how long calls took, as SVG, into `FILE`")
	return f, func(args []string) int {
		pos, code, done := parse(f, args, 1, 1+len(load.Workloads()))
		if done {
			return code
		}
		if wrong := noServer(pos[0]); wrong != "" {
			return misused(f, wrong)
		}
		addr, err := hostPort(pos[0], nfsPort)
		if err != nil {
			return misused(f, wrongly(pos[0], err.Error()))
		}
		cfg.Addr, cfg.Export, cfg.Workloads = addr, *export, pos[1:]
		cfg.FileSize, cfg.IOSize = uint64(fileSize), int(ioSize)
		if cfg.Clients == 0 || cfg.Depth == 0 || cfg.Duration == 0 || fileSize == 0 || ioSize == 0 { // load has defaults
			return misused(f, "the values of --clients, --depth, --time, --file, and --io must be above 0")
		}
		if st, err := os.Stat(filepath.Dir(*plot)); err != nil || !st.IsDir() { // not only when all is measured
			return misused(f, fmt.Sprintf("--plot %s: there is no directory %s", quoted(*plot), filepath.Dir(*plot)))
		}
		cfg.MountAddr = onHost(cfg.Addr, mountPort)
		if cfg.TLS, err = with.config(cfg.Addr); err != nil {
			return fail("bench", err)
		}
		if err := cfg.Check(); err != nil {
			return misused(f, err.Error())
		}
		return measure(cfg, *asJSON, *plot)
	}
}

// measure measures a server, prints the results, and returns the exit code.
func measure(cfg load.Config, asJSON bool, plot string) int {
	measured, all := 0, len(cfg.Workloads)
	if all == 0 {
		all = len(load.Workloads())
	}
	show := workloadProgress()
	cfg.Progress = func(done, total int, name string) {
		if measured = done; show != nil {
			show(done, total, name)
		}
	}

	ctx, stop := untilInterrupted()
	defer stop()
	results, err := load.Run(ctx, cfg)
	if show != nil {
		fmt.Fprint(os.Stderr, clearLine)
	}
	if ctx.Err() != nil {
		err = unfinishedRun(ctx, err, measured, all, "workload", "workloads")
	}
	if werr := writeResults(results, cfg.Addr, asJSON, plot); err == nil {
		err = werr
	}
	if err != nil {
		return fail("bench", fmt.Errorf("%s: %w%s", cfg.Addr, err, whatToMount(err, cfg.Addr, cfg.MountAddr, cfg.TLS)))
	}
	return exitOK
}

// shownExports is how many exports of a server an error names.
const shownExports = 8

// whatToMount says which directories can be given for --export, for the end of an error, if err is that of mounting
// one; else it is empty. What to do about a refused port is said as well. addr is that of the server, mountAddr that of
// its MOUNT, or ""; with is how connections are protected, or nil.
func whatToMount(err error, addr, mountAddr string, with *tls.Config) string {
	return otherExport(err, addr, mountAddr, with) + otherPort(err)
}

// refusedPort is how the error of a server ends that may refuse calls for their port: MOUNT's, or that of an NFS call
// after a mount, as the kernel's server does it.
var refusedPort = regexp.MustCompile(`(MNT3ERR_ACCES|^mount of .*: ACCES|(\b|_)PERM)$`)

// otherPort says what to do if the server refuses the port that calls come from, for the end of an error, or is empty.
func otherPort(err error) string {
	if !refusedPort.MatchString(err.Error()) {
		return ""
	}
	return " (the calls come from a port above 1023: the server may want the option insecure for the export)"
}

// otherExport is the part of whatToMount about directories.
func otherExport(err error, addr, mountAddr string, with *tls.Config) string {
	if !errors.As(err, new(*load.MountError)) && !errors.As(err, new(*conform.MountError)) {
		return ""
	}
	const give = ": give another directory with --export PATH"
	c, err := dialMount(addr, mountAddr, with)
	if err != nil {
		return give
	}
	defer c.Close()
	all, err := c.Exports()
	switch {
	case err != nil:
		return give
	case len(all) == 0:
		return ": the server exports nothing"
	}
	more := ""
	if n := len(all) - shownExports; n > 0 {
		all, more = all[:shownExports], fmt.Sprintf(" and %d more", n)
	}
	for i := range all {
		all[i] = cut(all[i], 200)
	}
	return fmt.Sprintf("%s; it exports %s%s, though perhaps not to this host", give, strings.Join(all, ", "), more)
}

// writeResults prints what was measured, also if not all was.
func writeResults(results []load.Result, addr string, asJSON bool, plot string) error {
	if len(results) == 0 {
		return nil
	}
	if asJSON {
		load.WriteJSON(stdout, results)
	} else {
		load.WriteText(stdout, results)
	}
	if plot == "" {
		return nil
	}
	err := createFile(plot, func(w io.Writer) error { return load.WriteSVG(w, "NFSv3 server at "+addr, results) })
	if err == nil {
		stdout.note(plot + " is drawn")
	}
	return err
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
