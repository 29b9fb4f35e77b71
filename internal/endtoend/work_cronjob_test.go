// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// cronJobs are CronJobs of which each is due once. The Jobs are suspended, so they are active
// for ever.
type cronJobs struct {
	*stage
	wanted int
	before int // Jobs before the last change
}

// cronJobsAtOnce is how many CronJobs become due by a change.
const cronJobsAtOnce = 20

func newCronJobs(s *stage) work {
	c := &cronJobs{stage: s}
	c.change()
	return c
}

// change begins to create CronJobs, so that they become due one after the other.
func (c *cronJobs) change() {
	c.t.Helper()
	c.before = len(c.jobs())
	first := c.wanted
	c.wanted += cronJobsAtOnce
	ctx, cancel := context.WithCancel(c.t.Context())
	var task sync.WaitGroup
	task.Go(func() {
		for i := range cronJobsAtOnce {
			// A user tries again when the server is away.
			for err := c.due(ctx, first+i); err != nil && ctx.Err() == nil; err = c.due(ctx, first+i) {
				if !client.Unreachable(err) && !client.Unanswered(err) {
					c.t.Error(err)
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
		}
	})
	c.t.Cleanup(func() {
		cancel()
		task.Wait()
	})
}

// due creates a CronJob whose last start was a year ago, so that a Job starts at once. The next
// one starts on the first of January.
func (c *cronJobs) due(ctx context.Context, i int) error {
	all := client.For[*batchv1.CronJob](c.Client)
	cronJob := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: fmt.Sprint("report-", i)},
		Spec: batchv1.CronJobSpec{
			Schedule: "0 0 1 1 *", TimeZone: new("Asia/Tokyo"), ConcurrencyPolicy: batchv1.ForbidConcurrent,
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				Suspend: new(true),
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers:    []corev1.Container{{Name: "main", Image: "busybox"}},
				}},
			}},
		},
	}
	if _, err := all.Create(ctx, cronJob); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	patch, err := client.MergePatch(map[string]any{"status": map[string]any{"lastScheduleTime": metav1.NewTime(time.Now().AddDate(-1, 0, 0))}})
	if err != nil {
		return err
	}
	_, err = all.Sub("status").Patch(ctx, object.KeyOf(cronJob), patch)
	return err
}

func (c *cronJobs) jobs() []*batchv1.Job {
	c.t.Helper()
	jobs, _, err := client.For[*batchv1.Job](c.Client).List(c.t.Context(), client.Selection{Namespace: c.namespace})
	if err != nil {
		c.t.Fatal(err)
	}
	return jobs
}

func (c *cronJobs) begun() bool { return len(c.jobs()) > c.before }

// missing holds that each CronJob has started one Job, of the last slot, and says so.
func (c *cronJobs) missing() string {
	started := map[types.UID]*batchv1.Job{}
	for _, job := range c.jobs() {
		owner := metav1.GetControllerOf(job)
		if owner == nil || started[owner.UID] != nil {
			c.t.Fatalf("Job %s is the second one of its CronJob, or of none: %v", job.Name, job.OwnerReferences)
		}
		started[owner.UID] = job
	}
	all, _, err := client.For[*batchv1.CronJob](c.Client).List(c.t.Context(), client.Selection{Namespace: c.namespace})
	if err != nil {
		return err.Error()
	}
	for _, cronJob := range all {
		job := started[cronJob.UID]
		if job == nil {
			return cronJob.Name + " has started no Job"
		}
		if active := cronJob.Status.Active; len(active) != 1 || active[0].UID != job.UID {
			return fmt.Sprintf("the status of %s names %v, and its Job is %s", cronJob.Name, active, job.Name)
		}
		if last := cronJob.Status.LastScheduleTime; time.Since(last.Time) > 366*24*time.Hour {
			return fmt.Sprintf("the last slot of %s is %s", cronJob.Name, last)
		}
	}
	if len(all) != c.wanted {
		return fmt.Sprintf("%d CronJobs of %d", len(all), c.wanted)
	}
	return ""
}

func (c *cronJobs) inBounds(map[types.UID]*corev1.Pod) error { return nil }
