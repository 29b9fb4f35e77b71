// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// endSome ends n active Pods. No time passes.
func (c *cluster) endSome(n int) {
	c.t.Helper()
	active := c.active()
	if len(active) < n {
		c.t.Fatalf("%d Pods are active; want %d or more", len(active), n)
	}
	for _, pod := range active[:n] {
		c.end(pod, 0)
	}
	synctest.Wait()
}

func TestPodsThatEndOneByOneAreReplacedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		key := c.create(newJob("report", wants(5, 1)))
		for range 5 {
			c.endSome(1)
		}
		c.wantCounts("after five Pods, one after the other,", key, 0, 5, 0)
		if holds(c.job(key), batchv1.JobComplete) == nil {
			t.Error("the Job is not complete")
		}
	})
}

func TestEndsAreCollectedForASecondOrUntilHalfOfThePodsHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		key := c.create(newJob("report", wants(100, 8)))
		c.endSome(1)
		pass(900 * time.Millisecond)
		c.endSome(2)
		c.wantCounts("before a second has passed", key, 8, 0, 0)
		pass(100 * time.Millisecond)
		c.wantCounts("after a second", key, 8, 3, 0)
		c.endSome(3)
		c.wantCounts("when three of eight have ended", key, 8, 3, 0)
		c.endSome(1)
		c.wantCounts("when four of eight have ended", key, 8, 7, 0)
	})
}

// Pods that are being deleted end one by one, as the Job creates none. Only the first half ends
// the wait.
func TestPodsOfASuspendedJobThatEndOneByOneAreCollected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		key := c.create(newJob("report", wants(100, 8), func(j *batchv1.Job) {
			j.Spec.Template.Spec.NodeName, j.Spec.Template.Spec.TerminationGracePeriodSeconds = "node", new(int64(30))
		}))
		pass(2 * time.Second)
		var writes atomic.Int32
		c.jobs.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "update" {
				writes.Add(1)
			}
			return nil
		})
		c.edit(key, func(j *batchv1.Job) { j.Spec.Suspend = new(true) })
		before := writes.Load()
		for _, pod := range c.all() {
			if !podstate.Terminating(pod) {
				t.Fatalf("a Pod of the suspended Job is %+v", pod)
			}
			c.pods.Remove(object.KeyOf(pod))
			synctest.Wait()
		}
		if n := writes.Load() - before; n != 0 {
			t.Errorf("the controller wrote %d times within a second", n)
		}
		pass(time.Second)
		c.wantCounts("after a second", key, 0, 0, 0)
	})
}

// The second counts from when a run begins. What happens while a slow server takes the writes of
// the run is handled when they are done.
func TestTheWritesOfARunArePartOfTheSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.jobs.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "update" {
				time.Sleep(3 * time.Second)
			}
			return nil
		})
		c.start()
		key := c.create(newJob("report", wants(100, 8)))
		c.endSome(1) // while the first status is being written
		pass(3500 * time.Millisecond)
		if n := len(c.all()); n != 9 {
			t.Errorf("half a second after the first status there are %d Pods; want 8 and the one that has ended", n)
		}
		pass(10 * time.Second)
		c.wantCounts("at the end", key, 8, 1, 0)
	})
}
