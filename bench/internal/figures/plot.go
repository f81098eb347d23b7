//go:build linux

package figures

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

var colors = []string{"#1b6ca8", "#d1495b", "#edae49", "#66a182", "#8d5a97", "#5c5c5c", "#2e4057", "#a0522d", "#008b8b"}

// A palette has the contenders in the order of their colors, which are the same in all plots.
type palette []string

func (p palette) color(name string) string {
	if i := slices.Index(p, name); i >= 0 {
		return colors[i%len(colors)]
	}
	return "black"
}

// A drawing is an SVG that grows.
type drawing struct {
	palette
	width, height int
	body          strings.Builder
}

func (d *drawing) text(x, y float64, anchor, s string) {
	fmt.Fprintf(&d.body, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, html.EscapeString(s))
}

func (d *drawing) line(x1, y1, x2, y2 float64, color string) {
	fmt.Fprintf(&d.body, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1, y1, x2, y2, color)
}

func (d *drawing) box(x, y, w, h float64, color string) {
	fmt.Fprintf(&d.body, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", x, y, w, h, color)
}

// key says which color is whose.
func (d *drawing) key(x, y float64, names []string) {
	for i, n := range names {
		d.box(x, y+16*float64(i), 10, 10, d.color(n))
		d.text(x+15, y+16*float64(i)+9, "start", n)
	}
}

func (d *drawing) String() string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" `+
		`font-family="sans-serif" font-size="11">`+"\n"+
		`<rect width="100%%" height="100%%" fill="white"/>`+"\n%[3]s</svg>\n",
		d.width, d.height, d.body.String())
}

// niceAbove is the least of 1, 2, 5, 10, 20 ... that is not below v.
func niceAbove(v float64) float64 {
	if v <= 0 {
		return 1
	}
	ten := math.Pow(10, math.Floor(math.Log10(v)))
	for _, k := range []float64{1, 2, 5} {
		if k*ten >= v {
			return k * ten
		}
	}
	return 10 * ten
}

// scaling is a plot with a line for each contender: medians by what the axis says, with the least and the most as a
// stroke.
func (m *Measured) scaling(name string, p palette) string {
	const left, right, top, bottom = 60.0, 520.0, 30.0, 300.0
	d := &drawing{palette: p, width: 680, height: 340}
	rows := m.scale()
	most := 0.0
	for _, r := range rows {
		for _, c := range m.Contenders {
			if s, ok := r.Of(c); ok {
				most = max(most, s.Most)
			}
		}
	}
	most = niceAbove(most)
	first, last := float64(rows[0].At), float64(rows[len(rows)-1].At)
	x := func(at int64) float64 {
		return left + 15 + (right-left-30)*math.Log2(float64(at)/first)/max(1, math.Log2(last/first))
	}
	y := func(v float64) float64 { return bottom - (bottom-top)*v/most }
	d.text(left, 18, "start", fmt.Sprintf("%s, %s, by %s", name, rows[0].Unit, m.Axis))
	for i := range 6 {
		v := most * float64(i) / 5
		d.line(left, y(v), right, y(v), "#dddddd")
		d.text(left-6, y(v)+4, "end", Number(v))
	}
	for _, r := range rows {
		d.text(x(r.At), bottom+16, "middle", Amount(r.At))
	}
	for _, c := range m.Contenders {
		var points []string
		for _, r := range rows {
			if s, ok := r.Of(c); ok {
				points = append(points, fmt.Sprintf("%.1f,%.1f", x(r.At), y(s.Median)))
				d.line(x(r.At), y(s.Least), x(r.At), y(s.Most), d.color(c))
			}
		}
		fmt.Fprintf(&d.body, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n",
			strings.Join(points, " "), d.color(c))
	}
	d.key(right+15, top, m.Contenders)
	return d.String()
}

// scale are the rows of the plot.
func (m *Measured) scale() []*Row {
	return slices.DeleteFunc(slices.Clone(m.Rows), func(r *Row) bool { return r.At == 0 })
}

// scales tells whether there is one.
func (m *Measured) scales() bool { return m.Axis != "" && len(m.scale()) > 2 }

// Amount prints a number short, if it is a round one of KiB, MiB, or GiB.
func Amount(n int64) string {
	for i, unit := range []string{"G", "M", "K"} {
		if shift := 30 - 10*i; n>>shift > 0 && n&(1<<shift-1) == 0 {
			return fmt.Sprint(n>>shift) + unit
		}
	}
	return fmt.Sprint(n)
}

// Ratios is a plot with a group of bars for each row of the workloads that both were measured in: how many times as
// fast as the base the contenders are. It is told what it shows.
func (p *Page) Ratios(s Samples, ours, base, title string) string {
	const left, barHeight, gap, unit = 260.0, 8.0, 10.0, 240.0 // unit: the length of 1
	var names []string
	type group struct {
		label string
		row   *Row
	}
	var groups []group
	for _, w := range p.Workloads {
		m := s[w]
		if m == nil || !slices.Contains(m.Contenders, base) || !slices.Contains(m.Contenders, ours) {
			continue
		}
		for _, c := range m.Contenders {
			if c != base && !slices.Contains(names, c) {
				names = append(names, c)
			}
		}
		for _, r := range m.Rows {
			groups = append(groups, group{w + ": " + r.Name, r})
		}
	}
	const longest = 2.0 // what is above is cut, and says so
	d := &drawing{palette: p.Contenders, width: int(left + longest*unit + 190)}
	y := 40.0
	d.text(left, 16, "start", title)
	for _, g := range groups {
		height := barHeight * float64(len(names))
		d.text(left-8, y+height/2+4, "end", g.label)
		for i, c := range names {
			if x, ok := g.row.Ratio(c, base); ok {
				d.box(left, y+barHeight*float64(i), unit*min(x.Median, longest), barHeight-1, d.color(c))
				if x.Median > longest {
					d.text(left+unit*longest+4, y+barHeight*float64(i)+8, "start", fmt.Sprintf("%.1f", x.Median))
				}
			}
		}
		y += height + gap
	}
	for _, v := range []float64{0, 0.5, 1, 1.5, 2} {
		d.line(left+unit*v, 34, left+unit*v, y, "#999999")
		d.text(left+unit*v, 30, "middle", fmt.Sprint(v))
	}
	d.key(left+longest*unit+50, 40, names)
	d.height = int(max(y, 60+16*float64(len(names)))) + 10
	return d.String()
}
