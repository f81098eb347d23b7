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

// revision is the commit that the program was built of, and its time; the linker sets it (-X main.revision=...).
// Without it that which Go noted counts.
var revision string

func version() (*flagSet, action) {
	f := newFlags("version", "", `
  tansy version     release, revision, format of volumes, and Go, a line each
  tansy --version   the same
`)
	return f, func(args []string) int {
		if _, code, done := parse(f, args, 0, 0); done {
			return code
		}
		info, _ := debug.ReadBuildInfo()
		printVersion(stdout, info)
		return exitOK
	}
}

// printVersion prints what is known of this program, info being nil or what Go noted of its build.
func printVersion(w io.Writer, info *debug.BuildInfo) {
	r, of := versionOf(info)
	fmt.Fprintf(w, "tansy %s\nrevision %s\nvolume format %d\n%s %s/%s\n", r, of, tansyfs.FormatVersion(),
		runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// versionOf returns the release and the revision of this program, as far as they are known.
func versionOf(info *debug.BuildInfo) (number, of string) {
	number, of = release, revision
	if info == nil {
		info = &debug.BuildInfo{}
	}
	if number == "" {
		number = info.Main.Version
	}
	if number == "" || number == "(devel)" {
		number = "unreleased"
	}
	if of != "" {
		return number, of
	}
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	of = set["vcs.revision"]
	if of == "" {
		return number, "unknown"
	}
	if t := set["vcs.time"]; t != "" {
		of += " of " + t
	}
	if set["vcs.modified"] == "true" {
		of += ", modified"
	}
	return number, of
}
