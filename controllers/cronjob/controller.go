// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/status"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "cronjob-controller"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many CronJobs are worked on at a time.
	Workers int
}

// kind is what CronJobs are.
var kind = object.Resource{Group: batchv1.GroupName, Version: "v1", Plural: "cronjobs", Kind: "CronJob", Namespaced: true}

// Rights returns what the controller must be allowed to do. The caller owns the result. Clusters
// with the admission plugin OwnerReferencesPermissionEnforcement require the right to
// cronjobs/finalizers for the owner references of Jobs.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{batchv1.GroupName}, Resources: []string{"cronjobs"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{batchv1.GroupName}, Resources: []string{"cronjobs/status", "cronjobs/finalizers"}, Verbs: []string{"update"}},
		{APIGroups: []string{batchv1.GroupName}, Resources: []string{"jobs"}, Verbs: []string{"get", "list", "watch", "create", "delete"}},
		events.Rights(),
	}
}

type reconciler struct {
	cronJobs cache.SharedInformer[*batchv1.CronJob]
	jobs     cache.SharedInformer[*batchv1.Job]
	recorder *events.Recorder
	skew     prometheus.Observer // between a slot and the creation of its Job, in seconds
	log      *slog.Logger
	now      func() time.Time

	mu       sync.Mutex
	memories map[object.Key]memory
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	var m controllers.Metrics
	r := &reconciler{
		skew:     newSkew(&m),
		cronJobs: cache.Informer[*batchv1.CronJob](h).With(client.MetadataAnswer()),
		jobs:     cache.Informer[*batchv1.Job](h),
		recorder: h.Recorder(Name),
		log:      h.Logger().With("controller", Name),
		now:      time.Now,
		memories: map[object.Key]memory{},
	}
	return m.Of(controller.New(Name, r.reconcile,
		controller.For(r.cronJobs),
		controller.Owns(r.jobs),
		controller.Workers(o.Workers),
	)), nil
}

// reconcile takes the next step of one CronJob.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	cronJob, err := r.cronJobs.Get(req.Key)
	if apierrors.IsNotFound(err) {
		r.forget(req.Key)
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	jobs, err := r.jobsOf(ctx, cronJob)
	if err != nil {
		return controller.Result{}, err
	}
	p := decide(view{cronJob: cronJob, jobs: jobs, now: r.now(), memory: r.recall(cronJob)})
	r.remember(req.Key, p.memory)
	r.recorder.Record(cronJob, p.events...)
	for _, reason := range p.reasons {
		controller.Because(ctx, reason)
	}
	err = r.apply(ctx, cronJob, &p)
	return controller.Result{After: p.after, Always: true}, errors.Join(err, r.writeStatus(ctx, cronJob, p.status))
}

// jobsOf returns the Jobs that a CronJob controls. A Job that the status names as active and that
// the cache does not have is read from the server: another manager may have started it just now.
func (r *reconciler) jobsOf(ctx context.Context, cronJob *batchv1.CronJob) ([]*batchv1.Job, error) {
	jobs, err := cache.Objects(r.jobs.Snapshot().ControlledBy(cronJob.Namespace, cronJob.UID))
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, job := range jobs {
		known[string(job.UID)] = true
	}
	for _, ref := range cronJob.Status.Active {
		if known[string(ref.UID)] {
			continue
		}
		key := object.Key{Namespace: cronJob.Namespace, Name: ref.Name}
		job, err := r.jobs.Server().Get(ctx, key)
		switch {
		case client.AbsentAt(err, key):
		case err != nil:
			r.sayNotRead(cronJob, jobs, err)
			return nil, fmt.Errorf("reading job %s/%s, which the status names as active: %w", cronJob.Namespace, ref.Name, err)
		case job.UID == ref.UID:
			jobs = append(jobs, job)
		}
	}
	return jobs, nil
}

// sayNotRead says that a running Job cannot be read, if it is to make place for another one. jobs are
// the Jobs that can be.
func (r *reconciler) sayNotRead(cronJob *batchv1.CronJob, jobs []*batchv1.Job, err error) {
	if cronJob.Spec.ConcurrencyPolicy != batchv1.ReplaceConcurrent {
		return
	}
	p := decide(view{cronJob: cronJob, jobs: jobs, now: r.now(), memory: r.recall(cronJob)})
	if !p.slot.IsZero() {
		r.recorder.Warning(cronJob, reasonNotRead, "Get", "Get job: %v", err)
	}
}

// apply deletes and creates Jobs as a plan says, and notes in its status what it did. It tries
// everything that does not depend on what failed.
func (r *reconciler) apply(ctx context.Context, cronJob *batchv1.CronJob, p *plan) error {
	var failures []error
	for _, job := range p.expired {
		failures = append(failures, r.delete(ctx, cronJob, job))
	}
	if !p.slot.IsZero() {
		failures = append(failures, r.start(ctx, cronJob, p))
	}
	return errors.Join(failures...)
}

// start creates the Job of the plan's slot, after those that it replaces are deleted.
func (r *reconciler) start(ctx context.Context, cronJob *batchv1.CronJob, p *plan) error {
	for _, job := range p.replace {
		if err := r.delete(ctx, cronJob, job); err != nil {
			return err
		}
		p.inactive(job.UID)
	}
	wanted, err := newJob(cronJob, p.slot)
	if err != nil {
		return controller.Terminal(fmt.Errorf("making a job from the template: %w", err))
	}
	job, err := r.jobs.Create(ctx, wanted)
	switch {
	case err == nil:
		r.recorder.Normal(cronJob, reasonCreated, "Create", "Created job %v", job.Name)
		r.skew.Observe(job.CreationTimestamp.Sub(p.slot).Seconds())
	case client.NamespaceGone(err):
		p.after = 0 // the CronJob goes too
		return nil
	case apierrors.IsAlreadyExists(err):
		if job, err = r.existing(ctx, cronJob, wanted); err != nil || job == nil {
			return err
		}
	default:
		r.recorder.Warning(cronJob, reasonNotCreated, "Create", "Error creating job: %v", err)
		return fmt.Errorf("creating job %s: %w", wanted.Name, err)
	}
	p.started(job, p.slot)
	return nil
}

// existing returns the Job that has the name of a slot, or nil if it is not this CronJob's.
func (r *reconciler) existing(ctx context.Context, cronJob *batchv1.CronJob, wanted *batchv1.Job) (*batchv1.Job, error) {
	job, err := r.jobs.Server().Get(ctx, object.KeyOf(wanted))
	if err != nil {
		return nil, fmt.Errorf("reading job %s, which exists already: %w", wanted.Name, err)
	}
	if !metav1.IsControlledBy(job, cronJob) {
		r.recorder.Warning(cronJob, reasonNotCreated, "Create",
			"Error creating job: job %s exists, and this CronJob does not control it; delete or rename it", wanted.Name)
		controller.Because(ctx, controller.Reason{
			Code: codeNameTaken, Text: "a Job of another client has the name {job}", Params: controller.With("job", wanted.Name), Ends: "that Job is deleted",
		})
		return nil, nil
	}
	return job, nil
}

// delete deletes a Job with its Pods.
func (r *reconciler) delete(ctx context.Context, cronJob *batchv1.CronJob, job *batchv1.Job) error {
	err := r.jobs.Delete(ctx, object.KeyOf(job), client.IfUID(job.UID), client.Propagation(metav1.DeletePropagationBackground))
	if err != nil && !apierrors.IsNotFound(err) {
		r.recorder.Warning(cronJob, reasonNotDeleted, "Delete", "Deleted job: %v", err)
		return fmt.Errorf("deleting job %s: %w", job.Name, err)
	}
	r.recorder.Normal(cronJob, reasonDeleted, "Delete", "Deleted job %v", job.Name)
	return nil
}

// writeStatus writes a status that has changed.
func (r *reconciler) writeStatus(ctx context.Context, cronJob *batchv1.CronJob, now batchv1.CronJobStatus) error {
	next := *cronJob
	next.Status = now
	err := status.Write(ctx, r.cronJobs, cronJob, &next)
	if apierrors.IsNotFound(err) {
		return nil // it was deleted meanwhile
	}
	return err
}

// recall returns what the controller remembers of a CronJob. Another one of the name is new.
func (r *reconciler) recall(cronJob *batchv1.CronJob) memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.memories[object.KeyOf(cronJob)]
	if m.uid != cronJob.UID {
		return memory{uid: cronJob.UID}
	}
	return m
}

func (r *reconciler) remember(key object.Key, m memory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memories[key] = m
}

func (r *reconciler) forget(key object.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.memories, key)
}
