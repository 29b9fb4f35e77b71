// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"slices"
	"time"

	"github.com/setpoint-io/setpoint/workqueue"
)

// Bounds of the chain of causes: how many steps back it goes, and how many causes it names in all.
const (
	mostSteps   = 12
	mostOrigins = 64
)

// Origin is a cause of a run, with what led to it.
type Origin struct {
	Cause Cause `json:"cause"`
	// Run is the run that made the change of the cause, and Write its write; nil if the record does not have it.
	Run   *Run   `json:"run,omitempty"`
	Write *Write `json:"write,omitempty"`
	// NotKnown says why there is no Run. It is empty if there is one.
	NotKnown string `json:"notKnown,omitempty"`
	// Origins are those of Run.
	Origins []Origin `json:"origins,omitempty"`
}

// Reasons why an Origin has no run. A program that knows the object can join further: the version of the cause is in
// the records of other managers, and the managedFields of the object name the others that write it.
const (
	WrittenByOthers = "not written by a controller of this record"
	NoLongerKept    = "written before the oldest run that is kept, or not by a controller of this record"
	NotAnObject     = "not a change of an object"
	TooLong         = "the chain is longer than is shown"
)

// Origins returns the chain of causes of a run backwards: the runs whose writes caused it, the runs whose writes
// caused those, and so on. A change is joined with its write by kind, UID and resourceVersion, and a delete by kind,
// name and UID. It finds what this record has; NotKnown says what it does not have.
//
// A cause that stands for several changes of an object, because they came while the key waited, has several origins: that of the last
// change comes first, and those of the changes before follow it as far as the record has their runs.
func (r *Record) Origins(run *Run) []Origin {
	c := chain{record: r, left: mostOrigins, seen: map[uint64]bool{run.Number: true}}
	return c.origins(run, mostSteps)
}

type chain struct {
	record *Record
	left   int
	seen   map[uint64]bool // numbers of runs
}

func (c *chain) origins(run *Run, steps int) (all []Origin) {
	for _, cause := range run.Causes {
		if c.left == 0 {
			return append(all, Origin{Cause: cause, NotKnown: TooLong})
		}
		c.left--
		o := c.origin(run, cause, steps)
		all = append(all, o)
		for _, earlier := range c.record.mergedInto(cause, run.Began) {
			if c.left == 0 {
				return append(all, Origin{Cause: cause, NotKnown: TooLong})
			}
			if earlier.run.Number == run.Number || o.Run != nil && earlier.run.Number == o.Run.Number {
				continue
			}
			c.left--
			all = append(all, c.of(cause, &earlier.run, earlier.write, steps))
		}
	}
	return all
}

func (c *chain) origin(run *Run, cause Cause, steps int) Origin {
	o := Origin{Cause: cause}
	var found bool
	var by Run
	var write int
	switch {
	case cause.Verb == workqueue.Retry || cause.Verb == workqueue.Timer:
		by, found = c.record.before(run)
		write = -1
	case cause.Object == (Object{}):
		o.NotKnown = NotAnObject
		return o
	default:
		by, write, found = c.record.Causing(cause, run.Began)
	}
	switch {
	case !found:
		o.NotKnown = WrittenByOthers
		if since := c.record.Stats().Since; !since.IsZero() {
			o.NotKnown = NoLongerKept
		}
		return o
	}
	return c.of(cause, &by, write, steps)
}

// of returns the origin that is a run, with what led to it. write is the index of its write, or negative.
func (c *chain) of(cause Cause, by *Run, write, steps int) Origin {
	o := Origin{Cause: cause, Run: by}
	if write >= 0 {
		o.Write = &by.Writes[write]
	}
	if c.seen[by.Number] || steps == 0 {
		return o
	}
	c.seen[by.Number] = true
	o.Origins = c.origins(by, steps-1)
	return o
}

// Causing returns the run that made the change of a cause, and the index of its write. began is when the run with the
// cause began.
func (r *Record) Causing(cause Cause, began time.Time) (run Run, write int, found bool) {
	run, write, found = r.Wrote(cause.Object, cause.Version)
	if !found && cause.Verb == workqueue.Deleted {
		return r.deleted(cause.Object, began)
	}
	return run, write, found
}

// Wrote returns the run that made a version of an object, and the index of the write. A UID that is empty on one side
// is not compared.
func (r *Record) Wrote(o Object, version string) (run Run, write int, found bool) {
	v := number(version)
	if v == 0 {
		return Run{}, 0, false
	}
	run, found = r.newestWith(r.kept, r.index.version(o.Group, o.Kind, v), func(header) bool { return true }, func(run *Run) bool {
		write = slices.IndexFunc(run.Writes, func(w Write) bool { return w.Version == version && w.Object.same(o) })
		return write >= 0
	})
	if !found {
		return Run{}, 0, false
	}
	return run, write, true
}

// deleted returns the newest run before a time that deleted an object.
func (r *Record) deleted(o Object, before time.Time) (run Run, write int, found bool) {
	of := Query{Object: Object{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}}
	for run := range r.newestFirst(r.candidates(r.kept, of, anyHeader)) {
		for i, w := range run.Writes {
			if w.Verb == "delete" && !w.Refused() && w.Object.same(o) && run.Began.Before(before) {
				return run, i, true
			}
		}
	}
	return Run{}, 0, false
}

// before returns the run of the same key before a run.
func (r *Record) before(run *Run) (before Run, found bool) {
	hashes := r.hashesOf(run)
	for _, in := range [...]*ring{r.kept, r.idle} {
		for _, hash := range hashes {
			other, is := r.newestWith(in, term(hash),
				func(h header) bool { return h.key() == hash && h.uint64(atNumber) < run.Number },
				func(other *Run) bool {
					return other.Key == run.Key && other.Controller == run.Controller && other.Object.same(run.Object)
				})
			if is && (!found || before.Number < other.Number) {
				before, found = other, true
			}
		}
	}
	return before, found
}

// hashesOf returns the hashes that the entries of a run's key may have. The entry of a run whose key is no object is found by its number.
func (r *Record) hashesOf(run *Run) (all []uint64) {
	if run.Object.Kind == "" {
		for _, in := range [...]*ring{r.kept, r.idle} {
			r.scan(in, func(_ uint64, h header) {
				if h.uint64(atNumber) == run.Number && !slices.Contains(all, h.key()) {
					all = append(all, h.key())
				}
			})
		}
		return all
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.loops {
		if l.controller == run.Controller && l.group == run.Object.Group && l.kind == run.Object.Kind {
			all = append(all, r.index.key(l.hash, run.Object.Ref().Key))
		}
	}
	return all
}

// newestWith returns the newest run of a ring that has a term and that two functions accept: may by its header, and is
// when it is decoded. It decodes one run after the other until one is accepted. A controller that runs again and again
// has tens of thousands of runs with one term, and to decode them all for each step of a chain took minutes.
func (r *Record) newestWith(in *ring, term uint32, may func(header) bool, is func(*Run) bool) (run Run, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for at := range in.with(term) {
		if !may(header(in.at(at))) {
			continue
		}
		for _, entry := range r.appendEntry(nil, in, in.at(at)) {
			if run, err := decode(entry, r.words.text); err == nil && is(&run) {
				return run, true
			}
		}
	}
	return Run{}, false
}
