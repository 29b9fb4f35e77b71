// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller/accounting"
	"github.com/setpoint-io/setpoint/object"
)

// state is what a run finds.
type state struct {
	plan    plan
	counted []corev1.ResourceName
	// missing are the kinds that are not counted, or whose count may be old.
	missing []missing
	next    time.Time // of the next run, zero for none
	// wait is set if the status is not written yet, because kinds are being listed for the first
	// time, which takes a moment.
	wait bool
}

// missing is a kind that is not counted, and why.
type missing struct {
	kind  schema.GroupResource
	names []corev1.ResourceName // the resources of the quota that this concerns
	gone  bool                  // the server does not serve it
	old   bool                  // it is counted, and may have changed since
	soon  bool                  // nothing is wrong: it will be counted in a moment
	isNew bool                  // the Event about it is not recorded yet
	err   error
}

// wake has the quota run again at a time.
func (s *state) wake(at time.Time) {
	if !at.IsZero() && (s.next.IsZero() || at.Before(s.next)) {
		s.next = at
	}
}

// sync brings an account up to date and decides what the status of its quota is to be.
func (r *resourceQuotas) sync(a *account, q *corev1.ResourceQuota, now time.Time) state {
	a.mu.Lock()
	defer a.mu.Unlock()
	around := r.devices.around(a, now)
	wants, devices := r.wants(a.quota, around)
	r.watches.need(a.key, wants)
	s := state{}
	if devices != nil {
		s.missing = append(s.missing, *devices)
	}
	for _, w := range wants {
		if w.kind != deviceClasses {
			s.missing = append(s.missing, r.attach(a, w, around)...)
		}
	}
	a.detach(wants)
	a.note(s.missing)
	s.counted = countedOf(q, a, s.missing)
	for _, m := range s.missing {
		if !m.gone {
			s.wake(now.Add(again))
		}
	}
	s.wake(a.expire(around))
	s.wake(r.verify(a, around))
	a.hard = q.Spec.Hard
	a.observe(q.Status.Used, s.counted, admitted(q), now)
	s.plan = a.plan(q, s.counted, now)
	s.wake(s.plan.recheck)
	if a.began.IsZero() {
		a.began = now
	}
	if s.wait = now.Before(a.began.Add(pace)) && slices.ContainsFunc(s.missing, func(m missing) bool { return m.soon }); s.wait {
		s.wake(a.began.Add(pace))
	}
	return s
}

// wants returns what a quota needs to have watched. If it depends on DeviceClasses and they are
// not known, devices says why.
func (r *resourceQuotas) wants(quota accounting.Quota, around accounting.Around) (wants []want, devices *missing) {
	ofDevices := quota.OfDevices()
	if len(ofDevices) > 0 {
		w := want{deviceClasses, true}
		wants = append(wants, w)
		f := r.watches.find(w)
		if f.view != nil {
			if _, err := r.devices.load(f.view); err != nil {
				f.err = err
			}
		}
		if f.err != nil && !f.gone {
			devices = &missing{kind: deviceClasses, names: ofDevices, old: f.view != nil, err: f.err}
		}
	}
	kinds := quota.Kinds(around)
	for _, kind := range kinds {
		_, uniform := quota.Uniform(kind, around)
		wants = append(wants, want{kind, !uniform})
	}
	// What a claim counts for depends on the Pod that it stands for.
	if len(ofDevices) > 0 && slices.Contains(kinds, accounting.ResourceClaims) {
		wants = slices.DeleteFunc(wants, func(w want) bool { return w.kind == accounting.Pods })
		wants = append(wants, want{accounting.Pods, true})
	}
	slices.SortFunc(wants, func(a, b want) int {
		// Claims are counted after the Pods that they depend on.
		return cmp.Or(strings.Compare(a.kind.Group, b.kind.Group), strings.Compare(a.kind.Resource, b.kind.Resource))
	})
	return wants, devices
}

// attach has an account count a kind, and returns why it cannot.
func (r *resourceQuotas) attach(a *account, w want, around accounting.Around) []missing {
	f := r.watches.find(w)
	names := a.quota.Tracks(w.kind, around)
	switch {
	case f.gone:
		// The server is certain: what was counted is gone.
		a.load(w.kind, names, nil)
		a.sources[w.kind] = source{}
		return []missing{{kind: w.kind, names: names, gone: true, err: f.err}}
	case f.view == nil:
		delete(a.sources, w.kind)
		return []missing{{kind: w.kind, names: names, soon: f.soon, err: f.err}}
	}
	if has := a.sources[w.kind]; has.view != f.view {
		if err := a.attach(w, f.view, names, around); err != nil {
			return []missing{{kind: w.kind, names: names, err: err}}
		}
	}
	if f.err != nil {
		return []missing{{kind: w.kind, names: names, old: true, err: f.err}}
	}
	return nil
}

// countedOf returns the resources of a quota whose kinds are all counted. A resource of a kind that
// is not served is not counted if it never was.
func countedOf(q *corev1.ResourceQuota, a *account, all []missing) (counted []corev1.ResourceName) {
	for name := range q.Spec.Hard {
		_, recorded := q.Status.Used[name]
		isMissing := slices.ContainsFunc(all, func(m missing) bool {
			return !m.old && (!m.gone || !recorded) && slices.Contains(m.names, name)
		})
		if !isMissing && a.tracks(name) {
			counted = append(counted, name)
		}
	}
	return counted
}

// note marks those of the kinds that are not counted of which the user has not heard yet.
func (a *account) note(all []missing) {
	reported := map[schema.GroupResource]string{}
	for i := range all {
		m := &all[i]
		if m.soon || len(m.names) == 0 {
			continue
		}
		reported[m.kind] = m.text()
		m.isNew = a.reported[m.kind] != reported[m.kind]
	}
	a.reported = reported
}

// tracks reports whether objects of some kind count for a resource.
func (a *account) tracks(name corev1.ResourceName) bool {
	for _, t := range a.tallies {
		if slices.Contains(t.names, name) {
			return true
		}
	}
	return false
}

// attach counts all objects of a kind and follows them from then on. After an error the account
// has what it had.
func (a *account) attach(w want, v view, names []corev1.ResourceName, around accounting.Around) error {
	before := a.sources[w.kind]
	uniform, ok := a.quota.Uniform(w.kind, around)
	if !ok {
		uniform = nil
	}
	a.sources[w.kind] = source{view: v, uniform: uniform}
	objects := map[string]charged{}
	for key, s := range v.in(a.key.Namespace) {
		now, err := a.charge(w.kind, s, around)
		if err != nil {
			a.sources[w.kind] = before
			return fmt.Errorf("counting %s %s: %w", w.kind, key, err)
		}
		objects[key.Name] = now
	}
	a.load(w.kind, names, objects)
	return nil
}

// detach ends the count of kinds that are not wanted any more, such as ResourceClaims after the
// last DeviceClass with an extended resource has gone. What their objects counted for is freed.
func (a *account) detach(wants []want) {
	for kind, t := range a.tallies {
		if !slices.ContainsFunc(wants, func(w want) bool { return w.kind == kind }) {
			a.load(kind, t.names, nil)
			delete(a.tallies, kind)
			delete(a.sources, kind)
		}
	}
}

// charge returns what an object counts for.
func (a *account) charge(kind schema.GroupResource, s subject, around accounting.Around) (charged, error) {
	now := charged{uid: s.meta.UID, created: s.meta.Created}
	if uniform := a.sources[kind].uniform; uniform != nil {
		now.Used = uniform
		return now, nil
	}
	o, err := s.read()
	if err != nil {
		return now, err
	}
	now.Charge, err = a.quota.Charge(kind, o, around)
	return now, err
}

// refresh counts one object as the cache shows it now, and reports whether that changes a sum. It
// reads the cache and not the event: an event may be older than the objects that a run has loaded.
func (a *account) refresh(kind schema.GroupResource, name string, around accounting.Around) (differs bool, err error) {
	from := a.sources[kind]
	if from.view == nil || a.tallies[kind] == nil {
		return false, nil
	}
	s, there := from.view.get(object.Key{Namespace: a.key.Namespace, Name: name})
	if !there {
		return a.set(kind, name, charged{}), nil
	}
	now, err := a.charge(kind, s, around)
	if err != nil {
		return false, err
	}
	return a.set(kind, name, now), nil
}

// expire counts the objects again whose charge has changed with time, and returns when the next one
// does, zero for never.
func (a *account) expire(around accounting.Around) (next time.Time) {
	for kind, t := range a.tallies {
		due, at := t.due(around.Now)
		for _, name := range due {
			// An object that cannot be read is counted as before, and its kind again.
			if _, err := a.refresh(kind, name, around); err != nil {
				delete(a.sources, kind)
			}
		}
		if at.IsZero() {
			continue
		}
		// The charge holds up to that moment.
		if at = at.Add(time.Millisecond); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// one is an object of an account.
type one struct {
	kind schema.GroupResource
	name string
}

// related returns the objects that may count for something else after a change of an object:
// itself, and the ResourceClaims of a Pod.
func related(a *account, kind schema.GroupResource, m object.Meta) []one {
	all := []one{{kind, m.Name}}
	claims := a.sources[accounting.ResourceClaims].view
	if claims == nil || len(a.quota.OfDevices()) == 0 {
		return all
	}
	pod := types.UID("")
	switch kind {
	case accounting.Pods:
		pod = m.UID
	case accounting.ResourceClaims:
		if ref := m.Controller(); ref != nil {
			pod = ref.UID
		}
	}
	if pod == "" {
		return all
	}
	for key := range claims.controlledBy(m.Namespace, pod) {
		all = append(all, one{accounting.ResourceClaims, key.Name})
	}
	return all
}

// admitted returns when admission can have written the status of a quota last, by the clock of the
// API server: when any client wrote it last. A later write of another client takes over the fields
// of admission, and their time. It is zero if that is not known.
func admitted(q *corev1.ResourceQuota) (last time.Time) {
	for _, m := range q.ManagedFields {
		if m.Subresource == "status" && m.Time != nil && m.Time.After(last) {
			last = m.Time.Time
		}
	}
	return last
}
