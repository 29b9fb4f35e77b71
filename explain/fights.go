// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/internal/managedfields"
	"github.com/setpoint-io/setpoint/runs"
)

// A controller that changes one field of one object so often within the time, each time after another program has changed
// the object, fights with that program. So do two controllers that change one field so often in turns. A rollout also changes
// one field often, after changes of other fields by recorded controllers.
const (
	fightTimes = 4
	fightTime  = 10 * time.Minute
)

// change is a change of a field of the object by a run.
type change struct {
	controller    string
	at            time.Time
	version       string
	answersOthers bool // the run was caused by a change that no recorded controller made
}

// fights finds fields of the object that writers change in turns.
func (t *teller) fights() (all []Fight) {
	changes, order := t.changes()
	for _, field := range order {
		f, found := turns(field, changes[field])
		if !found {
			if f, found = answers(field, changes[field]); !found {
				continue
			}
			f.Others = t.othersOf(field, changes[field])
		}
		f.Writes = t.writesOf(field, changes[field], f.Others)
		all = append(all, f)
	}
	return all
}

// Contested returns versions of the object that a controller made in a fight with a program that is not recorded, the best one first: the
// versions that follow have the field managers of that program. It returns none if there is no such fight.
func (f *Facts) Contested() (from []string) {
	if f.State == nil {
		return nil
	}
	t := teller{facts: f, answer: Answer{Object: f.Object, Fields: owners(f.State)}}
	changes, order := t.changes()
	for _, field := range order {
		if _, known := turns(field, changes[field]); known {
			continue
		}
		if _, found := answers(field, changes[field]); !found {
			continue
		}
		all := changes[field]
		for _, at := range []int{len(all) - 1, len(all) / 2, 1} { // four changes make a fight
			if !slices.Contains(from, all[at].version) {
				from = append(from, all[at].version)
			}
		}
	}
	return from
}

// othersOf returns the field managers other than the controller that own a field now, or have owned it in a former version.
func (t *teller) othersOf(field string, changes []change) (names []string) {
	for _, w := range t.writesByOthers(field, changes) {
		if !slices.Contains(names, w.Actor) {
			names = append(names, w.Actor)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		return names
	}
	return t.ownersBefore(field, changes[0].at)
}

// writesByOthers returns when other field managers than the controller took a field, by the former versions of the object.
func (t *teller) writesByOthers(field string, changes []change) (all []FightWrite) {
	own := map[string]bool{} // versions that the controller made
	for _, c := range changes {
		own[c.version] = true
	}
	itself := map[string]bool{}
	for i := range t.facts.Versions {
		if v := &t.facts.Versions[i]; own[v.Version] {
			if e, found := v.owner(field); found {
				itself[e.Manager] = true
			}
		}
	}
	before := managedfields.Entry{}
	for i := range t.facts.Versions {
		e, found := t.facts.Versions[i].owner(field)
		if found && !itself[e.Manager] && (e.Manager != before.Manager || !e.Time.Equal(before.Time)) {
			all = append(all, FightWrite{At: e.Time, Actor: e.Manager})
		}
		before = e
	}
	return all
}

// owner returns the newest field manager that owns a field.
func (v *Version) owner(field string) (newest managedfields.Entry, found bool) {
	for _, e := range v.Managers {
		if e.Owns(field) && (!found || e.Time.After(newest.Time)) {
			newest, found = e, true
		}
	}
	return newest, found
}

// mostFightWrites is how many changes of a field are named.
const mostFightWrites = 8

// writesOf returns the newest changes of a field by the controllers and by others.
func (t *teller) writesOf(field string, changes []change, others []string) (all []FightWrite) {
	for _, c := range changes {
		all = append(all, FightWrite{At: c.at, Actor: c.controller})
	}
	if len(others) > 0 {
		all = append(all, t.writesByOthers(field, changes)...)
	}
	slices.SortStableFunc(all, func(a, b FightWrite) int { return b.At.Compare(a.At) })
	return all[:min(len(all), mostFightWrites)]
}

// ownersBefore returns the field managers that own a field since before its newest change by a controller: the owner that is
// as new is the controller itself.
func (t *teller) ownersBefore(field string, newest time.Time) (names []string) {
	for _, o := range t.answer.Fields {
		owns := slices.ContainsFunc(o.Fields, func(path string) bool { return strings.HasPrefix(field, path) })
		isItself := o.At != nil && !o.At.Before(newest.Truncate(time.Second))
		if owns && !isItself && !slices.Contains(names, o.Manager) {
			names = append(names, o.Manager)
		}
	}
	return names
}

// changes returns the changes of each field of the object, the newest first, and the fields in their order.
func (t *teller) changes() (of map[string][]change, order []string) {
	of = map[string][]change{}
	for i := range t.facts.Runs {
		run := &t.facts.Runs[i]
		if t.facts.Now.Sub(run.Began) > fightTime {
			continue
		}
		for _, w := range run.Writes {
			if !sameObject(w.Object, t.facts.Object) || w.Subresource != "" || w.Code != 0 || w.Version == "" {
				continue
			}
			for _, field := range w.Fields {
				if of[field] == nil {
					order = append(order, field)
				}
				of[field] = append(of[field], change{run.Controller, run.Began, w.Version, t.answersOthers(run.Origins, mostBetween)})
			}
		}
	}
	return of, order
}

// turns returns the fight of two controllers that change a field in turns.
func turns(field string, changes []change) (Fight, bool) {
	times, before := 0, ""
	var writers []string
	for _, c := range changes {
		if c.controller != before {
			times++
		}
		if before = c.controller; !slices.Contains(writers, before) {
			writers = append(writers, before)
		}
	}
	if times < 2*fightTimes-1 {
		return Fight{}, false
	}
	slices.Sort(writers)
	return Fight{Field: field, Controller: writers[0], Times: (times + 1) / 2, Others: writers[1:]}, true
}

// answers returns the fight of a controller that changes a field again and again, each time after another program has changed
// the object.
func answers(field string, changes []change) (Fight, bool) {
	times := map[string]int{}
	for _, c := range changes {
		if c.answersOthers {
			times[c.controller]++
		}
	}
	for _, c := range changes {
		if n := times[c.controller]; n >= fightTimes {
			return Fight{Field: field, Controller: c.controller, Times: n}, true
		}
	}
	return Fight{}, false
}

// mostBetween is how many runs may lie between a change of another program and the run that answers it.
const mostBetween = 6

// answersOthers reports whether a change of the object that no recorded controller made is among the origins of a run. Runs of
// controllers that changed the status of the object, or other objects, may lie between.
func (t *teller) answersOthers(origins []runs.Origin, steps int) bool {
	return slices.ContainsFunc(origins, func(o runs.Origin) bool {
		own := sameObject(o.Cause.Object, t.facts.Object)
		switch {
		case o.Run == nil:
			return own && o.NotKnown != runs.TooLong
		case steps == 0, own && o.Write != nil && o.Write.Subresource == "":
			return false
		}
		return t.answersOthers(t.originsOf(&o), steps-1)
	})
}
