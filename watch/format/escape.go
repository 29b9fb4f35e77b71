// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// dangerous reports whether a character must not reach a terminal: it moves the cursor,
// changes a mode, turns the direction of what is around it, or is not seen at all.
// Joiners are let through, for the scripts and pictures that need them.
func dangerous(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0: // C0, DEL, C1
		return true
	case r < 0x80:
		return false
	case r == '\u200c', r == '\u200d':
		return false
	case r == '\u2028', r == '\u2029', r == '\ufffe', r == '\uffff':
		return true
	}
	return unicode.Is(unicode.Cf, r)
}

// clean returns a text as it can be shown: what is dangerous is written as in a string of
// Go, and so are bytes that are no UTF-8.
func clean(s string) string {
	if !dirty(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case !dangerous(r):
			b.WriteString(s[:size])
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		s = s[size:]
	}
	return b.String()
}

func dirty(s string) bool {
	return strings.ContainsFunc(s, dangerous) || !utf8.ValidString(s)
}

// escapeJSON returns JSON that means the same and holds no dangerous character. Those that
// it may hold are inside of strings, where they can be written as escapes.
func escapeJSON(b []byte) []byte {
	return escape(b, func(out []byte, r rune) []byte {
		high, low := utf16.EncodeRune(r)
		return fmt.Appendf(out, `\u%04x\u%04x`, high, low)
	})
}

// escapeYAML is escapeJSON for what is in double quotes in YAML, which has no surrogates.
func escapeYAML(b []byte) []byte {
	return escape(b, func(out []byte, r rune) []byte { return fmt.Appendf(out, `\U%08x`, r) })
}

func escape(b []byte, beyond func(out []byte, r rune) []byte) []byte {
	if !dirty(string(b)) {
		return b
	}
	out := make([]byte, 0, len(b)+64)
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && size == 1:
			out = append(out, `\ufffd`...)
		case r == '\n', !dangerous(r): // lines are ours: inside of strings there are none
			out = append(out, b[:size]...)
		case r < 0x10000:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = beyond(out, r)
		}
		b = b[size:]
	}
	return out
}
