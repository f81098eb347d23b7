package main

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"tansy/disk"
)

// byteSize is a flag value: a number of bytes, with K, M, G, T, P, or E for powers of
// 1024, such as 10G. It may have a fraction: 1.5T. 10 GiB, 10GB and 10g are the same as 10G.
type byteSize uint64

var units = []struct {
	suffix string
	bytes  uint64
}{{"E", 1 << 60}, {"P", 1 << 50}, {"T", 1 << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}}

func (s *byteSize) String() string {
	for _, u := range units {
		if n := uint64(*s); n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatUint(n/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatUint(uint64(*s), 10)
}

func (s *byteSize) Set(text string) error {
	t, mult := strings.ToUpper(strings.TrimSpace(text)), uint64(1)
	for _, word := range []string{"BYTES", "BYTE", "B"} {
		if bare, ok := strings.CutSuffix(t, word); ok {
			t = bare
			break
		}
	}
	for _, u := range units {
		if bare, ok := strings.CutSuffix(strings.TrimSuffix(t, "I"), u.suffix); ok {
			t, mult = bare, u.bytes
			break
		}
	}
	t = strings.TrimRight(t, " ")
	n, ok := new(big.Rat), len(t) < 100 && strings.Trim(t, ".0123456789") == ""
	if ok {
		_, ok = n.SetString(t)
	}
	if !ok {
		return errors.New("not a size: give bytes, or a number with K, M, G, T, P, or E, such as 10G or 1.5T")
	}
	n.Mul(n, new(big.Rat).SetInt(new(big.Int).SetUint64(mult)))
	whole := new(big.Int).Quo(n.Num(), n.Denom())
	if !n.IsInt() { // a fraction that is not exact gives whole blocks
		if mult == 1 {
			return errors.New("not a whole number of bytes: give it without a fraction, or with K, M, G, T, P, or E")
		}
		whole.Sub(whole, new(big.Int).Mod(whole, big.NewInt(disk.BlockSize)))
	}
	if !whole.IsInt64() {
		return errors.New("too large: give less than 8E")
	}
	*s = byteSize(whole.Uint64())
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
