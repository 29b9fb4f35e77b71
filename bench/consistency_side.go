// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/object"
)

// Labels of this benchmark.
const (
	wantedLabel = "wanted" // of an owner: what its children should have
	noteLabel   = "note"   // of an owner: it has changed once more
	gottenLabel = "gotten" // of a child
)

// otherPeriod is how often a key of the others asks to run again.
const otherPeriod = 10 * time.Millisecond

// consistencyObjects is how a reconcile reads and writes, in its side's way.
type consistencyObjects interface {
	owner(ctx context.Context, key object.Key) (*corev1.ConfigMap, error)
	children(ctx context.Context, owner object.Key) ([]*corev1.ServiceAccount, error)
	// patch writes a child by a JSON merge patch.
	patch(ctx context.Context, owner *corev1.ConfigMap, child object.Key, body []byte) error
}

// consistencyWorld is what the process that is measured knows of its objects.
type consistencyWorld struct {
	writes int
	owners map[object.Key]*ownerRound
	busy   atomic.Bool  // the other keys ask to run again
	others atomic.Int64 // runs of other keys
	wasted atomic.Int64 // runs that had to be repeated, or acted on a state from before their own writes
}

// ownerRound is one round of an owner: its children are written because of what it wants, it changes again as soon as
// they are, and a run sees all that.
type ownerRound struct {
	mu      sync.Mutex
	wanted  string
	note    string
	arrived map[string]bool // children that the cache has as they were written
	caught  time.Time       // when the last of them arrived
	heard   time.Time       // when the second change arrived
	began   bool            // this process has written for what is wanted
	written chan struct{}   // closed when all children have been written
	seen    chan time.Time  // when a run ended that saw everything
}

func newConsistencyWorld(owners, writes int) *consistencyWorld {
	w := &consistencyWorld{writes: writes, owners: map[object.Key]*ownerRound{}}
	for i := range owners {
		w.owners[object.Key{Namespace: ownerNamespace(writes, i), Name: ownerName}] = &ownerRound{}
	}
	return w
}

// ownerArrived is what a handler calls with the state of an owner.
func (w *consistencyWorld) ownerArrived(key object.Key, note string) {
	r := w.owners[key]
	if r == nil {
		return
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.note != "" && note == r.note && r.heard.IsZero() {
		r.heard = now
	}
}

// childArrived is what a handler calls with the state of a child.
func (w *consistencyWorld) childArrived(key object.Key, gotten string) {
	r := w.owners[object.Key{Namespace: key.Namespace, Name: ownerName}]
	if r == nil {
		return
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if gotten == r.wanted && r.arrived != nil {
		if r.arrived[key.Name] = true; len(r.arrived) == w.writes && r.caught.IsZero() {
			r.caught = now
		}
	}
}

// reconcile is the body of a run on all sides. again is when the key asks to run again, 0 for no such time.
func (w *consistencyWorld) reconcile(ctx context.Context, key object.Key, o consistencyObjects) (again time.Duration, err error) {
	if key.Namespace == othersNamespace {
		if !w.busy.Load() {
			return 0, nil
		}
		w.others.Add(1)
		return otherPeriod, nil
	}
	r := w.owners[key]
	if r == nil { // of another number of writes
		return 0, nil
	}
	owner, err := o.owner(ctx, key)
	if err != nil {
		return 0, err
	}
	children, err := o.children(ctx, key)
	if err != nil {
		return 0, err
	}
	wanted := owner.Labels[wantedLabel]
	var missing []object.Key
	for _, c := range children {
		if c.Labels[gottenLabel] != wanted {
			missing = append(missing, object.KeyOf(c))
		}
	}
	if wanted == "" || !r.starts(wanted, len(missing) > 0, w) {
		return 0, nil
	}
	for _, child := range missing {
		if err := o.patch(ctx, owner, child, labelPatch(gottenLabel, wanted)); err != nil {
			return 0, err
		}
	}
	r.ends(owner.Labels[noteLabel], len(missing) > 0)
	return 0, nil
}

// starts notes a run that is going to write, or that has nothing to write. It returns false if the run sees a round that is over.
func (r *ownerRound) starts(wanted string, writes bool, w *consistencyWorld) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if wanted != r.wanted {
		return false
	}
	if writes {
		if r.began { // the children had been written, and the run did not see it
			w.wasted.Add(1)
		}
		r.began = true
	}
	return true
}

// ends notes the end of a run that saw a note, and has written or not.
func (r *ownerRound) ends(note string, wrote bool) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if wrote {
		select {
		case <-r.written:
		default:
			close(r.written)
		}
		return
	}
	if r.note != "" && note == r.note {
		select {
		case r.seen <- now:
		default: // a later run
		}
	}
}

// measureConsistency measures the loop of a side whose watch of children lags.
func measureConsistency(ctx context.Context, s *sideSpec) (_ readings, err error) {
	w := newConsistencyWorld(s.Objects, s.Writes)
	l, err := newConsistencyLoop(s, w)
	if err != nil {
		return nil, err
	}
	stop := l.start(ctx)
	defer func() { err = errors.Join(err, stop()) }()
	m := &consistencyRounds{world: w, loop: l, server: s.Server}
	if err := m.round(ctx); err != nil { // which waits until the caches are there
		return nil, err
	}
	m.delays = nil
	w.wasted.Store(0)
	spent, err := timed(func() error { return m.play(ctx, s.Events) })
	if err != nil {
		return nil, err
	}
	rounds := float64(s.Events * s.Objects)
	found := readings{"cpu": spent.cpu / rounds * 1e3, "wasted": float64(w.wasted.Load()) / rounds}
	found["p50"], found["p99"] = quantile(m.delays, 0.5), quantile(m.delays, 0.99)
	if found["others"], err = m.playBesideOthers(ctx, s.Events); err != nil {
		return nil, err
	}
	return found, nil
}

// consistencyRounds plays rounds of all owners.
type consistencyRounds struct {
	world  *consistencyWorld
	loop   *loop
	server string
	delays []float64 // milliseconds
	others float64   // runs of other keys while owners waited for their caches
	waited float64   // for so many seconds
}

func (m *consistencyRounds) play(ctx context.Context, rounds int) error {
	for range rounds {
		if err := m.round(ctx); err != nil {
			return err
		}
	}
	return nil
}

// playBesideOthers returns how many runs of other keys there are in a second while owners wait for their caches.
func (m *consistencyRounds) playBesideOthers(ctx context.Context, rounds int) (float64, error) {
	m.world.busy.Store(true)
	defer m.world.busy.Store(false)
	for i := range othersCount {
		key := object.Key{Namespace: othersNamespace, Name: otherName(i)}
		if err := m.relabel(ctx, key, noteLabel, strconv.FormatInt(time.Now().UnixNano(), 10)); err != nil {
			return 0, err
		}
	}
	err := until(ctx, "the other keys to run", func() (bool, error) { return m.world.others.Load() >= 2*othersCount, m.loop.failure() })
	if err != nil {
		return 0, err
	}
	m.others, m.waited = 0, 0
	if err := m.play(ctx, rounds); err != nil {
		return 0, err
	}
	return m.others / m.waited, nil
}

// round plays one round of all owners at once. Their first change leads to writes. When the writes of all owners are done,
// every owner changes again, which the caches may show before the writes.
func (m *consistencyRounds) round(ctx context.Context) error {
	id := strconv.FormatInt(time.Now().UnixNano(), 10)
	for _, r := range m.world.owners {
		r.mu.Lock()
		r.wanted, r.note, r.began, r.arrived = id, "", false, map[string]bool{}
		r.caught, r.heard, r.written, r.seen = time.Time{}, time.Time{}, make(chan struct{}), make(chan time.Time, 1)
		r.mu.Unlock()
	}
	err := m.each(ctx, func(ctx context.Context, key object.Key, r *ownerRound) error {
		if err := m.relabel(ctx, key, wantedLabel, id); err != nil {
			return err
		}
		return m.await(ctx, "the writes of "+key.String(), r.written)
	})
	if err != nil {
		return err
	}
	began, before := time.Now(), m.world.others.Load()
	var mu sync.Mutex
	err = m.each(ctx, func(ctx context.Context, key object.Key, r *ownerRound) error {
		r.mu.Lock()
		r.note = id
		r.mu.Unlock()
		if err := m.relabel(ctx, key, noteLabel, id); err != nil {
			return err
		}
		seen := make(chan struct{})
		var at time.Time
		go func() {
			defer close(seen)
			select {
			case at = <-r.seen:
			case <-ctx.Done():
			}
		}()
		if err := m.await(ctx, "a run that sees the writes of "+key.String(), seen); err != nil {
			return err
		}
		// A run may read the cache before the handler of this process hears of it.
		err := until(ctx, "the handlers", func() (bool, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			return !r.caught.IsZero() && !r.heard.IsZero(), m.loop.failure()
		})
		if err != nil {
			return err
		}
		due := r.caught
		if r.heard.After(due) {
			due = r.heard
		}
		mu.Lock()
		defer mu.Unlock()
		m.delays = append(m.delays, max(0, at.Sub(due).Seconds()*1e3))
		return nil
	})
	m.waited += time.Since(began).Seconds()
	m.others += float64(m.world.others.Load() - before)
	return err
}

// roundLimit is when a round counts as stuck.
const roundLimit = 2 * time.Minute

// each calls f for all owners at once, and waits for all.
func (m *consistencyRounds) each(ctx context.Context, f func(ctx context.Context, key object.Key, r *ownerRound) error) error {
	ctx, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	errs := make(chan error, len(m.world.owners))
	for key, r := range m.world.owners {
		go func() { errs <- f(ctx, key, r) }()
	}
	var err error
	for range m.world.owners {
		err = errors.Join(err, <-errs)
	}
	return err
}

func (m *consistencyRounds) await(ctx context.Context, what string, done <-chan struct{}) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return ctx.Err()
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-tick.C:
			if err := m.loop.failure(); err != nil {
				return err
			}
		}
	}
}

// relabel has the parent process write a label of a ConfigMap.
func (m *consistencyRounds) relabel(ctx context.Context, key object.Key, label, value string) error {
	q := url.Values{"namespace": {key.Namespace}, "name": {key.Name}, "label": {label}, "value": {value}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.server+relabelPath+"?"+q.Encode(), http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("changing %s: %w", key, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("changing %s: %s", key, response.Status)
	}
	return nil
}

// newConsistencyLoop makes the controller of a side.
func newConsistencyLoop(s *sideSpec, w *consistencyWorld) (*loop, error) {
	switch s.Side {
	case setpointSide, unawareSide:
		return newSetpointConsistency(s, w)
	case backOffSide:
		return newBackOffConsistency(s, w)
	case consistentSide:
		return newControllerRuntimeConsistency(s, w)
	}
	return nil, fmt.Errorf("measuring consistency: there is no side %q", s.Side)
}
