// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable replaces what is no text by its escape as Go writes it: control characters,
// which steer terminals, those that turn the direction of what follows, and bytes that are
// no UTF-8. Ends of lines stay. Names, errors and panics come from objects, servers and
// clients.
func printable(text string) string {
	clean := true
	for _, r := range text {
		if r != '\n' && !unicode.IsPrint(r) || r == utf8.RuneError {
			clean = false
			break
		}
	}
	if clean {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r == '\n' || unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return b.String()
}

// writePage answers with a page of text for people.
func writePage(w http.ResponseWriter, write func(io.Writer)) {
	var page bytes.Buffer
	write(&page)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = io.WriteString(w, printable(page.String())) // the client may have gone
}
