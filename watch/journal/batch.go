// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"strings"

	"github.com/setpoint-io/setpoint/object"
)

// Overflow says what becomes of a batch with events for a sink that has no room.
type Overflow int

const (
	// Block: nothing of the batch is written, and Commit returns a [FullError].
	Block Overflow = iota
	// DropNew: the events that find no room are not written, the rest of the batch is.
	// They are counted, and Commit names the sinks. An event that is in the outbox is
	// never dropped for a newer one: a sink may be sending it.
	DropNew
)

// What fits into a record.
const (
	MaxEvent = 8 << 20  // bytes of an event with its ID
	MaxName  = 16 << 10 // bytes of the name of a selection or a sink
	maxKey   = 4 << 10  // bytes of a key; API servers allow 506
	maxText  = 4 << 10  // bytes of a UID or a version
)

// Batch is what is written together, or not at all. Its zero value is empty. It is for one
// goroutine, and may be committed again after an error; Reset makes it empty for another
// use. It keeps the data of events until then.
type Batch struct {
	// Overflow is what becomes of the batch if a sink has no room.
	Overflow Overflow

	changes []change
	err     error
}

// Seen notes the state of an object up to which everything was told.
func (b *Batch) Seen(selection string, key object.Key, s Seen) {
	b.checkName("selection", selection)
	b.checkKey(selection, key)
	if len(s.UID) > maxText || len(s.Version) > maxText {
		b.refuse("object %s of %q: its UID or its resourceVersion has more than %d bytes", key, selection, maxText)
	}
	b.add(change{verb: seeObject, name: selection, key: key, seen: s})
}

// Forget notes that an object is gone, and that this was told.
func (b *Batch) Forget(selection string, key object.Key) {
	b.checkName("selection", selection)
	b.checkKey(selection, key)
	b.add(change{verb: forgetObject, name: selection, key: key})
}

// Version notes the resourceVersion of a collection up to which everything was told. From
// then on the selection is known.
func (b *Batch) Version(selection, version string) {
	b.checkName("selection", selection)
	if len(version) > maxText {
		b.refuse("selection %q: its resourceVersion has more than %d bytes", selection, maxText)
	}
	b.add(change{verb: setVersion, name: selection, seen: Seen{Version: version}})
}

// Drop forgets a selection with all of its objects.
func (b *Batch) Drop(selection string) {
	b.checkName("selection", selection)
	b.add(change{verb: dropSelection, name: selection})
}

// Event puts an event into the outbox of a sink, behind those that are there. Data is kept
// until the batch is committed, and must not change.
func (b *Batch) Event(sink, id string, data []byte) {
	b.checkName("sink", sink)
	if entrySize(id, data) > MaxEvent {
		b.refuse("event %.80q for sink %q: it has %d bytes, and may have %d: leave whole objects out of events", id, sink, entrySize(id, data), MaxEvent)
	}
	b.add(change{verb: addEvent, name: sink, id: id, data: data})
}

func (b *Batch) add(c change) { b.changes = append(b.changes, c) }

// Len returns how many changes are in the batch.
func (b *Batch) Len() int { return len(b.changes) }

// Reset makes the batch empty.
func (b *Batch) Reset() {
	clear(b.changes)
	b.changes, b.err = b.changes[:0], nil
}

func (b *Batch) checkName(what, name string) {
	if name == "" || len(name) > MaxName {
		b.refuse("a %s's name has %d bytes: it needs 1 to %d", what, len(name), MaxName)
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
