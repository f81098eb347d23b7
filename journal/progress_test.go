package journal

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"tansy/disk"
)

// Recovery says every second how far it is, and nothing if it is done before.
func TestRecoveryProgress(t *testing.T) {
	d := formatted(t, small)
	d.Record()
	j, err := Open(d, small, quiet)
	if err != nil {
		t.Fatal(err)
	}
	for a := range uint64(8) {
		if err := j.Commit([]Write{{small.Home() + 3*a, contents(a)}}, true); err != nil {
			t.Fatal(err)
		}
	}
	ops := d.Ops()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for _, delay := range []time.Duration{time.Millisecond, 700 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			late := disk.NewFault(d.At(ops), 1, func(disk.Op, *rand.Rand) disk.Harm { return disk.Harm{Delay: delay} })
			o := quiet
			o.Log = slog.New(slog.NewJSONHandler(&out, nil))
			begin := time.Now()
			j, err := recoverJournal(late, small, o)
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(begin)
			synctest.Wait()
			if j == nil || took < delay {
				t.Fatalf("recovery took %v", took)
			}
			t.Logf("recovery took %v", took)
			last, lines := 0.0, 0
			for dec := json.NewDecoder(&out); dec.More(); lines++ {
				var line struct {
					Msg     string
					Read    float64 `json:"blocks_read"`
					Written float64 `json:"blocks_written"`
				}
				if err := dec.Decode(&line); err != nil {
					t.Fatal(err)
				}
				if line.Msg != "recovering the journal" || line.Read+line.Written < last {
					t.Errorf("line %+v after %v blocks", line, last)
				}
				last = line.Read + line.Written
			}
			if want := int(took / time.Second); lines < want-1 || lines > want {
				t.Errorf("%d lines in %v, want one a second", lines, took)
			}
			if (lines > 0) != (took >= time.Second) {
				t.Errorf("%d lines in %v", lines, took)
			}
		})
	}
}
