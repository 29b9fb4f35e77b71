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

const tabStop = 8

// screen returns the lines that a terminal of so many columns shows when it is sent a text.
// It knows what Setpoint sends: text, ends of lines, tabs, and the colours of watch/format.
// Anything else is an error: a picture is to be right or not to be.
func screen(sent string, columns int) ([][]cell, error) {
	lines := [][]cell{nil}
	var now style
	put := func(text string, width int) {
		if last := len(lines) - 1; len(lines[last])+width > columns {
			lines = append(lines, nil)
		}
		last := len(lines) - 1
		lines[last] = append(lines[last], cell{text, now})
		for range width - 1 {
			lines[last] = append(lines[last], cell{"", now})
		}
	}
	for sent != "" {
		if match := rendition.FindStringSubmatch(sent); match != nil {
			var err error
			if now, err = now.with(match[1]); err != nil {
				return nil, err
			}
			sent = sent[len(match[0]):]
			continue
		}
		r, size := utf8.DecodeRuneInString(sent)
		sent = sent[size:]
		last := len(lines) - 1
		switch width := runewidth.Of(r); {
		case r == '\r':
		case r == '\n':
			lines = append(lines, nil)
		case r == '\t':
			for range tabStop - len(lines[last])%tabStop {
				put(" ", 1)
			}
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError:
			return nil, fmt.Errorf("reading what the terminal was sent: no way to draw %q before %q", r, sent[:min(len(sent), 20)])
		case width == 0 && len(lines[last]) > 0: // it goes onto the character before it
			at := len(lines[last]) - 1
			for at > 0 && lines[last][at].text == "" {
				at--
			}
			lines[last][at].text += string(r)
		default:
			put(string(r), max(width, 1))
		}
	}
	if last := len(lines) - 1; len(lines[last]) == 0 {
		lines = lines[:last]
	}
	return lines, nil
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
