// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/workqueue"
)

// Find returns where a key is, and how many keys are ahead of it.
func TestFindShowsThePlaceOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{})
		q.Add("running")
		get(t, q, "running")
		q.Add("running")
		for _, key := range []string{"first", "second", "third"} {
			q.Add(key)
		}
		q.AddWith(workqueue.Add{Priority: workqueue.High}, "urgent")
		q.AddWith(workqueue.Add{RateLimited: true, After: time.Hour}, "later")
		for key, ahead := range map[string]int{"urgent": 0, "first": 1, "third": 3} {
			found, known := q.Find(key, 100)
			if !known || found.Waiting == nil || found.Running != nil || found.Ahead != ahead || found.Ready != 4 {
				t.Errorf("%s is found as %+v, %v, want %d of 4 keys ahead of it", key, found, known, ahead)
			}
		}
		if found, _ := q.Find("third", 2); found.Ahead != 2 {
			t.Errorf("with a limit of 2 there are %d keys ahead of the third", found.Ahead)
		}
		if found, known := q.Find("running", 100); !known || found.Running == nil || found.Running.Next == nil || found.Waiting != nil {
			t.Errorf("the running key is found as %+v, %v", found, known)
		}
		found, known := q.Find("later", 100)
		if !known || found.Waiting == nil || found.Waiting.Failures != 1 || !found.Waiting.Until.Equal(time.Now().Add(time.Hour)) || found.Ahead != 0 {
			t.Errorf("the delayed key is found as %+v, %v", found, known)
		}
		if found, known := q.Find("unknown", 100); known {
			t.Errorf("a key that was never added is found as %+v", found)
		}
	})
}
