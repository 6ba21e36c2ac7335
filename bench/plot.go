package main

import (
	"fmt"
	"strings"
)

// plot is a bar chart: one group of bars for each label, one colour for each series.
type plot struct {
	file, title, unit string
	series            []string
	groups            []string
	values            [][]float64 // by group, then by series
}

// plots are the pictures of the document.
func plots(r results) []plot {
	var out []plot
	rows := only(r.Rows, func(one row) bool { return one.Part == "calls" })
	for _, figure := range []struct{ file, name, title string }{
		{"cpu.svg", "CPU", "Processor time of one call"}, {"p50.svg", "p50", "Median latency"}, {"p99.svg", "p99", "99th percentile of latency"},
	} {
		p := plot{file: figure.file, title: figure.title, unit: "µs", series: []string{byUsher, byBare}}
		for _, era := range eras() {
			for _, n := range clientCounts() {
				at := fmt.Sprintf("%s %d", era, n)
				var values []float64
				for _, s := range p.series {
					values = append(values, valueOf(rows, at+" "+s+" "+figure.name))
				}
				p.groups, p.values = append(p.groups, at), append(p.values, values)
			}
		}
		if len(rows) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// Measures of a picture, in its own units.
const (
	plotWidth, plotHeight = 720, 300
	plotLeft, plotTop     = 20, 60
	plotBottom            = 40
	barWidth              = 34
)

// svg draws the chart. Its colours are readable on light and dark pages.
func (p plot) svg() string {
	colours := []string{"#2f7ed8", "#9aa0a6", "#d9822b"}
	var most float64
	for _, values := range p.values {
		for _, v := range values {
			most = max(most, v)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13" fill="#808080">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<text x="%d" y="22" font-size="16">%s, %s</text>`+"\n", plotLeft, p.title, p.unit)
	for i, s := range p.series {
		x := plotLeft + i*120
		fmt.Fprintf(&b, `<rect x="%d" y="34" width="12" height="12" fill="%s"/><text x="%d" y="45">%s</text>`+"\n", x, colours[i], x+18, s)
	}
	base, room := plotHeight-plotBottom, float64(plotHeight-plotBottom-plotTop-18)
	step := (plotWidth - 2*plotLeft) / max(len(p.groups), 1)
	for g, values := range p.values {
		left := plotLeft + g*step + (step-len(values)*(barWidth+6))/2
		for i, v := range values {
			high := v / max(most, 1) * room
			x := left + i*(barWidth+6)
			fmt.Fprintf(&b, `<rect x="%d" y="%.1f" width="%d" height="%.1f" fill="%s"/>`, x, float64(base)-high, barWidth, high, colours[i])
			fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="middle" font-size="11">%s</text>`+"\n", x+barWidth/2, float64(base)-high-4, number(v))
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", plotLeft+g*step+step/2, base+20, p.groups[g])
	}
	fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#808080"/>`+"\n</svg>\n", plotLeft, base, plotWidth-plotLeft, base)
	return b.String()
}
