//go:build linux

package main

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// plots are the pictures of the report, by name of file.
func plots(s samples) map[string]string {
	ps := map[string]string{"ratios.svg": ratioPlot(s)}
	for name, m := range s {
		if m.scales() {
			ps[name+".svg"] = scalingPlot(name, m)
		}
	}
	return ps
}

var colors = []string{"#1b6ca8", "#d1495b", "#edae49", "#66a182", "#8d5a97", "#5c5c5c", "#2e4057", "#a0522d", "#008b8b"}

// color is that of a contender in all plots.
func color(name string) string {
	for _, family := range [][]contender{everyFileSystem, everyLibrary} {
		if i := slices.IndexFunc(family, func(c contender) bool { return c.name == name }); i >= 0 {
			return colors[i%len(colors)]
		}
	}
	return "black"
}

// A drawing is an SVG that grows.
type drawing struct {
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
		d.box(x, y+16*float64(i), 10, 10, color(n))
		d.text(x+15, y+16*float64(i)+9, "start", n)
	}
}

func (d *drawing) String() string {
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n%s</svg>\n",
		d.width, d.height, d.width, d.body.String())
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

// scalingPlot has a line for each contender: medians by the number of clients, with the least and the most as a stroke.
func scalingPlot(name string, m *measured) string {
	const left, right, top, bottom = 60.0, 520.0, 30.0, 300.0
	d := &drawing{width: 680, height: 340}
	rows := slices.DeleteFunc(slices.Clone(m.Rows), func(r *row) bool { return r.Clients == 0 })
	most := 0.0
	for _, r := range rows {
		for _, c := range m.Contenders {
			if s, ok := r.of(c); ok {
				most = max(most, s.most)
			}
		}
	}
	most = niceAbove(most)
	steps := math.Log2(float64(rows[len(rows)-1].Clients) / float64(rows[0].Clients))
	x := func(clients int) float64 {
		return left + 15 + (right-left-30)*math.Log2(float64(clients)/float64(rows[0].Clients))/max(1, steps)
	}
	y := func(v float64) float64 { return bottom - (bottom-top)*v/most }
	d.text(left, 18, "start", fmt.Sprintf("%s, %s, by the number of clients", name, rows[0].Unit))
	for i := range 6 {
		v := most * float64(i) / 5
		d.line(left, y(v), right, y(v), "#dddddd")
		d.text(left-6, y(v)+4, "end", number(v))
	}
	for _, r := range rows {
		d.text(x(r.Clients), bottom+16, "middle", fmt.Sprint(r.Clients))
	}
	for _, c := range m.Contenders {
		var points []string
		for _, r := range rows {
			if s, ok := r.of(c); ok {
				points = append(points, fmt.Sprintf("%.1f,%.1f", x(r.Clients), y(s.median)))
				d.line(x(r.Clients), y(s.least), x(r.Clients), y(s.most), color(c))
			}
		}
		fmt.Fprintf(&d.body, "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", strings.Join(points, " "), color(c))
	}
	d.key(right+15, top, m.Contenders)
	return d.String()
}

// ratioPlot has a group of bars for each row of the file systems' workloads: how many times as fast as native ext4.
func ratioPlot(s samples) string {
	const left, barHeight, gap, unit = 260.0, 8.0, 10.0, 240.0 // unit: the length of 1
	var names []string
	type group struct {
		label string
		row   *row
	}
	var groups []group
	for _, w := range workloads {
		m := s[w.name]
		if m == nil || !slices.Contains(m.Contenders, native) || !slices.Contains(m.Contenders, ours) {
			continue
		}
		for _, c := range m.Contenders {
			if c != native && !slices.Contains(names, c) {
				names = append(names, c)
			}
		}
		for _, r := range m.Rows {
			groups = append(groups, group{w.name + ": " + r.Name, r})
		}
	}
	const longest = 2.0 // what is above is cut, and says so
	d := &drawing{width: int(left + longest*unit + 190)}
	y := 40.0
	d.text(left, 16, "start", "times as fast as native ext4 (data=ordered); the longer the better")
	for _, g := range groups {
		height := barHeight * float64(len(names))
		d.text(left-8, y+height/2+4, "end", g.label)
		for i, c := range names {
			if x, ok := g.row.ratio(c, native); ok {
				d.box(left, y+barHeight*float64(i), unit*min(x.median, longest), barHeight-1, color(c))
				if x.median > longest {
					d.text(left+unit*longest+4, y+barHeight*float64(i)+8, "start", fmt.Sprintf("%.1f", x.median))
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
