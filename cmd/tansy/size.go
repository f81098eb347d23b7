package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteSize is a flag value: a number of bytes, with K, M, G, or T for powers of 1024.
type byteSize uint64

var units = []struct {
	suffix string
	bytes  uint64
}{{"T", 1 << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}}

func (s *byteSize) String() string {
	for _, u := range units {
		if n := uint64(*s); n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatUint(n/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatUint(uint64(*s), 10)
}

func (s *byteSize) Set(text string) error {
	t := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(text), "B"), "I")
	mult := uint64(1)
	for _, u := range units {
		if strings.HasSuffix(t, u.suffix) {
			t, mult = strings.TrimSuffix(t, u.suffix), u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(t, 10, 64)
	if err != nil || n > math.MaxInt64/mult {
		return fmt.Errorf("%q is not a size: give bytes, or a number with K, M, G, or T, such as 10G", text)
	}
	*s = byteSize(n * mult)
	return nil
}

// about is a number of bytes for people, such as 3.2G.
func about(n uint64) string {
	for _, u := range units {
		if n >= u.bytes {
			return fmt.Sprintf("%.4g%s", float64(n)/float64(u.bytes), u.suffix)
		}
	}
	return strconv.FormatUint(n, 10) + " bytes"
}
