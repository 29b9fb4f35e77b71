// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// Sizes in pixels.
const (
	fontSize  = 14
	cellWide  = 8.43 // 0.602 of the size, as in most fonts of fixed width
	lineHigh  = 20
	margin    = 18
	barHigh   = 36 // of the window, with its title
	rounded   = 10
	dotRadius = 6
)

// Colours, dark whatever is around them: the border keeps the window apart from a page that
// is dark too. Each has a contrast of at least 4.5 against the background (WCAG 2.2, AA).
const (
	background = "#0d1117"
	border     = "#30363d"
	foreground = "#e6edf3"
	dimmed     = "#8b949e"
)

var colours = map[int]string{
	31: "#ff7b72", 32: "#56d364", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#56d4dd",
}

// fonts are what browsers on the common systems have; nothing is loaded.
const fonts = `ui-monospace,SFMono-Regular,Menlo,Consolas,&quot;DejaVu Sans Mono&quot;,&quot;Liberation Mono&quot;,monospace`

// picture is a window to be drawn.
type picture struct {
	title   string // of the window, and for readers who cannot see it
	about   string // what is to be seen, for the same
	columns int
	lines   [][]cell
}

// draw returns a picture as SVG. Each run of text has its place and its length, so that
// columns stand below each other whatever font there is.
func draw(p picture) string {
	var b strings.Builder
	width := 2*margin + float64(p.columns)*cellWide
	height := barHigh + 2*margin + len(p.lines)*lineHigh
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d" role="img" aria-labelledby="title about">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&b, "<title id=\"title\">%s</title>\n<desc id=\"about\">%s</desc>\n", escaped(p.title), escaped(p.about))
	fmt.Fprintf(&b, `<rect x=".5" y=".5" width="%.0f" height="%d" rx="%d" fill="%s" stroke="%s"/>`+"\n", width-1, height-1, rounded, background, border)
	fmt.Fprintf(&b, `<path d="M1 %d.5H%.0f" stroke="%s"/>`+"\n", barHigh, width-1, border)
	for i, colour := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="%d" r="%d" fill="%s"/>`+"\n", margin+dotRadius+i*20, barHigh/2, dotRadius, colour)
	}
	fmt.Fprintf(&b, `<g font-family="%s" font-size="%d" fill="%s">`+"\n", fonts, fontSize, foreground)
	fmt.Fprintf(&b, `<text x="%.0f" y="%d" text-anchor="middle" font-size="13" fill="%s">%s</text>`+"\n", width/2, barHigh/2+5, dimmed, escaped(p.title))
	for i, line := range p.lines {
		y := barHigh + margin + i*lineHigh + fontSize
		for _, r := range runs(line) {
			r.write(&b, y)
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// run is text of one style that stands together.
type run struct {
	from, to int // columns
	text     string
	style    style
}

// runs cuts a line where its style changes and where there is more than one space: what is
// behind those is a column of a table, which is to stand where it stands.
func runs(line []cell) []run {
	var out []run
	for from := 0; from < len(line); {
		if line[from].text == " " {
			from++
			continue
		}
		r := run{from: from, to: from, style: line[from].style}
		for r.to < len(line) && line[r.to].style == r.style && !ends(line[r.to:]) {
			r.text += line[r.to].text
			r.to++
		}
		out = append(out, r)
		from = r.to
	}
	return out
}

// ends reports whether a run ends before a cell: the space is not one between two words.
func ends(rest []cell) bool {
	return rest[0].text == " " && (len(rest) == 1 || rest[1].text == " " || rest[1].style != rest[0].style)
}

func (r run) write(b *strings.Builder, y int) {
	fmt.Fprintf(b, `<text x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs"`,
		margin+float64(r.from)*cellWide, y, float64(r.to-r.from)*cellWide)
	if r.style.bold {
		b.WriteString(` font-weight="bold"`)
	}
	switch {
	case r.style.colour != 0:
		fmt.Fprintf(b, ` fill="%s"`, colours[r.style.colour])
		if r.style.dim {
			b.WriteString(` opacity=".7"`)
		}
	case r.style.dim:
		fmt.Fprintf(b, ` fill="%s"`, dimmed)
	}
	b.WriteString(">" + escaped(r.text) + "</text>\n")
}

func escaped(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s)) //nolint:errcheck // a Builder takes everything
	return b.String()
}
