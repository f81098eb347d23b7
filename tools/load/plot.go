package load

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Sizes in the plot, in its own units.
const (
	plotWidth  = 760
	plotRow    = 34
	plotLeft   = 90  // for names
	plotRight  = 130 // for rates
	plotTop    = 40
	plotBottom = 30
)

// WriteSVG draws how long operations took. Each workload has a line on a logarithmic scale of time, from the half to
// the slowest thousandth, with marks at the half, nine tenths, and the slowest hundredth. The rate is written beside
// it.
func WriteSVG(w io.Writer, title string, results []Result) error {
	low, high := scale(results)
	x := func(d time.Duration) float64 {
		at := math.Log10(float64(max(d, 1)))
		return plotLeft + (at-low)/(high-low)*(plotWidth-plotLeft-plotRight)
	}
	height := plotTop + plotRow*len(results) + plotBottom
	var b strings.Builder
	const frame = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`
	fmt.Fprintf(&b, frame+"\n", plotWidth, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", escape(title))
	fmt.Fprintf(&b, `<text x="%d" y="20" font-size="14">%s</text>`+"\n", plotLeft, escape(title))
	bottom := height - plotBottom
	for at := low; at <= high; at++ {
		d := time.Duration(math.Round(math.Pow(10, at)))
		fmt.Fprintf(&b, `<path d="M%.1f %d V%d" stroke="#ddd"/>`, x(d), plotTop-8, bottom)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#555">%s</text>`+"\n", x(d), bottom+18, decade(d))
	}
	for i, r := range results {
		y := plotTop + plotRow*i + plotRow/2
		l := r.Latency
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, plotLeft-8, y+4, escape(r.Workload))
		fmt.Fprintf(&b, `<path d="M%.1f %d H%.1f" stroke="#2a6" stroke-width="3"/>`, x(l.Half), y, x(l.Thousandth))
		for _, m := range []struct {
			at   time.Duration
			name string
		}{{l.Half, "half"}, {l.Tenth, "90 %"}, {l.Hundredth, "99 %"}} {
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%d" r="4" fill="#2a6"><title>%s in %s</title></circle>`,
				x(m.at), y, m.name, short(m.at))
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", plotWidth-8, y+4, r.rate())
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// scale is from and to which power of ten of a nanosecond the plot goes.
func scale(results []Result) (low, high float64) {
	power := func(t time.Duration) float64 { return math.Log10(float64(max(t, 1))) }
	low, high = 4, 5 // 10 us, 100 us
	for i, r := range results {
		l, h := math.Floor(power(r.Latency.Half)), math.Ceil(power(r.Latency.Thousandth))
		if i == 0 {
			low, high = l, max(h, l+1)
		}
		low, high = min(low, l), max(high, h)
	}
	return low, high
}

// decade names a power of ten.
func decade(d time.Duration) string {
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d)
	case d < time.Millisecond:
		return fmt.Sprintf("%d us", d/time.Microsecond)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d/time.Millisecond)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

// escape makes s text of XML.
func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
