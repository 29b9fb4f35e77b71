// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package format writes events for people and for programs.
//
//	w := format.New(out, format.Options{Form: format.Text, Color: true, Width: 120, Zone: time.Local})
//	err := w.Write(e)
//
// The forms:
//
//   - [Text]: one line an event. Time, verb, kind, namespace and name, the change in a few
//     words ([Words]), and who made it.
//   - [Diff]: a line, and below it field by field what was there and what is. Texts of
//     several lines are compared line by line, whatever is larger than a value is YAML.
//   - [JSON]: one object a line, with the schema of docs/watch-events.md.
//   - [CloudEvents]: the same inside a CloudEvent, one a line.
//   - [YAML]: the same as JSON, a document an event.
//
// [Sentence] says an event where there are no columns, as in a chat.
//
// # What a terminal is sent
//
// What is in an object was written by whoever may write objects, and a terminal obeys
// control characters. So none are written, in no form: in text and diff they are shown as
// \x1b or \u202e, in JSON and YAML they are escapes that programs read back as they were.
// The only control characters are the colours, if Options ask for them.
//
// Secrets need no care here: an event holds nothing that must not be shown.
package format
