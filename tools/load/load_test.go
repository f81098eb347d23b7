package load

import (
	"bufio"
	"errors"
	"os"
	"testing"
	"time"
)

func TestPatternTellsWhereDataBelongs(t *testing.T) {
	p := Pattern{File: 7}
	b := make([]byte, 3*PatternBlock)
	p.Fill(b, PatternBlock)
	if err := p.Check(b, PatternBlock); err != nil {
		t.Fatal(err)
	}
	if p.Check(b, 0) == nil {
		t.Error("data of another place passes")
	}
	if (Pattern{File: 8}).Check(b, PatternBlock) == nil {
		t.Error("data of another file passes")
	}
	for _, i := range []int{0, 15, 16, PatternBlock - 1, PatternBlock, 2*PatternBlock + 100} {
		b[i] ^= 1
		if p.Check(b, PatternBlock) == nil {
			t.Errorf("a wrong bit in byte %d passes", i)
		}
		b[i] ^= 1
	}
}

// A record may come in fragments of any size.
func TestReadRecordJoinsFragments(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w.Write([]byte{0, 0, 0, 2, 'a', 'b', 0, 0, 0, 0, 0x80, 0, 0, 1, 'c'})
	w.Close()
	c := &Conn{r: bufio.NewReader(r)}
	if err := c.readRecord(); err != nil || string(c.record) != "abc" {
		t.Errorf("record %q, %v", c.record, err)
	}
}

// A reply that is an error is told by the name of its status.
func TestStatusNames(t *testing.T) {
	words := func(w ...uint32) *decoder {
		var e encoder
		for _, x := range w {
			e.u32(x)
		}
		return &decoder{b: e}
	}
	for _, x := range []struct {
		err  error
		want string
	}{
		{status("READ", 70), "READ: NFS3ERR_STALE"},
		{status("MKDIR d", 30), "MKDIR d: NFS3ERR_ROFS"},
		{status("READ", 12345), "READ: NFS3ERR_(status 12345)"},
		{acceptReply(words(1, 1, 1, 1)), "the call was denied: AUTH_BADCRED"},
		{acceptReply(words(1, 1, 0, 2, 2)), "the call was denied: RPC_MISMATCH: the server wants versions of RPC from 2 on"},
		{acceptReply(words(1, 0, 0, 0, 1)), "the call was not carried out: PROG_UNAVAIL: the server has no such program"},
		{acceptReply(words(1, 0, 0, 0, 99)), "the call was not carried out: (status 99)"},
		{acceptReply(words(1, 0, 0)), "a reply that ends in the middle of its header"},
	} {
		if x.err == nil || x.err.Error() != x.want {
			t.Errorf("%v, want %s", x.err, x.want)
		}
	}
	if err := errors.Join(status("READ", 0), acceptReply(words(1, 0, 0, 0, 0))); err != nil {
		t.Error(err)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.00", 1.234: "1.23", 56.78: "56.8", 123: "123", 1234: "1,234", 1234567: "1,234,567",
	} {
		if got := Number(v); got != want {
			t.Errorf("Number(%v) = %q, want %q", v, got, want)
		}
	}
}

// TestHistogram: every duration is counted in a class that has it, and quantiles are right to within a thirtieth.
func TestHistogram(t *testing.T) {
	for d := time.Duration(0); d < 100_000; d++ {
		if c := class(d); least(c) > d || least(c+1) <= d {
			t.Fatalf("%d is in class %d, from %d to %d", d, c, least(c), least(c+1))
		}
	}
	if c := class(1<<63 - 1); c >= len(Histogram{}.counts) {
		t.Fatalf("the longest duration is in class %d", c)
	}
	var a, b, none Histogram
	for i := range 1000 {
		h := &a
		if i%2 == 0 {
			h = &b
		}
		h.Add(time.Duration(i+1) * time.Millisecond)
	}
	a.Merge(&b)
	for q, want := range map[float64]time.Duration{0.5: 501, 0.9: 901, 0.99: 991, 0.999: 1000, 1: 1000, 0: 1} {
		want *= time.Millisecond
		if got := a.Quantile(q); got < want || got > want+want/30 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if a.max != time.Second || none.Quantile(0.5) != 0 {
		t.Error(a.max, none.Quantile(0.5))
	}
}
