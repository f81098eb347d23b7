package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	tansyfs "tansy/fs"
)

// release is the number of a release; the linker sets it (-X main.release=1.0). Without it
// that of the module counts.
var release string

func version(args []string) int {
	f := newFlags("version", "", `
  tansy version     release, revision, format of volumes, and Go, a line each
  tansy --version   the same
`)
	if _, code, done := parse(f, args, 0, 0); done {
		return code
	}
	info, _ := debug.ReadBuildInfo()
	printVersion(stdout, info)
	return exitOK
}

// printVersion prints what is known of this program, info being nil or what Go noted of its build.
func printVersion(w io.Writer, info *debug.BuildInfo) {
	r, revision := versionOf(info)
	fmt.Fprintf(w, "tansy %s\nrevision %s\nvolume format %d\n%s "+
		"%s/%s\n", r, revision, tansyfs.FormatVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// versionOf returns the release and the revision of this program, as far as they are known.
func versionOf(info *debug.BuildInfo) (number, revision string) {
	number, revision = release, "unknown"
	if info == nil {
		info = &debug.BuildInfo{}
	}
	if number == "" {
		number = info.Main.Version
	}
	if number == "" || number == "(devel)" {
		number = "unreleased"
	}
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	if r := set["vcs.revision"]; r != "" {
		revision = r
		if t := set["vcs.time"]; t != "" {
			revision += " of " + t
		}
		if set["vcs.modified"] == "true" {
			revision += ", modified"
		}
	}
	return number, revision
}
