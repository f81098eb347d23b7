package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"time"

	"tansy/tools/conform"
)

func conformance() (*flagSet, action) {
	f := newFlags("conform", "HOST:PORT [flags]", `
  tansy conform 127.0.0.1:2049   all checks, in a new directory of the export,
                                 removed in the end
  tansy conform filer:2049 --export /vol/test --mount-port 20048
                                 another server, which has MOUNT on another port
  tansy conform 127.0.0.1:2049 --run 'rename|link/'
                                 only checks whose GROUP/NAME matches
  tansy conform nas:2049 --tls --ca ca-cert.pem
                                 all of it through TLS
  tansy conform --list           what is checked, and which section of which RFC
                                 says so

exit codes:
  0         no failure; differences from what an RFC recommends are listed
  1         failures
  2         the server cannot be checked, or the report of no failure cannot be
            printed
  129, 130, 143
            interrupted by SIGHUP, SIGINT (Ctrl-C), or SIGTERM; the report has
            what was checked until then

Checks of rights need an export that neither squashes user 0 nor maps other
users, and no privileged ports. Checks of locks that are waited for need port
111 of this machine, where the server looks for its clients.
`)
	export := f.String("export", "/", "`PATH` to mount")
	var mountPort portNumber
	f.Var(&mountPort, "mount-port", "`PORT` of the MOUNT protocol (default: the same as NFS)")
	var lockPort portNumber
	f.Var(&lockPort, "nlm-port", "`PORT` of the lock protocol, NLM (default: that of NFS, or what the port mapper says)")
	run := f.String("run", "", "run the checks whose GROUP/NAME this regular `EXPRESSION` matches")
	asJSON := f.Bool("json", false, "print the report as JSON")
	list := f.Bool("list", false, "list the checks and run none")
	var with clientTLS
	with.flags(f)
	timeout := f.Duration("timeout", 10*time.Second, "how long to wait for a reply, such as 500ms or 1m")
	return f, func(args []string) int {
		pos, code, done := parse(f, args, 0, 1)
		if done {
			return code
		}
		only, err := regexp.Compile(*run)
		if err != nil {
			return misused(f, err.Error())
		}
		if *list {
			listChecks(only)
			return exitOK
		}
		if len(pos) == 0 {
			return misused(f, missingArguments(f, 0))
		}
		if *timeout <= 0 {
			return misused(f, "--timeout has to be more than 0")
		}
		if wrong := noServer(pos[0]); wrong != "" {
			return misused(f, wrong)
		}
		addr, err := hostPort(pos[0], nfsPort)
		if err != nil {
			return misused(f, wrongly(pos[0], err.Error()))
		}
		cfg := conform.Config{Addr: addr, Export: *export, Run: only, Timeout: *timeout}
		cfg.MountAddr, cfg.LockAddr = onHost(cfg.Addr, mountPort), onHost(cfg.Addr, lockPort)
		if cfg.TLS, err = with.config(cfg.Addr); err != nil {
			fail("conform", err)
			return exitUsage
		}
		cfg.Progress = checkProgress()

		ctx, stop := untilInterrupted()
		defer stop()
		rep, err := conform.Run(ctx, cfg)
		if cfg.Progress != nil {
			fmt.Fprint(os.Stderr, clearLine)
		}
		if ctx.Err() != nil {
			total := 0
			for _, c := range conform.Checks() {
				if only.MatchString(c.ID()) {
					total++
				}
			}
			err = unfinishedRun(ctx, err, len(rep.Results), total, "check", "checks")
		} else if err != nil && len(rep.Results) == 0 {
			fail("conform", uncheckable(err, cfg))
			return exitUsage
		}
		if *asJSON {
			rep.WriteJSON(stdout)
		} else if err == nil || len(rep.Results) > 0 {
			rep.WriteText(stdout)
		}
		if n := rep.Count(conform.Fail); n > 0 {
			stdout.note(count(n, "check has failed", "checks have failed"))
		}
		switch {
		case ctx.Err() != nil:
			return fail("conform", err)
		case err != nil:
			fail("conform", fmt.Errorf("not all checks were run: %w", err))
			return exitUsage
		case rep.Count(conform.Fail) > 0:
			return exitFailure
		}
		return exitOK
	}
}

// uncheckable is the error for a server of which no check was run, with what to do.
func uncheckable(err error, cfg conform.Config) error {
	var unfit *conform.UnfitError
	switch {
	case !errors.As(err, &unfit):
		return fmt.Errorf("%s: %w%s", cfg.Addr, err, whatToMount(err, cfg.Addr, cfg.MountAddr, cfg.TLS))
	case unfit.Program == "MOUNT":
		return fmt.Errorf("%s: %w: give the port of MOUNT with --mount-port (rpcinfo -p HOST lists the ports)",
			unfit.Addr, unfit)
	}
	return fmt.Errorf("%s: %w: start an NFS server there, or give HOST:PORT of one (rpcinfo -p HOST lists the ports)",
		unfit.Addr, unfit)
}

// nfsPort is the port of a server of which none is given.
const nfsPort = "2049"

// onHost is the address of a port on the host of addr, which is HOST:PORT; "" if port is, for none that was given.
func onHost(addr string, port portNumber) string {
	host, _, err := net.SplitHostPort(addr)
	if port == "" || err != nil {
		return ""
	}
	return net.JoinHostPort(host, string(port))
}

func listChecks(only *regexp.Regexp) {
	n := 0
	for _, c := range conform.Checks() {
		if only.MatchString(c.ID()) {
			fmt.Fprintf(stdout, "%-42s %-6s %-22s %s\n", c.ID(), c.Level, c.Section, c.Expect)
			n++
		}
	}
	fmt.Fprintln(stdout, count(n, "check", "checks"))
}

// checkProgress shows on standard error, if that is a terminal, which check ran last.
func checkProgress() func(done, total int, r *conform.Result) {
	st, err := os.Stderr.Stat()
	if err != nil || st.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	failed := 0
	return func(done, total int, r *conform.Result) {
		if r.Outcome == conform.Fail {
			failed++
		}
		fmt.Fprintf(os.Stderr, "%s%d/%d, %d failed: %s", clearLine, done, total, failed, r.ID())
	}
}
