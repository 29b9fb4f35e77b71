// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package traces

import (
	"encoding/hex"
	"strings"

	"github.com/setpoint-io/setpoint/runs"
)

// Lengths of a traceparent and its parts, in characters.
// Source: W3C Trace Context, "traceparent Header".
const (
	lengthOfTrace = 32
	lengthOfSpan  = 16
	lengthOfAll   = 2 + 1 + lengthOfTrace + 1 + lengthOfSpan + 1 + 2
)

// annotation is where objects carry a trace context.
const annotation = runs.TraceparentAnnotation

// traceparent returns the trace context of the run of a number.
func (e *Exporter) traceparent(number uint64) string {
	id, flags := e.ids.of(number), "00"
	if e.ids.sampled(id) {
		flags = "01"
	}
	return "00-" + hex.EncodeToString(id.trace[:]) + "-" + hex.EncodeToString(id.span[:]) + "-" + flags
}

// parseTraceparent returns the identifier in a traceparent, and whether its span is exported. It returns false for a text
// that is none: anyone who may write an object chooses the text.
func parseTraceparent(text string) (id identifier, sampled, ok bool) {
	if len(text) < lengthOfAll || strings.ToLower(text) != text {
		return id, false, false
	}
	version, flags := text[:2], text[lengthOfAll-2:lengthOfAll]
	trace, span := text[3:3+lengthOfTrace], text[4+lengthOfTrace:4+lengthOfTrace+lengthOfSpan]
	switch {
	case text[2] != '-', text[3+lengthOfTrace] != '-', text[lengthOfAll-3] != '-', version == "ff":
		return id, false, false
	case len(text) > lengthOfAll && (version == "00" || text[lengthOfAll] != '-'):
		return id, false, false // a later version may append to what it has
	}
	var bits, number [1]byte
	for _, part := range []struct {
		to   []byte
		from string
	}{{number[:], version}, {id.trace[:], trace}, {id.span[:], span}, {bits[:], flags}} {
		if _, err := hex.Decode(part.to, []byte(part.from)); err != nil {
			return identifier{}, false, false
		}
	}
	if id.trace == ([16]byte{}) || id.span == ([8]byte{}) {
		return identifier{}, false, false
	}
	return id, bits[0]&1 == 1, true
}

// contextLinks appends links to the trace contexts of the objects that a run is about, except those to spans that it is or
// has a link to.
func contextLinks(m message, of *ended, linked map[identifier]bool) message {
	for _, text := range of.Contexts {
		id, sampled, ok := parseTraceparent(text)
		if !ok || !sampled || linked[id] || id == of.id {
			continue
		}
		linked[id] = true
		m = m.bytes(spanLink, message(nil).bytes(linkTrace, id.trace[:]).bytes(linkSpan, id.span[:]).
			attribute(linkAttribute, "setpoint.context", annotation))
	}
	return m
}
