// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
)

// verb says what a change does. Its number is in the file.
type verb byte

const (
	seeObject     verb = iota + 1 // of a selection: the state of an object was told
	forgetObject                  // of a selection: an object is gone
	setVersion                    // of a selection: everything was told up to a version
	dropSelection                 // with all of its objects
	addEvent                      // of a sink: the event with a number waits
	ackEvents                     // of a sink: the events with these numbers are done with
	discardEvents                 // as ackEvents: older programs wrote it for damaged events
	countDropped                  // of a sink: older programs counted lost events
	setNext                       // of a sink: the number of the next event
	removeSink                    // with all of its events: older programs wrote it
	setDictionary                 // of a selection: the dictionary of the states of its objects
)

// The fields of a Change in docs/watch-journal.md.
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
	fieldState
)

// encoder appends the fields of a change.
type encoder []byte

func newChange(b []byte, v verb, name string) encoder {
	e := encoder(b)
	e.number(fieldVerb, uint64(v))
	e.text(fieldName, name)
	return e
}

func (e *encoder) number(field protowire.Number, v uint64) {
	*e = protowire.AppendVarint(protowire.AppendTag(*e, field, protowire.VarintType), v)
}

// text appends a text that is not empty.
func (e *encoder) text(field protowire.Number, v string) {
	if v != "" {
		*e = protowire.AppendString(protowire.AppendTag(*e, field, protowire.BytesType), v)
	}
}

func (e *encoder) bytes(field protowire.Number, v []byte) {
	*e = protowire.AppendBytes(protowire.AppendTag(*e, field, protowire.BytesType), v)
}

// change is a decoded change. Its texts are parts of the message that it was decoded from, so
// that opening a file allocates nothing for each object. Which fields are set depends on the verb.
type change struct {
	verb              verb
	name              []byte // of the selection or the sink
	namespace, object []byte // the key of the object
	uid, version      []byte
	digest            []byte
	seqs              []uint64
	count             uint64
	id                []byte // of the event
	data              []byte // the event, what is wrong with the object, or the dictionary
	state             []byte // of the object
	time              uint64 // of the commit, in nanoseconds since 1970
}

var errMessage = errors.New("it holds a message that this program cannot have written")

// decode reads a message into c, which may have been used before.
func (c *change) decode(b []byte) error {
	*c = change{seqs: c.seqs[:0]}
	texts := [...]*[]byte{
		fieldName: &c.name, fieldNamespace: &c.namespace, fieldObject: &c.object, fieldUID: &c.uid,
		fieldVersion: &c.version, fieldDigest: &c.digest, fieldID: &c.id, fieldData: &c.data, fieldState: &c.state,
	}
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errMessage
		}
		b = b[n:]
		switch kind {
		case protowire.VarintType:
			var number uint64
			number, n = protowire.ConsumeVarint(b)
			switch field {
			case fieldVerb:
				c.verb = verb(min(number, 0xff))
			case fieldSeq:
				c.seqs = append(c.seqs, number)
			case fieldCount:
				c.count = number
			case fieldTime:
				c.time = number
			default:
				return errMessage
			}
		case protowire.BytesType:
			var text []byte
			text, n = protowire.ConsumeBytes(b)
			if int(field) >= len(texts) || texts[field] == nil {
				return errMessage
			}
			*texts[field] = text
		default:
			return errMessage
		}
		if n < 0 {
			return errMessage
		}
		b = b[n:]
	}
	if len(c.name) == 0 || c.verb < seeObject || c.verb > setDictionary || c.verb == addEvent && (len(c.seqs) != 1 || c.seqs[0] == 0) {
		return errMessage
	}
	return nil
}

// The only field of a frame: a change.
const fieldChange protowire.Number = 1

// messages yields the messages of the changes in a body of a frame, and where they are in it.
// What is no message of a change is yielded as nil, and ends the loop.
func messages(body []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for at := 0; at < len(body); {
			field, kind, tag := protowire.ConsumeTag(body[at:])
			if tag < 0 || field != fieldChange || kind != protowire.BytesType {
				yield(at, nil)
				return
			}
			message, n := protowire.ConsumeBytes(body[at+tag:])
			if n < 0 {
				yield(at, nil)
				return
			}
			at += tag + n
			if !yield(at-len(message), message) {
				return
			}
		}
	}
}
