package fs

import (
	"testing"
	"testing/synctest"
)

// Close waits for a call of several parts also if the volume had no extended attributes when it began: by its end there
// may be some, which it looks for.
func TestCloseWaitsForParts(t *testing.T) {
	for _, some := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			v := newFS(t)
			if some {
				v.xattrs.found()
			}
			_, leave, err := v.together()
			want(t, err, 0)
			closed := make(chan error, 1)
			go func() { closed <- v.Close() }()
			synctest.Wait()
			if len(closed) > 0 {
				t.Errorf("attributes: %v: closed while a call is under way", some)
			}
			leave()
			if err := <-closed; err != nil {
				t.Error(err)
			}
		})
	}
}
