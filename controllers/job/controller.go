// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/podwriter"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/controller/selectors"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "job-controller"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many Jobs are worked on at a time.
	Workers int
	// Burst is how many Pods are created or deleted in one run. A Job that ends or is suspended
	// deletes all of its Pods.
	Burst int
	// MaxUncounted is how many Pods the status lists as uncounted, which keeps it below 20 KB.
	MaxUncounted int
	// Batch is how long changes of Pods are collected after a run has begun, so that they need
	// one run and one status. Pods that end together do not wait so long: see pace.go.
	Batch time.Duration
	// KeepStartTime leaves the start time of a Job that is suspended in its status, as upstream
	// does without the feature gate MutableSchedulingDirectivesForSuspendedJobs.
	KeepStartTime bool
	// Scheduling makes a Workload and a PodGroup for each Job, as spec.scheduling says. It needs a
	// server that serves scheduling.k8s.io/v1beta1.
	Scheduling bool
}

// check returns an error for options that do no work.
func (o Options) check() error {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return err
	}
	if o.Burst < 1 || o.MaxUncounted < 1 {
		return fmt.Errorf("a burst of %d and %d uncounted Pods; want 1 or more", o.Burst, o.MaxUncounted)
	}
	return nil
}

// jobs is what Jobs are.
var jobs = object.Resource{Group: batchv1.GroupName, Version: "v1", Plural: "jobs", Kind: "Job", Namespaced: true}

// Rights returns what the controller must be allowed to do. The caller owns the result. Clusters
// with the admission plugin OwnerReferencesPermissionEnforcement require the right to
// jobs/finalizers for the owner references of Pods.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{batchv1.GroupName}, Resources: []string{"jobs"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{batchv1.GroupName}, Resources: []string{"jobs/status", "jobs/finalizers"}, Verbs: []string{"update"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{APIGroups: []string{schedulingv1beta1.GroupName}, Resources: []string{"workloads", "podgroups"}, Verbs: []string{"get", "list", "watch", "create", "patch"}},
		events.Rights(),
	}
}

// How long a Job waits after a run that failed.
// Source: k8s.io/kubernetes/pkg/controller/job, DefaultJobApiBackOff, MaxJobApiBackOff.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// New returns the controller, built on h, which runs it. It has two loops: one for Jobs, and one
// for Pods whose Job is gone.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := newReconciler(h, o)
	selecting := selectors.NewIndex(r.jobs, adopts)
	options := []controller.Option{
		controller.For(r.jobs, r.counts.seesJob),
		controller.Watches(r.pods, wakes(selecting), r.counts.seesPod, matters),
		controller.Workers(o.Workers),
		controller.RateLimit(&workqueue.Exponential[object.Key]{Base: firstRetry, Max: lastRetry}),
	}
	if r.scheduling != nil {
		options = append(options,
			controller.Watches(r.scheduling.workloads, r.scheduling.jobsOfWorkload, predicate.GenerationChanged),
			controller.Watches(r.scheduling.groups, jobOfGroup, predicate.GenerationChanged),
		)
	}
	work := controller.New(Name, r.reconcile, options...)
	work.Feed("the first counts", func(ctx context.Context, _ func(object.Key)) { r.counts.begin(ctx, r.jobs, r.pods) })
	r.counts.StaleSyncSkips("job_controller")
	return r.counts.Of(controller.Join(Name, work, newSweeper(r, o))), nil
}

func newReconciler(h controller.Host, o Options) *reconciler {
	pods := cache.Informer[*corev1.Pod](h).With(client.MetadataAnswer())
	recorder := h.Recorder(Name)
	r := &reconciler{
		options:  o,
		jobs:     cache.Informer[*batchv1.Job](h).With(client.MetadataAnswer()),
		pods:     pods,
		open:     newOpenPods(pods),
		orphans:  selectors.NewOrphans(pods),
		recorder: recorder,
		log:      h.Logger().With("controller", Name),
		now:      time.Now,
		memories: memories{of: map[object.Key]memory{}},
		counts:   newCounts(),
	}
	if o.Scheduling {
		r.scheduling = newScheduling(h, r.jobs)
	}
	r.writer = podwriter.New(h.Client(), recorder).WithSlots(slot)
	r.remover = podwriter.New(h.Client(), recorder).BeforeDelete(r.untrack)
	return r
}

type reconciler struct {
	options Options
	jobs    cache.SharedInformer[*batchv1.Job]
	pods    cache.SharedInformer[*corev1.Pod]
	open    openPods
	orphans *selectors.Labelled[*corev1.Pod]
	// writer creates Pods, and deletes those that are still to be counted. remover deletes
	// those that are not: it removes their finalizers first.
	writer, remover *podwriter.Writer
	scheduling      *scheduling // nil with the feature gate off
	recorder        *events.Recorder
	log             *slog.Logger
	now             func() time.Time
	memories        memories
	counts          *counts
}

// adopts returns the selector of the Pods that a Job may adopt. A Job that is over adopts none.
func adopts(job *batchv1.Job) (labels.Selector, error) {
	if finished(job) != nil || isOthers(job) {
		return labels.Nothing(), nil
	}
	return metav1.LabelSelectorAsSelector(job.Spec.Selector)
}
