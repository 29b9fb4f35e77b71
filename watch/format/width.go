// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"strings"

	"github.com/setpoint-io/setpoint/internal/runewidth"
)

// width returns how many columns a text takes that has been cleaned.
func width(s string) int {
	n := 0
	for _, r := range s {
		n += runewidth.Of(r)
	}
	return n
}

// pad fills a text up to a number of columns.
func pad(s string, columns int) string {
	return s + strings.Repeat(" ", max(columns-width(s), 0))
}

// head returns as much of the beginning of a text as fits.
func head(s string, columns int) string {
	n := 0
	for at, r := range s {
		if n += runewidth.Of(r); n > columns {
			return s[:at]
		}
	}
	return s
}

// tail returns as much of the end of a text as fits.
func tail(s string, columns int) string {
	runes := []rune(s)
	n, from := 0, len(runes)
	for from > 0 {
		if n += runewidth.Of(runes[from-1]); n > columns {
			break
		}
		from--
	}
	return string(runes[from:])
}

// cut shortens a text at its end.
func cut(s string, columns int) string {
	if width(s) <= columns {
		return s
	}
	return strings.TrimRight(head(s, columns-1), " …") + "…"
}

// squeeze shortens a text in its middle: of an image the end says most, of a sentence the
// beginning.
func squeeze(s string, columns int) string {
	if len(s) <= columns || width(s) <= columns {
		return s
	}
	left := (columns - 1) / 2
	return head(s, left) + "…" + tail(s, columns-1-left)
}
