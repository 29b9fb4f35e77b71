// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

func podCause(name, version string) workqueue.Cause {
	return workqueue.Cause{
		Source:  "pods",
		Verb:    workqueue.Updated,
		Ref:     object.Ref{Kind: "Pod", Key: object.Key{Namespace: "default", Name: name}},
		Version: version,
	}
}

func because(q *workqueue.Queue[string], key string, causes ...workqueue.Cause) {
	for _, c := range causes {
		q.AddWith(workqueue.Add{Cause: c}, key)
	}
}

func wantCauses(t *testing.T, got workqueue.Causes, dropped int, want ...workqueue.Cause) {
	t.Helper()
	if s := slices.Collect(got.All()); !slices.Equal(s, want) || got.Dropped() != dropped {
		t.Errorf("causes are\n%v and %d dropped; want\n%v and %d dropped", s, got.Dropped(), want, dropped)
	}
}

func TestCausesOfMergedAddsAreMerged(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{})
	deleted := podCause("web-1", "9")
	deleted.Verb = workqueue.Deleted
	because(q, "a", podCause("web-1", "7"), podCause("web-2", "8"), podCause("web-1", "8"), deleted)
	q.Add("a") // says nothing
	item := get(t, q, "a")
	wantCauses(t, item.Causes, 0, podCause("web-1", "8"), podCause("web-2", "8"), deleted)
	if item.Adds != 5 {
		t.Errorf("%d adds, want 5", item.Adds)
	}
}

func TestOfManyCausesTheFirstAndTheLastAreKept(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{})
	for i := range 10 {
		because(q, "a", podCause(fmt.Sprint("web-", i), "1"))
	}
	because(q, "a", podCause("web-1", "2"))
	wantCauses(t, get(t, q, "a").Causes, 6,
		podCause("web-0", "1"), podCause("web-1", "2"), podCause("web-2", "1"), podCause("web-9", "1"))
}

func TestCausesBelongToOneRun(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{})
	because(q, "a", podCause("web-1", "1"))
	first := get(t, q, "a")
	because(q, "a", podCause("web-2", "2"), podCause("web-1", "3"))
	wantCauses(t, first.Causes, 0, podCause("web-1", "1"))
	q.Done("a")
	wantCauses(t, get(t, q, "a").Causes, 0, podCause("web-2", "2"), podCause("web-1", "3"))
	q.Done("a")
	q.Add("a")
	wantCauses(t, get(t, q, "a").Causes, 0)
}

func TestSliceOfCausesOutlivesDone(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{})
	because(q, "a", podCause("web-1", "1"))
	kept := slices.Collect(get(t, q, "a").Causes.All())
	q.Done("a")
	because(q, "b", podCause("web-2", "2"))
	if kept[0] != podCause("web-1", "1") {
		t.Errorf("the copy changed to %v", kept[0])
	}
}

func TestCausesSurviveADelay(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{})
	q.AddWith(workqueue.Add{After: 1 << 40, Cause: podCause("web-1", "1")}, "a")
	because(q, "a", podCause("web-2", "1"))
	wantCauses(t, get(t, q, "a").Causes, 0, podCause("web-1", "1"), podCause("web-2", "1"))
}

func TestCausesString(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{})
	because(q, "a", podCause("web-1", "1"), podCause("web-2", "2"), podCause("web-3", "3"), podCause("web-4", "4"), podCause("web-5", "5"))
	want := "pods: Updated Pod default/web-1 at 1, pods: Updated Pod default/web-2 at 2, pods: Updated Pod default/web-3 at 3, " +
		"pods: Updated Pod default/web-5 at 5 and 1 more"
	if got := get(t, q, "a").Causes.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCauseString(t *testing.T) {
	for want, cause := range map[string]workqueue.Cause{
		"pods: Updated Pod default/web-1 at 4711": podCause("web-1", "4711"),
		"resync: Resync": {Source: "resync", Verb: workqueue.Resync},
		"Retry":          {Verb: workqueue.Retry},
		"":               {},
	} {
		if got := cause.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
