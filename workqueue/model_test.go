// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/workqueue"
)

// model is the specification of the queue, written to be read: it searches where
// the queue looks up, and keeps everything in slices.
type model struct {
	fair         bool
	step         time.Duration // negative: no ageing
	now          time.Duration
	keys         map[string]*modelKey
	levels       map[workqueue.Priority]*[][]string // of each priority, the groups in turn, of each the keys in order
	passed       int
	shuttingDown bool

	adds, merged, retries, ignored uint64
}

type modelKey struct {
	failures int
	running  *modelRun
	next     *modelRun
}

type modelRun struct {
	priority workqueue.Priority
	ready    bool
	when     time.Duration // since when it is ready, or when it will be
	adds     int
	causes   []workqueue.Cause
	dropped  int
}

func (m *model) add(key string, how workqueue.Add, delay time.Duration) {
	if m.shuttingDown {
		m.ignored++
		return
	}
	k := m.keys[key]
	if how.RateLimited {
		m.retries++
		k.failures++
	}
	if k.next == nil {
		k.next = &modelRun{priority: how.Priority, when: m.now + delay}
		if delay <= 0 {
			m.ready(key)
		}
	} else {
		m.merged++
		if how.Priority > k.next.priority {
			m.raise(key, how.Priority)
		}
		if due := m.now + delay; !k.next.ready && due < k.next.when {
			k.next.when = due
			if delay <= 0 {
				m.ready(key)
			}
		}
	}
	k.next.adds++
	k.next.because(how.Cause)
}

func (r *modelRun) because(c workqueue.Cause) {
	same := func(other workqueue.Cause) bool {
		other.Version = c.Version
		return other == c
	}
	if c == (workqueue.Cause{}) {
		return
	}
	if i := slices.IndexFunc(r.causes, same); i >= 0 {
		r.causes[i] = c
	} else if len(r.causes) < workqueue.MaxCauses {
		r.causes = append(r.causes, c)
	} else {
		r.causes[workqueue.MaxCauses-1] = c
		r.dropped++
	}
}

func (m *model) ready(key string) {
	k := m.keys[key]
	k.next.ready = true
	m.adds++
	if k.running == nil {
		m.enqueue(key, false)
	}
}

func (m *model) group(key string) string {
	if m.fair {
		return byNamespace(key)
	}
	return ""
}

// enqueue puts a key behind, or in front of, those of its priority and group.
func (m *model) enqueue(key string, front bool) {
	p := m.keys[key].next.priority
	if m.levels[p] == nil {
		m.levels[p] = new([][]string)
	}
	groups := m.levels[p]
	for i, keys := range *groups {
		if m.group(keys[0]) == m.group(key) {
			if front {
				(*groups)[i] = append([]string{key}, keys...)
			} else {
				(*groups)[i] = append(keys, key)
			}
			return
		}
	}
	*groups = append(*groups, []string{key})
}

// dequeue takes a key out from wherever it is, and reports whether it was anywhere.
func (m *model) dequeue(key string) bool {
	for p, groups := range m.levels {
		for i, keys := range *groups {
			at := slices.Index(keys, key)
			if at < 0 {
				continue
			}
			(*groups)[i] = slices.Delete(keys, at, at+1)
			if len(keys) == 1 {
				*groups = slices.Delete(*groups, i, i+1)
			}
			if len(*groups) == 0 {
				delete(m.levels, p)
			}
			return true
		}
	}
	return false
}

func (m *model) raise(key string, p workqueue.Priority) {
	next := m.keys[key].next
	next.priority = p
	if !m.dequeue(key) {
		return
	}
	front := false
	if groups := m.levels[p]; groups != nil {
		for _, keys := range *groups {
			if m.group(keys[0]) == m.group(key) {
				front = next.when < m.keys[keys[0]].next.when
			}
		}
	}
	m.enqueue(key, front)
}

// get returns the key whose turn it is.
func (m *model) get() string {
	var priorities []workqueue.Priority
	for p := range m.levels {
		priorities = append(priorities, p)
	}
	slices.Sort(priorities)
	slices.Reverse(priorities)
	// What a key is worth: its priority, and a level for each step it has waited.
	worth := func(p workqueue.Priority) time.Duration {
		return time.Duration(p)*m.step + m.now - m.keys[(*m.levels[p])[0][0]].next.when
	}
	turn, aged := priorities[0], priorities[0]
	for _, p := range priorities {
		if m.step > 0 && worth(p) > worth(aged) {
			aged = p
		}
	}
	if aged != turn {
		if m.passed++; m.passed > 3 {
			m.passed, turn = 0, aged
		}
	}
	key := (*m.levels[turn])[0][0]
	group := m.group(key)
	m.dequeue(key)
	if groups := m.levels[turn]; groups != nil && m.group((*groups)[0][0]) == group { // keys are left: to the back
		*groups = append((*groups)[1:], (*groups)[0])
	}
	k := m.keys[key]
	k.running, k.next = k.next, nil
	return key
}

func (m *model) done(key string) {
	k := m.keys[key]
	k.running = nil
	if k.next != nil && k.next.ready {
		m.enqueue(key, false)
	}
}

func (m *model) sleep(d time.Duration) {
	end := m.now + d
	for {
		first := ""
		for key, k := range m.keys {
			if k.next != nil && !k.next.ready && k.next.when <= end &&
				(first == "" || k.next.when < m.keys[first].next.when) {
				first = key
			}
		}
		if first == "" {
			break
		}
		m.ready(first)
	}
	m.now = end
}

func (m *model) shutDown() {
	m.shuttingDown = true
	for _, k := range m.keys {
		if k.next != nil && !k.next.ready {
			k.next = nil
			m.ignored++
		}
	}
}

func (m *model) len() (n int) {
	for _, groups := range m.levels {
		for _, keys := range *groups {
			n += len(keys)
		}
	}
	return n
}

// scripted is a limiter that gives one delay after the other. No two are the same,
// so that no two keys are due at the same moment, for which no order is specified.
type scripted struct{ next time.Duration }

func (s *scripted) When(string) time.Duration { return s.next }
func (s *scripted) Forget(string)             {}
func (s *scripted) NumRequeues(string) int    { return 0 }

func TestQueueDoesWhatTheModelDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		fair := rapid.Bool().Draw(rt, "fair")
		step := rapid.SampledFrom([]time.Duration{-1, time.Millisecond, workqueue.DefaultAgeStep}).Draw(rt, "step")
		steps := rapid.SliceOfN(rapid.Custom(drawStep), 100, 300).Draw(rt, "steps")
		var failure any
		synctest.Test(t, func(*testing.T) {
			// rapid can only take note of what happens on its own goroutine.
			defer func() {
				if failure = recover(); failure != nil {
					if _, ok := failure.(mismatch); !ok {
						failure = fmt.Sprintf("panic: %v\n%s", failure, debug.Stack())
					}
				}
			}()
			checkModel(fair, step, steps)
		})
		if failure != nil {
			rt.Fatal(failure)
		}
	})
}

// mismatch is what checkModel panics with when queue and model differ.
type mismatch string

func differ(format string, args ...any) { panic(mismatch(fmt.Sprintf(format, args...))) }

// step is one call, drawn before the run: rapid then shrinks the list of calls.
type step struct {
	call    string
	key     int
	how     workqueue.Add
	sleep   time.Duration
	workers int // which of the running keys is done
}

func drawStep(rt *rapid.T) step {
	s := step{
		call:    rapid.SampledFrom([]string{"add", "add", "add", "get", "get", "done", "done", "sleep", "forget", "stray done", "bulk", "shutdown"}).Draw(rt, "call"),
		key:     rapid.IntRange(0, len(modelKeys)-1).Draw(rt, "key"),
		workers: rapid.IntRange(0, 1000).Draw(rt, "worker"),
		sleep:   time.Duration(rapid.IntRange(0, 40).Draw(rt, "sleep")) * time.Millisecond,
	}
	if s.call == "shutdown" && rapid.IntRange(0, 9).Draw(rt, "really") > 0 {
		s.call = "sleep"
		s.sleep *= 300 // long enough for Low to age past Normal
	}
	s.how.Priority = rapid.SampledFrom([]workqueue.Priority{-128, workqueue.Low, -1, 0, 0, 1, workqueue.High, 127}).Draw(rt, "priority")
	s.how.RateLimited = rapid.IntRange(0, 4).Draw(rt, "rate limited") == 0
	if rapid.IntRange(0, 2).Draw(rt, "delayed") == 0 {
		s.how.After = time.Duration(rapid.IntRange(1, 50).Draw(rt, "after")) * time.Millisecond
	}
	if n := rapid.IntRange(0, 8).Draw(rt, "cause"); n > 0 {
		s.how.Cause = podCause(fmt.Sprint("web-", n), fmt.Sprint(rapid.IntRange(1, 3).Draw(rt, "version")))
	}
	return s
}

var modelKeys = []string{"a/0", "a/1", "a/2", "a/3", "a/4", "b/0", "b/1", "c/0"}

func checkModel(fair bool, ageStep time.Duration, steps []step) {
	limiter := new(scripted)
	opts := workqueue.Options[string]{AgeStep: ageStep, Limiter: limiter}
	if fair {
		opts.Fair = byNamespace
	}
	start := time.Now()
	q := workqueue.New(opts)
	defer q.ShutDown()
	m := &model{fair: fair, step: ageStep, keys: map[string]*modelKey{}, levels: map[workqueue.Priority]*[][]string{}}
	for _, key := range modelKeys {
		m.keys[key] = new(modelKey)
	}

	held := map[string]workqueue.Item[string]{}
	get := func() {
		want := m.get()
		item, ok := q.Get()
		run := m.keys[want].running
		got := fmt.Sprintf("%v %q %d %d %v %d %v %d", ok, item.Key, item.Priority, item.Adds, slices.Collect(item.Causes.All()), item.Causes.Dropped(), item.Waited, item.Attempt)
		spec := fmt.Sprintf("%v %q %d %d %v %d %v %d", true, want, run.priority, run.adds, run.causes, run.dropped, m.now-run.when, m.keys[want].failures)
		if got != spec {
			differ("Get returned %s\nwant         %s", got, spec)
		}
		held[want] = item
	}
	done := func(i int) {
		var running []string
		for _, key := range modelKeys {
			if m.keys[key].running != nil {
				running = append(running, key)
			}
		}
		if len(running) == 0 {
			return
		}
		key := running[i%len(running)]
		if got := slices.Collect(held[key].Causes.All()); !slices.Equal(got, m.keys[key].running.causes) {
			differ("the causes of %s changed while it was processed: %v", key, got)
		}
		m.done(key)
		q.Done(key)
	}

	for i, s := range steps {
		unique := time.Duration(i + 1) // nanoseconds, so that no two delays end together
		key := modelKeys[s.key]
		switch s.call {
		case "add":
			if s.how.After > 0 {
				s.how.After += unique
			}
			delay := s.how.After
			if s.how.RateLimited {
				limiter.next = time.Duration(s.key+1)*5*time.Millisecond + unique
				delay = max(delay, limiter.next)
			}
			m.add(key, s.how, delay)
			q.AddWith(s.how, key)
		case "bulk":
			s.how.RateLimited, s.how.After = false, 0
			for _, key := range modelKeys[s.key:] {
				m.add(key, s.how, 0)
			}
			q.AddWith(s.how, modelKeys[s.key:]...)
		case "get":
			if m.len() > 0 {
				get()
			}
		case "done":
			done(s.workers)
		case "stray done":
			if m.keys[key].running == nil {
				q.Done(key)
			}
		case "forget":
			m.keys[key].failures = 0
			q.Forget(key)
		case "sleep":
			time.Sleep(s.sleep)
			synctest.Wait()
			m.sleep(s.sleep)
		case "shutdown":
			m.shutDown()
			q.ShutDown()
		}
		compare(q, m, start)
	}

	m.shutDown()
	q.ShutDown()
	for m.len() > 0 {
		get()
		done(0)
	}
	for range modelKeys {
		done(0)
		if m.len() > 0 {
			get()
		}
	}
	compare(q, m, start)
	if _, ok := q.Get(); ok {
		differ("a key was left in the queue")
	}
}

// compare looks at everything that can be seen of the queue without changing it.
func compare(q *workqueue.Queue[string], m *model, start time.Time) {
	want := workqueue.Stats{Ready: m.len(), Adds: m.adds, Merged: m.merged, Retries: m.retries, Ignored: m.ignored}
	for _, key := range modelKeys {
		k := m.keys[key]
		if k.failures > 0 {
			want.Failing++
		}
		if n := q.NumRequeues(key); n != k.failures {
			differ("%s has %d failures, want %d", key, n, k.failures)
		}
		if k.running != nil {
			want.Processing++
		}
		if k.next != nil && !k.next.ready {
			want.Delayed++
		}
		if k.running != nil && k.next != nil && k.next.ready {
			want.Pending++
		}

		var next *workqueue.Pending
		if r := k.next; r != nil {
			next = &workqueue.Pending{Priority: r.priority, Adds: r.adds, Causes: r.causes, Dropped: r.dropped}
			if r.ready {
				next.Since = start.Add(r.when)
			} else {
				next.Until = start.Add(r.when)
			}
		}
		var got *workqueue.Pending
		in := q.InspectKey(key)
		switch {
		case len(in.Running) == 1:
			got = in.Running[0].Next
		case len(in.Ready) == 1:
			got = &in.Ready[0].Pending
		case len(in.Delayed) == 1:
			got = &in.Delayed[0].Pending
		}
		if !reflect.DeepEqual(got, next) || (len(in.Running) == 1) != (k.running != nil) {
			differ("%s shows as %+v, want %+v, processed: %v", key, in, next, k.running != nil)
		}
	}
	s := q.Stats()
	s.Latency, s.Work, s.LongestRunning, s.Unfinished = workqueue.Histogram{}, workqueue.Histogram{}, 0, 0
	if s != want {
		differ("Stats are\n%+v, want\n%+v", s, want)
	}
}
