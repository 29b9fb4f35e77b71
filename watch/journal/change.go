// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// verb says what a change does. Its number is in the file.
type verb byte

const (
	seeObject     verb = iota + 1 // of a selection: the state of key is seen
	forgetObject                  // of a selection: key is gone
	setVersion                    // of a selection: everything was told up to seen.Version
	dropSelection                 // with all of its objects
	addEvent                      // of a sink: with the number seqs[0]
	ackEvents                     // of a sink: the events seqs were sent
	discardEvents                 // of a sink: the events seqs cannot be read, and count as dropped
	countDropped                  // of a sink: count events found no room
	setNext                       // of a sink: the next event gets the number count
	removeSink                    // with all of its events
)

// change is one change of the journal: a message of docs/watch-journal.md. Which fields are
// set depends on the verb.
type change struct {
	verb  verb
	name  string // of the selection or the sink
	key   object.Key
	seen  Seen
	seqs  []uint64
	count uint64
	id    string
	at    time.Time
	data  []byte

	encoded section // where the message is, of an event
}

// The fields of a Change, and the only field of a frame.
const (
	fieldVerb protowire.Number = iota + 1
	fieldName
	fieldNamespace
	fieldObject
	fieldUID
	fieldVersion
	fieldDigest
	fieldSeq
	fieldCount
	fieldID
	fieldTime
	fieldData

	fieldChange protowire.Number = 1
)

// append appends the message to b. Empty fields are left out.
func (c *change) append(b []byte) []byte {
	number := func(field protowire.Number, v uint64) {
		b = protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
	}
	text := func(field protowire.Number, v string) {
		if v != "" {
			b = protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
		}
	}
	number(fieldVerb, uint64(c.verb))
	text(fieldName, c.name)
	text(fieldNamespace, c.key.Namespace)
	text(fieldObject, c.key.Name)
	text(fieldUID, string(c.seen.UID))
	text(fieldVersion, c.seen.Version)
	if c.verb == seeObject {
		b = protowire.AppendBytes(protowire.AppendTag(b, fieldDigest, protowire.BytesType), c.seen.Digest[:])
	}
	for _, seq := range c.seqs {
		number(fieldSeq, seq)
	}
	if c.count != 0 {
		number(fieldCount, c.count)
	}
	if c.verb == addEvent {
		text(fieldID, c.id)
		number(fieldTime, uint64(c.at.UnixNano()))
		b = protowire.AppendBytes(protowire.AppendTag(b, fieldData, protowire.BytesType), c.data)
	}
	return b
}

var errMessage = errors.New("it holds a message that this program cannot have written")

// texts holds each of the texts that many changes have in common once.
type texts map[string]string

func (t texts) of(b []byte) string {
	s, ok := t[string(b)]
	if !ok {
		s = string(b)
		t[s] = s
	}
	return s
}

// parseChange returns the change of a message. Its data is part of b.
func parseChange(b []byte, shared texts) (c change, err error) {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return c, errMessage
		}
		b = b[n:]
		var number uint64
		var text []byte
		switch kind {
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			text, n = protowire.ConsumeBytes(b)
		default:
			return c, errMessage
		}
		if n < 0 {
			return c, errMessage
		}
		b = b[n:]
		switch field {
		case fieldVerb:
			c.verb = verb(min(number, 0xff))
		case fieldName:
			c.name = shared.of(text)
		case fieldNamespace:
			c.key.Namespace = shared.of(text)
		case fieldObject:
			c.key.Name = string(text)
		case fieldUID:
			c.seen.UID = types.UID(text)
		case fieldVersion:
			c.seen.Version = string(text)
		case fieldDigest:
			copy(c.seen.Digest[:], text)
		case fieldSeq:
			c.seqs = append(c.seqs, number)
		case fieldCount:
			c.count = number
		case fieldID:
			c.id = string(text)
		case fieldTime:
			c.at = time.Unix(0, int64(number)).UTC()
		case fieldData:
			c.data = text
		default:
			return c, errMessage
		}
	}
	if c.name == "" || c.verb < seeObject || c.verb > removeSink || c.verb == addEvent && (len(c.seqs) != 1 || c.seqs[0] == 0) {
		return c, errMessage
	}
	return c, nil
}
