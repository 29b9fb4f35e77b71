// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Query chooses runs. Fields that are zero choose all.
type Query struct {
	Controller string // the name of the loop
	Key        string // the text of the key, as Run.Key has it
	// Object chooses the runs whose key stands for the object, those that wrote it, and those that stated a reason about
	// it. It needs a kind and a name, or a UID. With both, runs of another object of that name are left out.
	Object Object
	// Namespace chooses the runs whose key stands for an object of the namespace, and those that wrote one.
	Namespace string
	// Contains chooses the runs whose key stands for an object with this text in its name, and those that wrote one.
	Contains string
	// Wrote chooses the runs that wrote, or tried to.
	Wrote bool
	// Since chooses the runs that began at this time or later. Of runs that are counted in one Run, the last one counts.
	Since time.Time
	// Limit is how many runs are returned at most; 0 is 100.
	Limit int
}

const defaultLimit = 100

// Find returns the runs that a query chooses, the newest first, and whether there are more.
func (r *Record) Find(q Query) (found []Run, more bool) {
	limit := q.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	for _, run := range r.find(q) {
		found = append(found, run.Run)
	}
	slices.SortStableFunc(found, func(a, b Run) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(b.Number, a.Number))
	})
	if more = len(found) > limit; more {
		found = found[:limit]
	}
	return found, more
}

// foundRun is a run as a query finds it, with the hash of its loop and key.
type foundRun struct {
	Run
	hash uint64
}

// find returns all runs that a query chooses, in no order.
func (r *Record) find(q Query) (found []foundRun) {
	known := map[uint64]bool{} // an entry may be found by its key and by a write
	for _, in := range [...]*ring{r.kept, r.idle} {
		entries, words := r.entries(in, q)
		for _, entry := range entries {
			if run, err := decode(entry, words); err == nil && q.chooses(&run) && !known[run.Number] {
				known[run.Number] = true
				found = append(found, foundRun{run, header(entry).key()})
			}
		}
	}
	return found
}

// chooses reports whether a query chooses a run.
func (q *Query) chooses(run *Run) bool {
	switch {
	case q.Controller != "" && run.Controller != q.Controller, q.Key != "" && run.Key != q.Key,
		q.Wrote && len(run.Writes) == 0, run.Last.Before(q.Since),
		q.Namespace != "" && !run.concerns(func(o *Object) bool { return o.Namespace == q.Namespace }),
		q.Contains != "" && !run.concerns(func(o *Object) bool { return strings.Contains(o.Name, q.Contains) }):
		return false
	case q.Object == (Object{}), q.choosesKey(run):
		return true
	}
	return slices.ContainsFunc(run.Writes, func(w Write) bool { return q.Object.chooses(w.Object) }) ||
		slices.ContainsFunc(run.Reasons, func(r Reason) bool { return r.About != Object{} && q.Object.chooses(r.About) })
}

// concerns reports whether the key of a run stands for an object that a function accepts, or the run wrote one.
func (run *Run) concerns(is func(*Object) bool) bool {
	return is(&run.Object) || slices.ContainsFunc(run.Writes, func(w Write) bool { return is(&w.Object) })
}

// choosesKey reports whether the key of a run stands for the object of a query.
func (q *Query) choosesKey(run *Run) bool {
	own := run.Object
	own.UID = run.uid()
	return own.Kind != "" && q.Object.chooses(own)
}

// chooses reports whether an object of a query is the given one. A UID alone chooses as well.
func (o Object) chooses(other Object) bool {
	if o.Name == "" {
		return o.UID != "" && o.UID == other.UID
	}
	return o.same(other)
}

// uid returns the UID of the object of the key, if a cause or a write has it.
func (run *Run) uid() (uid types.UID) {
	for _, c := range run.Causes {
		if c.Object.UID != "" && c.Object.same(run.Object) {
			return c.Object.UID
		}
	}
	for _, w := range run.Writes {
		if w.Object.UID != "" && w.Object.same(run.Object) {
			return w.Object.UID
		}
	}
	return ""
}

// entries returns copies of the entries of a ring that a query may choose, and the words to decode them.
func (r *Record) entries(in *ring, q Query) (entries [][]byte, words []string) {
	if q.Object.Name == "" || q.Object.Kind == "" {
		return r.allEntries(in, q.Since)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// The keys of the loops over its kind, and writes and reasons of any loop.
	for _, l := range r.loops {
		if l.group == q.Object.Group && l.kind == q.Object.Kind {
			entries = r.appendWith(entries, in, term(r.index.key(l.hash, q.Object.Ref().Key)))
		}
	}
	return r.appendWith(entries, in, r.index.object(q.Object.Group, q.Object.Kind, q.Object.Ref().Key)), r.words.text
}

// appendWith appends copies of the entries of a ring that have a term, the newest first.
func (r *Record) appendWith(entries [][]byte, in *ring, term uint32) [][]byte {
	before, n := uint64(0), len(entries)
	for at := range in.with(term) {
		if at == before && len(entries) > n {
			continue // an entry may have a term twice
		}
		entries = r.appendEntry(entries, in, in.at(at))
		before = at
	}
	return entries
}

// allEntries returns copies of all entries whose last run began at a time or later. It holds the lock for one segment at a time.
func (r *Record) allEntries(in *ring, since time.Time) (entries [][]byte, words []string) {
	var position uint64
	earliest := int64(math.MinInt64)
	if !since.IsZero() {
		earliest = since.UnixNano()
	}
	for {
		r.mu.Lock()
		position = max(position, in.oldest)
		end := min((position/uint64(in.size)+1)*uint64(in.size), in.next)
		for at := range in.between(position, end) {
			if b := in.at(at); header(b).last() >= earliest {
				entries = r.appendEntry(entries, in, b)
			}
		}
		words = r.words.text
		done := end == in.next
		r.mu.Unlock()
		if position = end; done {
			return entries, words
		}
	}
}

// appendEntry appends a copy of an entry, unless it has been moved or is as good as dropped.
func (r *Record) appendEntry(entries [][]byte, in *ring, b []byte) [][]byte {
	h := header(b)
	if h.moved() || in == r.idle && h.last() < r.horizon {
		return entries
	}
	return append(entries, bytes.Clone(b[:h.uint32(atSize)]))
}

// Present returns the runs that are the last ones of their loops and keys and state reasons, of those that a query
// chooses: why the object is not as it should be, as far as controllers have said so. Of a run whose key does not stand
// for the object, it returns the reasons about the object. Limit does not count.
func (r *Record) Present(q Query) []Run {
	var present []Run
	for _, run := range r.find(q) {
		if q.Object != (Object{}) && !q.choosesKey(&run.Run) {
			run.Reasons = slices.DeleteFunc(run.Reasons, func(of Reason) bool { return of.About == (Object{}) || !q.Object.chooses(of.About) })
		}
		if len(run.Reasons) > 0 && r.isLast(&run) {
			present = append(present, run.Run)
		}
	}
	slices.SortFunc(present, func(a, b Run) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Controller, b.Controller), cmp.Compare(a.Key, b.Key))
	})
	return present
}

// isLast reports whether no newer run of the loop and key of a run is recorded. What a run of an earlier process stated is
// not present any more: its key runs again when the process begins, if its object still exists.
func (r *Record) isLast(run *foundRun) bool {
	if run.Restored {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range [...]*ring{r.kept, r.idle} {
		at, found := newest(in, run.hash)
		if !found {
			continue
		}
		h := header(in.at(at))
		if cmp.Or(cmp.Compare(h.last(), run.Last.UnixNano()), cmp.Compare(h.uint64(atNumber), run.Number)) > 0 {
			return false
		}
	}
	return true
}

// Stats are figures of a record.
type Stats struct {
	Bytes int    `json:"bytes"` // in use
	Limit int    `json:"limit"` // how many bytes there may be
	Runs  uint64 `json:"runs"`  // recorded since the process began
	// Restored is how many entries of an earlier process were read from a [File]; some of them may have been dropped.
	Restored int       `json:"restored,omitempty"`
	Dropped  uint64    `json:"dropped"` // entries of runs that wrote, failed or stated reasons, and are not kept any more
	Since    time.Time `json:"since"`   // all runs after this time that wrote, failed or stated reasons are kept; zero: all are
}

// Stats returns the figures of this moment.
func (r *Record) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Stats{Bytes: r.size(), Limit: r.bytes, Runs: r.runs - r.earlier, Restored: r.restored, Dropped: r.dropped}
	if r.horizon != 0 {
		s.Since = time.Unix(0, r.horizon)
	}
	return s
}

// size returns how many bytes the record has allocated.
func (r *Record) size() int {
	return r.kept.bytes() + r.idle.bytes() + r.bytes/64 - r.words.room + cap(r.encoder.b) + 4*cap(r.encoder.terms)
}
