// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// dangerous reports whether a character must not reach a terminal: it moves the cursor,
// changes a mode, turns the direction of the text around it, or is invisible. Joiners are
// harmless, and some scripts and pictures need them.
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

func dirty(s string) bool {
	return strings.ContainsFunc(s, dangerous) || !utf8.ValidString(s)
}

// escape returns a text in which what is dangerous is written as an escape. Characters of keep
// stay as they are. The escape of a byte that is no UTF-8 is that of utf8.RuneError, with the
// byte.
func escape(s, keep string, as func(r rune, invalid string) string) string {
	if !dirty(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(as(r, s[:1]))
		case !dangerous(r) || strings.ContainsRune(keep, r):
			b.WriteString(s[:size])
		default:
			b.WriteString(as(r, ""))
		}
		s = s[size:]
	}
	return b.String()
}

// clean returns a text that is safe for a terminal, on one line.
func clean(s string) string { return escape(s, "", written) }

// written returns an escape as in a string of Go.
func written(r rune, invalid string) string {
	if invalid != "" {
		return fmt.Sprintf(`\x%02x`, invalid[0])
	}
	switch {
	case r == '\n', r == '\r', r == '\t':
		return strings.Trim(strconv.QuoteRune(r), "'")
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// escapeJSON returns JSON that means the same and holds no dangerous character. Those that
// JSON may hold are inside of strings, where they can be written as escapes. Newlines are
// outside of them.
func escapeJSON(b []byte) []byte {
	if !slices.ContainsFunc(b, func(c byte) bool { return c < 0x20 && c != '\n' || c >= 0x7f }) {
		return b // most events are plain ASCII
	}
	return []byte(escape(string(b), "\n", func(r rune, _ string) string {
		if r < 0x10000 {
			return fmt.Sprintf(`\u%04x`, r)
		}
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}))
}

// escapeYAML is escapeJSON for the double quotes of YAML, which has no surrogates.
func escapeYAML(b []byte) []byte {
	return []byte(escape(string(b), "\n", func(r rune, _ string) string {
		if r < 0x10000 {
			return fmt.Sprintf(`\u%04x`, r)
		}
		return fmt.Sprintf(`\U%08x`, r)
	}))
}
