package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	_ "net/http/pprof" // served only with --debug-listen
	"runtime/debug"
	"strings"
	"time"

	"tansy/nfs/server"
	"tansy/ops/daemon"
	"tansy/ops/status"
)

// hostNames are those that --status-host gives, in the order given.
type hostNames []string

// String is for flag.Value.
func (n *hostNames) String() string { return strings.Join(*n, ",") }

// Set is for flag.Value: one name more.
func (n *hostNames) Set(name string) error {
	if name == "" || strings.ContainsAny(name, ":/ ") {
		return fmt.Errorf("%q is no host name: give NAME without a port", name)
	}
	*n = append(*n, name)
	return nil
}

// statusConfig says whose status it is.
func statusConfig(volumes *volumeList, hosts hostNames, log *daemon.Log) status.Config {
	info, _ := debug.ReadBuildInfo()
	release, revision := versionOf(info)
	return status.Config{Release: release, Revision: revision, Volume: volumes.String(), Names: hosts, Log: log}
}

// startStatus answers on address, from now on, how the server that starts does.
// with protects that, unless it is nil.
func startStatus(out io.Writer, address string, cfg status.Config, with *tls.Config) (*status.Status, error) {
	l, err := listenHTTP("status", address)
	if err != nil {
		return nil, err
	}
	scheme := "http"
	if with != nil {
		scheme = "https"
	}
	fmt.Fprintf(out, "status on %s://%s/\n", scheme, l.Addr())
	return newStatus(l, cfg, with), nil
}

// newStatus answers on l.
func newStatus(l net.Listener, cfg status.Config, with *tls.Config) *status.Status {
	if with != nil {
		l = tls.NewListener(l, with)
	}
	warnReached(cfg.Log.Logger, "the addresses of clients, and names of files in warnings", l.Addr())
	s := status.New(cfg)
	go s.Listen(l)
	return s
}

// longestProfile is how long a profile may take that is asked for.
const longestProfile = 10 * time.Minute

// startProfiler answers on address what Go's profiler is asked.
func startProfiler(address string, hosts hostNames, log *daemon.Log) error {
	l, err := listenHTTP("debug-listen", address)
	if err != nil {
		return err
	}
	warnReached(log.Logger, "the memory of the server, and its command line", l.Addr())
	go func() {
		errors := slog.NewLogLogger(log.Handler(), slog.LevelWarn)
		log.Error("profiler", "err", status.Serve(l, http.DefaultServeMux, hosts, longestProfile, errors))
	}()
	return nil
}

// listenHTTP listens on the address of a flag.
func listenHTTP(flag, address string) (net.Listener, error) {
	port, err := daemon.Bind(address)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	l, err := port.Listen()
	if err != nil {
		port.Close()
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return l, nil
}

// warnReached warns of an address that other machines reach, and says what they can read there.
func warnReached(log *slog.Logger, what string, addr net.Addr) {
	if a, ok := addr.(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		log.Warn("everybody who reaches this address may read "+what+": keep it on loopback or a network of administrators",
			"listen", addr.String())
	}
}

// sources are what the status of a server is made of.
func sources(address net.Addr, s *server.Server, volumes []*volume) status.Sources {
	from := status.Sources{Address: address.String(), RPC: s.Stats}
	for _, v := range volumes {
		from.Volumes = append(from.Volumes, v.source())
	}
	return from
}
