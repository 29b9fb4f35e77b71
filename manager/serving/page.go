// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"io"
	"net/http"

	"github.com/setpoint-io/setpoint/internal/printable"
)

// Printable replaces what is no text by its escape in Go's syntax: control characters, which
// steer terminals, characters that turn the direction of the text after them, and bytes that are
// no UTF-8. Ends of lines stay. It is for names, errors and panics, which come from objects,
// servers and clients.
func Printable(text string) string { return printable.Text(text) }

// WritePage answers a request with a page of text for people, made [Printable].
func WritePage(w http.ResponseWriter, write func(io.Writer)) {
	var page bytes.Buffer
	write(&page)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = io.WriteString(w, Printable(page.String())) // the client may have gone
}
