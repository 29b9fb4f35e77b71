// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"strings"

	"github.com/setpoint-io/setpoint/object"
)

// What fits into a record.
const (
	MaxEvent = 8 << 20  // bytes of an event with its ID
	maxName  = 16 << 10 // bytes of the name of a selection or a sink
	maxKey   = 4 << 10  // bytes of a key; API servers allow 506
	MaxState = 1 << 20  // bytes of the state of an object, as the caller has compressed it
	maxText  = 4 << 10  // bytes of a UID, of a version, or of what is wrong with an object
)

// Batch is what is written together, or not at all. Its zero value is empty. It is for one
// goroutine, and may be committed again after an error; Reset makes it empty for another use.
type Batch struct {
	encoded []byte // the messages of all changes, one after the other
	ends    []int  // of each message
	events  map[string]demand
	changed bool // it has more than acknowledgements
	err     error
}

// demand is the room that a batch needs in the outbox of a sink.
type demand struct {
	events int
	bytes  int64
}

// Seen notes the state of an object up to which everything was told.
func (b *Batch) Seen(selection string, key object.Key, s Seen) {
	b.checkName("selection", selection)
	b.checkKey(selection, key)
	if len(s.UID) > maxText || len(s.Version) > maxText {
		b.refuse("object %s of %q: its UID or its resourceVersion has more than %d bytes", key, selection, maxText)
	}
	if len(s.Trouble) > maxText {
		b.refuse("object %s of %q: its trouble has more than %d bytes", key, selection, maxText)
	}
	if len(s.State) > MaxState {
		b.refuse("object %s of %q: its state has more than %d bytes", key, selection, MaxState)
		return
	}
	e := newChange(b.encoded, seeObject, selection)
	e.text(fieldNamespace, key.Namespace)
	e.text(fieldObject, key.Name)
	e.text(fieldUID, string(s.UID))
	e.text(fieldVersion, s.Version)
	e.bytes(fieldDigest, s.Digest[:])
	e.text(fieldData, s.Trouble)
	e.text(fieldState, s.State)
	b.add(e)
}

// Dictionary sets the bytes without which the states of the objects of a selection cannot be read.
// The journal keeps them as they are, with [Options.States].
func (b *Batch) Dictionary(selection string, dictionary []byte) {
	b.checkName("selection", selection)
	if len(dictionary) > MaxState {
		b.refuse("selection %q: its dictionary has more than %d bytes", selection, MaxState)
		return
	}
	e := newChange(b.encoded, setDictionary, selection)
	e.bytes(fieldData, dictionary)
	b.add(e)
}

// Forget notes that an object is gone, and that this was told.
func (b *Batch) Forget(selection string, key object.Key) {
	b.checkName("selection", selection)
	b.checkKey(selection, key)
	e := newChange(b.encoded, forgetObject, selection)
	e.text(fieldNamespace, key.Namespace)
	e.text(fieldObject, key.Name)
	b.add(e)
}

// Version notes the resourceVersion of a collection up to which everything was told. From
// then on the selection is known.
func (b *Batch) Version(selection, version string) {
	b.checkName("selection", selection)
	if len(version) > maxText {
		b.refuse("selection %q: its resourceVersion has more than %d bytes", selection, maxText)
	}
	e := newChange(b.encoded, setVersion, selection)
	e.text(fieldVersion, version)
	b.add(e)
}

// Drop forgets a selection with all of its objects.
func (b *Batch) Drop(selection string) {
	b.checkName("selection", selection)
	b.add(newChange(b.encoded, dropSelection, selection))
}

// Event puts an event into the outbox of a sink, behind those that are there. The batch copies
// data.
func (b *Batch) Event(sink, id string, data []byte) {
	b.checkName("sink", sink)
	size := int64(len(id) + len(data))
	if size > MaxEvent {
		b.refuse("event %.80q for sink %q: it has %d bytes, and may have %d: leave whole objects out of events", id, sink, size, MaxEvent)
		return
	}
	if b.events == nil {
		b.events = map[string]demand{}
	}
	b.events[sink] = demand{b.events[sink].events + 1, b.events[sink].bytes + size}
	e := newChange(b.encoded, addEvent, sink) // the commit adds its number and the time
	e.text(fieldID, id)
	e.bytes(fieldData, data)
	b.add(e)
}

// ack takes events out of the outbox of a sink.
func (b *Batch) ack(sink string, seqs []uint64) {
	e := newChange(b.encoded, ackEvents, sink)
	for _, seq := range seqs {
		e.number(fieldSeq, seq)
	}
	b.encoded, b.ends = e, append(b.ends, len(e))
}

// add takes what the message of another change was appended to.
func (b *Batch) add(encoded encoder) {
	b.encoded, b.ends, b.changed = encoded, append(b.ends, len(encoded)), true
}

// Len returns how many changes are in the batch.
func (b *Batch) Len() int { return len(b.ends) }

// mostKept is how large a buffer may be that is kept for the next use, in bytes.
const mostKept = 1 << 20

// Reset makes the batch empty.
func (b *Batch) Reset() {
	if cap(b.encoded) > mostKept {
		b.encoded = nil
	}
	clear(b.events)
	b.encoded, b.ends, b.changed, b.err = b.encoded[:0], b.ends[:0], false, nil
}

func (b *Batch) checkName(what, name string) {
	if name == "" || len(name) > maxName {
		b.refuse("a %s's name has %d bytes: it needs 1 to %d", what, len(name), maxName)
	}
}

func (b *Batch) checkKey(selection string, key object.Key) {
	if key.Name == "" || len(key.Namespace)+len(key.Name) > maxKey || strings.IndexByte(key.Namespace, 0) >= 0 || strings.IndexByte(key.Name, 0) >= 0 {
		b.refuse("selection %q: %.80q is no key of an object", selection, key.String())
	}
}

func (b *Batch) refuse(text string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf("a batch for the journal: "+text, args...)
	}
}
