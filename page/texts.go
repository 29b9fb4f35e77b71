// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/setpoint-io/setpoint/explain"
)

// shortTime writes a duration in one unit: "0.3 ms", "8 ms", "12 s", "4 min", "3 h", "2 days".
func shortTime(d time.Duration) string {
	switch d = max(d, 0); {
	case d == 0:
		return "0 ms"
	case d < 10*time.Millisecond:
		return strconv.FormatFloat(max(d.Seconds()*1000, 0.1), 'f', 1, 64) + " ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return explain.ShortTime(d)
}

// shortRate writes runs a second: "–", "0.2", "3.1", "412".
func shortRate(r float64) string {
	switch {
	case r < 0.05:
		return "–"
	case r < 10:
		return strconv.FormatFloat(r, 'f', 1, 64)
	}
	return strconv.FormatFloat(r, 'f', 0, 64)
}

// counted writes a number with what it counts: "1 key", "3 keys".
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// mostText is how many bytes of a text a view shows: an error may quote a whole object.
const mostText = 600

// plain makes text from elsewhere fit for a view: it has no control characters and none that turn the direction of the
// text after them, and a bounded length. html/template escapes it.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r):
			return '�'
		}
		return r
	}, text)
	if len(text) <= mostText {
		return text
	}
	cut := mostText
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + " …"
}

// piece is a part of a text after which a line may break.
type piece struct {
	Text  string
	Break bool
}

// mostPieces bounds the places where a text may break.
const mostPieces = 64

// pieces cuts a name where a line may break: after "-", "/", "." and ",". Wide names then fit narrow columns.
func pieces(text string) (all []piece) {
	text = plain(text)
	for text != "" {
		i := strings.IndexAny(text, "-/.,")
		if i < 0 || i == len(text)-1 || len(all) == mostPieces {
			return append(all, piece{Text: text})
		}
		all = append(all, piece{Text: text[:i+1], Break: true})
		text = text[i+1:]
	}
	return all
}
