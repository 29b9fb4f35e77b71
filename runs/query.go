// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"cmp"
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
	in := []*ring{r.kept, r.idle}
	if q.Wrote {
		in = in[:1]
	}
	var all candidates
	for _, in := range in {
		all = append(all, r.candidates(in, q, anyHeader)...)
	}
	for run := range r.newestFirst(all) {
		if !q.chooses(&run) {
			continue
		}
		if more = len(found) == limit; more {
			break
		}
		found = append(found, run)
	}
	slices.SortStableFunc(found, newerFirst) // a run may have been counted in one of them meanwhile
	return found, more
}

// newerFirst orders runs: the newest first.
func newerFirst(a, b Run) int {
	return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(b.Number, a.Number))
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

// Present returns the runs that are the last ones of their loops and keys and state reasons, of those that a query
// chooses: why the object is not as it should be, as far as controllers have said so. Of a run whose key does not stand
// for the object, it returns the reasons about the object. Limit does not count.
func (r *Record) Present(q Query) []Run {
	var present []Run
	for run := range r.newestFirst(r.candidates(r.kept, q, r.isPresent)) { // runs that state reasons are kept
		if len(run.Reasons) == 0 || !q.chooses(&run) {
			continue
		}
		if q.Object != (Object{}) && !q.choosesKey(&run) {
			run.Reasons = slices.DeleteFunc(run.Reasons, func(of Reason) bool { return of.About == (Object{}) || !q.Object.chooses(of.About) })
		}
		if len(run.Reasons) > 0 {
			present = append(present, run)
		}
	}
	slices.SortFunc(present, func(a, b Run) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Controller, b.Controller), cmp.Compare(a.Key, b.Key))
	})
	return present
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
