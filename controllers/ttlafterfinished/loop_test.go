// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ttlafterfinished

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var jobs = object.Resource{Group: "batch", Version: "v1", Plural: "jobs", Kind: "Job", Namespaced: true}

// cluster is a server with Jobs, inside of a bubble of synctest.
type cluster struct {
	*fakeapi.Resource
	t *testing.T

	mu      sync.Mutex
	deletes []metav1.DeleteOptions
	gets    int
}

// newCluster returns a server that keeps what it is asked to delete with.
func newCluster(t *testing.T) *cluster {
	c := &cluster{Resource: fakeapi.New().Serve(jobs), t: t}
	c.Before(c.note)
	return c
}

// note keeps what the server is asked for. It refuses nothing.
func (c *cluster) note(q *fakeapi.Request) *metav1.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch q.Verb {
	case "get":
		c.gets++
	case "delete":
		body, err := io.ReadAll(q.HTTP.Body)
		if err != nil {
			c.t.Error(err)
		}
		q.HTTP.Body = io.NopCloser(strings.NewReader(string(body)))
		var o metav1.DeleteOptions
		if err := json.Unmarshal(body, &o); err != nil {
			c.t.Error(err)
		}
		c.deletes = append(c.deletes, o)
	}
	return nil
}

// asked returns how often a Job was read alone, and with what each was deleted.
func (c *cluster) asked() (gets int, deletes []metav1.DeleteOptions) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gets, slices.Clone(c.deletes)
}

// start runs the controller, and returns when it has nothing to do.
func (c *cluster) start() *managertest.Process {
	c.t.Helper()
	p := managertest.Run(c.t, c.Config(), managertest.Making(New, Defaults()))
	synctest.Wait()
	return p
}

// add adds a Job that finishes after a time.
func (c *cluster) add(name string, in time.Duration, ttl int32) object.Key {
	c.t.Helper()
	job := finishedJob(batchv1.JobComplete, &ttl)
	job.Name = name
	job.Status.Conditions[1].LastTransitionTime = metav1.NewTime(time.Now().Add(in))
	if err := c.Add(job); err != nil {
		c.t.Fatal(err)
	}
	return object.KeyOf(job)
}

// pass lets time pass and what is due then be done.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// want compares the Jobs that are there, but for those that the garbage collector would end.
func (c *cluster) want(when string, keys ...string) {
	c.t.Helper()
	there := slices.DeleteFunc(c.Keys(), func(text string) bool {
		key, err := object.ParseKey(text)
		return err != nil || c.Get(key).GetDeletionTimestamp() != nil
	})
	if got := strings.Join(there, " "); got != strings.Join(keys, " ") {
		c.t.Fatalf("%s there are the Jobs %q, want %q", when, got, strings.Join(keys, " "))
	}
}

func TestAJobGoesWhenItsTimeHasComeAndNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add("day", 0, 24*60*60)
		p := c.start()
		c.add("hour", 0, 60*60)
		c.add("at-once", 0, 0)
		pass(0)
		c.want("at once", "team-a/day", "team-a/hour")
		want := "JobNotExpired: the Job has finished, and is kept for 3600 s (ttlSecondsAfterFinished) (until its time has come, or is changed)"
		if got := p.Reasons("team-a/hour"); len(got) != 1 || got[0] != want {
			t.Errorf("the reasons of the Job are %q, want %q", got, want)
		}
		pass(time.Hour - time.Second)
		c.want("a second before the hour", "team-a/day", "team-a/hour")
		pass(time.Second)
		c.want("after the hour", "team-a/day")
		pass(23*time.Hour - time.Second)
		c.want("a second before the day", "team-a/day")
		pass(time.Second)
		c.want("after the day")
	})
}

func TestAJobIsDeletedInTheForegroundAndByItsUIDAfterALiveRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		uid := c.UID(c.add("import", 0, 60))
		c.start()
		pass(time.Minute)
		gets, deletes := c.asked()
		if gets != 1 || len(deletes) != 1 {
			t.Fatalf("%d reads and %d deletes, want 1 of each", gets, len(deletes))
		}
		o := deletes[0]
		if o.PropagationPolicy == nil || *o.PropagationPolicy != metav1.DeletePropagationForeground {
			t.Errorf("the propagation is %v, want foreground", o.PropagationPolicy)
		}
		if o.Preconditions == nil || o.Preconditions.UID == nil || *o.Preconditions.UID != uid {
			t.Errorf("the preconditions are %v, want UID %s", o.Preconditions, uid)
		}
	})
}

// update changes the TTL of a Job as a user would.
func (c *cluster) update(key object.Key, ttl *int32) {
	c.t.Helper()
	writer, err := client.New(c.Config())
	if err != nil {
		c.t.Fatal(err)
	}
	patch, err := client.MergePatch(map[string]any{"spec": map[string]any{"ttlSecondsAfterFinished": ttl}})
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := client.ForResource[*batchv1.Job](writer, jobs).Patch(c.t.Context(), key, patch); err != nil {
		c.t.Fatal(err)
	}
}

func TestATTLThatWasExtendedUnseenIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		key := c.add("import", 0, 60)
		c.start()
		c.HoldWatches(true) // the cache lags from here on
		c.update(key, new(int32(120)))
		pass(time.Minute)
		if gets, _ := c.asked(); gets != 1 {
			t.Fatalf("%d reads, want 1: the server was to be asked", gets)
		}
		c.want("after the TTL that the cache knows", "team-a/import")
		pass(time.Minute)
		c.HoldWatches(false)
		pass(0)
		c.want("after the new TTL")
	})
}

func TestATTLThatIsTakenAwayKeepsTheJobAndOneThatIsShortenedCountsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		kept, shortened := c.add("kept", 0, 60), c.add("shortened", 0, 60*60)
		c.start()
		pass(30 * time.Second)
		c.update(kept, nil)
		c.update(shortened, new(int32(20)))
		pass(0)
		c.want("at once", "team-a/kept")
		pass(24 * time.Hour)
		c.want("a day later", "team-a/kept")
	})
}

func TestAJobThatFinishedInTheFutureIsKeptForLongerAndThatIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add("import", 30*time.Second, 60)
		p := c.start()
		pass(89 * time.Second)
		c.want("before", "team-a/import")
		pass(time.Second)
		c.want("after")
		if warnings := strings.Join(p.Warnings(), "\n"); !strings.Contains(warnings, "a finish time in the future") {
			t.Errorf("the warnings are: %s", warnings)
		}
	})
}

func TestAnotherJobUnderTheNameStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		key := c.add("import", 0, 60)
		uid := c.UID(key)
		replaced := false
		c.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "delete" && !replaced {
				// Between the live read and the delete the Job makes place for
				// another one.
				replaced = true
				writer, err := client.New(c.Config())
				if err == nil {
					err = client.ForResource[*batchv1.Job](writer, jobs).Delete(q.HTTP.Context(), key)
				}
				if err != nil {
					t.Error(err)
				}
				c.add("import", time.Hour, 60)
			}
			return c.note(q)
		})
		c.start()
		pass(time.Minute)
		if now := c.UID(key); now == "" || now == uid {
			t.Errorf("there is %q, want another Job than %q", now, uid)
		}
	})
}

func TestAControllerThatIsEndedWhileAJobIsDueDeletesItOnceWhenItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add("a", 0, 60)
		c.add("b", 0, 90)
		p := c.start()
		pass(59 * time.Second)
		p.Stop()
		pass(10 * time.Second)
		c.want("while no controller runs", "team-a/a", "team-a/b")
		p = c.start()
		pass(0)
		c.want("at once", "team-a/b")
		p.Stop()
		c.start()
		pass(time.Minute)
		c.want("later")
		if _, deletes := c.asked(); len(deletes) != 2 {
			t.Errorf("%d deletes, want 2", len(deletes))
		}
	})
}

func TestADeleteThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add("import", 0, 60)
		left := 3
		c.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "delete" && left > 0 {
				left--
				return fakeapi.Forbidden("jobs")
			}
			return nil
		})
		c.start()
		pass(2 * time.Minute)
		c.want("after three failures")
	})
}

// The metric is of the deletions of this controller, as that of kube-controller-manager is.
func TestAJobThatAnotherClientDeletesFirstIsNotMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add("import", 0, 60)
		c.add("mine", 0, 60)
		c.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "delete" && q.Key.Name == "import" {
				status := apierrors.NewNotFound(batchv1.Resource("jobs"), q.Key.Name).Status()
				return &status
			}
			return nil
		})
		var metrics prometheus.Collector
		managertest.Run(t, c.Config(), managertest.MakingMetrics(New, Defaults(), &metrics))
		pass(2 * time.Minute)
		const name = "ttl_after_finished_controller_job_deletion_duration_seconds"
		if got := managertest.Series(t, metrics)[name]; got != 1 {
			t.Errorf("%v deletions are measured, want 1", got)
		}
	})
}
