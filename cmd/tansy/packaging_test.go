package main

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// known tells that args are a sub-command and flags of it.
func known(t *testing.T, from string, args []string) {
	t.Helper()
	i := slices.IndexFunc(commands, func(c command) bool { return len(args) > 0 && c.name == args[0] })
	if i < 0 {
		t.Errorf("%s: no such command: %q", from, args)
		return
	}
	flags := flagsOf(commands[i])
	for _, a := range args[1:] {
		name, isFlag := strings.CutPrefix(a, "--")
		if isFlag && !slices.ContainsFunc(flags, func(f *flag.Flag) bool { return f.Name == name }) {
			t.Errorf("%s: tansy %s has no flag %s", from, args[0], a)
		}
	}
}

// What the units, the Dockerfile and the recipes start exists.
func TestPackaging(t *testing.T) {
	read := func(path string) string {
		b, err := os.ReadFile(filepath.Join("../..", path))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	start := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/tansy (.*)$`).FindStringSubmatch(read("packaging/tansy.service"))
	if start == nil {
		t.Fatal("no ExecStart")
	}
	known(t, "tansy.service", strings.Fields(start[1]))
	n := 0
	for _, m := range regexp.MustCompile(`(?m)CMD (\[.*\])$`).FindAllStringSubmatch(read("packaging/Dockerfile"), -1) {
		var args []string
		if err := json.Unmarshal([]byte(m[1]), &args); err != nil {
			t.Fatal(err)
		}
		known(t, "Dockerfile", slices.DeleteFunc(args, func(a string) bool { return a == "/tansy" }))
		n++
	}
	if n != 2 {
		t.Errorf("%d commands in the Dockerfile", n)
	}
	for _, name := range []string{"server.yaml", "standby.yaml"} {
		args := regexp.MustCompile(`(?m)^ +args: (\[.*\])$`).FindStringSubmatch(read("packaging/kubernetes/" + name))
		var list []string
		if args == nil || json.Unmarshal([]byte(args[1]), &list) != nil {
			t.Fatalf("the arguments in %s: %q", name, args)
		}
		known(t, name, list)
	}
	options := regexp.MustCompile(`TANSY_OPTIONS='([^']*)'`).FindStringSubmatch(read("docs/operations.md"))
	if options == nil {
		t.Fatal("no options in the recipe")
	}
	known(t, "operations.md", append([]string{"serve"}, strings.Fields(options[1])...))
}

// What is for Kubernetes agrees with its schemas, which the program has in itself.
func TestKubernetes(t *testing.T) {
	validate, err := exec.LookPath("kubernetes-validate")
	if err != nil {
		t.Skip("no kubernetes-validate here: pip install kubernetes-validate")
	}
	files, err := filepath.Glob("../../packaging/kubernetes/*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	if out, err := exec.Command(validate, append([]string{"--strict"}, files...)...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The exports in the manifests can be read.
func TestKubernetesExports(t *testing.T) {
	for _, name := range []string{"server.yaml", "standby.yaml"} {
		b, err := os.ReadFile("../../packaging/kubernetes/" + name)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`(?m)^  exports: \|\n((?:    .*\n)+)`).FindSubmatch(b)
		if m == nil {
			t.Fatalf("no exports in %s", name)
		}
		file := filepath.Join(t.TempDir(), "exports")
		if err := os.WriteFile(file, m[1], 0o600); err != nil {
			t.Fatal(err)
		}
		if out := tansy(t, "exports", "check", file); !strings.Contains(out, "rw,no_root_squash") {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// systemd finds no fault with the units.
func TestUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd here")
	}
	dir := t.TempDir()
	var units []string
	for _, name := range []string{"tansy.service", "tansy.socket"} {
		b, err := os.ReadFile(filepath.Join("../../packaging", name))
		if err != nil {
			t.Fatal(err)
		}
		// It looks for the program, too.
		text := strings.Replace(string(b), "/usr/local/bin/tansy ", os.Args[0]+" ", 1)
		units = append(units, filepath.Join(dir, name))
		if err := os.WriteFile(units[len(units)-1], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(analyze, append([]string{"verify", "--man=no"}, units...)...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
