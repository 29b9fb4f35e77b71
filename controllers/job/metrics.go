// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller/podwriter"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
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
	creates  *prometheus.CounterVec
	judged   *prometheus.CounterVec
	external *prometheus.CounterVec
	open     *prometheus.CounterVec

	mu             sync.Mutex
	ofJobs, ofPods baseline
}

// baseline is the state up to which objects were counted when the controller began to run. A process that stands by counts
// nothing, though its informers bring events: the process that leads counts them.
type baseline struct {
	known bool
	at    object.Version
}

// later reports whether an event is to be counted: it came after the state that was counted.
func (c *counts) later(b *baseline, v object.Version) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return b.known && !b.at.AtLeast(v)
}

// begin counts what there is when the controller begins to run. From then on events count.
func (c *counts) begin(ctx context.Context, jobs cache.SharedInformer[*batchv1.Job], pods cache.SharedInformer[*corev1.Pod]) {
	if jobs.WaitForSync(ctx) != nil || pods.WaitForSync(ctx) != nil {
		return // it stops
	}
	c.mu.Lock()
	allJobs, allPods := jobs.Snapshot(), pods.Snapshot()
	c.ofJobs, c.ofPods = baseline{true, allJobs.Version()}, baseline{true, allPods.Version()}
	c.mu.Unlock()
	for _, job := range allJobs.All() {
		c.countExternal(job)
	}
	for _, pod := range allPods.All() {
		if endedTracked(pod) {
			c.open.WithLabelValues("add").Inc()
		}
	}
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
	c.creates = c.Counter("job_controller_job_pods_creation_total", "Creations of Pods, by why the Pods were needed.", "reason", "status")
	c.judged = c.Counter("job_controller_pod_failures_handled_by_failure_policy_total",
		"Failed Pods that a rule of the Pod failure policy matched, by the action of the rule.", "action")
	c.external = c.Counter("job_controller_jobs_by_external_controller_total", "Jobs that another controller manages.", "controller_name")
	c.open = c.Counter("job_controller_terminated_pods_tracking_finalizer_total",
		"Pods that have ended and have the finalizer of the controller (add), and that have lost it (delete).", "event")
	return c
}

// The values of labels.
const (
	succeeded = "succeeded"
	failed    = "failed"

	// What a run is about. A plan has one of them.
	reconciling = "reconciling" // the Job ends or is being deleted, or the run came to no decision
	tracking    = "tracking"
	podsCreated = "pods_created" // or will be, when a backoff is over
	podsDeleted = "pods_deleted"

	// Why Pods are created.
	createNew             = "new"
	replaceFailed         = "recreate_failed"
	replaceFailedOrEnding = "recreate_terminating_or_failed"
)

// ran counts a run. p is nil if the run came to no decision.
func (c *counts) ran(job *batchv1.Job, p *plan, took time.Duration, err error) {
	action, result := reconciling, "success"
	if p != nil {
		action = p.action
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

// created counts the Pods that a run has created, and the creates that failed.
func (c *counts) created(p *plan, made int, err error) {
	why := createNew
	switch {
	case p.failed > 0 && replacesOnlyFailed(p.job):
		why = replaceFailed
	case p.failed > 0 || p.terminating > 0:
		why = replaceFailedOrEnding
	}
	if made > 0 {
		c.creates.WithLabelValues(why, succeeded).Add(float64(made))
	}
	if refused, is := errors.AsType[*podwriter.CreateError](err); is {
		c.creates.WithLabelValues(why, failed).Add(float64(refused.Failed))
	}
}

// applied counts the failed Pods of a plan that a rule of the Pod failure policy decided about.
func (c *counts) applied(p *plan) {
	for action, n := range p.judged {
		c.judged.WithLabelValues(string(action)).Add(float64(n))
	}
}

// managedBy is where a Job says which controller manages it.
var managedBy = wire.Path{Names: "spec.managedBy", Numbers: [4]int32{2, 15}}

// seesJob is a predicate that chooses every change. It counts the Jobs of other controllers when
// the informer sees them for the first time.
func (c *counts) seesJob(e cache.Event[*batchv1.Job]) bool {
	if (e.Kind == cache.Added || e.Kind == cache.Replaced) && c.later(&c.ofJobs, e.New.Version()) {
		c.countExternal(e.New)
	}
	return true
}

// countExternal counts a Job of another controller. One that cannot be read is reported by its run.
func (c *counts) countExternal(job cache.Item[*batchv1.Job]) {
	if name, err := job.Text(managedBy); err == nil && name != "" && name != batchv1.JobControllerName {
		c.external.WithLabelValues(name).Inc()
	}
}

// seesPod is a predicate that chooses every change. It counts Pods that have ended when they get
// the finalizer or lose it. Only Pods with the finalizer have their phase read.
func (c *counts) seesPod(e cache.Event[*corev1.Pod]) bool {
	if !c.later(&c.ofPods, e.Item().Version()) {
		return true
	}
	was, is := endedTracked(e.Old), endedTracked(e.New)
	if was && (!is || e.Kind == cache.Replaced) {
		c.open.WithLabelValues("delete").Inc()
	}
	if is && (!was || e.Kind == cache.Replaced) {
		c.open.WithLabelValues("add").Inc()
	}
	return true
}

// endedTracked reports whether a state of a Pod, if there is one, has ended and has the finalizer.
func endedTracked(pod cache.Item[*corev1.Pod]) bool {
	if !pod.Exists() || !isTracked(pod.Meta()) {
		return false
	}
	in, err := pod.Text(phase)
	return err == nil && podstate.Final(corev1.PodPhase(in))
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
