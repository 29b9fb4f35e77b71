// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestMetricsCountWhatTheStatusOfJobsSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var metrics prometheus.Collector
		managertest.Run(t, c.Config(), managertest.MakingMetrics(New, Defaults(), &metrics))
		synctest.Wait()
		c.create(newJob("plain", wants(3, 3), func(j *batchv1.Job) { j.Spec.BackoffLimit = new(int32(1)) }))
		c.create(newJob("indexed", wants(2, 2), isIndexed))
		c.create(newJob("hopeless", func(j *batchv1.Job) { j.Spec.BackoffLimit = new(int32(0)) }))
		codes := map[string][]int32{"plain": {0, 0, 1}}
		for _, pod := range c.active() {
			code := int32(0)
			switch owner := pod.OwnerReferences[0].Name; owner {
			case "plain":
				code, codes[owner] = codes[owner][0], codes[owner][1:]
			case "hopeless":
				code = 1
			}
			c.end(pod, code)
		}
		pass(time.Minute)
		c.endAll(0)
		pass(time.Minute)
		got := wantSeries(t, metrics, map[string]float64{
			`job_controller_jobs_finished_total{completion_mode="NonIndexed",reason="CompletionsReached",result="succeeded"}`: 1,
			`job_controller_jobs_finished_total{completion_mode="Indexed",reason="CompletionsReached",result="succeeded"}`:    1,
			`job_controller_jobs_finished_total{completion_mode="NonIndexed",reason="BackoffLimitExceeded",result="failed"}`:  1,
			`job_controller_job_pods_finished_total{completion_mode="NonIndexed",result="succeeded"}`:                         3,
			`job_controller_job_pods_finished_total{completion_mode="NonIndexed",result="failed"}`:                            2,
			`job_controller_job_pods_finished_total{completion_mode="Indexed",result="succeeded"}`:                            2,
			`job_controller_job_pods_finished_total{completion_mode="Indexed",result="failed"}`:                               0,
			`job_controller_job_finished_indexes_total{backoffLimit="global",status="succeeded"}`:                             2,
		})
		created := `{action="pods_created",completion_mode="NonIndexed",result="success"}`
		if runs, times := got["job_controller_job_syncs_total"+created], got["job_controller_job_sync_duration_seconds"+created]; runs < 3 || times != runs {
			t.Errorf("%v runs have created Pods or waited for a backoff, and %v were timed, want 3 or more", runs, times)
		}
	})
}

// wantSeries compares some series, and returns all of them.
func wantSeries(t *testing.T, metrics prometheus.Collector, want map[string]float64) map[string]float64 {
	t.Helper()
	got := managertest.Series(t, metrics)
	for series, value := range want {
		if has, ok := got[series]; !ok || has != value {
			t.Errorf("%s is %v, want %v", series, has, value)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
	return got
}

// measured runs the controller, and returns its metrics.
func (c *cluster) measured() prometheus.Collector {
	c.t.Helper()
	var metrics prometheus.Collector
	managertest.Run(c.t, c.Config(), managertest.MakingMetrics(New, Defaults(), &metrics))
	synctest.Wait()
	return metrics
}

func TestTheActionOfARunIsThatOfKubeControllerManager(t *testing.T) {
	syncs := func(action string) string {
		return `job_controller_job_syncs_total{action="` + action + `",completion_mode="NonIndexed",result="success"}`
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		metrics := c.measured()
		key := c.create(newJob("report", func(j *batchv1.Job) { j.Spec.BackoffLimit = new(int32(1)) }))
		wantSeries(t, metrics, map[string]float64{syncs(podsCreated): 1})
		c.end(c.active()[0], 1)
		pass(3 * time.Second)
		before := wantSeries(t, metrics, nil)
		if len(c.active()) != 0 || before[syncs(podsCreated)] < 2 || before[syncs(podsDeleted)] != 0 {
			t.Errorf("during the backoff there are %d Pods and the series %v", len(c.active()), before)
		}
		pass(20 * time.Second)
		c.end(c.active()[0], 1) // which is one too many
		pass(10 * time.Second)
		if holds(c.job(key), batchv1.JobFailed) == nil {
			t.Fatalf("the status is %+v", c.job(key).Status)
		}
		after := wantSeries(t, metrics, nil)
		if after[syncs(reconciling)] == 0 || after[syncs(podsDeleted)] != 0 {
			t.Errorf("after the end of the Job the series are %v", after)
		}
	})
}

func TestMetricsCountCreatesByTheirReason(t *testing.T) {
	series := func(reason, status string) string {
		return `job_controller_job_pods_creation_total{reason="` + reason + `",status="` + status + `"}`
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var refuse atomic.Bool
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "create" && refuse.Load() {
				return fakeapi.Forbidden("exceeded quota: few, requested: pods=1")
			}
			return nil
		})
		metrics := c.measured()
		c.create(newJob("plain", wants(3, 3)))
		c.create(newJob("patient", wants(2, 2), func(j *batchv1.Job) { j.Spec.PodReplacementPolicy = new(batchv1.Failed) }))
		wantSeries(t, metrics, map[string]float64{series(createNew, succeeded): 5})
		for _, pod := range c.active() {
			if pod.OwnerReferences[0].Name == "plain" {
				c.end(pod, 1)
			}
		}
		pass(time.Minute)
		wantSeries(t, metrics, map[string]float64{series(replaceFailedOrEnding, succeeded): 3})
		for _, pod := range c.active() {
			if pod.OwnerReferences[0].Name == "patient" {
				c.end(pod, 1)
			}
		}
		pass(time.Minute)
		wantSeries(t, metrics, map[string]float64{series(replaceFailed, succeeded): 2})
		refuse.Store(true)
		c.create(newJob("refused", wants(5, 5)))
		// The slow start tries one Pod. kube-controller-manager counts a create that failed as one that succeeded too.
		wantSeries(t, metrics, map[string]float64{series(createNew, failed): 1, series(createNew, succeeded): 5})
	})
}

func TestMetricsCountFailuresThatThePolicyDecidedAbout(t *testing.T) {
	rule := func(action batchv1.PodFailurePolicyAction, code int32) batchv1.PodFailurePolicyRule {
		return batchv1.PodFailurePolicyRule{Action: action, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{code},
		}}
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		metrics := c.measured()
		c.create(newJob("report", wants(4, 4), func(j *batchv1.Job) {
			j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
				rule(batchv1.PodFailurePolicyActionIgnore, 2), rule(batchv1.PodFailurePolicyActionCount, 3),
				rule(batchv1.PodFailurePolicyActionFailJob, 5),
			}}
		}))
		for i, code := range []int32{2, 3, 2, 7} {
			c.end(c.active()[0], code)
			pass(time.Duration(i+1) * time.Minute)
		}
		const series = "job_controller_pod_failures_handled_by_failure_policy_total"
		got := wantSeries(t, metrics, map[string]float64{series + `{action="Ignore"}`: 2, series + `{action="Count"}`: 1})
		if _, early := got[series+`{action="FailJob"}`]; early {
			t.Errorf("no Pod has made the Job fail yet: %v", got)
		}
		c.end(c.active()[0], 5)
		pass(time.Minute)
		wantSeries(t, metrics, map[string]float64{series + `{action="FailJob"}`: 1})
	})
}

func TestMetricsCountJobsOfOtherControllersOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		const series = `job_controller_jobs_by_external_controller_total{controller_name="example.com/queue"}`
		external := func(j *batchv1.Job) { j.Spec.ManagedBy = new("example.com/queue") }
		c.create(newJob("before", external))
		metrics := c.measured()
		wantSeries(t, metrics, map[string]float64{series: 1})
		key := c.create(newJob("after", external))
		c.create(newJob("ours", func(j *batchv1.Job) { j.Spec.ManagedBy = new(batchv1.JobControllerName) }))
		c.edit(key, func(j *batchv1.Job) { j.Labels = map[string]string{"team": "a"} })
		got := wantSeries(t, metrics, map[string]float64{series: 2})
		if _, counted := got[`job_controller_jobs_by_external_controller_total{controller_name="`+batchv1.JobControllerName+`"}`]; counted {
			t.Errorf("a Job of this controller is among the series %v", got)
		}
	})
}

// The difference of the two counters is how many Pods that have ended are still to be counted.
func TestMetricsCountPodsThatHaveEndedAndHaveTheFinalizer(t *testing.T) {
	const added, deleted = `job_controller_terminated_pods_tracking_finalizer_total{event="add"}`,
		`job_controller_terminated_pods_tracking_finalizer_total{event="delete"}`
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var refuse atomic.Bool
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "patch" && refuse.Load() {
				return fakeapi.Forbidden("no Pod may be changed")
			}
			return nil
		})
		metrics := c.measured()
		c.create(newJob("report", wants(3, 3)))
		refuse.Store(true)
		pods := c.active()
		c.end(pods[0], 0)
		c.end(pods[1], 0)
		pass(time.Second)
		got := wantSeries(t, metrics, map[string]float64{added: 2})
		if got[deleted] != 0 {
			t.Errorf("the finalizers are still there, and the series are %v", got)
		}
		refuse.Store(false)
		c.end(pods[2], 0)
		pass(10 * time.Minute)
		wantSeries(t, metrics, map[string]float64{added: 3, deleted: 3})
	})
}

func TestMetricsCountRunsThatWereDueWhileTheCacheWasStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var metrics prometheus.Collector
		managertest.Run(t, c.Config(), managertest.MakingMetrics(New, Defaults(), &metrics))
		synctest.Wait()
		c.pods.HoldWatches(true)
		key := c.create(newJob("slow", wants(2, 1)))
		c.edit(key, func(j *batchv1.Job) { j.Spec.Parallelism = new(int32(2)) })
		synctest.Wait()
		const skips = `job_controller_stale_sync_skips_total{group="",resource="pods"}`
		if got := managertest.Series(t, metrics)[skips]; got != 0 || len(c.active()) != 1 {
			t.Errorf("while the cache does not show the Pod, %v runs are counted, and there are %d Pods", got, len(c.active()))
		}
		c.pods.HoldWatches(false)
		synctest.Wait()
		if got := managertest.Series(t, metrics)[skips]; got == 0 || len(c.active()) != 2 {
			t.Errorf("after that, %v runs are counted, and there are %d Pods", got, len(c.active()))
		}
	})
}
