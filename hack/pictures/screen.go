// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/setpoint-io/setpoint/internal/runewidth"
)

// style is how a cell is drawn. The zero style is the terminal's own.
type style struct {
	colour    int // 31 to 36 as Select Graphic Rendition numbers them (ECMA-48), or 0
	dim, bold bool
}

// cell is one column of a line. The second column of a wide character has no text.
type cell struct {
	text  string
	style style
}

var rendition = regexp.MustCompile(`^\x1b\[([0-9;]*)m`)

const (
	tabStop = 8
	// erase clears a line from the cursor to its end (ECMA-48, EL).
	erase = "\x1b[K"
)

// terminalScreen is the state of a screen while a text is read.
type terminalScreen struct {
	columns int
	lines   [][]cell
	column  int // of the cursor, in the last line
	now     style
}

// screen returns the lines that a terminal of so many columns shows after it has read a text.
// The text may have what Setpoint writes: ends of lines, tabs, the colours of watch/format,
// and lines that are written again from their beginning. Anything else is an error, so that
// no picture is wrong.
func screen(sent string, columns int) ([][]cell, error) {
	t := &terminalScreen{columns: columns, lines: [][]cell{nil}}
	for sent != "" {
		if match := rendition.FindStringSubmatch(sent); match != nil {
			var err error
			if t.now, err = t.now.with(match[1]); err != nil {
				return nil, err
			}
			sent = sent[len(match[0]):]
			continue
		}
		if rest, ok := strings.CutPrefix(sent, erase); ok {
			last := len(t.lines) - 1
			t.lines[last] = t.lines[last][:min(t.column, len(t.lines[last]))]
			sent = rest
			continue
		}
		r, size := utf8.DecodeRuneInString(sent)
		if err := t.read(r); err != nil {
			return nil, fmt.Errorf("reading what the terminal was sent: %w before %q", err, sent[size:min(len(sent), size+20)])
		}
		sent = sent[size:]
	}
	if last := len(t.lines) - 1; len(t.lines[last]) == 0 {
		t.lines = t.lines[:last]
	}
	return t.lines, nil
}

// read reads one character.
func (t *terminalScreen) read(r rune) error {
	switch width := runewidth.Of(r); {
	case r == '\r':
		t.column = 0
	case r == '\n':
		t.newLine()
	case r == '\t':
		for range tabStop - t.column%tabStop {
			t.put(" ", 1)
		}
	case r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError:
		return fmt.Errorf("no way to draw %q", r)
	case width == 0 && t.column > 0: // it goes onto the character before it
		line := t.lines[len(t.lines)-1]
		at := t.column - 1
		for at > 0 && line[at].text == "" {
			at--
		}
		line[at].text += string(r)
	default:
		t.put(string(r), max(width, 1))
	}
	return nil
}

func (t *terminalScreen) newLine() {
	t.lines = append(t.lines, nil)
	t.column = 0
}

// put writes a character at the cursor, over what is there.
func (t *terminalScreen) put(text string, width int) {
	if t.column+width > t.columns {
		t.newLine()
	}
	last := len(t.lines) - 1
	for i := range width {
		c := cell{"", t.now}
		if i == 0 {
			c.text = text
		}
		if t.column < len(t.lines[last]) {
			t.lines[last][t.column] = c
		} else {
			t.lines[last] = append(t.lines[last], c)
		}
		t.column++
	}
}

// with returns the style after a rendition such as "2" or "0;31".
func (s style) with(codes string) (style, error) {
	for code := range strings.SplitSeq(codes, ";") {
		switch code {
		case "", "0":
			s = style{}
		case "1":
			s.bold = true
		case "2":
			s.dim = true
		case "31", "32", "33", "34", "35", "36":
			s.colour = int(code[0]-'0')*10 + int(code[1]-'0')
		default:
			return s, fmt.Errorf("reading what the terminal was sent: no way to draw the rendition %q", codes)
		}
	}
	return s, nil
}
