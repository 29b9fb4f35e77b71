// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/setpoint-io/setpoint/object"
)

// Schema is the name of the form that events are encoded in. A form that old readers
// cannot read will have another name.
const Schema = "setpoint.io/watch/v1"

// wire is an event's JSON. Its fields are an API: docs/watch-events.md describes them.
type wire struct {
	Schema          string         `json:"schema"`
	ID              string         `json:"id"`
	Time            time.Time      `json:"time"`
	Verb            Verb           `json:"verb"`
	APIVersion      string         `json:"apiVersion"`
	Kind            string         `json:"kind"`
	Resource        string         `json:"resource"`
	Namespaced      bool           `json:"namespaced,omitempty"`
	Namespace       string         `json:"namespace,omitempty"`
	Name            string         `json:"name"`
	UID             types.UID      `json:"uid,omitempty"`
	ResourceVersion string         `json:"resourceVersion,omitempty"`
	Classes         []Class        `json:"classes,omitempty"`
	Fields          []Field        `json:"fields,omitempty"`
	Authors         []Author       `json:"authors,omitempty"`
	Cause           *Cause         `json:"cause,omitempty"`
	Trouble         []Trouble      `json:"trouble,omitempty"`
	Missed          bool           `json:"missed,omitempty"`
	Stale           bool           `json:"stale,omitempty"`
	Merged          int            `json:"merged,omitempty"`
	Since           time.Time      `json:"since,omitzero"`
	Summary         string         `json:"summary,omitempty"`
	Old             map[string]any `json:"old,omitempty"`
	New             map[string]any `json:"new,omitempty"`
}

// Encode returns the event as one line of JSON, without a newline. With withObjects it has the
// whole objects, which are most of its size.
func Encode(e *Event, withObjects bool) ([]byte, error) {
	w := wire{
		Schema: Schema, ID: e.ID, Time: e.Time.UTC(), Verb: e.Verb,
		APIVersion: e.Kind.APIVersion(), Kind: e.Kind.Kind, Resource: e.Kind.Resource, Namespaced: e.Kind.Namespaced,
		Namespace: e.Key.Namespace, Name: e.Key.Name, UID: e.UID, ResourceVersion: e.Version,
		Classes: e.Classes, Fields: e.Fields, Authors: inUTC(e.Authors), Cause: e.Cause, Trouble: troubleInUTC(e.Trouble),
		Missed: e.Missed, Stale: e.Stale, Merged: e.Merged, Since: e.Since.UTC(), Summary: e.Summary,
	}
	if withObjects {
		w.Old, w.New = e.Old, e.New
	}
	b, err := line(w)
	if err != nil {
		return nil, fmt.Errorf("encoding the event of %s %s: %w", e.Kind, e.Key, err)
	}
	return b, nil
}

// line returns v as JSON without a newline. The characters <, > and & are not escaped.
func line(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// inUTC returns the authors with their times in UTC, so that an event has one encoding
// wherever it is encoded.
func inUTC(authors []Author) []Author {
	if len(authors) == 0 {
		return nil
	}
	out := slices.Clone(authors)
	for i := range out {
		out[i].Time = out[i].Time.UTC()
	}
	return out
}

// troubleInUTC returns the troubles with their times in UTC.
func troubleInUTC(trouble []Trouble) []Trouble {
	out := slices.Clone(trouble)
	for i := range out {
		out[i].Since = out[i].Since.UTC()
	}
	return out
}

// Decode returns the event that Encode encoded. Whole numbers are int64.
func Decode(data []byte) (*Event, error) {
	var w wire
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &w); err != nil {
		return nil, fmt.Errorf("decoding an event: %w", err)
	}
	if w.Schema != Schema {
		return nil, fmt.Errorf("decoding an event: its schema is %q, this reads %q", w.Schema, Schema)
	}
	if w.Name == "" || w.Verb == "" || w.Resource == "" {
		return nil, errors.New("decoding an event: it has no name, no verb or no resource")
	}
	group, version, grouped := strings.Cut(w.APIVersion, "/")
	if !grouped {
		group, version = "", w.APIVersion
	}
	return &Event{
		ID: w.ID, Time: w.Time, Verb: w.Verb,
		Kind: Kind{Group: group, Version: version, Kind: w.Kind, Resource: w.Resource, Namespaced: w.Namespaced},
		Key:  object.Key{Namespace: w.Namespace, Name: w.Name}, UID: w.UID, Version: w.ResourceVersion,
		Classes: w.Classes, Fields: w.Fields, Authors: w.Authors, Cause: w.Cause, Trouble: w.Trouble,
		Missed: w.Missed, Stale: w.Stale, Merged: w.Merged, Since: w.Since, Summary: w.Summary,
		Old: w.Old, New: w.New,
	}, nil
}

// Decoded returns an event as it is after Encode without objects and Decode, which cost more than the copy. It shares the values of the fields.
func Decoded(e *Event) *Event {
	d := *e
	d.Old, d.New = nil, nil
	d.Time, d.Since = instant(e.Time), instant(e.Since)
	d.Authors = inUTC(e.Authors)
	for i := range d.Authors {
		d.Authors[i].Time = instant(d.Authors[i].Time)
	}
	d.Trouble = troubleInUTC(e.Trouble)
	for i := range d.Trouble {
		d.Trouble[i].Since = instant(d.Trouble[i].Since)
	}
	return &d
}

// instant returns a time without its zone and without the reading of the process's own clock.
func instant(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Round(0)
}

// cloud is an event in the structured JSON of CloudEvents.
// Source: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md.
type cloud struct {
	SpecVersion     string          `json:"specversion"`
	ID              string          `json:"id"`
	Source          string          `json:"source"`
	Type            string          `json:"type"`
	Subject         string          `json:"subject"`
	Time            time.Time       `json:"time"`
	DataContentType string          `json:"datacontenttype"`
	Data            json.RawMessage `json:"data"`
}

// cloudEventType is the prefix of the type of each CloudEvent; the verb follows.
const cloudEventType = "io.setpoint.watch."

// CloudEvent returns the event as one CloudEvents 1.0 JSON object. Source says which
// cluster it is of: a URI reference, or a name, which is made one.
func CloudEvent(e *Event, source string, withObjects bool) ([]byte, error) {
	data, err := Encode(e, withObjects)
	if err != nil {
		return nil, err
	}
	subject := url.URL{Path: "/" + e.Kind.String() + "/" + e.Key.Name}
	if e.Key.Namespace != "" {
		subject.Path = "/namespaces/" + e.Key.Namespace + subject.Path
	}
	b, err := line(cloud{
		SpecVersion: "1.0", ID: e.ID, Source: reference(source), Type: cloudEventType + string(e.Verb),
		Subject: subject.EscapedPath(), Time: e.Time.UTC(), DataContentType: "application/json", Data: data,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the CloudEvent of %s %s: %w", e.Kind, e.Key, err)
	}
	return b, nil
}

// reference makes a URI reference of any name: characters that may not be in one are escaped.
func reference(source string) string {
	u, err := url.Parse(source)
	switch {
	case source == "":
		return "/setpoint/watch"
	case err == nil && u.Opaque != "" && printable(source):
		return source // urn:example:cluster
	case err == nil && u.Opaque == "" && u.String() != "":
		return u.String()
	}
	return strings.ReplaceAll(url.QueryEscape(source), "+", "%20")
}

// printable reports whether a text has nothing but visible ASCII in it.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}
