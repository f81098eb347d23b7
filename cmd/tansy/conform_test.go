package main

import "testing"

func TestConformArguments(t *testing.T) {
	for _, x := range []struct {
		want int
		args []string
	}{
		{exitOK, []string{"--help"}},
		{exitOK, []string{"--list", "--run", "null/"}},
		{exitUsage, nil},
		{exitUsage, []string{"localhost", "more"}},
		{exitUsage, []string{"localhost", "--run", "("}},
		{exitUsage, []string{"127.0.0.1:1"}},
	} {
		if got := run(append([]string{"conform"}, x.args...)); got != x.want {
			t.Errorf("tansy conform %q: exit code %d, want %d", x.args, got, x.want)
		}
	}
	for in, want := range map[string]string{"host": "host:2049", "host:1": "host:1", "::1": "[::1]:2049", "[::1]": "[::1]:2049", "[::1]:1": "[::1]:1"} {
		if got, err := hostPort(in, nfsPort); got != want || err != nil {
			t.Errorf("%s: %s (%v), want %s", in, got, err, want)
		}
	}
}
