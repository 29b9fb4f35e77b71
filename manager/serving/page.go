// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

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

// Printable replaces what is no text by its escape in Go's syntax: control characters, which
// steer terminals, characters that turn the direction of the text after them, and bytes that are
// no UTF-8. Ends of lines stay. It is for names, errors and panics, which come from objects,
// servers and clients.
func Printable(text string) string {
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

// WritePage answers a request with a page of text for people, made [Printable].
func WritePage(w http.ResponseWriter, write func(io.Writer)) {
	var page bytes.Buffer
	write(&page)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = io.WriteString(w, Printable(page.String())) // the client may have gone
}
