// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// world is an API server with one CronJob, and the controllers around it.
type world struct {
	cronJob *batchv1.CronJob
	jobs    map[string]*batchv1.Job
	starts  map[int64]int // how many Jobs were created for a slot, by its Unix time
	creates int
	now     time.Time
	memory  memory
}

// run is a run of the controller that is killed before one of its writes, or at none of them.
// It returns when the controller wants to run again.
func (w *world) run(killedAt int) time.Duration {
	writes := 0
	killed := func() bool {
		writes++
		return writes == killedAt
	}
	var jobs []*batchv1.Job
	for _, j := range w.jobs {
		jobs = append(jobs, j)
	}
	slices.SortFunc(jobs, byStart)
	p := decide(view{cronJob: w.cronJob.DeepCopy(), jobs: jobs, now: w.now, memory: w.memory})
	w.memory = p.memory
	for _, j := range p.expired {
		if killed() {
			return w.restart()
		}
		delete(w.jobs, j.Name)
	}
	if !p.slot.IsZero() {
		for _, j := range p.replace {
			if killed() {
				return w.restart()
			}
			delete(w.jobs, j.Name)
			p.inactive(j.UID)
		}
		if killed() {
			return w.restart()
		}
		p.started(w.create(p.slot), p.slot)
	}
	if killed() {
		return w.restart()
	}
	w.cronJob.Status = p.status
	return p.after
}

// restart is a new process of the controller, which remembers nothing.
func (w *world) restart() time.Duration {
	w.memory = memory{uid: w.cronJob.UID}
	return time.Second
}

// create creates the Job of a slot, or returns the one that has its name.
func (w *world) create(slot time.Time) *batchv1.Job {
	wanted, err := newJob(w.cronJob, slot)
	if err != nil {
		panic(err)
	}
	if there := w.jobs[wanted.Name]; there != nil {
		return there
	}
	w.creates++
	wanted.UID = types.UID(fmt.Sprint(w.creates))
	wanted.Status.StartTime = &metav1.Time{Time: w.now}
	w.jobs[wanted.Name] = wanted
	w.starts[slot.Unix()]++
	return wanted
}

func (w *world) active() (n int) {
	for _, j := range w.jobs {
		if finished(j) == "" {
			n++
		}
	}
	return n
}

// finish ends the Jobs that have run for a time.
func (w *world) finish(after time.Duration) {
	for _, j := range w.jobs {
		if finished(j) == "" && w.now.Sub(j.Status.StartTime.Time) >= after {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
			j.Status.CompletionTime = &metav1.Time{Time: w.now}
		}
	}
}

// TestASlotNeverStartsTwiceAndNeverNotWithinItsDeadline runs CronJobs for years, through changes
// of clocks, kills before each write, and times without a controller.
func TestASlotNeverStartsTwiceAndNeverNotWithinItsDeadline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		schedule := rapid.SampledFrom([]string{
			"30 2 * * *", "0 0 * * *", "15 1,2,3 * * 0", "0 */6 * * *", "59 23 28-31 * *", "0 12 1,15 * 1", "@monthly", "@every 26h",
		}).Draw(t, "schedule")
		policy := rapid.SampledFrom([]batchv1.ConcurrencyPolicy{batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent}).Draw(t, "policy")
		deadline := rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, 30 * time.Hour}).Draw(t, "deadline")
		lasts := rapid.SampledFrom([]time.Duration{time.Minute, 5 * time.Hour, 40 * time.Hour}).Draw(t, "a Job lasts")
		start := time.Unix(rapid.Int64Range(1325376000, 1735689600).Draw(t, "start"), 0).UTC()
		w := &world{
			cronJob: hourly(func(c *batchv1.CronJob) {
				c.CreationTimestamp = metav1.NewTime(start)
				c.Spec.Schedule, c.Spec.TimeZone, c.Spec.ConcurrencyPolicy = schedule, &zone, policy
				c.Spec.StartingDeadlineSeconds = new(int64(deadline / time.Second))
			}),
			jobs: map[string]*batchv1.Job{}, starts: map[int64]int{}, now: start,
		}
		slots, err := parse(schedule, zone)
		if err != nil {
			t.Fatal(err)
		}
		up := start                    // since when the controller runs
		end := start.AddDate(0, 13, 0) // both changes of clocks
		for w.now.Before(end) {
			kill := rapid.IntRange(-6, 4).Draw(t, "killed at write")
			wait := w.run(kill)
			for range 3 { // what a kill left undone
				if wait == time.Second {
					wait = w.run(0)
				}
			}
			if policy != batchv1.AllowConcurrent && w.active() > 1 {
				t.Fatalf("at %s %d Jobs run, and the policy is %s", w.now, w.active(), policy)
			}
			last := slots.latest(start, w.now)
			due := last.After(up) || !last.IsZero() && !last.Add(deadline).Before(w.now) // the latter also after a time without a controller
			if policy != batchv1.ForbidConcurrent && due && w.starts[last.Unix()] == 0 {
				t.Fatalf("at %s no Job of the slot %s has started", w.now, last)
			}
			if wait <= 0 {
				t.Fatalf("at %s the controller does not want to run again", w.now)
			}
			next := w.now.Add(wait)
			if rapid.IntRange(0, 40).Draw(t, "down") == 0 {
				next = next.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "hours")) * time.Hour)
				up = next
				w.restart()
			} else if done := w.now.Add(lasts); w.active() > 0 && done.Before(next) {
				next = done // the informer shows the end of the Job
			}
			w.now = next
			w.finish(lasts)
		}
		for slot, n := range w.starts {
			if n > 1 {
				t.Errorf("the slot %s started %d Jobs", time.Unix(slot, 0).UTC(), n)
			}
			if slots.latest(start, time.Unix(slot, 0)).Unix() != slot {
				t.Errorf("a Job started at %s, which is no slot", time.Unix(slot, 0).UTC())
			}
		}
	})
}
