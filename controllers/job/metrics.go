// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/setpoint-io/setpoint/controllers"
)

// counts are the metrics of kube-controller-manager that this controller has.
// Source: k8s.io/kubernetes/pkg/controller/job/metrics.
type counts struct {
	controllers.Metrics

	runs     *prometheus.CounterVec
	times    *prometheus.HistogramVec
	finished *prometheus.CounterVec
	pods     *prometheus.CounterVec
	indexes  *prometheus.CounterVec
}

func newCounts() *counts {
	c := &counts{}
	c.runs = c.Counter("job_controller_job_syncs_total", "Runs for Jobs that have not ended.", "completion_mode", "result", "action")
	c.times = c.Histogram("job_controller_job_sync_duration_seconds", "How long the runs took.",
		prometheus.ExponentialBuckets(0.004, 2, 15), "completion_mode", "result", "action")
	c.finished = c.Counter("job_controller_jobs_finished_total", "Jobs that have ended, by the reason of their last condition.",
		"completion_mode", "result", "reason")
	c.pods = c.Counter("job_controller_job_pods_finished_total", "Pods that have ended and are counted.", "completion_mode", "result")
	c.indexes = c.Counter("job_controller_job_finished_indexes_total", "Indexes that are complete or have failed.", "status", "backoffLimit")
	return c
}

// The values of labels.
const (
	succeeded   = "succeeded"
	failed      = "failed"
	tracking    = "tracking"
	podsCreated = "pods_created"
	podsDeleted = "pods_deleted"
)

// ran counts a run. p is nil if the run came to no decision.
func (c *counts) ran(job *batchv1.Job, p *plan, took time.Duration, err error) {
	action, result := "reconciling", "success"
	switch {
	case p == nil:
	case len(p.remove)+len(p.stop) > 0:
		action = podsDeleted
	case len(p.create) > 0:
		action = podsCreated
	default:
		action = tracking
	}
	if err != nil {
		result = "error"
	}
	c.runs.WithLabelValues(modeOf(job), result, action).Inc()
	c.times.WithLabelValues(modeOf(job), result, action).Observe(took.Seconds())
}

// wrote counts what a status says that the one before it did not.
func (c *counts) wrote(job *batchv1.Job, was, is *batchv1.JobStatus) {
	mode, done := modeOf(job), int(is.Succeeded-was.Succeeded)
	if indexed(job) {
		n := int(completions(job))
		done = parseIntervals(is.CompletedIndexes, n).size() - parseIntervals(was.CompletedIndexes, n).size()
		limit := "global"
		if backsOffPerIndex(job) {
			limit = "perIndex"
			more := parseIntervals(text(is.FailedIndexes), n).size() - parseIntervals(text(was.FailedIndexes), n).size()
			grow(c.indexes.WithLabelValues(failed, limit), more)
		}
		grow(c.indexes.WithLabelValues(succeeded, limit), done)
	}
	grow(c.pods.WithLabelValues(mode, succeeded), done)
	grow(c.pods.WithLabelValues(mode, failed), int(is.Failed-was.Failed))
	before, after := *job, *job
	before.Status, after.Status = *was, *is
	end := finished(&after)
	switch {
	case end == nil || finished(&before) != nil:
	case end.Type == batchv1.JobComplete:
		c.finished.WithLabelValues(mode, succeeded, end.Reason).Inc()
	default:
		c.finished.WithLabelValues(mode, failed, end.Reason).Inc()
	}
}

// grow adds to a counter. An elastic Job that becomes smaller loses indexes, which are counted already.
func grow(c prometheus.Counter, n int) { c.Add(float64(max(n, 0))) }

func modeOf(job *batchv1.Job) string {
	if indexed(job) {
		return string(batchv1.IndexedCompletion)
	}
	return string(batchv1.NonIndexedCompletion)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
