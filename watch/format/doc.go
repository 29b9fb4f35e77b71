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
//     words ([Words]), and its authors.
//   - [Diff]: a line, and below it the old and the new value of each field. Texts of
//     several lines are compared line by line; objects and lists are YAML.
//   - [JSON]: one object a line, with the schema of docs/watch-events.md.
//   - [CloudEvents]: the same inside a CloudEvent, one a line.
//   - [YAML]: the same as JSON, a document an event.
//
// What matters most comes first in a line: containers that cannot run, conditions that are bad, then
// Ready, and last the conditions that are as they should be. The table of package trouble says which
// are bad.
//
// [Sentence] is for a chat or a mail, which have no columns.
//
// # Terminals
//
// Every user who may write objects chooses the texts in them, and a terminal obeys control
// characters. So no form writes any: text and diff show them as \x1b or \u202e, JSON and YAML
// have escapes that programs read back. The only control characters are the colours, if Options
// ask for them.
//
// An event has no hidden values, so this package needs no care for secrets.
//
// # What exists already
//
// The words for a change are half of this package: kubectl and its libraries print objects, and
// nothing prints the difference of two in a phrase. They are one file for each part of an
// object (words_metadata.go, words_spec.go, words_status.go). The YAML encoder is
// go.yaml.in/yaml/v3; it refuses objects as deep as an API server takes them, which
// yaml_node.go mends. Libraries for diffs of texts take time with the square of a text or more,
// without a bound, and a ConfigMap may have a megabyte; here the table has one ([diff.Common]).
package format
