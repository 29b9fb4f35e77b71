// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/internal/podstate"
)

// TestEachPodIsCountedOnceWhateverHappens runs Jobs through random histories: Pods succeed, fail
// and are deleted, also in the middle of a run; the spec changes; and the controller is killed
// before or after any of its writes.
func TestEachPodIsCountedOnceWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		completions := rapid.Int32Range(1, 9).Draw(t, "completions")
		w := newWorld(newJob("report", wants(completions, rapid.Int32Range(0, 6).Draw(t, "parallelism"))))
		spec := &w.job.Spec
		spec.BackoffLimit = new(rapid.Int32Range(0, 20).Draw(t, "backoff limit"))
		if rapid.Bool().Draw(t, "replaces only failed Pods") {
			spec.PodReplacementPolicy = new(batchv1.Failed)
		}
		if rapid.Bool().Draw(t, "indexed") {
			spec.CompletionMode = new(batchv1.IndexedCompletion)
			if rapid.Bool().Draw(t, "backs off per index") {
				spec.BackoffLimitPerIndex, spec.BackoffLimit = new(rapid.Int32Range(0, 2).Draw(t, "per index")), new(int32(1000))
			}
		}
		for range 60 {
			w.meanwhile = func() {
				if rapid.IntRange(0, 5).Draw(t, "something happens meanwhile") == 0 {
					happen(t, w)
				}
			}
			happen(t, w)
			w.killAt = max(0, rapid.IntRange(-20, 20).Draw(t, "killed at"))
			w.run()
			check(t, w)
		}
		settle(t, w)
	})
}

// happen changes something in the world.
func happen(t *rapid.T, w *world) {
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
	spec := &w.job.Spec
	switch rapid.SampledFrom([]string{"ends", "ends", "ends", "deletes", "suspends", "resumes", "scales", "nothing"}).Draw(t, "what") {
	case "ends":
		if len(w.pods) > 0 {
			w.end(w.pods[rapid.IntRange(0, len(w.pods)-1).Draw(t, "Pod")], rapid.SampledFrom([]int32{0, 0, 1}).Draw(t, "exit code"))
		}
	case "deletes":
		if len(w.pods) > 0 {
			w.delete(w.pods[rapid.IntRange(0, len(w.pods)-1).Draw(t, "Pod")].UID)
		}
	case "suspends":
		edit(w, func() { spec.Suspend = new(true) })
	case "resumes":
		edit(w, func() { spec.Suspend = nil })
	case "scales":
		edit(w, func() { spec.Parallelism = new(rapid.Int32Range(0, 6).Draw(t, "parallelism")) })
	}
}

// edit changes the spec. A status that was made from the spec before is then refused.
func edit(w *world, change func()) {
	if finished(w.job) == nil {
		change()
		w.version++
		w.job.ResourceVersion = "edit" + w.job.ResourceVersion
	}
}

func check(t *rapid.T, w *world) {
	for _, err := range w.errs {
		t.Errorf("%s", err)
	}
	if len(w.errs) > 0 {
		t.FailNow()
	}
	// Pods are created only for completions that are missing, whatever has happened since.
	if n := w.succeeded() + len(w.active()); !indexed(w.job) && n > int(completions(w.job)) {
		t.Fatalf("%d Pods have succeeded or run, for %d completions", n, completions(w.job))
	}
	of := map[int]int{}
	for _, pod := range w.active() {
		if of[indexOf(pod)]++; indexed(w.job) && of[indexOf(pod)] > 1 {
			t.Fatalf("index %d has two active Pods", indexOf(pod))
		}
	}
}

// settle lets all Pods and the Job come to their ends, and compares the counters with what
// happened.
func settle(t *rapid.T, w *world) {
	w.meanwhile, w.killAt = func() {}, 0
	edit(w, func() { w.job.Spec.Suspend, w.job.Spec.Parallelism = nil, new(int32(4)) })
	for range 200 {
		w.now = w.now.Add(11 * time.Minute) // longer than any backoff
		for _, pod := range w.active() {
			w.end(pod, 0)
		}
		for _, pod := range w.pods {
			if podstate.Terminating(pod) {
				w.end(pod, 143)
			}
		}
		w.run()
		check(t, w)
	}
	if finished(w.job) == nil {
		t.Fatalf("the Job has not ended: %+v", w.job.Status)
	}
	for _, pod := range w.pods {
		if tracked(pod) {
			t.Errorf("Pod %s still has the finalizer", pod.Name)
		}
	}
	if indexed(w.job) {
		return // indexes are counted, not Pods
	}
	for uid, how := range w.ended {
		// A Pod that ran when its Job failed has failed, and so has one that was deleted.
		if counted := w.listed[uid]; counted == "" || how == "failed" && counted != how {
			t.Errorf("%s has %s and is counted as %q", uid, how, counted)
		}
	}
}
