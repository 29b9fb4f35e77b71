// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/internal/runewidth"
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

// fonts are what browsers on the common systems have; nothing is loaded.
const fonts = `ui-monospace,SFMono-Regular,Menlo,Consolas,&quot;DejaVu Sans Mono&quot;,&quot;Liberation Mono&quot;,monospace`

// picture is a window to be drawn. Its panes are beside and below each other.
type picture struct {
	title string // of the window, and for readers who cannot see it
	about string // what is to be seen, for the same
	panes []pane
	// lasts is how long the picture plays before it begins again. A picture that lasts no
	// time stands still.
	lasts time.Duration
}

// pane is a terminal in a window.
type pane struct {
	left, top     int // columns and lines from the left upper corner of the window
	columns, rows int // rows may be more than there are lines
	lines         []line
}

// line is one line of a terminal. In a picture that plays, it appears at a time.
type line struct {
	cells []cell
	at    time.Duration
	// typing is the time from one word to the next of a typed line. Without it, the line
	// appears as a whole.
	typing time.Duration
}

// still are lines that are there from the beginning.
func still(cells [][]cell) []line {
	var lines []line
	for _, c := range cells {
		lines = append(lines, line{cells: c})
	}
	return lines
}

// drawing is a picture that is being drawn.
type drawing struct {
	strings.Builder
	picture
	moments []time.Duration // when something appears, sorted
}

// draw returns a picture as SVG. Each run of text has its place and its length, so that
// columns stand below each other whatever font there is.
func draw(p picture) string {
	d := &drawing{picture: p, moments: p.moments()}
	columns, rows := 0, 0
	for _, pane := range p.panes {
		columns, rows = max(columns, pane.left+pane.columns), max(rows, pane.top+pane.rows)
	}
	width := 2*margin + float64(columns)*cellWide
	height := barHigh + 2*margin + rows*lineHigh
	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d" role="img" aria-labelledby="title about">`+"\n",
		width, height, width, height)
	fmt.Fprintf(d, "<title id=\"title\">%s</title>\n<desc id=\"about\">%s</desc>\n", escaped(p.title), escaped(p.about))
	fmt.Fprintf(d, "<style>\n%s%s</style>\n", themes(), animation(d.moments, p.lasts))
	fmt.Fprintf(d, `<rect class="w" x=".5" y=".5" width="%.0f" height="%d" rx="%d"/>`+"\n", width-1, height-1, rounded)
	fmt.Fprintf(d, `<path class="b" d="M1 %d.5H%.0f"/>`+"\n", barHigh, width-1)
	for i, colour := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(d, `<circle cx="%d" cy="%d" r="%d" fill="%s"/>`+"\n", margin+dotRadius+i*20, barHigh/2, dotRadius, colour)
	}
	fmt.Fprintf(d, `<g font-family="%s" font-size="%d">`+"\n", fonts, fontSize)
	fmt.Fprintf(d, `<text class="d" x="%.0f" y="%d" text-anchor="middle" font-size="13">%s</text>`+"\n", width/2, barHigh/2+5, escaped(p.title))
	for _, pane := range p.panes {
		d.border(pane, width)
		for i, l := range pane.lines {
			d.line(l, pane.left, barHigh+margin+(pane.top+i)*lineHigh+fontSize)
		}
	}
	d.WriteString("</g>\n</svg>\n")
	return d.String()
}

// border draws what separates a pane from the panes above it and to the left of it.
func (d *drawing) border(p pane, width float64) {
	x, y := margin+(float64(p.left)-1)*cellWide, float64(barHigh+margin+p.top*lineHigh)-lineHigh/2
	if p.left > 0 {
		fmt.Fprintf(d, `<path class="b" d="M%.1f %dv%d"/>`+"\n", x, barHigh+p.top*lineHigh, p.rows*lineHigh+margin+lineHigh/2-2)
	}
	if p.top > 0 {
		fmt.Fprintf(d, `<path class="b" d="M1 %.1fH%.0f"/>`+"\n", y, width-1)
	}
}

// line draws a line of a pane whose first column is left.
func (d *drawing) line(l line, left, y int) {
	all := runs(l.cells)
	if l.typing > 0 {
		all = words(all)
	}
	for i, r := range all {
		r.write(d, left, y, d.class(l.at+time.Duration(i)*l.typing))
	}
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

// words cuts runs at each space.
func words(all []run) []run {
	var out []run
	for _, r := range all {
		at := r.from
		for word := range strings.SplitSeq(r.text, " ") {
			to := at
			for _, c := range word {
				to += runewidth.Of(c)
			}
			out = append(out, run{from: at, to: to, text: word, style: r.style})
			at = to + 1
		}
	}
	return out
}

func (r run) write(d *drawing, left, y int, moment string) {
	classes := slices.DeleteFunc([]string{r.style.class(), moment}, func(c string) bool { return c == "" })
	fmt.Fprintf(d, `<text class="%s" x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs"`,
		strings.Join(classes, " "), margin+float64(left+r.from)*cellWide, y, float64(r.to-r.from)*cellWide)
	if r.style.bold {
		d.WriteString(` font-weight="bold"`)
	}
	if r.style.colour != 0 && r.style.dim {
		d.WriteString(` fill-opacity=".7"`)
	}
	d.WriteString(">" + escaped(r.text) + "</text>\n")
}

func escaped(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s)) //nolint:errcheck // a Builder takes everything
	return b.String()
}
