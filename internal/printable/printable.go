// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text replaces what is no text by its escape in Go's syntax: control characters, which steer terminals, characters that turn
// the direction of the text after them, and bytes that are no UTF-8. Ends of lines stay.
func Text(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return !plain(r) || r == utf8.RuneError }) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case plain(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return b.String()
}

// plain reports whether a character is text or the end of a line.
func plain(r rune) bool { return r == '\n' || unicode.IsPrint(r) }

// Line is as [Text], but ends of lines and tabs become spaces, and what is longer than a number of bytes is cut off.
func Line(text string, most int) string {
	cut := ""
	if len(text) > most {
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		text, cut = text[:most], " …"
	}
	return Text(strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ").Replace(text)) + cut
}

// JSON escapes in encoded JSON what [Text] escapes, so that a terminal shows it and nothing else happens: characters
// outside of ASCII that are no text become \u and four digits. encoding/json has escaped the others, apart from U+007F. The
// decoded values stay the same.
func JSON(encoded []byte) []byte {
	if !strings.ContainsFunc(string(encoded), func(r rune) bool { return !plain(r) }) {
		return encoded
	}
	b := make([]byte, 0, len(encoded)+64)
	for len(encoded) > 0 {
		r, size := utf8.DecodeRune(encoded)
		switch {
		case plain(r) || r == '\t':
			b = append(b, encoded[:size]...)
		case r > 0xFFFF:
			high, low := surrogates(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
		encoded = encoded[size:]
	}
	return b
}

// surrogates returns a character as JSON escapes those beyond 16 bits.
func surrogates(r rune) (high, low rune) {
	r -= 0x10000
	return 0xD800 + r>>10, 0xDC00 + r&0x3FF
}
