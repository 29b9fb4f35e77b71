// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/setpoint-io/setpoint/internal/managertest"
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
		got := managertest.Series(t, metrics)
		for series, want := range map[string]float64{
			`job_controller_jobs_finished_total{completion_mode="NonIndexed",reason="CompletionsReached",result="succeeded"}`: 1,
			`job_controller_jobs_finished_total{completion_mode="Indexed",reason="CompletionsReached",result="succeeded"}`:    1,
			`job_controller_jobs_finished_total{completion_mode="NonIndexed",reason="BackoffLimitExceeded",result="failed"}`:  1,
			`job_controller_job_pods_finished_total{completion_mode="NonIndexed",result="succeeded"}`:                         3,
			`job_controller_job_pods_finished_total{completion_mode="NonIndexed",result="failed"}`:                            2,
			`job_controller_job_pods_finished_total{completion_mode="Indexed",result="succeeded"}`:                            2,
			`job_controller_job_pods_finished_total{completion_mode="Indexed",result="failed"}`:                               0,
			`job_controller_job_finished_indexes_total{backoffLimit="global",status="succeeded"}`:                             2,
		} {
			if has, ok := got[series]; !ok || has != want {
				t.Errorf("%s is %v, want %v", series, has, want)
			}
		}
		created := `{action="pods_created",completion_mode="NonIndexed",result="success"}`
		if runs, times := got["job_controller_job_syncs_total"+created], got["job_controller_job_sync_duration_seconds"+created]; runs != 3 || times != 3 {
			t.Errorf("%v runs have created Pods, and %v were timed, want 3", runs, times)
		}
		if t.Failed() {
			t.Log(got)
		}
	})
}
