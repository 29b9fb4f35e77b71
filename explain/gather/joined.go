// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// How long the records of [Joined] may take for one answer: all of them together for the question itself, and those that
// have answered it for what led to the runs.
const (
	patience     = 4 * time.Second
	linkPatience = time.Second
)

// Bounds of what is looked up to join the chains of one answer: objects that the managers are asked about, causes that are
// filled in, and steps back from one manager to another. Of the changes that one cause stands for, so many are shown, and for them alone
// the managers are asked about fewer objects.
const (
	mostAbout       = 16
	mostFills       = 64
	mostSteps       = 8
	mostMerged      = 8
	mostMergedAbout = 8
)

// Joined is the record of several managers. It asks all of them at the same time. A change that one manager has not made is
// looked up in the others, by kind, UID and resourceVersion, so that the chain of causes leads from one manager to the
// other and back. Managers that do not answer within five seconds are named in [Found.Unread]. It is an error if none
// answers.
func Joined(all ...Record) Record {
	switch len(all) {
	case 0:
		return None("there is no manager")
	case 1:
		return all[0]
	}
	return joined(all)
}

type joined []Record

// About implements Record.
func (j joined) About(ctx context.Context, o runs.Object) (Found, error) {
	found, answered, err := j.ask(ctx, patience, func(ctx context.Context, r Record) (Found, error) { return r.About(ctx, o) })
	if err != nil {
		return found, err
	}
	ctx, cancel := context.WithTimeout(ctx, linkPatience)
	defer cancel()
	l := linker{records: answered, found: map[runs.Object]Found{o: found}, about: mostAbout, fills: mostFills}
	linked := found
	linked.Runs = slices.Clone(found.Runs) // the linker reads the answers as they came
	for i := range linked.Runs {
		linked.Runs[i].Origins = l.linked(ctx, found.Runs[i].Origins, mostSteps)
	}
	return linked, nil
}

// Newest implements Record.
func (j joined) Newest(ctx context.Context, q runs.Query) (Found, error) {
	found, _, err := j.ask(ctx, patience, func(ctx context.Context, r Record) (Found, error) { return r.Newest(ctx, q) })
	if q.Limit > 0 && len(found.Runs) > q.Limit {
		found.Runs, found.More = found.Runs[:q.Limit], true
	}
	return found, err
}

// ask sends a question to all records at once, and puts their answers together. It returns the records that answered.
func (j joined) ask(ctx context.Context, patience time.Duration, question func(context.Context, Record) (Found, error)) (all Found, answered joined, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answers, errs := make([]Found, len(j)), make([]error, len(j))
	var asking sync.WaitGroup
	for i, r := range j {
		asking.Go(func() { answers[i], errs[i] = question(ctx, r) })
	}
	asking.Wait()
	for i, found := range answers {
		if errs[i] != nil {
			all.Unread = append(all.Unread, fmt.Sprintf("runs of one manager: %v", errs[i]))
			continue
		}
		answered = append(answered, j[i])
		all.add(found)
	}
	if len(answered) == 0 {
		texts := make([]string, len(errs))
		for i, err := range errs {
			texts[i] = err.Error()
		}
		return Found{}, nil, errors.New(strings.Join(texts, "; "))
	}
	slices.SortStableFunc(all.Runs, func(a, b explain.Traced) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(b.Number, a.Number))
	})
	return all, answered, nil
}

// add adds the answer of another record.
func (f *Found) add(other Found) {
	f.Present = append(f.Present, other.Present...)
	f.Runs = append(f.Runs, other.Runs...)
	f.More = f.More || other.More
	f.Unread = append(f.Unread, other.Unread...)
	f.Loops = append(f.Loops, other.Loops...)
	f.HiddenRuns += other.HiddenRuns
	f.Hidden += other.Hidden
	f.Stats.Bytes += other.Stats.Bytes
	f.Stats.Limit += other.Stats.Limit
	f.Stats.Runs += other.Stats.Runs
	f.Stats.Restored += other.Stats.Restored
	f.Stats.Dropped += other.Stats.Dropped
	if other.Stats.Since.After(f.Stats.Since) { // before, one of the records misses runs
		f.Stats.Since = other.Stats.Since
	}
}

// linker finds the runs of other managers that led to a change.
type linker struct {
	records joined
	found   map[runs.Object]Found // what the records have about an object
	about   int                   // objects that may still be asked about
	fills   int                   // origins that may still be filled in
}

// linked returns a copy of a chain of causes, with the runs that their manager does not have.
func (l *linker) linked(ctx context.Context, chain []runs.Origin, steps int) []runs.Origin {
	all := make([]runs.Origin, 0, len(chain))
	begin := 0 // of the origins of one cause, which follow each other
	for i, o := range chain {
		left := steps
		switch {
		case o.Run != nil || o.Cause.Version == "" || o.Cause.Object.Name == "":
			o.Origins = l.linked(ctx, o.Origins, left)
		case steps > 0 && l.fills > 0 && l.fill(ctx, &o):
			l.fills--
			left--
			o.Origins = l.linked(ctx, o.Origins, left)
		}
		all = append(all, o)
		if i+1 == len(chain) || chain[i+1].Cause != o.Cause {
			all = append(all, l.merged(ctx, o.Cause, all[begin:], steps)...)
			begin = len(all)
		}
	}
	return all
}

// fill looks for the write of a cause in all records.
func (l *linker) fill(ctx context.Context, o *runs.Origin) bool {
	for run, w := range l.writesOf(ctx, o.Cause.Object, mostAbout) {
		if w.Version == o.Cause.Version {
			o.Run, o.Write, o.Origins, o.NotKnown = &run.Run, w, run.Origins, ""
			return true
		}
	}
	return false
}

// merged returns the origins of a cause besides those that are known: a queue keeps one cause for all changes of an object that come
// while a key waits, and several managers may have made them.
func (l *linker) merged(ctx context.Context, cause runs.Cause, known []runs.Origin, steps int) (all []runs.Origin) {
	from, to := object.Version(cause.From), object.Version(cause.Version)
	if steps == 0 || cause.Verb != workqueue.Updated || from == "" || cause.Object.Name == "" {
		return nil
	}
	seen := map[runs.Identity]bool{}
	for _, o := range known {
		if o.Run != nil {
			seen[o.Run.Identity()] = true
		}
	}
	for run, w := range l.writesOf(ctx, cause.Object, mostMergedAbout) {
		version := object.Version(w.Version)
		if seen[run.Identity()] || version == "" || version.Compare(from) <= 0 || version.Compare(to) >= 0 {
			continue
		}
		if l.fills == 0 || len(all) == mostMerged {
			break
		}
		l.fills--
		seen[run.Identity()] = true
		all = append(all, runs.Origin{Cause: cause, Run: &run.Run, Write: w, Origins: l.linked(ctx, run.Origins, steps-1)})
	}
	return all
}

// writesOf yields the writes of an object that the records have, the newest run first. It asks them only if they have been asked
// about fewer than so many objects.
func (l *linker) writesOf(ctx context.Context, of runs.Object, most int) iter.Seq2[*explain.Traced, *runs.Write] {
	found, known := l.found[of]
	if !known {
		if asked := mostAbout - l.about; asked >= most {
			return func(func(*explain.Traced, *runs.Write) bool) {}
		}
		l.about--
		found, _, _ = l.records.ask(ctx, linkPatience, func(ctx context.Context, r Record) (Found, error) { return r.About(ctx, of) }) // without an answer the cause stays unknown
		l.found[of] = found
	}
	return func(yield func(*explain.Traced, *runs.Write) bool) {
		for i := range found.Runs {
			run := &found.Runs[i]
			for k := range run.Writes {
				if w := &run.Writes[k]; sameObject(w.Object, of) && !yield(run, w) {
					return
				}
			}
		}
	}
}

// sameObject compares kind and name, and the UID if both have one.
func sameObject(a, b runs.Object) bool {
	if a.UID != "" && b.UID != "" && a.UID != b.UID {
		return false
	}
	return a.Group == b.Group && a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name
}
