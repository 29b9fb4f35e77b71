// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// DefaultBytes is how large the record of a manager is.
const DefaultBytes = 16 << 20

// LeastBytes is the smallest record.
const LeastBytes = 256 << 10

// Record has the runs of controllers, in bounded memory. Make it with [New]. All methods are safe for concurrent use.
type Record struct {
	bytes    int // the bound
	index    index
	observer atomic.Pointer[func(Run)] // nil: see Observe
	// propagate is nil, or what Propagate was called with.
	propagate atomic.Pointer[func(uint64) string]

	mu      sync.Mutex
	loops   []*Loop
	kept    *ring // runs that wrote, failed, or stated reasons
	idle    *ring // runs that changed nothing
	words   *words
	encoder encoder
	runs    uint64 // recorded, with those of earlier processes
	earlier uint64 // of these, those of earlier processes
	dropped uint64 // of these, kept ones that had to go
	horizon int64  // the newest Last of the dropped ones

	restored int   // entries that were read from files
	file     *File // nil: the record ends with the process
}

// New returns an empty record of at most so many bytes. It takes memory as it fills.
func New(bytes int) (*Record, error) {
	if bytes < LeastBytes || bytes > math.MaxInt32 {
		return nil, fmt.Errorf("making a record of runs of %d bytes: want %d to %d", bytes, LeastBytes, math.MaxInt32)
	}
	// Of 64 parts, runs that changed something have 44, the others 14, the indexes 4, and words and buffers 2.
	part := bytes / 64
	r := &Record{bytes: bytes, index: newIndex(), kept: newRing(44*part, 3*part), idle: newRing(14*part, part), words: newWords(part)}
	r.idle.stays = true
	r.encoder.words = r.words
	return r, nil
}

// Loop is what the record knows of one loop. It is safe for concurrent use.
type Loop struct {
	record      *Record
	controller  string
	group, kind string
	hash        uint64
}

// Loop returns the recorder of the loop of a name. group and kind are those of the objects that its keys stand for; an
// empty kind is for keys that are no objects.
func (r *Record) Loop(name, group, kind string) *Loop {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.loops { // a controller may be made again
		if l.controller == name && l.group == group && l.kind == kind {
			return l
		}
	}
	l := &Loop{record: r, controller: name, group: group, kind: kind, hash: r.index.text(0, name)}
	r.loops = append(r.loops, l)
	return l
}

// owns reports whether an object is the one that a key of the loop stands for, whatever its UID.
func (l *Loop) owns(key object.Key, of *object.Ref) bool {
	return of.Key == key && of.Kind == l.kind && of.Group == l.group && l.kind != ""
}

// Ended is a run that has ended, for [Add]. The record keeps no pointer into it.
type Ended struct {
	Causes   workqueue.Causes
	Priority int
	Attempt  int
	Delayed  time.Duration // the three parts of Wait
	Before   time.Duration
	Queued   time.Duration
	Began    time.Time
	Took     time.Duration
	Outcome  Outcome
	Error    string
	Next     time.Duration // until the key runs again, from the end of the run; 0 if there is no such time
	Writes   []Write
	Reasons  []Reason
	// Number is that of [Loop.Context], or 0.
	Number uint64
	// Contexts are the traceparents of the objects that the run is about. The record passes them on to the observer, and
	// does not keep them.
	Contexts []string
}

// idle reports whether the run changed nothing and says nothing.
func (e *Ended) idle() bool { return len(e.Writes) == 0 && len(e.Reasons) == 0 && !e.Outcome.fails() }

// Place is where the record has a run. The zero Place is nowhere.
type Place struct {
	record *Record
	at     uint64
	number uint64
}

// Add records a run of a loop for a key. Keys of type object.Key belong to objects of the loop's kind. The text of
// other keys is that of fmt.Sprint. Add does not allocate for a run that is counted in an earlier one, if its key is
// an object.Key or a string.
func Add[K comparable](l *Loop, key K, run *Ended) Place {
	place, number := add(l, key, run)
	if observe := l.record.observer.Load(); observe != nil {
		(*observe)(observed(l, key, run, number))
	}
	return place
}

// add records a run, and returns its number as well.
func add[K comparable](l *Loop, key K, run *Ended) (place Place, number uint64) {
	objectKey, isObject := any(key).(object.Key)
	text, isText := any(key).(string)
	hash := l.hash
	switch {
	case isObject:
		hash = l.record.index.key(hash, objectKey)
	case isText:
		hash = l.record.index.text(hash, text)
	default:
		hash = comparable64(&l.record.index, hash, key)
	}
	like := uint64(0)
	if len(run.Writes) == 0 {
		like = l.record.index.like(l, objectKey, run)
		if number, counted := l.record.count(hash, like, run); counted {
			return Place{}, number
		}
	}
	if isObject = isObject && l.kind != ""; !isText && !isObject {
		text = fmt.Sprint(key)
	}
	e := entry{loop: *l, hash: hash, like: like, key: objectKey, text: text}
	if !isObject {
		e.loop.group, e.loop.kind = "", ""
	}
	return l.record.add(&e, run)
}

// entry is what an entry has besides the run.
type entry struct {
	loop       Loop
	hash, like uint64
	key        object.Key // if the loop has a kind
	text       string     // of the key, otherwise
}

// count counts a run that ended like the newest one of its key, and reports whether there is one. It returns the number
// of the run.
func (r *Record) count(hash, like uint64, run *Ended) (number uint64, counted bool) {
	began, next, version := run.Began.UnixNano(), nextLook(run), lastVersion(run)
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.ringOf(run)
	at, found := in.newest(hash)
	if !found || header(in.at(at)).like() != like {
		return 0, false
	}
	if in == r.kept {
		at = r.renewed(at)
	}
	number = r.numbered(run)
	b := in.at(at)
	if n := header(b).uint32(atRuns); n < math.MaxUint32 {
		binary.LittleEndian.PutUint32(b[atRuns:], n+1)
	}
	binary.LittleEndian.PutUint64(b[atLast:], uint64(began))
	binary.LittleEndian.PutUint64(b[atNext:], uint64(next))
	binary.LittleEndian.PutUint64(b[atVersion:], version)
	segment := in.segmentOf(at)
	segment.last = max(segment.last, began)
	if in == r.kept {
		r.changed(at)
	}
	return number, true
}

// renewed returns where an entry in which a run is to be counted is: a kept one in the older half of its ring is copied
// to the end, so that it is not dropped although its key still runs. A File writes it once more then.
func (r *Record) renewed(at uint64) uint64 {
	in := r.kept
	if in.next-at < in.half() {
		return at
	}
	b := header(in.at(at))
	r.encoder.b = append(r.encoder.b[:0], b[:b.uint32(atSize)]...)
	r.encoder.b[atFlags] &^= flagChanged
	b[atFlags] |= flagMoved
	in.segmentOf(at).entries--
	return in.add(r.encoder.b, r.dropping)
}

// ringOf returns the ring of a run.
func (r *Record) ringOf(run *Ended) *ring {
	if run.idle() {
		return r.idle
	}
	return r.kept
}

// dropping is called before the entries of a segment are dropped.
func (r *Record) dropping(of *ring, dropped about) {
	if of == r.kept {
		r.dropped += uint64(dropped.entries)
		r.horizon = max(r.horizon, dropped.last)
	}
}

// add adds an entry for a run, and returns the number of the run.
func (r *Record) add(of *entry, run *Ended) (place Place, number uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in, e := r.ringOf(run), &r.encoder
	e.entry(&r.index, of, run, in.most())
	if len(e.b) > in.size {
		// What is longest goes. The number of the writes stays.
		short := Ended{Attempt: run.Attempt, Delayed: run.Delayed, Before: run.Before, Queued: run.Queued, Began: run.Began, Took: run.Took,
			Outcome: run.Outcome, Error: run.Error, Next: run.Next, Writes: run.Writes}
		e.entry(&r.index, of, &short, 0)
	}
	number = r.numbered(run)
	began := run.Began.UnixNano()
	b := e.b
	binary.LittleEndian.PutUint64(b[atNumber:], number)
	binary.LittleEndian.PutUint64(b[atBegan:], uint64(began))
	binary.LittleEndian.PutUint64(b[atLast:], uint64(began))
	binary.LittleEndian.PutUint64(b[atNext:], uint64(nextLook(run)))
	binary.LittleEndian.PutUint64(b[atVersion:], lastVersion(run))
	at := in.add(b, r.dropping)
	if in == r.idle {
		return Place{}, number
	}
	return Place{record: r, at: at, number: number}, number
}

// Settled notes how long after a run the informers had seen its writes.
func (p Place) Settled(after time.Duration) {
	r := p.record
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.kept.has(p.at) {
		return
	}
	if entry := r.kept.at(p.at); header(entry).uint64(atNumber) == p.number {
		binary.LittleEndian.PutUint32(entry[atSettled:], uint32(min(after.Microseconds(), math.MaxUint32)))
		r.changed(p.at)
	}
}

func indexOf(o Outcome) byte {
	for i, other := range outcomes() {
		if o == other {
			return byte(i)
		}
	}
	return 0
}

func nextLook(run *Ended) int64 {
	if run.Next <= 0 {
		return 0
	}
	return run.Began.Add(run.Took + run.Next).UnixNano()
}

// lastVersion returns the version of the first cause.
func lastVersion(run *Ended) uint64 {
	for c := range run.Causes.All() {
		return number(c.Version)
	}
	return 0
}

func versionText(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}
