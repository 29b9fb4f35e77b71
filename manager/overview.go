// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Overview is the state of a manager and of its loops at one moment. Its JSON is that of /debug/controllers?format=json.
type Overview struct {
	AsOf     time.Time `json:"asOf"`
	Instance string    `json:"instance"`
	State    string    `json:"state"`              // what the process does, such as "working"
	NotReady []string  `json:"notReady,omitempty"` // the checks that fail, with their reasons
	// Holder is the holder of the lease; empty if the manager needs none, or knows of none.
	Holder string     `json:"holder,omitempty"`
	Loops  []LoopView `json:"loops"`
}

// LoopView is the state of a loop. Durations are in nanoseconds.
type LoopView struct {
	Name string `json:"name"`
	// Group and Kind are those of the objects that the keys stand for. Kind is empty if the keys are no objects.
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind,omitempty"`

	Kept    int               `json:"kept,omitempty"`    // keys that wait until this manager leads
	Waiting []workqueue.Level `json:"waiting,omitempty"` // keys that are ready, by priority
	Delayed int               `json:"delayed"`
	Running int               `json:"running"` // keys that workers process, without those in Held
	// Held is how many keys wait until the informers have seen what their last run wrote. HeldKeys are some of them.
	Held      int                 `json:"held"`
	HeldKeys  []HeldKey           `json:"heldKeys,omitempty"`
	Failing   int                 `json:"failing"` // keys that failed and are retried
	GivenUp   int                 `json:"givenUp"` // keys that failed and are not retried until something changes
	Panics    uint64              `json:"panics,omitempty"`
	Runs      uint64              `json:"runs"`             // that have ended
	Took      workqueue.Histogram `json:"took"`             // how long they took
	Failed    []FailedKey         `json:"failed,omitempty"` // some of these, the newest failure first
	Informers []InformerView      `json:"informers,omitempty"`
}

// HeldKey is a key whose next run waits for a write to be seen.
type HeldKey struct {
	Key   string `json:"key"`
	Write string `json:"write"`
}

// FailedKey is a key whose last run failed.
type FailedKey struct {
	Key     string     `json:"key"`
	Error   string     `json:"error"`
	At      time.Time  `json:"at"`
	Runs    int        `json:"runs"` // failed ones in a row
	GivenUp bool       `json:"givenUp,omitempty"`
	Next    *time.Time `json:"next,omitempty"` // when it is tried again, if it has a time
}

// InformerView is the state of an informer that a loop reads.
type InformerView struct {
	Kind    string    `json:"kind"`
	Synced  bool      `json:"synced"`
	Trouble string    `json:"trouble,omitempty"` // what keeps it from being current
	Heard   time.Time `json:"heard"`             // when the server last sent anything of the kind
	Behind  uint64    `json:"behind"`            // writes to the cluster that it has not seen, most of them to other kinds
}

// viewedKeys is how many held, failed and delayed keys of each loop an overview has.
const viewedKeys = 20

// Overview returns the state of the manager and of its loops. It is safe for concurrent use.
func (m *Manager) Overview() Overview {
	o := Overview{AsOf: time.Now(), Instance: m.instance, State: m.state(), Loops: []LoopView{}}
	for _, c := range m.ready() {
		if err := c.Ask(); err != nil {
			o.NotReady = append(o.NotReady, serving.Printable(c.Name+": "+err.Error()))
		}
	}
	if m.elector != nil {
		o.Holder = m.elector.Status().Holder
	}
	informers := map[string]cache.Status{}
	for _, s := range m.factory.Status() {
		informers[s.Kind+" "+s.Selects] = s // with Behind, which needs all of them
	}
	for _, l := range m.loops() {
		o.Loops = append(o.Loops, viewOf(l, informers))
	}
	return o
}

// viewOf returns the state of a loop.
func viewOf(l controller.Loop, informers map[string]cache.Status) LoopView {
	s := l.Status(viewedKeys)
	v := LoopView{
		Name: l.Name(), Group: s.Group, Kind: s.Kind, Kept: s.Kept, Waiting: s.Keys.Levels, Delayed: s.Queue.Delayed,
		Running: max(0, s.Queue.Processing-len(s.Waiting)), Runs: s.Queue.Work.Count(), Took: s.Queue.Work, Panics: panicked(s),
		Held: len(s.Waiting), Informers: informersOf(l, informers),
	}
	for _, key := range slices.Sorted(maps.Keys(s.Waiting))[:min(len(s.Waiting), viewedKeys)] {
		v.HeldKeys = append(v.HeldKeys, HeldKey{Key: key, Write: s.Waiting[key]})
	}
	v.addFailures(s)
	return v
}

// addFailures adds the keys whose last run failed.
func (v *LoopView) addFailures(s controller.Status) {
	next := map[string]time.Time{}
	for _, k := range s.Keys.Delayed {
		next[k.Key] = k.Until
	}
	for key, f := range s.Failed {
		failed := FailedKey{Key: key, Error: f.Error, At: f.At, Runs: f.Runs, GivenUp: f.GivenUp}
		if at, known := next[key]; known {
			failed.Next = &at
		}
		if f.GivenUp {
			v.GivenUp++
		} else {
			v.Failing++
		}
		v.Failed = append(v.Failed, failed)
	}
	slices.SortFunc(v.Failed, func(a, b FailedKey) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Key, b.Key)) })
	v.Failed = v.Failed[:min(len(v.Failed), viewedKeys)]
}

// informersOf returns the state of the informers that a loop reads. known are those of the manager.
func informersOf(l controller.Loop, known map[string]cache.Status) (all []InformerView) {
	for _, handle := range l.Informers() {
		status := handle.Status()
		if of, ours := known[status.Kind+" "+status.Selects]; ours {
			status = of
		}
		view := InformerView{Kind: status.Kind, Synced: status.Synced, Heard: status.Heard, Behind: status.Behind}
		if status.Trouble != nil {
			view.Trouble = status.Trouble.Error()
		}
		all = append(all, view)
	}
	return all
}
