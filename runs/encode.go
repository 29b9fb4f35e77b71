// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/setpoint-io/setpoint/object"
)

// An entry begins with fields of fixed size, of which those that change when further runs are counted in it are beside
// what finds it: a run that changed nothing looks at 64 bytes. Numbers are little endian. The other postings follow, and
// then the payload, in the order of encoder.payload.
const (
	atSize     = 0  // 4 bytes: of the entry
	atOutcome  = 4  // 1 byte: index into outcomes
	atFlags    = 5  // 1 byte
	atPostings = 6  // 2 bytes: how many, with that of the key
	atPosting  = 8  // 12 bytes: that of the key
	atRuns     = 20 // 4 bytes
	atKey      = 24 // 8 bytes: the hash of controller and key
	atLike     = 32 // 8 bytes: equal for runs that are counted in one entry; 0 for runs that are not
	atLast     = 40 // 8 bytes: as atBegan, of the last run
	atNext     = 48 // 8 bytes: as atBegan, when the key runs again; 0 if there is no time
	atVersion  = 56 // 8 bytes: LastVersion
	atNumber   = 64 // 8 bytes
	atBegan    = 72 // 8 bytes: nanoseconds since 1970
	atSettled  = 80 // 4 bytes: microseconds

	headerSize = 84
)

// Flags of an entry.
const (
	flagMoved    = 1 // it has been copied to the end of its ring
	flagRestored = 2 // it was read from a File: its run was one of an earlier process
	flagChanged  = 4 // it has changed since a File got it
)

// Bounds of what an entry keeps of a run.
const (
	mostText    = 512
	mostReasons = 8
	mostParams  = 8
	mostFields  = 16
)

// encoder writes an entry. It is reused, so that it does not allocate.
type encoder struct {
	words *words
	b     []byte
	terms []uint32
}

// entry writes a whole entry, with writes up to a size of most.
func (e *encoder) entry(i *index, of *entry, run *Ended, most int) {
	e.begin(i, of, run.Outcome, run.Writes, run.Reasons, most)
	e.payload(&of.loop, of.key, of.text, run, most)
	binary.LittleEndian.PutUint32(e.b[atSize:], uint32(len(e.b)))
}

// restored writes a whole entry for a run that a File has.
func (e *encoder) restored(i *index, of *entry, run *Run, most int) {
	e.begin(i, of, run.Outcome, run.Writes, run.Reasons, most)
	e.b[atFlags] = flagRestored
	e.payloadOf(run, most)
	binary.LittleEndian.PutUint32(e.b[atSize:], uint32(len(e.b)))
}

// begin writes the fields of fixed size and the postings.
func (e *encoder) begin(i *index, of *entry, outcome Outcome, writes []Write, reasons []Reason, most int) {
	e.terms = append(e.terms[:0], term(of.hash))
	e.writeTerms(i, of, writes, most)
	e.reasonTerms(i, reasons)
	var fixed [headerSize]byte
	fixed[atOutcome] = indexOf(outcome)
	binary.LittleEndian.PutUint16(fixed[atPostings:], uint16(len(e.terms)))
	binary.LittleEndian.PutUint64(fixed[atKey:], of.hash)
	binary.LittleEndian.PutUint64(fixed[atLike:], of.like)
	binary.LittleEndian.PutUint32(fixed[atRuns:], 1)
	e.b = append(e.b[:0], fixed[:]...)
	binary.LittleEndian.PutUint32(e.b[atPosting:], e.terms[0])
	for _, term := range e.terms[1:] {
		e.b = binary.LittleEndian.AppendUint32(e.b, term)
		e.b = append(e.b, 0, 0, 0, 0, 0, 0, 0, 0) // which the ring fills in
	}
}

func (e *encoder) uint(n uint64)            { e.b = binary.AppendUvarint(e.b, n) }
func (e *encoder) duration(d time.Duration) { e.uint(uint64(max(d, 0))) }

func (e *encoder) bool(is bool) {
	if is {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}

// text writes a text as it is, cut to a bound.
func (e *encoder) text(s string) {
	s = cut(s, mostText)
	e.uint(uint64(len(s)))
	e.b = append(e.b, s...)
}

// word writes a text of which there are few.
func (e *encoder) word(s string) {
	if n, ok := e.words.numberOf(s); ok {
		e.uint(uint64(n) + 1)
		return
	}
	e.b = append(e.b, 0)
	e.text(s)
}

// version writes a resourceVersion. Servers send decimal numbers; others are not kept.
func (e *encoder) version(v string) { e.uint(number(v)) }

func number(v string) uint64 {
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Forms of a UID.
const (
	uidNone  = 0
	uidBytes = 1 // 16 bytes
	uidText  = 2
)

func (e *encoder) object(group, kind string, key object.Key, uid string) {
	e.word(group)
	e.word(kind)
	e.word(key.Namespace)
	e.text(key.Name)
	e.uid(uid)
}

func (e *encoder) objectOf(o *Object) {
	e.object(o.Group, o.Kind, object.Key{Namespace: o.Namespace, Name: o.Name}, string(o.UID))
}

// uid writes a UID. API servers make random UUIDs, which take 16 bytes.
func (e *encoder) uid(uid string) {
	if uid == "" {
		e.b = append(e.b, uidNone)
		return
	}
	before := len(e.b)
	e.b = append(e.b, uidBytes)
	if b, ok := appendUUID(e.b, uid); ok {
		e.b = b
		return
	}
	e.b = append(e.b[:before], uidText)
	e.text(uid)
}

// dashes reports whether a UUID has a dash at an index of its text.
func dashes(i int) bool { return i == 8 || i == 13 || i == 18 || i == 23 }

// appendUUID appends the 16 bytes of a UUID in lower case.
func appendUUID(b []byte, uid string) ([]byte, bool) {
	if len(uid) != 36 {
		return b, false
	}
	var digits [32]byte
	n := 0
	for i := range len(uid) {
		switch c := uid[i]; {
		case dashes(i) != (c == '-'), c >= 'A' && c <= 'F':
			return b, false
		case c != '-':
			digits[n] = c
			n++
		}
	}
	var raw [16]byte
	if _, err := hex.Decode(raw[:], digits[:]); err != nil {
		return b, false
	}
	return append(b, raw[:]...), true
}

// payload writes what of a run does not change.
func (e *encoder) payload(l *Loop, key object.Key, text string, run *Ended, most int) {
	e.key(l.controller, l.group, l.kind, key, text)
	e.waits(&Wait{Delay: run.Delayed, Before: run.Before, Queue: run.Queued, Priority: run.Priority}, run.Attempt, run.Took)
	for c := range run.Causes.All() {
		form := byte(causeOf)
		if l.owns(key, &c.Ref) {
			form = causeOwn
		}
		e.cause(form, c.Source, c.Verb, &c.Ref, c.From, c.Version)
	}
	e.b = append(e.b, causeNone)
	e.uint(uint64(run.Causes.Dropped()))
	e.text(run.Error)
	e.reasons(run.Reasons)
	e.writes(run.Writes, 0, most)
}

// payloadOf writes the payload of a run that has been decoded.
func (e *encoder) payloadOf(run *Run, most int) {
	e.key(run.Controller, run.Object.Group, run.Object.Kind, run.Object.Ref().Key, run.Key)
	e.waits(&run.Wait, run.Attempt, run.Took)
	for i := range run.Causes {
		c := &run.Causes[i]
		of := c.Object.Ref()
		e.cause(causeOf, c.Source, c.Verb, &of, c.From, c.Version)
	}
	e.b = append(e.b, causeNone)
	e.uint(uint64(run.More))
	e.text(run.Error)
	e.reasons(run.Reasons)
	e.writes(run.Writes, run.MoreWrites, most)
}

// key writes which loop ran, and for which key. text is that of a key that is no object.
func (e *encoder) key(controller, group, kind string, key object.Key, text string) {
	e.word(controller)
	e.word(group)
	e.word(kind)
	if kind != "" {
		e.word(key.Namespace)
		e.text(key.Name)
	} else {
		e.text(text)
	}
}

func (e *encoder) waits(w *Wait, attempt int, took time.Duration) {
	e.uint(uint64(w.Priority - minPriority))
	e.uint(uint64(attempt))
	e.duration(w.Delay)
	e.duration(w.Before)
	e.duration(w.Queue)
	e.duration(took)
}

// minPriority is the least priority of a queue.
const minPriority = -128

// Forms of a cause. Files have no causeOwn.
const (
	causeNone = 0 // there is no further cause
	causeOf   = 1 // with its object
	causeOwn  = 2 // a change of the object that the key stands for, of which the UID alone follows
)

// cause writes a cause in one of its forms. Most causes are changes of the object of the key: without their names, the entries of
// 20,000 Pods that run by turns fit into a record of the usual size, and each run is counted in the one before it.
func (e *encoder) cause(form byte, source, verb string, of *object.Ref, from, version string) {
	e.b = append(e.b, form)
	e.word(source)
	e.word(verb)
	if form == causeOwn {
		e.uid(string(of.UID))
	} else {
		e.object(of.Group, of.Kind, of.Key, string(of.UID))
	}
	e.version(from)
	e.version(version)
}

func (e *encoder) reasons(all []Reason) {
	all = all[:min(len(all), mostReasons)]
	e.uint(uint64(len(all)))
	for i := range all {
		r := &all[i]
		e.word(r.Code)
		e.word(r.Text)
		e.bool(r.Normal)
		params := r.Params[:min(len(r.Params), mostParams)]
		e.uint(uint64(len(params)))
		for _, p := range params {
			e.word(p.Name)
			e.text(p.Value)
		}
		e.text(r.Ends)
		e.objectOf(&r.Until)
		e.objectOf(&r.About)
	}
}

// writes writes as many writes as there is room for, and the number of the others. more have no room already.
func (e *encoder) writes(all []Write, more, most int) {
	n := 0
	for ; n < len(all); n++ {
		before := len(e.b)
		e.b = append(e.b, 1)
		e.write(&all[n])
		if len(e.b) > most-16 {
			e.b = e.b[:before]
			break
		}
	}
	e.b = append(e.b, 0)
	e.uint(uint64(len(all) - n + more))
}

func (e *encoder) write(w *Write) {
	e.word(w.Verb)
	e.objectOf(&w.Object)
	e.word(w.Subresource)
	e.version(w.Version)
	e.uint(uint64(max(w.Code, 0)))
	e.bool(w.Unknown)
	e.word(w.Manager)
	fields := w.Fields[:min(len(w.Fields), mostFields)]
	e.uint(uint64(len(fields)))
	for _, f := range fields {
		e.word(f)
	}
	e.uint(uint64(w.MoreFields + len(w.Fields) - len(fields)))
}

// cut shortens a text to a bound in bytes, at the end of a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xC0 == 0x80 {
		most--
	}
	return s[:most]
}
